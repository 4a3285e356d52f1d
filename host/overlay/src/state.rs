//! The state that the clones of an overlay share.

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

/// The state that the clones of an overlay share.
pub(crate) struct OverlayShared {
    pub(super) lower: LowerRoot,
    pub(super) path: PathBuf,
    pub(super) layer: LayerDir,
    pub(super) room: Arc<OverlayRoom>,
    pub(super) state: Mutex<OverlayState>,
    pub(super) digests: DigestQueue,
    pub(super) bases: Arc<BaseTexts>,
}

/// The part of the state that changes.
pub(crate) struct OverlayState {
    pub(super) tree: IndexTree,
    pub(super) index: IndexFile,
    /// Files with a name whose content is in the layer.
    pub(super) uppers: HashMap<u64, Arc<UpperFile>>,
    /// Files of the lower directory that are open for reading, by lower path.
    pub(super) readers: HashMap<RelPath, Weak<LowerReader>>,
    /// The number of readers in use at the last sweep.
    pub(super) live_readers: usize,
}

/// A file of the lower directory that guests read. After a copy to the layer, they read the copy.
pub struct LowerReader {
    pub(super) rel: RelPath,
    pub(super) identity: (u64, u64),
    pub(super) moved: OnceLock<(Arc<UpperFile>, Arc<File>)>,
    /// Times that were set while the file had a name.
    pub(super) times: Mutex<FileTimes>,
}

impl OverlayShared {
    pub(super) fn lock_state(&self) -> MutexGuard<'_, OverlayState> {
        match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            // A copy of a file holds the lock until it ends.
            Err(TryLockError::WouldBlock) => {
                beside::wait_blocking(|| self.state.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}
