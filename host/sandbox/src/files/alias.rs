//! Other ways to a protected file: links with protected names, hard links, and directories
//! that would carry a protected name to another place.
//!
//! Not covered: a protected name that is a link, lies in another directory than what it
//! means, and does not lie in the mount's own directory.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use belljar_policy::PROTECTED_NAMES;
use rustix::fs::{Dir, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use super::names::is_protected;
use super::walk::{Follow, MAX_DEPTH, Place, Start, kind, walk};

/// Entries looked at before a directory is renamed. A directory with more stays where it
/// is: the search has to be complete, and it has to end.
const MAX_SEARCHED: usize = 20_000;

/// Whether the place is what a link with a protected name means, or lies below it: with
/// `AGENTS.md -> CLAUDE.md`, to write the one is to write the other. Looks at the links in
/// the place's directory and in the mount's.
pub(super) fn is_meant_by_protected_link(root: &Start, place: &Place) -> bool {
    let near = || {
        let dir = place.dir().try_clone_to_owned().ok()?;
        Some(Start {
            dir: Arc::new(File::from(dir)),
            real: place.parent_real().into(),
            protected: false,
        })
    };
    meant_from(root.dir.as_fd(), || Some(root.clone()), place)
        || (!place.parent_real().is_empty() && meant_from(place.dir(), near, place))
}

fn meant_from(dir: BorrowedFd<'_>, start: impl Fn() -> Option<Start>, place: &Place) -> bool {
    PROTECTED_NAMES.iter().any(|name| {
        // Most often there is no such link, and this is one system call.
        if readlinkat(dir, *name, Vec::new()).is_err() {
            return false;
        }
        let Some(start) = start() else { return true };
        match walk(&start, name, Follow::Yes) {
            Ok(meant) => is_at_or_below(&place.real, &meant.real),
            Err(_) => false,
        }
    })
}

fn is_at_or_below(path: &str, above: &str) -> bool {
    above.is_empty()
        || path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What a directory holds, as far as renaming it is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing protected.
    Plain,
    /// A protected name, at some depth.
    Protected,
    /// More than is searched.
    TooMuch,
}

/// Searches a directory for protected names. Moving a directory moves what it holds, and a
/// tree prepared elsewhere must not become somebody's `.belljar`.
pub(super) fn content(dir: BorrowedFd<'_>, name: &OsStr) -> Result<Content, Errno> {
    let mut left = MAX_SEARCHED;
    search(dir, name, 0, &mut left)
}

fn search(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    depth: usize,
    left: &mut usize,
) -> Result<Content, Errno> {
    if depth > MAX_DEPTH {
        return Ok(Content::TooMuch);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(parent, name, flags, Mode::empty())?;
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if is_protected(&name.to_string_lossy()) {
            return Ok(Content::Protected);
        }
        *left = match left.checked_sub(1) {
            Some(left) => left,
            None => return Ok(Content::TooMuch),
        };
        let is_dir = match entry.file_type() {
            FileType::Unknown => {
                let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                kind(&rustix::fs::statat(&dir, name, flags)?) == FileType::Directory
            }
            known => known == FileType::Directory,
        };
        if is_dir {
            match search(dir.as_fd(), name, depth + 1, left)? {
                Content::Plain => {}
                found => return Ok(found),
            }
        }
    }
    Ok(Content::Plain)
}
