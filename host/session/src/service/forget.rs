//! Sessions that are deleted when their turn has ended and everybody who waits for it has its
//! answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// INV-289: deletes a session when the last clone is gone, if its turn has ended by then: one that is
/// resumed at the next start is deleted behind that.
pub(crate) struct Forget {
    ended: AtomicBool,
    delete: Box<dyn Fn() + Send + Sync>,
}

impl Forget {
    /// `delete` is called once, when it is time.
    pub(crate) fn new(delete: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { ended: AtomicBool::new(false), delete: Box::new(delete) })
    }

    /// The turn has ended and is stored.
    pub(crate) fn turn_ended(&self) {
        self.ended.store(true, Ordering::Release);
    }
}

impl Drop for Forget {
    fn drop(&mut self) {
        if self.ended.load(Ordering::Acquire) {
            (self.delete)();
        }
    }
}

impl std::fmt::Debug for Forget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forget").field("ended", &self.ended).finish_non_exhaustive()
    }
}
