//! Lets a guest's call wait for the disk or a lock without blocking other guests.
//!
//! A guest's file operation runs on the async worker thread of the guest. Most operations need microseconds;
//! copying a file of a gigabyte takes seconds, and so does an operation on an overlay whose lock is held by
//! such a copy. During such a wait, tokio moves the other tasks of the worker to another thread.

use tokio::runtime::{Handle, RuntimeFlavor};

/// The longest copy, in bytes, that may block a worker thread: a few milliseconds.
const SHORT: u64 = 8 << 20;

/// Runs `copy`, which copies `bytes` bytes; a long copy runs by [`wait_blocking`].
pub(super) fn copy_blocking<T>(bytes: u64, copy: impl FnOnce() -> T) -> T {
    if bytes > SHORT { wait_blocking(copy) } else { copy() }
}

/// Runs code that may block the thread for long. The overlay's quota bounds the wait.
pub(super) fn wait_blocking<T>(wait: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        #[expect(
            clippy::disallowed_methods,
            reason = "the call is in the midst of its guest, which cannot be moved; its quota is its bound"
        )]
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        // A runtime with only one worker, or a thread that is not a worker: no task can be moved away.
        Ok(_) | Err(_) => wait(),
    }
}
