//! INV-155: directories that no guest writes, known by what they are. Their names need not be
//! protected ones, and a mount may lie around them, in them, or lead to them by another path.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Stat, statat};
use rustix::io::Errno;

use super::walk::Place;

/// Names taken on the way to a closed directory, the targets of links included.
const MAX_STEPS: u32 = 1024;

/// Device and inode: what a file is, whatever its path. Wide enough for every system's numbers.
type Identity = (i128, u64);

/// Directories that are closed to writing with all they hold, and the links that lead to them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Closed(Vec<Identity>);

impl Closed {
    /// Looks where these paths lead now. One that leads nowhere closes the links on its way.
    pub(crate) fn find(paths: &[PathBuf]) -> Self {
        let mut found = Vec::new();
        for path in paths {
            follow(path, &mut found);
        }
        Self(found)
    }

    /// Whether an open directory, or one that it lies in, is closed. Asks the file system for the
    /// directories above, not the path, so that no link and no renaming deceives it.
    pub(crate) fn reaches(&self, dir: BorrowedFd<'_>) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let mut up = OsString::from(".");
        let mut below = None;
        loop {
            // What cannot be looked at is not known to be open.
            let Ok(stat) = statat(dir, &*up, AtFlags::empty()) else { return true };
            if self.is(&stat) {
                return true;
            }
            if below.replace(identity(&stat)) == Some(identity(&stat)) {
                return false;
            }
            up.push("/..");
        }
    }

    /// Whether the place lies in a closed directory, or is one or a link to one.
    pub(crate) fn holds(&self, place: &Place) -> bool {
        !self.0.is_empty() && (self.is_at(place.dir(), place.arg()) || self.reaches(place.dir()))
    }

    /// Whether the name means a closed directory, or a link on the way to one.
    pub(crate) fn is_at(&self, dir: BorrowedFd<'_>, name: &OsStr) -> bool {
        let found = || statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        !self.0.is_empty() && found().is_ok_and(|stat| self.is(&stat))
    }

    /// Whether an open directory is itself a closed one.
    pub(crate) fn is_open(&self, dir: impl AsFd) -> Result<bool, Errno> {
        Ok(!self.0.is_empty() && self.is(&rustix::fs::fstat(dir)?))
    }

    fn is(&self, stat: &Stat) -> bool {
        self.0.contains(&identity(stat))
    }
}

fn identity(stat: &Stat) -> Identity {
    (stat.st_dev.into(), stat.st_ino)
}

/// Adds the links that a path passes and the directory that it leads to.
fn follow(path: &Path, found: &mut Vec<Identity>) {
    let Ok(path) = std::path::absolute(path) else { return };
    let mut real = PathBuf::new();
    let mut left = parts(&path);
    for _ in 0..MAX_STEPS {
        let Some(part) = left.pop() else { break };
        if part == ".." {
            real.pop();
            continue;
        }
        // An absolute target begins anew at the root.
        let next = real.join(part);
        match std::fs::read_link(&next) {
            Ok(target) => {
                found.extend(
                    statat(CWD, &next, AtFlags::SYMLINK_NOFOLLOW).ok().as_ref().map(identity),
                );
                left.extend(parts(&target));
            }
            Err(_) => real = next,
        }
    }
    found.extend(statat(CWD, &real, AtFlags::SYMLINK_NOFOLLOW).ok().as_ref().map(identity));
}

/// The names of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev().filter(|part| !matches!(part, Component::CurDir));
    parts.map(|part| part.as_os_str().to_owned()).collect()
}
