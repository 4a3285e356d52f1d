//! Permission bits, which WASI does not have.
//!
//! What `chmod` sets is remembered for the session, so that `chmod +x run.sh && ./run.sh`
//! works; it never reaches the disk. A file that begins with `#!` counts as executable
//! without it, since nobody can tell whether it was so on the host.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Paths whose mode is remembered. Past that the default holds: a loop over a huge tree must
/// not fill the memory.
const MAX_REMEMBERED: usize = 10_000;

const FILE: u32 = 0o644;
const EXECUTABLE: u32 = 0o755;
const DIRECTORY: u32 = 0o755;

#[derive(Debug, Default)]
pub(super) struct Modes {
    set: Mutex<BTreeMap<PathBuf, u32>>,
}

impl Modes {
    pub(super) fn set(&self, path: &Path, mode: u32) {
        let mut set = self.lock();
        if set.len() < MAX_REMEMBERED {
            set.insert(path.to_owned(), mode);
        }
    }

    pub(super) fn forget(&self, path: &Path) {
        self.lock().remove(path);
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) {
        let mut set = self.lock();
        set.remove(to);
        if let Some(mode) = set.remove(from) {
            set.insert(to.to_owned(), mode);
        }
    }

    /// The mode without opening the file.
    pub(super) fn listed(&self, path: &Path, kind: fs::FileType) -> u32 {
        let default = if kind.is_dir() { DIRECTORY } else { FILE };
        self.lock().get(path).copied().unwrap_or(default)
    }

    /// The mode, where a look into the file may decide.
    pub(super) fn of(&self, path: &Path, kind: fs::FileType) -> u32 {
        let known = self.lock().get(path).copied();
        match known {
            Some(mode) => mode,
            None if kind.is_file() && is_script(path) => EXECUTABLE,
            None => self.listed(path, kind),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, u32>> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_script(path: &Path) -> bool {
    let mut start = [0; 2];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"#!"
}
