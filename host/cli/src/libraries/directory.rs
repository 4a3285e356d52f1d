//! A library in a directory, read as it lies there. No link is followed.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use belljar_definition::MAX_DEFINITION;
use belljar_policy::Shown;
use belljar_session::bounds::MAX_AGENT_DEPTH;

use super::gather::Gather;
use crate::exit::Failure;

/// Folders are entered a little deeper than agents are taken, so that what lies too deep is said.
const MAX_DEPTH: usize = MAX_AGENT_DEPTH + 4;

pub(super) fn read(root: &Path, gather: &mut Gather) -> Result<(), Failure> {
    folder(root, "", 0, gather)
}

fn folder(path: &Path, below: &str, depth: usize, gather: &mut Gather) -> Result<(), Failure> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if depth > 0 => {
            gather.leave_out(below, format!("the folder cannot be read: {error}"));
            return Ok(());
        }
        Err(error) => {
            let path = path.to_string_lossy();
            return Err(Failure::new(format!("failed to read `{}`: {error}", Shown::new(&path))));
        }
    };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        gather.count()?;
        names.push((entry.file_name(), entry.file_type().ok()));
    }
    names.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, kind) in names {
        let shown = name.to_string_lossy();
        let join = |name: &str| match below {
            "" => name.to_owned(),
            below => format!("{below}/{name}"),
        };
        let Some(text) = name.to_str() else {
            if shown.to_lowercase().ends_with(".md") {
                gather.leave_out(&join(&shown), "its name is not UTF-8");
            }
            continue;
        };
        let (path, below) = (path.join(text), join(text));
        match kind {
            Some(kind) if kind.is_dir() => {
                // Where nothing is looked for; `.git` alone can have thousands of files.
                let skipped = matches!(text, ".git" | "node_modules" | "target");
                if !skipped && depth < MAX_DEPTH {
                    folder(&path, &below, depth + 1, gather)?;
                }
            }
            Some(kind) if kind.is_file() => {
                if gather.wants(&below) {
                    file(&path, &below, gather)?;
                }
            }
            // A link, a FIFO, a device, or something that cannot be looked at.
            Some(_) | None => {
                if gather.wants(&below) {
                    gather.leave_out(&below, "it is a link or no regular file");
                }
            }
        }
    }
    Ok(())
}

fn file(path: &Path, below: &str, gather: &mut Gather) -> Result<(), Failure> {
    let read = || -> std::io::Result<Option<Vec<u8>>> {
        let file = open(path)?;
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.take(MAX_DEFINITION as u64 + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    };
    match read() {
        Ok(Some(bytes)) => gather.take(below, bytes)?,
        Ok(None) => gather.leave_out(below, "it is a link or no regular file"),
        Err(error) => gather.leave_out(below, format!("it cannot be read: {error}")),
    }
    Ok(())
}

/// Opened without following a link that has taken the file's place, and without waiting for the
/// writer of a FIFO that has.
#[cfg(unix)]
fn open(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

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
        let mut gather = Gather::default();
        read(&root, &mut gather).unwrap();
        let collected = gather.finish();
        let paths: Vec<_> = collected.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a.md"]);
        let left: Vec<_> = collected.left_out.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(left, ["fifo.md", "link.md"]);
    }
}
