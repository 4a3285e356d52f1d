//! Finds out whether a layer is inside the lower directory, by comparing identities of directories, not
//! paths.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use belljar_policy::{PROTECTED_NAMES, is_protected};
use rustix::fs::{AtFlags, Dir, statat};

use super::record::stat_identity;

/// Where a directory is, seen from another directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DirRelation {
    /// The directory is outside the other directory.
    Outside,
    /// Inside the other directory. The value is the topmost protected directory above, by device and inode:
    /// with a protected name, the target of a link with a protected name at the top, or the host's own.
    Below(Option<(u64, u64)>),
}

/// Whether `dir` is the directory `above`, or inside it.
pub(super) fn lies_in(dir: BorrowedFd<'_>, above: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(parent_chain(dir, above)?.is_some())
}

/// Where the directory `place` is, seen from `above`. The directory `hidden` counts as if its name were
/// protected.
pub(super) fn find_relation(
    above: &File,
    place: &File,
    hidden: Option<(u64, u64)>,
) -> io::Result<DirRelation> {
    let Some(chain) = parent_chain(place.as_fd(), above.as_fd())? else {
        return Ok(DirRelation::Outside);
    };
    // Links are followed, because the directory's owner made them.
    let means = |name: &&str| statat(above, *name, AtFlags::empty()).ok();
    let meant = PROTECTED_NAMES.iter().filter_map(means);
    let meant: Vec<_> = meant.map(|stat| stat_identity(&stat)).chain(hidden).collect();
    let mut topmost = None;
    let mut up = String::from(".");
    for here in chain {
        up.push_str("/..");
        if meant.contains(&here) || is_named(place.as_fd(), &up, here)? {
            topmost = Some(here);
        }
    }
    Ok(DirRelation::Below(topmost))
}

/// Whether a directory has a protected name in its parent, whose path from `from` is `up`.
fn is_named(from: BorrowedFd<'_>, up: &str, sought: (u64, u64)) -> io::Result<bool> {
    use std::os::unix::ffi::OsStrExt as _;
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
    let flags = flags | rustix::fs::OFlags::CLOEXEC;
    let above = rustix::fs::openat(from, up, flags, rustix::fs::Mode::empty())?;
    for entry in Dir::read_from(&above)? {
        let entry = entry?;
        let name = Path::new(std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()));
        if !is_protected(&name.to_string_lossy()) {
            continue;
        }
        // The inode in the entry would be wrong for a mount point, so the status is read.
        let stat = statat(&above, name, AtFlags::SYMLINK_NOFOLLOW);
        if stat.is_ok_and(|stat| stat_identity(&stat) == sought) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The directories from `dir` upwards, below `above`. `None`: `dir` is not inside `above`.
fn parent_chain(dir: BorrowedFd<'_>, above: BorrowedFd<'_>) -> io::Result<Option<Vec<(u64, u64)>>> {
    let sought = stat_identity(&rustix::fs::fstat(above)?);
    let mut up = String::from(".");
    let mut passed = Vec::new();
    loop {
        let here = stat_identity(&statat(dir, up.as_str(), AtFlags::empty())?);
        if here == sought {
            return Ok(Some(passed));
        }
        if passed.last() == Some(&here) {
            return Ok(None);
        }
        passed.push(here);
        up.push_str("/..");
    }
}
