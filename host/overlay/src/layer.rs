//! The layer on disk: files of content, named by number, and an empty directory.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{
    AtFlags, Dir, FlockOperation, Mode, OFlags, Stat, flock, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

const FILES: &str = "files";
const EMPTY: &str = "empty";
const LOCK: &str = "lock";

/// The bytes copied at a time.
const STEP: usize = 1 << 20;

/// How often to try to get the lock, and how long to wait in between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// Locks a layer. Tries several times: a process that was just started inherits all descriptors for a
/// moment, also the lock of an overlay that was just closed.
fn lock_exclusive(lock: &OwnedFd) -> Result<(), Errno> {
    for _ in 1..TRIES {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
    flock(lock, FlockOperation::NonBlockingLockExclusive)
}

/// The open directory of a layer.
#[derive(Debug)]
pub(super) struct LayerDir {
    dir: OwnedFd,
    files: OwnedFd,
    /// The handle for descriptors of directories that only the index has.
    empty: Arc<File>,
    /// The lock, held as long as the overlay is open.
    _lock: OwnedFd,
}

impl LayerDir {
    /// Opens the directory of a layer, or makes it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut make = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
        match make.create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let dir = rustix::fs::open(path, DIRECTORY, Mode::empty())?;
        let private = Mode::from_raw_mode(0o600);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = openat(&dir, LOCK, flags, private)?;
        lock_exclusive(&lock).map_err(|errno| match errno {
            Errno::WOULDBLOCK => io::Error::new(
                io::ErrorKind::ResourceBusy,
                "the overlay is open already, here or in another process",
            ),
            errno => errno.into(),
        })?;
        let files = open_subdirectory(dir.as_fd(), FILES)?;
        let empty = Arc::new(File::from(open_subdirectory(dir.as_fd(), EMPTY)?));
        Ok(Self { dir, files, empty, _lock: lock })
    }

    pub(super) fn dir_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    pub(super) fn empty_dir(&self) -> &Arc<File> {
        &self.empty
    }

    /// Makes an empty file of content. If a failed change left a file with the same number, that is removed
    /// first.
    pub(super) fn create_content(&self, id: u64) -> Result<File, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o600);
        let make = || openat(&self.files, content_name(id), flags | OFlags::CLOEXEC, mode);
        match make() {
            Err(Errno::EXIST) => {
                unlinkat(&self.files, content_name(id), AtFlags::empty())?;
                make().map(File::from)
            }
            made => made.map(File::from),
        }
    }

    /// Opens a file of content, with the access in `flags`.
    pub(super) fn open_file(&self, id: u64, flags: OFlags) -> Result<File, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.files, content_name(id), flags, Mode::empty()).map(File::from)
    }

    pub(super) fn stat_content(&self, id: u64) -> Result<Stat, Errno> {
        statat(&self.files, content_name(id), AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(super) fn set_times(&self, id: u64, times: &rustix::fs::Timestamps) -> Result<(), Errno> {
        rustix::fs::utimensat(&self.files, content_name(id), times, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Removes a file of content. If this fails, the file is removed when the overlay is opened next.
    pub(super) fn remove_content(&self, id: u64) {
        let _ = unlinkat(&self.files, content_name(id), AtFlags::empty());
    }

    /// The numbers of all files of content. Removes files whose name is no number.
    pub(super) fn content_ids(&self) -> io::Result<Vec<u64>> {
        let mut ids = Vec::new();
        for entry in Dir::read_from(&self.files)? {
            let entry = entry?;
            let found = entry.file_name();
            match found.to_str().ok().and_then(parse_content_name) {
                Some(id) => ids.push(id),
                None if found.to_bytes() == b"." || found.to_bytes() == b".." => {}
                None => unlinkat(&self.files, found, AtFlags::empty())?,
            }
        }
        Ok(ids)
    }
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory in the layer, and makes the directory if missing.
pub(super) fn open_subdirectory(dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    match mkdirat(dir, name, Mode::from_raw_mode(0o700)) {
        Err(errno) if errno != Errno::EXIST => return Err(errno),
        _ => {}
    }
    openat(dir, name, DIRECTORY, Mode::empty())
}

fn content_name(id: u64) -> String {
    format!("{id:x}")
}

fn parse_content_name(text: &str) -> Option<u64> {
    let id = u64::from_str_radix(text, 16).ok()?;
    (content_name(id) == text).then_some(id)
}

/// Copies the first `most` bytes of a file: as shared blocks if the file system can, by the kernel, or else
/// by reading and writing. Returns the number of bytes copied.
pub(super) fn copy_bytes(from: &File, to: &File, most: u64) -> io::Result<u64> {
    let mut done = 0;
    #[cfg(target_os = "linux")]
    while done < most {
        let (mut read, mut write) = (done, done);
        let step = usize::try_from(most - done).unwrap_or(usize::MAX).min(1 << 30);
        let copied = rustix::fs::copy_file_range(from, Some(&mut read), to, Some(&mut write), step);
        match copied {
            Ok(0) => break,
            Ok(copied) => done += copied as u64,
            Err(Errno::INTR) => {}
            // The rest is copied by reading and writing; if the disk is full, that fails too.
            Err(_) => break,
        }
    }
    copy_by_hand(from, to, done, most)
}

/// Copies the bytes from `done` to `most` by reading and writing. Returns the offset that was reached.
fn copy_by_hand(from: &File, to: &File, mut done: u64, most: u64) -> io::Result<u64> {
    use std::os::unix::fs::FileExt as _;
    if done >= most {
        return Ok(done);
    }
    let mut buffer = vec![0; usize::try_from(most - done).unwrap_or(STEP).min(STEP)];
    while done < most {
        let step = buffer.len().min(usize::try_from(most - done).unwrap_or(STEP));
        let part = buffer.get_mut(..step).unwrap_or_default();
        match from.read_at(part, done) {
            Ok(0) => break,
            Ok(read) => {
                to.write_all_at(part.get(..read).unwrap_or_default(), done)?;
                done += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Seek as _, Write as _};

    #[test]
    fn a_copy_has_the_first_bytes_and_no_more() {
        let content: Vec<u8> = (0..3u32 << 20).map(|n| (n >> 3) as u8).collect();
        let mut from = tempfile::tempfile().unwrap();
        from.write_all(&content).unwrap();
        for (most, expected) in [(0, 0), (7, 7), (2 << 20, 2 << 20), (u64::MAX, 3 << 20)] {
            for by_hand in [false, true] {
                let mut to = tempfile::tempfile().unwrap();
                let copied = match by_hand {
                    true => copy_by_hand(&from, &to, 0, most),
                    false => copy_bytes(&from, &to, most),
                };
                assert_eq!(copied.unwrap(), expected as u64);
                let mut found = Vec::new();
                to.rewind().unwrap();
                to.read_to_end(&mut found).unwrap();
                assert!(found == content[..expected], "{most} {by_hand}");
            }
        }
    }

    #[test]
    fn a_layer_is_open_once() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("layer");
        let first = LayerDir::open(&path).unwrap();
        let second = LayerDir::open(&path).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::ResourceBusy);
        drop(first);
        LayerDir::open(&path).unwrap();
    }
}
