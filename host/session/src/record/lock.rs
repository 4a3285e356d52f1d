//! The lock of a session: a small file beside the store, by which only one process at a time runs turns of
//! the session. The system releases the lock when the process dies.

use belljar_store::Store;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Most attempts to lock a file that another process removes at the same moment.
const MAX_TRIES: u32 = 16;

/// The right to resume a session. Dropping this value releases the session.
#[derive(Debug)]
pub(crate) struct SessionLock {
    path: PathBuf,
    /// The locked file.
    _file: File,
}

impl SessionLock {
    /// Locks a session; `None` = another holder has the lock. The id is a stored or a new one, never a path.
    pub(crate) fn try_lock(dir: &Path, session: &str) -> io::Result<Option<Self>> {
        create_dir(dir)?;
        let path = dir.join(format!("{session}.lock"));
        for _ in 0..MAX_TRIES {
            let mut options = File::options();
            options.write(true).create(true).truncate(false);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let file = options.open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The former holder may have removed the file after this process opened it.
            if still_there(&file, &path) {
                return Ok(Some(Self { path, _file: file }));
            }
        }
        Ok(None)
    }
}

/// Returns whether a session is locked. The check keeps no lock; another process that locks the session at
/// the same moment may be refused.
pub(crate) fn is_locked(dir: &Path, session: &str) -> bool {
    match File::open(dir.join(format!("{session}.lock"))) {
        Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

/// Returns whether a session is locked, here or in another process, for example by a running turn.
pub fn is_at_work(store: &Store, session: &str) -> bool {
    is_locked(&locks_directory(store), session)
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // Removed before the lock is released, so no other process uses the file. A leftover file is
        // harmless.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn still_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    matches!((file.metadata(), fs::metadata(path)), (Ok(a), Ok(b)) if same(&a, &b))
}

#[cfg(not(unix))]
fn still_there(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(unix)]
fn create_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(not(unix))]
fn create_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

/// The directory of the locks of sessions.
pub(crate) fn locks_directory(store: &Store) -> PathBuf {
    store.path().with_extension("locks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_locked_by_one_and_free_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let lock = SessionLock::try_lock(dir.path(), "s").unwrap().unwrap();
        assert!(SessionLock::try_lock(dir.path(), "s").unwrap().is_none());
        let other = SessionLock::try_lock(dir.path(), "t").unwrap();
        assert!(other.is_some(), "another session is free");
        assert!(is_locked(dir.path(), "s") && !is_locked(dir.path(), "u"));
        drop(lock);
        fs::write(dir.path().join("s.lock"), "").unwrap();
        assert!(!is_locked(dir.path(), "s"), "a file that a dead process left");
        assert!(SessionLock::try_lock(dir.path(), "s").unwrap().is_some());
        drop(other);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    }
}
