//! Other ways to a protected file: links with protected names, hard links, and directories
//! that would carry a protected name to another place.
//!
//! Not covered: a protected name that is a link, lies in another directory than what it
//! means, and does not lie in the mount's own directory.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use belljar_policy::PROTECTED_NAMES;
use rustix::fs::{Dir, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use super::closed::Closed;
use super::names::is_protected;
use super::walk::{Follow, MAX_DEPTH, Place, Start, kind, walk_noting};

/// Entries looked at before a directory is renamed. A directory with more stays where it
/// is: the search has to be complete, and it has to end.
const MAX_SEARCHED: usize = 20_000;

/// What a place is to the links with protected names in its own directory and in the mount's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Meant {
    /// Nothing.
    Not,
    /// A directory or a link on the way to what such a link means: who puts another there says
    /// what the link means.
    OnTheWay,
    /// What such a link means, or below it: with `AGENTS.md -> CLAUDE.md`, to write the one is to
    /// write the other.
    Itself,
}

/// What the place is to the protected links near it. `root` is the mount's own directory.
pub(crate) fn meant_by_protected_links(root: &Start, place: &Place) -> Meant {
    let here = meant_from(root, root.dir.as_fd(), "", place);
    if place.parent_real().is_empty() || here == Meant::Itself {
        return here;
    }
    here.max(meant_from(root, place.dir(), place.parent_real(), place))
}

/// The links in the directory `dir`, which lies at `real` below the mount.
fn meant_from(root: &Start, dir: BorrowedFd<'_>, real: &str, place: &Place) -> Meant {
    let mut most = Meant::Not;
    for name in PROTECTED_NAMES {
        // Most often there is no such link, and this is one system call.
        if readlinkat(dir, *name, Vec::new()).is_err() {
            continue;
        }
        // From the mount's top, so that a link to `../docs` is followed as well.
        let link = if real.is_empty() { (*name).to_owned() } else { format!("{real}/{name}") };
        let mut way = Vec::new();
        let end = walk_noting(root, &link, Follow::Yes, &mut way);
        if end.is_ok_and(|meant| is_at_or_below(&place.real, &meant.real)) {
            return Meant::Itself;
        }
        if way.contains(&place.real) {
            most = Meant::OnTheWay;
        }
    }
    most
}

fn is_at_or_below(path: &str, above: &str) -> bool {
    above.is_empty()
        || path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What a directory holds, as far as renaming it is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing protected.
    Plain,
    /// A protected name at some depth, or a closed directory.
    Protected,
    /// More than is searched.
    TooMuch,
}

/// Searches a directory for protected names. Moving a directory moves what it holds, and a
/// tree prepared elsewhere must not become somebody's `.belljar`.
pub(crate) fn content(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    closed: &Closed,
) -> Result<Content, Errno> {
    let mut left = MAX_SEARCHED;
    search(dir, name, closed, 0, &mut left)
}

fn search(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    closed: &Closed,
    depth: usize,
    left: &mut usize,
) -> Result<Content, Errno> {
    if depth > MAX_DEPTH {
        return Ok(Content::TooMuch);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(parent, name, flags, Mode::empty())?;
    if closed.is_open(&dir)? {
        return Ok(Content::Protected);
    }
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
        if entry.file_type() == FileType::Symlink && closed.is_at(dir.as_fd(), name) {
            return Ok(Content::Protected);
        }
        let is_dir = match entry.file_type() {
            FileType::Unknown => {
                let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                kind(&rustix::fs::statat(&dir, name, flags)?) == FileType::Directory
            }
            known => known == FileType::Directory,
        };
        if is_dir {
            match search(dir.as_fd(), name, closed, depth + 1, left)? {
                Content::Plain => {}
                found => return Ok(found),
            }
        }
    }
    Ok(Content::Plain)
}
