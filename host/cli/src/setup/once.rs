//! Temporary directories for the overlays of runs that are not stored: `run --no-save` and `replay`.
//!
//! ```text
//! DIR/overlays-RANDOM/lock  held as long as the run lasts
//! DIR/overlays-RANDOM/run   its overlays
//! ```
//!
//! A place left by a killed process is removed by the next process that makes one, or opens the store.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use belljar_overlay::{OverlayPool, OverlayQuota, SessionLayers};
use tempfile::TempDir;

/// The prefix of such a directory's name.
const PREFIX: &str = "overlays-";
/// The name of the lock file in such a directory.
const LOCK: &str = "lock";

/// The most attempts to make a directory, because another process may remove it as a leftover before it is
/// locked.
const MAX_TRIES: u32 = 16;

/// The overlays of one run, deleted on drop.
#[derive(Debug)]
pub(crate) struct OnceLayers {
    pub(crate) layers: SessionLayers,
    _dir: TempDir,
    _lock: File,
}

/// Makes a temporary directory for overlays in the directory `in_dir`.
pub(crate) fn layers_for_once(in_dir: &Path) -> io::Result<OnceLayers> {
    remove_left(in_dir);
    for _ in 0..MAX_TRIES {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(in_dir)?;
        let path = dir.path().join(LOCK);
        let lock = match File::create_new(&path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if lock.try_lock().is_err() || !path.exists() {
            continue;
        }
        let none = OverlayQuota { bytes: 0, files: 0 };
        let pool = OverlayPool::new(OverlayQuota::default(), none).with_hidden(in_dir);
        let layers = SessionLayers::in_directory(dir.path().join("run"), pool);
        return Ok(OnceLayers { layers, _dir: dir, _lock: lock });
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Removes such directories of killed processes, as far as possible.
pub(crate) fn remove_left(in_dir: &Path) {
    for entry in fs::read_dir(in_dir).into_iter().flatten().flatten() {
        let is_place = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if !is_place || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let dir = entry.path();
        match File::open(dir.join(LOCK)) {
            Ok(lock) if lock.try_lock().is_ok() => {
                let _ = fs::remove_dir_all(dir);
            }
            Ok(_) => {}
            // A directory that is being made has no lock yet, and is empty.
            Err(_) => {
                let _ = fs::remove_dir(dir);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn a_place_that_was_left_goes_and_one_that_is_in_use_stays() {
        let dir = tempfile::tempdir().unwrap();
        let used = layers_for_once(dir.path()).unwrap();
        for (name, content) in [("overlays-killed", true), ("overlays-begun", false)] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
            if content {
                fs::create_dir_all(dir.path().join(name).join("run/0/layer")).unwrap();
                fs::write(dir.path().join(name).join(LOCK), "").unwrap();
            }
        }
        fs::create_dir(dir.path().join("other")).unwrap();
        fs::write(dir.path().join("overlays-file"), "").unwrap();
        let next = layers_for_once(dir.path()).unwrap();
        assert_eq!(left(dir.path()), 4, "two in use, and what is none");
        drop((used, next));
        assert_eq!(left(dir.path()), 2);
    }
}
