//! Reads a stranger's folder, name by name from an open descriptor: no link is followed, even if swapped in
//! meanwhile, and no read blocks.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

/// The words about everything that is neither a real folder nor a regular file.
pub(super) const UNFIT: &str = "it is a link or no regular file";

/// How long one source may take to be read. The largest public library takes two seconds.
pub(super) const MAX_READING: Duration = Duration::from_secs(60);

/// A folder that is open.
pub(super) struct OpenFolder(OwnedFd);

/// A time that is over at some point.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkDeadline {
    began: Instant,
    limit: Duration,
}

impl WorkDeadline {
    pub(super) fn after_limit(limit: Duration) -> Self {
        Self { began: Instant::now(), limit }
    }

    /// The rest of it.
    ///
    /// # Errors
    ///
    /// When nothing is.
    pub(super) fn time_left(&self) -> io::Result<Duration> {
        self.limit.checked_sub(self.began.elapsed()).ok_or_else(|| {
            let why = format!("it took more than {} s", self.limit.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, why)
        })
    }
}

impl OpenFolder {
    /// Opens a folder that is not a link itself.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, open_flags() | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// Opens a folder inside this one.
    pub(super) fn open_folder(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref().as_bytes();
        Ok(Self(openat(&self.0, name, open_flags() | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// Opens a regular file in this folder.
    pub(super) fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<(File, Metadata)> {
        check_regular(openat(&self.0, name.as_ref().as_bytes(), open_flags(), Mode::empty())?)
    }

    /// Reads a regular file in this folder whole. More than `limit` bytes are an error.
    pub(super) fn read_file(&self, name: impl AsRef<OsStr>, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open_file(name)?.0.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > limit {
            false => Ok(bytes),
            true => Err(io::Error::other(format!("it has more than {limit} bytes"))),
        }
    }

    /// The kind of the file with this name; `None` = missing.
    pub(super) fn file_kind(&self, name: impl AsRef<OsStr>) -> io::Result<Option<FileType>> {
        match statat(&self.0, name.as_ref().as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => Ok(Some(FileType::from_raw_mode(about.st_mode))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The names in this folder with their kinds, in the system's order.
    pub(super) fn list_entries(
        &self,
    ) -> io::Result<impl Iterator<Item = io::Result<FolderEntry>> + '_> {
        let entries = Dir::read_from(&self.0)?;
        let named = entries.map(|entry| {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            let kind = match entry.file_type() {
                FileType::Unknown => self.file_kind(&name)?.unwrap_or(FileType::Unknown),
                kind => kind,
            };
            Ok(FolderEntry { name, kind })
        });
        Ok(named.filter(|named| {
            named.as_ref().map_or(true, |named| named.name != "." && named.name != "..")
        }))
    }

    /// Whether a file in the folder is a hard link to another person's file: a writer of a folder can link a
    /// file there without read access.
    pub(super) fn is_foreign_link(&self, file: &Metadata) -> io::Result<bool> {
        let own = rustix::fs::fstat(&self.0)?.st_uid;
        Ok(is_borrowed(file.nlink(), file.uid(), own))
    }
}

/// Opens a regular file that is not a link itself. The parent folder may be out of reach behind the OS
/// sandbox.
pub(super) fn open_file(path: &Path) -> io::Result<(File, Metadata)> {
    check_regular(rustix::fs::open(path, open_flags(), Mode::empty())?)
}

/// The opened file, if regular.
fn check_regular(opened: OwnedFd) -> io::Result<(File, Metadata)> {
    let file = File::from(opened);
    let meta = file.metadata()?;
    match meta.is_file() {
        true => Ok((file, meta)),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, UNFIT)),
    }
}

/// A name in a folder.
pub(super) struct FolderEntry {
    pub(super) name: std::ffi::OsString,
    pub(super) kind: FileType,
}

fn open_flags() -> OFlags {
    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

fn is_borrowed(names: u64, owner: u32, folder: u32) -> bool {
    names > 1 && owner != folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_name_of_somebody_elses_file_is_borrowed() {
        assert!(is_borrowed(2, 0, 1000));
        assert!(!is_borrowed(1, 0, 1000));
        assert!(!is_borrowed(2, 1000, 1000));
    }

    #[test]
    fn a_time_ends() {
        assert!(WorkDeadline::after_limit(MAX_READING).time_left().is_ok());
        let error = WorkDeadline::after_limit(Duration::ZERO).time_left();
        assert!(error.is_err() || error.is_ok_and(|left| left.is_zero()));
    }

    #[test]
    fn only_regular_files_are_opened_and_a_fifo_is_not_waited_for() {
        use rustix::fs::{CWD, mknodat};
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "12345").unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink(".", dir.path().join("folder")).unwrap();
        mknodat(CWD, dir.path().join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let folder = OpenFolder::open(dir.path()).unwrap();
        assert_eq!(folder.read_file("a", 5).unwrap(), b"12345");
        assert!(folder.read_file("a", 4).is_err());
        assert!(folder.open_file("link").is_err() && folder.open_folder("folder").is_err());
        assert_eq!(folder.open_file("fifo").unwrap_err().to_string(), UNFIT);
        assert!(folder.open_file(".").is_err());
        assert!(OpenFolder::open(&dir.path().join("folder")).is_err());
        let mut names: Vec<_> =
            folder.list_entries().unwrap().map(|one| one.unwrap().name).collect();
        names.sort();
        assert_eq!(names, ["a", "fifo", "folder", "link"]);
    }
}
