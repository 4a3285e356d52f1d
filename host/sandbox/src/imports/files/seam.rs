//! For tests alone, and in no other build: a check of rights that always allows. With it, what
//! still refuses is the OS sandbox.

use std::sync::atomic::{AtomicBool, Ordering};

static ALLOWS_ALL: AtomicBool = AtomicBool::new(false);

/// Takes the first wall down for this process: a test does so in a child of its own.
pub(crate) fn allow_all() {
    ALLOWS_ALL.store(true, Ordering::Relaxed);
}

pub(crate) fn allows_all() -> bool {
    ALLOWS_ALL.load(Ordering::Relaxed)
}
