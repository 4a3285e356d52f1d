//! Sessions that are deleted when the turn has ended and every waiting client has the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// INV-289: deletes a session when the last clone is dropped, if the turn has ended by then. If the turn is
/// resumed at the next start, the session is deleted afterwards.
pub(crate) struct DeletionGuard {
    ended: AtomicBool,
    delete: Box<dyn Fn() + Send + Sync>,
}

impl DeletionGuard {
    /// `delete` is called at most once.
    pub(crate) fn new(delete: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { ended: AtomicBool::new(false), delete: Box::new(delete) })
    }

    /// Notes that the turn has ended and is stored, so that the session may be deleted.
    pub(crate) fn turn_ended(&self) {
        self.ended.store(true, Ordering::Release);
    }
}

impl Drop for DeletionGuard {
    fn drop(&mut self) {
        if self.ended.load(Ordering::Acquire) {
            (self.delete)();
        }
    }
}

impl std::fmt::Debug for DeletionGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeletionGuard").field("ended", &self.ended).finish_non_exhaustive()
    }
}
