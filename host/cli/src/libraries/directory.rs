//! A library in a directory, read as it lies there. No link is followed.

use std::io::Read as _;
use std::path::Path;

use belljar_catalogue::limits::MAX_AGENT_DEPTH;
use belljar_policy::ShownText;
use rustix::fs::FileType;

use super::folder::{FolderEntry, MAX_READING, OpenFolder, UNFIT, WorkDeadline};
use super::gather::FileGatherer;
use crate::setup::exit::Failure;

/// Folders are entered a little deeper than agents are accepted, so that a too deep file is reported.
const MAX_DEPTH: usize = MAX_AGENT_DEPTH + 4;

pub(super) fn read_directory(root: &Path, gather: &mut FileGatherer) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let path = root.to_string_lossy();
        Failure::new(format!("failed to read `{}`: {error}", ShownText::new(&path)))
    };
    let folder = OpenFolder::open(root).map_err(failed)?;
    let mut walk =
        DirectoryWalk { gather, until: WorkDeadline::after_limit(MAX_READING), failed: &failed };
    walk.walk_folder(&folder, "", 0)
}

struct DirectoryWalk<'a> {
    gather: &'a mut FileGatherer,
    until: WorkDeadline,
    /// Converts a fault that ends the reading into a failure.
    failed: &'a dyn Fn(std::io::Error) -> Failure,
}

impl DirectoryWalk<'_> {
    fn walk_folder(
        &mut self,
        folder: &OpenFolder,
        below: &str,
        depth: usize,
    ) -> Result<(), Failure> {
        let mut entries = Vec::new();
        for entry in folder.list_entries().map_err(self.failed)? {
            self.gather.count_entry()?;
            self.until.time_left().map_err(self.failed)?;
            // The entries after an unreadable one are unreadable too.
            let Ok(entry) = entry else { break };
            entries.push(entry);
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        for entry in entries {
            self.until.time_left().map_err(self.failed)?;
            self.handle_entry(folder, &entry, below, depth)?;
        }
        Ok(())
    }

    fn handle_entry(
        &mut self,
        folder: &OpenFolder,
        entry: &FolderEntry,
        below: &str,
        depth: usize,
    ) -> Result<(), Failure> {
        let join = |name: &str| match below {
            "" => name.to_owned(),
            below => format!("{below}/{name}"),
        };
        let Some(text) = entry.name.to_str() else {
            let shown = entry.name.to_string_lossy();
            if self.gather.scope().may_read(&shown) {
                self.gather.leave_out(&join(&shown), "its name is not UTF-8");
            }
            return Ok(());
        };
        let below = join(text);
        match entry.kind {
            FileType::Directory => {
                // Where nothing is looked for; `.git` alone can have thousands of files.
                let skipped = matches!(text, ".git" | "node_modules" | "target");
                if skipped || depth >= MAX_DEPTH {
                    return Ok(());
                }
                match folder.open_folder(text) {
                    Ok(inner) => self.walk_folder(&inner, &below, depth + 1)?,
                    Err(error) => {
                        let why = format!("the folder cannot be read: {error}");
                        self.gather.leave_out(&below, why);
                    }
                }
            }
            FileType::RegularFile => {
                if self.gather.wants_file(&below) {
                    self.gather_file(folder, text, &below)?;
                }
            }
            // A link, a FIFO, a device, or something that cannot be looked at.
            _ => {
                if self.gather.wants_file(&below) {
                    self.gather.leave_out(&below, UNFIT);
                }
            }
        }
        Ok(())
    }

    fn gather_file(&mut self, folder: &OpenFolder, name: &str, below: &str) -> Result<(), Failure> {
        let read = || -> std::io::Result<Option<Vec<u8>>> {
            let (file, meta) = folder.open_file(name)?;
            if folder.is_foreign_link(&meta)? {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            file.take(self.gather.longest_file() as u64 + 1).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        };
        match read() {
            Ok(Some(bytes)) => self.gather.keep_file(below, bytes)?,
            Ok(None) => {
                self.gather.leave_out(below, "it is a second name of somebody else's file");
            }
            Err(error) => self.gather.leave_out(below, format!("it cannot be read: {error}")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn links_and_special_files_are_left_out_and_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret.md"), "x").unwrap();
        let root = dir.path().join("library");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::write(root.join("a.md"), "a").unwrap();
        fs::write(root.join(".git/b.md"), "b").unwrap();
        std::os::unix::fs::symlink(outside.join("secret.md"), root.join("link.md")).unwrap();
        std::os::unix::fs::symlink(&outside, root.join("folder")).unwrap();
        std::os::unix::fs::symlink(&root, root.join("loop")).unwrap();
        mknodat(CWD, root.join("fifo.md"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let mut gather = FileGatherer::default();
        read_directory(&root, &mut gather).unwrap();
        let collected = gather.into_collected();
        let paths: Vec<_> = collected.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a.md"]);
        let left: Vec<_> = collected.left_out.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(left, ["fifo.md", "link.md"]);
    }
}
