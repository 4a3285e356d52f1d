//! Ending single subagents of a run from outside.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The subagents of one run that have not ended.
#[derive(Debug, Default)]
pub struct Control(Mutex<HashMap<Arc<str>, CancellationToken>>);

impl Control {
    /// Ends the subagent with this path, and all below it; it counts as cancelled. `false` = no
    /// such one runs or waits.
    pub fn cancel(&self, path: &str) -> bool {
        let token = self.subagents().get(path).cloned();
        token.inspect(CancellationToken::cancel).is_some()
    }

    pub(crate) fn add(&self, path: &Arc<str>, cancel: &CancellationToken) {
        self.subagents().insert(Arc::clone(path), cancel.clone());
    }

    pub(crate) fn remove(&self, path: &str) {
        self.subagents().remove(path);
    }

    fn subagents(&self) -> MutexGuard<'_, HashMap<Arc<str>, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
