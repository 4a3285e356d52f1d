//! Counts open objects against a limit; each stops counting when it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit of open objects, with the number open now.
#[derive(Debug)]
pub(crate) struct OpenCounter {
    open: Arc<AtomicU64>,
    limit: u64,
}

/// One open object, counted in an [`OpenCounter`] until dropped.
#[derive(Debug)]
pub(crate) struct OpenSlot(Arc<AtomicU64>);

impl OpenCounter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { open: Arc::default(), limit }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Counts one more open object; `None`: the limit is reached.
    pub(crate) fn acquire_slot(&self) -> Option<OpenSlot> {
        let fits = |open: u64| (open < self.limit).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(OpenSlot(Arc::clone(&self.open)))
    }
}

impl Drop for OpenSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
