//! Where a layer lies, by what the directories are and not by their paths.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use belljar_policy::PROTECTED_NAMES;
use rustix::fs::{AtFlags, Dir, statat};

use super::record::identity;
use crate::imports::files::names::is_protected;

/// Where a directory lies, as seen from another one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// Not in it.
    Outside,
    /// In it, and the topmost directory on the way there that is protected: by its own name,
    /// because a link of such a name in the upper one leads there, or as the host's own.
    Below(Option<(u64, u64)>),
}

/// Whether a directory is another one or lies below it.
pub(super) fn lies_in(dir: BorrowedFd<'_>, above: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(chain(dir, above)?.is_some())
}

/// Where the directory `place` lies as seen from `above`. The directory `hidden` counts as one with a
/// protected name.
pub(super) fn between(
    above: &File,
    place: &File,
    hidden: Option<(u64, u64)>,
) -> io::Result<Between> {
    let Some(chain) = chain(place.as_fd(), above.as_fd())? else { return Ok(Between::Outside) };
    // Links are followed: they are the owner's.
    let means = |name: &&str| statat(above, *name, AtFlags::empty()).ok();
    let meant = PROTECTED_NAMES.iter().filter_map(means);
    let meant: Vec<_> = meant.map(|stat| identity(&stat)).chain(hidden).collect();
    let mut topmost = None;
    let mut up = String::from(".");
    for here in chain {
        up.push_str("/..");
        if meant.contains(&here) || is_named(place.as_fd(), &up, here)? {
            topmost = Some(here);
        }
    }
    Ok(Between::Below(topmost))
}

/// Whether a directory has a protected name in the one above it, which lies at `up`.
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
        // Not by the number in the entry: of what is mounted there it is another one.
        let stat = statat(&above, name, AtFlags::SYMLINK_NOFOLLOW);
        if stat.is_ok_and(|stat| identity(&stat) == sought) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The directories from one up to another, without the upper one. `None` = it does not lie there.
fn chain(dir: BorrowedFd<'_>, above: BorrowedFd<'_>) -> io::Result<Option<Vec<(u64, u64)>>> {
    let sought = identity(&rustix::fs::fstat(above)?);
    let mut up = String::from(".");
    let mut passed = Vec::new();
    loop {
        let here = identity(&statat(dir, up.as_str(), AtFlags::empty())?);
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
