//! Reads the lower directory by directory handles, one name at a time, without following links.
//!
//! Meanwhile, the owner of the directory may replace any name by a link. The next step from one handle to a
//! name then fails; a step never leads outside the lower directory.
//!
//! The layer may be inside the lower directory: for example, a workspace that is a home directory contains
//! belljar's data directory. The directory with the layer is then veiled (INV-179): guests do not see it,
//! and no step leads into it. Veiled is either the directory the host names or the ancestor of the layer
//! with a protected name.

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

/// The flags for opening a directory from which only further steps are made.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PASS: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PASS: OFlags = OFlags::RDONLY;

const STAY: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// The device and inode of the veiled directory, if any.
pub(crate) type Veil = Option<(u64, u64)>;

/// The handle of the lower directory.
#[derive(Debug)]
pub(super) struct LowerRoot {
    dir: Arc<File>,
    veil: Veil,
}

/// An open directory at or below the lower directory, with its relative path.
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

    /// Veils the directory with this device and inode from now on.
    pub(super) fn hide_directory(&mut self, directory: (u64, u64)) {
        self.veil = Some(directory);
    }

    /// Whether a directory is veiled.
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

    /// The [`LowerDir`] of a directory that was opened earlier, made from the handle.
    pub(super) fn dir_from_handle(&self, dir: Arc<File>, rel: RelPath) -> LowerDir {
        LowerDir { handle: DirHandle::Shared(dir), rel, veil: self.veil }
    }

    /// Opens a directory by its path. `None` if the directory no longer exists.
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

    /// Opens the directory with a path. Returns the directory and the last name of the path.
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

    /// Opens a subdirectory like [`Self::enter_dir`]. `None` if the name is missing, or is no directory.
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

    /// Whether a name refers to the veiled directory. A guest cannot use such a name for a new object.
    pub(super) fn is_veil_name(&self, name: &OsStr) -> bool {
        let stat = || statat(self.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
        self.veil.is_some() && stat().is_ok_and(|stat| self.is_veil(&stat))
    }

    /// Whether an entry with the given inode may be the veiled directory. Only then is the device compared
    /// too.
    pub(super) fn may_veil(&self, inode: u64) -> bool {
        self.veil.is_some_and(|(_, veiled)| veiled == inode)
    }

    fn is_veil(&self, stat: &Stat) -> bool {
        self.veil.is_some_and(|veiled| veiled == stat_identity(stat))
    }

    /// The status of a name like [`Self::stat_entry`]. `None` if the name is missing.
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

    /// The target of a link. `None` if the name is not a link.
    pub(super) fn link_target(&self, name: &OsStr) -> Result<Option<OsString>, Errno> {
        match readlinkat(self.as_fd(), name, Vec::new()) {
            Ok(target) => Ok(Some(OsString::from_vec(target.into_bytes()))),
            Err(Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Opens a file for reading, without following links or blocking. The returned status is the status of
    /// the opened file.
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
