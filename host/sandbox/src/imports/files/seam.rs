//! A switch for tests, in no other build: it makes checks of rights allow everything, so that only the OS
//! sandbox refuses.

use std::sync::atomic::{AtomicBool, Ordering};

static ALLOWS_ALL: AtomicBool = AtomicBool::new(false);

/// Disables the checks of rights in this process, for a test in a child.
pub(crate) fn allow_all() {
    ALLOWS_ALL.store(true, Ordering::Relaxed);
}

pub(crate) fn allows_all() -> bool {
    ALLOWS_ALL.load(Ordering::Relaxed)
}
