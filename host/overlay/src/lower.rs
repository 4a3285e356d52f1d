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

use super::record::stat_identity;
use super::rel::RelPath;

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
pub(super) struct LowerRoot {
    dir: Arc<File>,
    veil: Veil,
}

/// A directory of the lower directory, open, with its path there.
#[derive(Debug)]
pub(crate) struct LowerDir {
    handle: DirHandle,
    pub(super) rel: RelPath,
    veil: Veil,
}

#[derive(Debug)]
enum DirHandle {
    Shared(Arc<File>),
    Own(OwnedFd),
}

impl LowerRoot {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = Arc::new(File::from(rustix::fs::open(path, flags, Mode::empty())?));
        Ok(Self { dir, veil: None })
    }

    /// Hides this directory from now on.
    pub(super) fn hide_directory(&mut self, directory: (u64, u64)) {
        self.veil = Some(directory);
    }

    /// Whether any directory is hidden.
    pub(super) fn is_veiled(&self) -> bool {
        self.veil.is_some()
    }

    pub(super) fn root_handle(&self) -> &Arc<File> {
        &self.dir
    }

    /// The lower directory itself.
    pub(super) fn root_dir(&self) -> LowerDir {
        self.dir_from_handle(Arc::clone(&self.dir), RelPath::default())
    }

    /// A directory that was opened earlier, by its handle.
    pub(super) fn dir_from_handle(&self, dir: Arc<File>, rel: RelPath) -> LowerDir {
        LowerDir { handle: DirHandle::Shared(dir), rel, veil: self.veil }
    }

    /// A directory by its path. `None` = it no longer exists.
    pub(super) fn find_dir(&self, rel: &RelPath) -> Result<Option<LowerDir>, Errno> {
        let mut dir = self.root_dir();
        for name in rel.names() {
            match dir.find_dir(name)? {
                Some(next) => dir = next,
                None => return Ok(None),
            }
        }
        Ok(Some(dir))
    }

    /// The directory that contains a path, and the last name.
    pub(super) fn find_parent<'a>(&self, rel: &'a RelPath) -> Result<(LowerDir, &'a OsStr), Errno> {
        let (above, name) = rel.split().ok_or(Errno::INVAL)?;
        let above = RelPath::from_bytes(above).ok_or(Errno::INVAL)?;
        Ok((self.find_dir(&above)?.ok_or(Errno::NOENT)?, name))
    }
}

impl LowerDir {
    /// A second handle of the same directory.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        let handle = match &self.handle {
            DirHandle::Shared(file) => DirHandle::Shared(Arc::clone(file)),
            DirHandle::Own(fd) => DirHandle::Own(fd.try_clone()?),
        };
        Ok(Self { handle, rel: self.rel.clone(), veil: self.veil })
    }

    /// Opens a subdirectory.
    pub(super) fn enter_dir(&self, name: &OsStr) -> Result<Self, Errno> {
        let dir = openat(self.as_fd(), name, PASS | OFlags::DIRECTORY | STAY, Mode::empty())?;
        if self.veil.is_some() && self.is_veil(&rustix::fs::fstat(&dir)?) {
            return Err(Errno::NOENT);
        }
        Ok(Self { handle: DirHandle::Own(dir), rel: self.rel.join(name), veil: self.veil })
    }

    /// Opens a subdirectory like [`Self::enter_dir`]; `None` = missing, or not a directory any more.
    pub(super) fn find_dir(&self, name: &OsStr) -> Result<Option<Self>, Errno> {
        match self.enter_dir(name) {
            Ok(dir) => Ok(Some(dir)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    pub(super) fn stat_entry(&self, name: &OsStr) -> Result<Stat, Errno> {
        let stat = statat(self.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)?;
        if self.is_veil(&stat) { Err(Errno::NOENT) } else { Ok(stat) }
    }

    /// Whether a name refers to the hidden directory. Such a name is not free either.
    pub(super) fn is_veil_name(&self, name: &OsStr) -> bool {
        let stat = || statat(self.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
        self.veil.is_some() && stat().is_ok_and(|stat| self.is_veil(&stat))
    }

    /// Whether an entry with this inode may be hidden. Most entries are not, and need no second check.
    pub(super) fn may_veil(&self, inode: u64) -> bool {
        self.veil.is_some_and(|(_, veiled)| veiled == inode)
    }

    fn is_veil(&self, stat: &Stat) -> bool {
        self.veil.is_some_and(|veiled| veiled == stat_identity(stat))
    }

    /// The status like [`Self::stat_entry`]; `None` = missing.
    pub(super) fn find_stat(&self, name: &OsStr) -> Result<Option<Stat>, Errno> {
        match self.stat_entry(name) {
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
    pub(super) fn link_target(&self, name: &OsStr) -> Result<Option<OsString>, Errno> {
        match readlinkat(self.as_fd(), name, Vec::new()) {
            Ok(target) => Ok(Some(OsString::from_vec(target.into_bytes()))),
            Err(Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Opens a file for reading, without following links or blocking. The status is that of the opened file.
    pub(super) fn open_entry(&self, name: &OsStr) -> Result<(File, Stat), Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | STAY;
        let file = openat(self.as_fd(), name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        if self.is_veil(&stat) {
            return Err(Errno::NOENT);
        }
        Ok((file.into(), stat))
    }

    /// Opens the directory itself for listing.
    pub(super) fn open_listing(&self) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | STAY;
        Ok(openat(self.as_fd(), ".", flags, Mode::empty())?.into())
    }
}

impl AsFd for LowerDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.handle {
            DirHandle::Shared(file) => file.as_fd(),
            DirHandle::Own(fd) => fd.as_fd(),
        }
    }
}

/// Whether the status is that of a regular file.
pub(super) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}
