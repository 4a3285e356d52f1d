//! `file_list`: what is in a directory.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod ignored;

use belljar_guest::prelude::*;
use ignored::Ignored;
use std::fmt::Write as _;
use std::fs::{self, DirEntry, FileType};

/// Entries shown when the model names no limit.
const DEFAULT_ENTRIES: usize = 500;

/// The most entries of one answer, whatever the model asks for.
const MAX_ENTRIES: usize = 5_000;

/// The deepest listing: deeper trees are for `file_find`.
const MAX_DEPTH: u32 = 10;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The directory, relative to the workspace. Default: the workspace itself.
    path: Option<String>,
    /// Levels of directories to show, 1 to 10. Default: 1, only the directory's own entries.
    #[schemars(range(min = 1, max = 10))]
    depth: Option<u32>,
    /// Most entries to show, up to 5000. Default: 500.
    #[schemars(range(min = 1, max = 5000))]
    limit: Option<usize>,
    /// Globs of entries to leave out, with all below them: `node_modules` or `*.pyc` by name,
    /// `src/*/gen` by path. Default: none.
    #[schemars(length(max = 100))]
    ignore: Option<Vec<String>>,
}

fn file_list(args: Args) -> ToolResult {
    let depth = args.depth.unwrap_or(1);
    let limit = args.limit.unwrap_or(DEFAULT_ENTRIES).min(MAX_ENTRIES);
    if depth == 0 || depth > MAX_DEPTH || limit == 0 {
        return Err(ToolError::InvalidArguments(format!(
            "`depth` is 1 to {MAX_DEPTH} and `limit` at least 1"
        )));
    }
    let ignored = Ignored::new(args.ignore.as_deref().unwrap_or_default())?;
    let given = args.path.as_deref().unwrap_or(".");
    let path = WorkspacePath::parse(given)?;
    let metadata = fs::metadata(&path).at(given)?;
    if !metadata.is_dir() {
        return Err(ToolError::Failed(format!(
            "`{given}` is a file, not a directory; read it with `file_read`"
        )));
    }
    let mut listing = Listing::new(limit, ignored);
    let entries = sorted(&path).at(given)?;
    listing.add(&path, "", entries, depth);
    Ok(Output::text(listing.finish()))
}

/// The lines of an answer.
struct Listing {
    text: String,
    shown: usize,
    /// Entries seen after the limit, in directories already read.
    left: usize,
    unread: usize,
    limit: usize,
    ignored: Ignored,
    /// Entries that the caller wanted left out.
    hidden: usize,
}

impl Listing {
    fn new(limit: usize, ignored: Ignored) -> Listing {
        Listing { text: String::new(), shown: 0, left: 0, unread: 0, limit, ignored, hidden: 0 }
    }

    /// Adds the entries of a directory; `below` is its path from where the listing began.
    fn add(
        &mut self,
        directory: &WorkspacePath,
        below: &str,
        entries: Vec<(String, DirEntry)>,
        depth: u32,
    ) {
        for (name, entry) in entries {
            let kind = entry.file_type();
            let is_directory = kind.as_ref().is_ok_and(FileType::is_dir);
            let path = directory.join(&name);
            let below = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
            if self.ignored.matches(&below, path.shown(), is_directory) {
                self.hidden += 1;
                continue;
            }
            if self.shown == self.limit {
                self.left += 1;
                continue;
            }
            self.shown += 1;
            self.line(&path, kind.as_ref().ok(), &entry);
            // Nobody lists a repository to see Git's own files.
            if is_directory && depth > 1 && name != ".git" {
                match sorted(&path) {
                    Ok(entries) => self.add(&path, &below, entries, depth - 1),
                    Err(_) => self.unread += 1,
                }
            }
        }
    }

    fn line(&mut self, path: &WorkspacePath, kind: Option<&FileType>, entry: &DirEntry) {
        let _ = match kind {
            Some(kind) if kind.is_dir() => writeln!(self.text, "dir   {path}/"),
            Some(kind) if kind.is_symlink() => match fs::read_link(path) {
                Ok(target) => writeln!(self.text, "link  {path} -> {}", target.display()),
                Err(_) => writeln!(self.text, "link  {path}"),
            },
            Some(kind) if kind.is_file() => match entry.metadata() {
                Ok(metadata) => writeln!(self.text, "file  {path} ({} bytes)", metadata.len()),
                Err(_) => writeln!(self.text, "file  {path}"),
            },
            _ => writeln!(self.text, "other {path}"),
        };
    }

    fn finish(mut self) -> String {
        if self.shown == 0 && self.hidden > 0 {
            return format!("[belljar: `ignore` leaves out all {} entries]", self.hidden);
        }
        if self.shown == 0 {
            return "[belljar: the directory is empty]".to_owned();
        }
        if self.left > 0 {
            let _ = writeln!(
                self.text,
                "[belljar: cut after {} entries, at least {} more; list a subdirectory or raise `limit`]",
                self.shown, self.left
            );
        }
        if self.unread > 0 {
            let _ = writeln!(self.text, "[belljar: {} directories could not be read]", self.unread);
        }
        self.text
    }
}

/// A directory's entries, sorted by name: the order of the file system is an accident.
fn sorted(path: &WorkspacePath) -> std::io::Result<Vec<(String, DirEntry)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        entries.push((entry.file_name().to_string_lossy().into_owned(), entry));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(entries)
}

belljar_guest::tools! {
    file_list(Args): "Lists a directory of the workspace: one line per entry with its kind (dir, file, \
        link, other), its path and the size of files, sorted by name. Use `depth` to see a small tree at \
        once, and `ignore` to leave entries out. Links are shown, not followed. To find files by name anywhere use `file_find`.",
        hints: read_only | idempotent;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_what_it_left_out() {
        let none = Ignored::new(&[]).unwrap();
        let listing = Listing {
            text: "dir   a/\n".into(),
            shown: 1,
            left: 2,
            unread: 1,
            ..Listing::new(1, none)
        };
        assert_eq!(
            listing.finish(),
            "dir   a/\n\
             [belljar: cut after 1 entries, at least 2 more; list a subdirectory or raise `limit`]\n\
             [belljar: 1 directories could not be read]\n"
        );
    }
}
