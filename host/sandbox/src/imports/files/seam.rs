//! A switch that exists in tests only: all checks of rights then allow everything, so that a test sees what
//! the OS sandbox alone refuses.

use std::sync::atomic::{AtomicBool, Ordering};

static ALLOWS_ALL: AtomicBool = AtomicBool::new(false);

/// Makes all checks of rights in the current process pass; for a test that runs in a child process.
pub(crate) fn allow_all() {
    ALLOWS_ALL.store(true, Ordering::Relaxed);
}

pub(crate) fn allows_all() -> bool {
    ALLOWS_ALL.load(Ordering::Relaxed)
}
