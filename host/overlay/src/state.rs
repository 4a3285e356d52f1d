//! The state all clones of an overlay share.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};

use super::bases::BaseTexts;
use super::beside;
use super::digests::DigestQueue;
use super::index::IndexFile;
use super::layer::LayerDir;
use super::lower::LowerRoot;
use super::record::FileTimes;
use super::rel::RelPath;
use super::room::{OverlayRoom, UpperFile};
use super::tree::IndexTree;

/// The state all clones of an overlay share.
pub(crate) struct OverlayShared {
    pub(super) lower: LowerRoot,
    pub(super) path: PathBuf,
    pub(super) layer: LayerDir,
    pub(super) room: Arc<OverlayRoom>,
    pub(super) state: Mutex<OverlayState>,
    pub(super) digests: DigestQueue,
    pub(super) bases: Arc<BaseTexts>,
}

/// The part of the state that changes, under a lock.
pub(crate) struct OverlayState {
    pub(super) tree: IndexTree,
    pub(super) index: IndexFile,
    /// The files of the layer that have a name, by number.
    pub(super) uppers: HashMap<u64, Arc<UpperFile>>,
    /// The files of the lower directory open for reading, by lower path.
    pub(super) readers: HashMap<RelPath, Weak<LowerReader>>,
    /// How many readers were in use when unused ones were last removed.
    pub(super) live_readers: usize,
}

/// A file of the lower directory that guests read. After a copy to the layer, they read the copy.
pub struct LowerReader {
    pub(super) rel: RelPath,
    pub(super) identity: (u64, u64),
    pub(super) moved: OnceLock<(Arc<UpperFile>, Arc<File>)>,
    /// Times that a guest set while the file was not copied.
    pub(super) times: Mutex<FileTimes>,
}

impl OverlayShared {
    /// Locks the state of the overlay; while another thread holds the lock, other guests are not blocked.
    pub(super) fn lock_state(&self) -> MutexGuard<'_, OverlayState> {
        match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            // Another thread may hold the lock while it copies a file.
            Err(TryLockError::WouldBlock) => {
                beside::wait_blocking(|| self.state.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}
