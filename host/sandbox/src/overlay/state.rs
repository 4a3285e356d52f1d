//! The state that the clones of an overlay share.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};

use super::bases::Bases;
use super::beside;
use super::digests::DigestQueue;
use super::index::Index;
use super::layer::Layer;
use super::lower::Root;
use super::record::FileTimes;
use super::rel::Rel;
use super::room::{Room, Upper};
use super::tree::IndexTree;

/// The state that the clones of an overlay share.
pub(crate) struct OverlayShared {
    pub(super) lower: Root,
    pub(super) path: PathBuf,
    pub(super) layer: Layer,
    pub(super) room: Arc<Room>,
    pub(super) state: Mutex<State>,
    pub(super) digests: DigestQueue,
    pub(super) bases: Arc<Bases>,
}

/// The part of the state that changes.
pub(crate) struct State {
    pub(super) tree: IndexTree,
    pub(super) index: Index,
    /// Files with a name whose content is in the layer.
    pub(super) uppers: HashMap<u64, Arc<Upper>>,
    /// Files of the lower directory that are open for reading, by lower path.
    pub(super) readers: HashMap<Rel, Weak<Reader>>,
    /// The number of readers in use at the last sweep.
    pub(super) live_readers: usize,
}

/// A file of the lower directory that guests read. After a copy to the layer, they read the copy.
pub(crate) struct Reader {
    pub(super) rel: Rel,
    pub(super) identity: (u64, u64),
    pub(super) moved: OnceLock<(Arc<Upper>, Arc<File>)>,
    /// Times that were set while the file had a name.
    pub(super) times: Mutex<FileTimes>,
}

impl OverlayShared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            // A copy of a file holds the lock until it ends.
            Err(TryLockError::WouldBlock) => {
                beside::waiting(|| self.state.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}
