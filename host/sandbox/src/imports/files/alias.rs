//! Protects files that are reachable by another path: by links with protected names, hard links, and
//! directories that would carry a protected name to another path.
//!
//! Not covered: a protected name that is a link, outside of its target's directory and of the mount's own.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use belljar_policy::PROTECTED_NAMES;
use belljar_policy::spelling::{parse_spelled, spell_name};
use rustix::fs::{Dir, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use super::closed::{ClosedPaths, PathTrace, trace_path};
use super::names::is_protected;
use super::walk::{HostDir, MAX_DEPTH, PathEnd, file_type};

/// Entries that are searched before a directory is renamed. A larger directory cannot be renamed, because the
/// search must be complete and bounded.
pub(crate) const MAX_SEARCHED: usize = 20_000;

/// The relation of a path to the links with protected names in its own directory and in the mount's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProtectedLinkRole {
    /// No relation.
    Not,
    /// A directory or link on the path of such a link: replacing it would change the link's meaning.
    OnTheWay,
    /// The target of such a link, or a path below: with `AGENTS.md -> CLAUDE.md`, writing `CLAUDE.md` changes
    /// `AGENTS.md`.
    Itself,
}

/// The relation of a path in a mount to the protected links near it. `mount` = the host's path of the mount,
/// without links. Such a link is the user's, so it is followed like the user's programs do, even if absolute
/// or out of the mount and back.
pub(crate) fn meant_by_protected_links<D: HostDir>(
    mount: &Path,
    root: BorrowedFd<'_>,
    place: &PathEnd<D>,
) -> ProtectedLinkRole {
    let here = meant_from(mount, root, "", &place.real);
    if place.parent_real().is_empty() || here == ProtectedLinkRole::Itself {
        return here;
    }
    // A directory that is only in the overlay has no links, because guests cannot make them.
    let Some(dir) = place.parent_dir().host_dir() else { return here };
    here.max(meant_from(mount, dir, place.parent_real(), &place.real))
}

/// The relation of `path` to the links in the directory `dir`, which is at `real` below the mount.
fn meant_from(mount: &Path, dir: BorrowedFd<'_>, real: &str, path: &str) -> ProtectedLinkRole {
    let mut most = ProtectedLinkRole::Not;
    let below = |path: &Path| {
        let path = path.strip_prefix(mount).ok()?;
        Some(spell_name(path.as_os_str()).into_owned())
    };
    for name in PROTECTED_NAMES {
        // Usually no such link exists, and the check is one system call.
        if readlinkat(dir, *name, Vec::new()).is_err() {
            continue;
        }
        let PathTrace { end, way } = trace_path(&mount.join(parse_spelled(real)).join(name));
        let end = below(&end);
        if end.as_ref().is_some_and(|end| is_at_or_below(path, end)) {
            return ProtectedLinkRole::Itself;
        }
        let mut passed = way.iter().filter_map(|passed| below(passed)).chain(end);
        if passed.any(|passed| is_at_or_below(&passed, path)) {
            most = ProtectedLinkRole::OnTheWay;
        }
    }
    most
}

fn is_at_or_below(path: &str, above: &str) -> bool {
    above.is_empty()
        || path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The content of a directory that is about to be renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirContent {
    /// No protected name.
    Plain,
    /// A protected name at some depth, or a closed directory.
    Protected,
    /// More entries than are searched.
    TooMuch,
}

/// Searches a directory for protected names. Moving a directory moves its content, and a directory prepared
/// elsewhere must not become a user's `.belljar`.
pub(crate) fn search_directory(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    closed: &ClosedPaths,
) -> Result<DirContent, Errno> {
    let mut left = MAX_SEARCHED;
    search_below(dir, name, closed, 0, &mut left)
}

fn search_below(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    closed: &ClosedPaths,
    depth: usize,
    left: &mut usize,
) -> Result<DirContent, Errno> {
    if depth > MAX_DEPTH {
        return Ok(DirContent::TooMuch);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(parent, name, flags, Mode::empty())?;
    if closed.is_open(&dir)? {
        return Ok(DirContent::Protected);
    }
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if is_protected(&name.to_string_lossy()) {
            return Ok(DirContent::Protected);
        }
        *left = match left.checked_sub(1) {
            Some(left) => left,
            None => return Ok(DirContent::TooMuch),
        };
        if closed.may_be(entry.ino()) && closed.is_at(dir.as_fd(), name) {
            return Ok(DirContent::Protected);
        }
        let is_dir = match entry.file_type() {
            FileType::Unknown => {
                let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                file_type(&rustix::fs::statat(&dir, name, flags)?) == FileType::Directory
            }
            known => known == FileType::Directory,
        };
        if is_dir {
            match search_below(dir.as_fd(), name, closed, depth + 1, left)? {
                DirContent::Plain => {}
                found => return Ok(found),
            }
        }
    }
    Ok(DirContent::Plain)
}
