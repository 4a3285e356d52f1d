//! Counts of open objects, decremented on drop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit on open objects, with their present number.
#[derive(Debug)]
pub(crate) struct Counter {
    open: Arc<AtomicU64>,
    limit: u64,
}

/// Counts one open object.
#[derive(Debug)]
pub(crate) struct Slot(Arc<AtomicU64>);

impl Counter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { open: Arc::default(), limit }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Counts one more object; `None` = the limit is reached.
    pub(crate) fn take(&self) -> Option<Slot> {
        let fits = |open: u64| (open < self.limit).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(Slot(Arc::clone(&self.open)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
