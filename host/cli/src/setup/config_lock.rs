//! A lock against simultaneous changes of a home's `belljar.toml`: a process replaces exactly the text that
//! it has read. The lock is on the home's directory, so that no lock file is left. The system releases it
//! when the process dies.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use belljar_policy::ShownPath as _;

use crate::setup::exit::Failure;
use crate::setup::home::{create_private, not_written, read_own_config, replace_config};

/// The most time that a command waits for another change, which itself takes some milliseconds.
const WAIT: Duration = Duration::from_secs(20);

/// The pause between two attempts to lock.
const PAUSE: Duration = Duration::from_millis(10);

/// The right to change a `belljar.toml`. Dropping this value releases the lock.
#[derive(Debug)]
pub(crate) struct ConfigLock {
    path: PathBuf,
    /// The open directory that is locked; `None` = the home does not exist yet, so there is no text to
    /// protect.
    held: Option<File>,
}

impl ConfigLock {
    /// Locks the directory of the file `path`, and waits while another process has it locked. If the directory
    /// does not exist yet, nothing is locked.
    ///
    /// # Errors
    ///
    /// When another process holds the lock for longer than a change of the file takes.
    pub(crate) fn lock_file(path: &Path) -> Result<Self, Failure> {
        let held = match File::open(path.parent().unwrap_or(Path::new("."))) {
            Ok(directory) => Some(wait_for_lock(directory, path)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(not_written("open the directory of", path, &error)),
        };
        Ok(Self { path: path.to_path_buf(), held })
    }

    /// Writes the text `new`, if the file still has the text `shown`. A change by another process since then
    /// is an error.
    pub(crate) fn replace_text(self, shown: &str, new: &str) -> Result<(), Failure> {
        let Self { path, held } = self;
        let _held = match held {
            Some(held) => held,
            None => {
                let home = path.parent().unwrap_or(Path::new("."));
                let opened = create_private(home).and_then(|()| File::open(home));
                wait_for_lock(opened.map_err(|error| not_written("create", home, &error))?, &path)?
            }
        };
        if read_own_config(&path)?.unwrap_or_default() == shown {
            return replace_config(&path, new);
        }
        let why = format!("`{}` was changed meanwhile, and nothing is written", path.to_shown());
        Err(Failure::new(why).with_hint("repeat the command, and look at what it shows then"))
    }
}

/// Locks the directory, and waits while another process has it locked.
fn wait_for_lock(directory: File, path: &Path) -> Result<File, Failure> {
    let started = Instant::now();
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(TryLockError::WouldBlock) if started.elapsed() < WAIT => {
                std::thread::park_timeout(PAUSE)
            }
            Err(TryLockError::WouldBlock) => {
                let why = format!("another belljar is changing `{}`", path.to_shown());
                return Err(Failure::new(why).with_hint("try again when it has finished"));
            }
            Err(TryLockError::Error(error)) => return Err(not_written("lock", path, &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_somebody_else_has_written_is_not_undone_and_the_next_one_waits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("belljar.toml");
        let replaced =
            |shown: &str, new: &str| ConfigLock::lock_file(&path)?.replace_text(shown, new);
        replaced("", "# one\n").unwrap();
        assert!(replaced("", "# two\n").unwrap_err().message.contains("changed meanwhile"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "# one\n");
        // Each thread adds a line to the text that it has read.
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let lock = ConfigLock::lock_file(path).unwrap();
                    let read = fs::read_to_string(path).unwrap();
                    lock.replace_text(&read, &format!("{read}# {number}\n")).unwrap();
                });
            }
        });
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 9);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
        let new = dir.path().join("new/home/belljar.toml");
        ConfigLock::lock_file(&new).unwrap().replace_text("", "# x\n").unwrap();
        assert_eq!(fs::read_to_string(new).unwrap(), "# x\n");
    }
}
