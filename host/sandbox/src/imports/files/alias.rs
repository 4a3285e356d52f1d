//! Protects files that can also be reached by another path: through links with protected names, and in
//! directories that would bring a protected name to another path.
//!
//! Not covered: a protected name that is a link, unless it is in its target's directory or at the top of the
//! mount.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use belljar_overlay::walk::{HostDir, MAX_DEPTH, PathEnd, file_type};
use belljar_policy::PROTECTED_NAMES;
use belljar_policy::is_protected;
use belljar_policy::spelling::{parse_spelled, spell_name};
use rustix::fs::{Dir, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use super::closed::{ClosedPaths, PathTrace, trace_path};

/// How many entries are searched before a directory is renamed. A larger one cannot be renamed, because the
/// search must be complete and bounded.
pub(crate) const MAX_SEARCHED: usize = 20_000;

/// How a path relates to the links with protected names in its own directory and at the top of the mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProtectedLinkRole {
    /// No such link leads to the path or through it.
    Not,
    /// Such a link leads through the path, so replacing it would change what the link means.
    OnTheWay,
    /// The path is such a link's target, or below it. With the link `AGENTS.md -> CLAUDE.md`, writing
    /// `CLAUDE.md` changes `AGENTS.md`.
    Itself,
}

/// How a path in a mount relates to the links with protected names near it. `mount` is the host's path of
/// the mount, without links. Such links are the user's own, so they are followed as the user's programs do,
/// even if they are absolute or lead out of the mount and back.
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

/// How `path` relates to the links in the directory `dir`, whose path relative to the mount is `real`.
fn meant_from(mount: &Path, dir: BorrowedFd<'_>, real: &str, path: &str) -> ProtectedLinkRole {
    let mut most = ProtectedLinkRole::Not;
    let below = |path: &Path| {
        let path = path.strip_prefix(mount).ok()?;
        Some(spell_name(path.as_os_str()).into_owned())
    };
    for name in PROTECTED_NAMES {
        // There is usually no such link, and this one system call shows it.
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

/// What a directory that shall be renamed contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirContent {
    /// No protected name and nothing closed.
    Plain,
    /// A protected name at some depth, or something closed.
    Protected,
    /// More entries than are searched, or a deeper nesting.
    TooMuch,
}

/// Searches a directory for protected names. Moving it would move its content, and a directory prepared
/// elsewhere must not become a user's `.belljar`.
pub(crate) fn search_directory(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    closed: &ClosedPaths,
) -> Result<DirContent, Errno> {
    let mut left = MAX_SEARCHED;
    search_below(dir, name, closed, 0, &mut left)
}

/// Searches a directory and its subdirectories for protected names and closed directories. Each entry uses
/// up one of `left`.
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
