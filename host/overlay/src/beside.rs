//! Lets a guest's call wait for the disk or a lock without blocking other guests.
//!
//! A guest's file operation runs on the async worker of its guest. Most operations need microseconds; copying
//! a file of a gigabyte takes seconds, and so does an operation on an overlay that is locked by such a copy.
//! During the wait, the other tasks of the worker move to another thread.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Bytes whose copy may block a worker: a few milliseconds.
const SHORT: u64 = 8 << 20;

/// Runs `copy`, which copies this many bytes.
pub(super) fn copy_blocking<T>(bytes: u64, copy: impl FnOnce() -> T) -> T {
    if bytes > SHORT { wait_blocking(copy) } else { copy() }
}

/// Runs code that may block for long, bounded by the overlay's quota.
pub(super) fn wait_blocking<T>(wait: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        #[expect(
            clippy::disallowed_methods,
            reason = "the call is in the midst of its guest, which cannot be moved; its quota is its bound"
        )]
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        // The runtime has only one worker, or this thread is not a worker.
        Ok(_) | Err(_) => wait(),
    }
}
