//! For tests alone, and in no other build: a check of rights that always allows, so that only the OS sandbox
//! refuses.

use std::sync::atomic::{AtomicBool, Ordering};

static ALLOWS_ALL: AtomicBool = AtomicBool::new(false);

/// Removes the first wall for this process, for a test in a child.
pub(crate) fn allow_all() {
    ALLOWS_ALL.store(true, Ordering::Relaxed);
}

pub(crate) fn allows_all() -> bool {
    ALLOWS_ALL.load(Ordering::Relaxed)
}
