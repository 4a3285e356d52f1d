//! The workspace, opened by handles: one name at a time, never through a link, so that no path leads outside,
//! whatever is replaced meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::Arc;

use crate::OriginalState;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::changes::NodeKind;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The workspace's open directory.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: Arc<File>,
}

/// The state of a file, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    kind: u32,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: (i64, u32),
    pub(crate) changed: (i64, u32),
    pub(crate) mode: u32,
    device: u64,
}

impl FileState {
    /// The state of a file from a stat call.
    #[expect(clippy::unnecessary_cast, reason = "the widths differ between platforms")]
    #[expect(clippy::useless_conversion, reason = "the widths differ between platforms")]
    pub(crate) fn from_stat(stat: &rustix::fs::Stat) -> Self {
        Self {
            kind: u32::from(stat.st_mode) & 0o170_000,
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime as i64, u32::try_from(stat.st_mtime_nsec).unwrap_or(0)),
            changed: (stat.st_ctime as i64, u32::try_from(stat.st_ctime_nsec).unwrap_or(0)),
            mode: u32::from(stat.st_mode) & 0o777,
            device: stat.st_dev as u64,
        }
    }

    /// Whether the state is of a file, a link or a directory.
    pub(crate) fn node_kind(&self) -> NodeKind {
        match FileType::from_raw_mode(self.kind as rustix::fs::RawMode) {
            FileType::RegularFile => NodeKind::File,
            FileType::Directory => NodeKind::Directory,
            FileType::Symlink => NodeKind::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => NodeKind::Special,
        }
    }

    /// Whether the file has the same content as the original, by the file system's metadata. Device numbers
    /// are ignored, because they may change at a restart.
    pub(crate) fn is_as(&self, original: &OriginalState) -> bool {
        let time = |(seconds, nanoseconds): (i64, u32)| {
            let whole = std::time::Duration::from_secs(seconds.unsigned_abs());
            let epoch = std::time::SystemTime::UNIX_EPOCH;
            let begun =
                if seconds < 0 { epoch.checked_sub(whole) } else { epoch.checked_add(whole) };
            begun?.checked_add(std::time::Duration::from_nanos(nanoseconds.into()))
        };
        self.inode == original.identity.1
            && self.size == original.size
            && (self.node_kind() == NodeKind::Directory) == original.directory
            && time(self.modified) == Some(original.modified)
            && time(self.changed) == Some(original.changed)
    }

    /// Whether the file is the same one, unchanged.
    pub(crate) fn is_still(&self, other: &Self) -> bool {
        self == other
    }

    /// Whether both files are on one file system.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.device == other.device
    }

    /// Whether both states are of the same file, even after a move, which changes the status time.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.kind, self.inode, self.device) == (other.kind, other.inode, other.device)
    }
}

impl Workspace {
    pub(crate) fn new(root: Arc<File>) -> Self {
        Self { root }
    }

    /// Opens a directory.
    pub(crate) fn open_directory(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let mut dir = openat(self.root.as_fd(), ".", DIRECTORY, Mode::empty())?;
        for name in path {
            dir = openat(&dir, name, DIRECTORY, Mode::empty())?;
        }
        Ok(dir)
    }

    /// The directory that contains a path, and the last name.
    pub(crate) fn open_parent<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        Ok((self.open_directory(path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// The state of the file at a path. `None` = missing, or a parent is missing.
    pub(crate) fn look_at(&self, path: &Path) -> Result<Option<FileState>, Errno> {
        let found = self.open_parent(path).and_then(|(dir, name)| look_in(&dir, name));
        match found {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            found => found,
        }
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&self, path: &Path) -> Result<(File, FileState), Errno> {
        let (dir, name) = self.open_parent(path)?;
        open_in(&dir, name)
    }

    /// The target of a link.
    pub(crate) fn link_target(&self, path: &Path) -> Result<OsString, Errno> {
        let (dir, name) = self.open_parent(path)?;
        Ok(OsString::from_vec(readlinkat(&dir, name, Vec::new())?.into_bytes()))
    }

    /// The names in a directory, sorted.
    pub(crate) fn list_names(&self, path: &Path) -> Result<Vec<OsString>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::new(self.open_directory(path)?)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Some names in a directory, in the order of the file system, each with whether it is a directory.
    pub(crate) fn some_names(
        &self,
        path: &Path,
        most: usize,
    ) -> Result<Vec<(OsString, bool)>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::new(self.open_directory(path)?)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if names.len() == most {
                break;
            }
            names.push((name.to_owned(), entry.file_type() == FileType::Directory));
        }
        Ok(names)
    }
}

/// The state of the file with this name in a directory.
pub(crate) fn look_in(dir: &OwnedFd, name: &OsStr) -> Result<Option<FileState>, Errno> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileState::from_stat(&stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Opens a regular file of a directory, without blocking and without following a link.
pub(crate) fn open_in(dir: &OwnedFd, name: &OsStr) -> Result<(File, FileState), Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let file = File::from(openat(dir, name, flags | OFlags::CLOEXEC, Mode::empty())?);
    let state = FileState::from_stat(&rustix::fs::fstat(&file)?);
    if state.node_kind() == NodeKind::File { Ok((file, state)) } else { Err(Errno::INVAL) }
}
