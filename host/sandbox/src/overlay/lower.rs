//! The lower directory: read by handles, one name at a time, without following links.
//!
//! The owner may replace any name by a link meanwhile; a step from one handle to the next then fails instead
//! of leading outside.
//!
//! A layer may be inside the directory that it changes, below a directory with a protected name or one named
//! by the host: for example, a workspace that is a home directory contains belljar's own. That directory is
//! veiled (INV-179): no step leads into it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::record::identity;
use super::rel::Rel;

/// The flags for a directory that is only passed through.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PASS: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PASS: OFlags = OFlags::RDONLY;

const STAY: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// Device and inode of the invisible directory, if any.
pub(crate) type Veil = Option<(u64, u64)>;

/// The lower directory.
#[derive(Debug)]
pub(super) struct Root {
    dir: Arc<File>,
    veil: Veil,
}

/// A directory of the lower directory, open, with its path there.
#[derive(Debug)]
pub(crate) struct LowerDir {
    handle: Handle,
    pub(super) rel: Rel,
    veil: Veil,
}

#[derive(Debug)]
enum Handle {
    Shared(Arc<File>),
    Own(OwnedFd),
}

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = Arc::new(File::from(rustix::fs::open(path, flags, Mode::empty())?));
        Ok(Self { dir, veil: None })
    }

    /// Hides this directory from now on.
    pub(super) fn veil(&mut self, directory: (u64, u64)) {
        self.veil = Some(directory);
    }

    /// Whether any directory is hidden.
    pub(super) fn is_veiled(&self) -> bool {
        self.veil.is_some()
    }

    pub(super) fn handle(&self) -> &Arc<File> {
        &self.dir
    }

    /// The lower directory itself.
    pub(super) fn top(&self) -> LowerDir {
        self.known(Arc::clone(&self.dir), Rel::default())
    }

    /// A directory that was opened earlier, by its handle.
    pub(super) fn known(&self, dir: Arc<File>, rel: Rel) -> LowerDir {
        LowerDir { handle: Handle::Shared(dir), rel, veil: self.veil }
    }

    /// A directory by its path. `None` = it no longer exists.
    pub(super) fn find(&self, rel: &Rel) -> Result<Option<LowerDir>, Errno> {
        let mut dir = self.top();
        for name in rel.names() {
            match dir.find(name)? {
                Some(next) => dir = next,
                None => return Ok(None),
            }
        }
        Ok(Some(dir))
    }

    /// The directory that contains a path, and the last name.
    pub(super) fn place<'a>(&self, rel: &'a Rel) -> Result<(LowerDir, &'a OsStr), Errno> {
        let (above, name) = rel.split().ok_or(Errno::INVAL)?;
        let above = Rel::from_bytes(above).ok_or(Errno::INVAL)?;
        Ok((self.find(&above)?.ok_or(Errno::NOENT)?, name))
    }
}

impl LowerDir {
    /// A second handle of the same directory.
    pub(super) fn again(&self) -> io::Result<Self> {
        let handle = match &self.handle {
            Handle::Shared(file) => Handle::Shared(Arc::clone(file)),
            Handle::Own(fd) => Handle::Own(fd.try_clone()?),
        };
        Ok(Self { handle, rel: self.rel.clone(), veil: self.veil })
    }

    /// Opens a subdirectory.
    pub(super) fn enter(&self, name: &OsStr) -> Result<Self, Errno> {
        let dir = openat(self.as_fd(), name, PASS | OFlags::DIRECTORY | STAY, Mode::empty())?;
        if self.veil.is_some() && self.is_veil(&rustix::fs::fstat(&dir)?) {
            return Err(Errno::NOENT);
        }
        Ok(Self { handle: Handle::Own(dir), rel: self.rel.join(name), veil: self.veil })
    }

    /// Opens a subdirectory like [`Self::enter`]; `None` = missing, or not a directory any more.
    pub(super) fn find(&self, name: &OsStr) -> Result<Option<Self>, Errno> {
        match self.enter(name) {
            Ok(dir) => Ok(Some(dir)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    pub(super) fn stat(&self, name: &OsStr) -> Result<Stat, Errno> {
        let stat = statat(self.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)?;
        if self.is_veil(&stat) { Err(Errno::NOENT) } else { Ok(stat) }
    }

    /// Whether a name refers to the hidden directory. Such a name is not free either.
    pub(super) fn veils(&self, name: &OsStr) -> bool {
        let stat = || statat(self.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
        self.veil.is_some() && stat().is_ok_and(|stat| self.is_veil(&stat))
    }

    /// Whether an entry with this inode may be hidden. Most entries are not, and need no second check.
    pub(super) fn may_veil(&self, inode: u64) -> bool {
        self.veil.is_some_and(|(_, veiled)| veiled == inode)
    }

    fn is_veil(&self, stat: &Stat) -> bool {
        self.veil.is_some_and(|veiled| veiled == identity(stat))
    }

    /// The status like [`Self::stat`]; `None` = missing.
    pub(super) fn look(&self, name: &OsStr) -> Result<Option<Stat>, Errno> {
        match self.stat(name) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The status of the directory itself.
    pub(super) fn own_stat(&self) -> Result<Stat, Errno> {
        rustix::fs::fstat(self.as_fd())
    }

    /// The target of a link; `None` = not a link.
    pub(super) fn link(&self, name: &OsStr) -> Result<Option<OsString>, Errno> {
        match readlinkat(self.as_fd(), name, Vec::new()) {
            Ok(target) => Ok(Some(OsString::from_vec(target.into_bytes()))),
            Err(Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Opens a file for reading, without following links or blocking. The status is that of the opened file.
    pub(super) fn open(&self, name: &OsStr) -> Result<(File, Stat), Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | STAY;
        let file = openat(self.as_fd(), name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        if self.is_veil(&stat) {
            return Err(Errno::NOENT);
        }
        Ok((file.into(), stat))
    }

    /// Opens the directory itself for listing.
    pub(super) fn listed(&self) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | STAY;
        Ok(openat(self.as_fd(), ".", flags, Mode::empty())?.into())
    }
}

impl AsFd for LowerDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.handle {
            Handle::Shared(file) => file.as_fd(),
            Handle::Own(fd) => fd.as_fd(),
        }
    }
}

/// Whether the status is that of a regular file.
pub(super) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}
