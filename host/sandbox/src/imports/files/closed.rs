//! INV-155: directories and files closed to all guests, known by identity and not by name. A closed
//! directory may be inside a mount, around one, or reachable by another path, for example if `.git` of a
//! worktree is a link to it.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Stat, statat};
use rustix::io::Errno;

use belljar_overlay::walk::{HostDir, PathEnd};

/// The most names followed on one path, with the names in the targets of links.
const MAX_STEPS: u32 = 1024;

/// The device and inode of a file, which identify it whatever its path is. Wide enough for the numbers of
/// every system.
type Identity = (i128, u64);

/// The closed directories and files, and the links that lead to them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct ClosedPaths {
    ends: Vec<Identity>,
    /// The links on the closed paths, and the directories a `..` on them passes.
    way: Vec<Identity>,
    /// Closed paths that do not exist: the existing parent directory, and the name that is missing in it.
    missing: Vec<(Identity, OsString)>,
}

impl ClosedPaths {
    /// Finds out what these paths are now.
    pub(crate) fn from_paths(paths: &[PathBuf]) -> Self {
        let mut closed = Self::default();
        for path in paths {
            let PathTrace { end, way } = trace_path(path);
            closed.way.extend(way.iter().filter_map(|passed| identity_at(passed)));
            match identity_at(&end) {
                Some(found) => closed.ends.push(found),
                None => closed.missing.extend(first_missing(&end)),
            }
        }
        closed
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.way.is_empty() && self.missing.is_empty()
    }

    /// Whether an open directory, or a directory above it, is closed. Asks the file system for the
    /// directories above, not the path, so that neither a link nor a renaming deceives the check.
    pub(crate) fn contains_dir(&self, dir: BorrowedFd<'_>) -> bool {
        if self.ends.is_empty() {
            return false;
        }
        let mut up = OsString::from(".");
        let mut below = None;
        loop {
            // A directory above that cannot be read counts as closed, because it cannot be checked.
            let Ok(stat) = statat(dir, &*up, AtFlags::empty()) else { return true };
            let here = stat_identity(&stat);
            if self.ends.contains(&here) {
                return true;
            }
            if below.replace(here) == Some(here) {
                return false;
            }
            up.push("/..");
        }
    }

    /// Whether a path must not be written: it is closed, inside a closed directory, on the way to one, or a
    /// closed path that does not exist yet.
    pub(crate) fn contains_place<D: HostDir>(&self, place: &PathEnd<D>) -> bool {
        let Some(dir) = place.parent_dir().host_dir().filter(|_| !self.is_empty()) else {
            return false;
        };
        self.is_at(dir, place.name_arg())
            || self.contains_dir(dir)
            || self.would_be(dir, place.name_arg())
    }

    /// Whether the name in the directory is a closed object, or a link or directory on the way to one.
    pub(crate) fn is_at(&self, dir: BorrowedFd<'_>, name: &OsStr) -> bool {
        let found = || statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        !self.is_empty() && found().is_ok_and(|stat| self.contains_identity(stat_identity(&stat)))
    }

    /// Whether an entry with the given inode may be closed. Most are not, and need no further check.
    pub(crate) fn may_be(&self, inode: u64) -> bool {
        self.ends.iter().chain(&self.way).any(|(_, known)| *known == inode)
    }

    /// Whether an open directory is closed, or on the way to something closed.
    pub(crate) fn is_open(&self, dir: impl AsFd) -> Result<bool, Errno> {
        Ok(!self.is_empty() && self.contains_identity(stat_identity(&rustix::fs::fstat(dir)?)))
    }

    fn contains_identity(&self, found: Identity) -> bool {
        self.ends.contains(&found) || self.way.contains(&found)
    }

    fn would_be(&self, dir: BorrowedFd<'_>, name: &OsStr) -> bool {
        if !self.missing.iter().any(|(_, missing)| missing == name) {
            return false;
        }
        let Ok(stat) = statat(dir, ".", AtFlags::empty()) else { return true };
        let here = stat_identity(&stat);
        self.missing.iter().any(|(parent, missing)| missing == name && *parent == here)
    }
}

fn stat_identity(stat: &Stat) -> Identity {
    (stat.st_dev.into(), stat.st_ino)
}

fn identity_at(path: &Path) -> Option<Identity> {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok().as_ref().map(stat_identity)
}

/// The first name of a path that does not exist, with its parent directory, which does.
fn first_missing(path: &Path) -> Option<(Identity, OsString)> {
    path.ancestors().find_map(|path| {
        let parent = identity_at(path.parent()?)?;
        Some((parent, path.file_name()?.to_owned()))
    })
}

/// The result of following the links in a path.
#[derive(Debug)]
pub(crate) struct PathTrace {
    /// The target, without links, whether it exists or not.
    pub(crate) end: PathBuf,
    /// The links followed, and the directories a `..` passed; each path is without links.
    pub(crate) way: Vec<PathBuf>,
}

/// Follows a path as the operating system does. Only for paths of the operator and for links of users, which
/// guests cannot make; a guest's path is resolved by `walk`.
pub(crate) fn trace_path(path: &Path) -> PathTrace {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let (mut end, mut way) = (PathBuf::new(), Vec::new());
    let mut left = reversed_names(&path);
    for _ in 0..MAX_STEPS {
        let Some(part) = left.pop() else { break };
        if part == ".." {
            way.push(end.clone());
            end.pop();
            continue;
        }
        // The target of an absolute link starts at the root.
        let next = end.join(part);
        match std::fs::read_link(&next) {
            Ok(target) => {
                left.extend(reversed_names(&target));
                way.push(next);
            }
            Err(_) => end = next,
        }
    }
    PathTrace { end, way }
}

/// The names of a path, the last one first.
fn reversed_names(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev().filter(|part| !matches!(part, Component::CurDir));
    parts.map(|part| part.as_os_str().to_owned()).collect()
}
