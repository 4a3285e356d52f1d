//! Long waits of a guest's call, for the disk or a lock, without blocking other guests.
//!
//! A guest's call of the file system is done where its guest runs, on an async worker. Most take microseconds;
//! the copy of a file of a gigabyte takes seconds, and so does a call that finds the overlay locked
//! by such a copy. While one waits, the tasks of its worker go on elsewhere.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Bytes whose copy a worker may wait for: a few milliseconds.
const SHORT: u64 = 8 << 20;

/// Copies so many bytes by `copy`.
pub(super) fn copying<T>(bytes: u64, copy: impl FnOnce() -> T) -> T {
    if bytes > SHORT { waiting(copy) } else { copy() }
}

/// Runs code that may wait for long, bounded by the overlay's quota.
pub(super) fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        #[expect(
            clippy::disallowed_methods,
            reason = "the call is in the midst of its guest, which cannot be moved; its quota is its bound"
        )]
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        // It has no other worker, or is none.
        Ok(_) | Err(_) => wait(),
    }
}
