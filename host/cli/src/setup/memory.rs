//! Memory that callers made a server use goes back to the system when they have gone.

use std::time::Duration;

use belljar_work::{OPERATOR, WorkKind};

use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

/// How often free memory is given back. It takes milliseconds, and what is needed again at once has
/// to be fetched again.
const EVERY: Duration = Duration::from_secs(10);

const GIVE_BACK: WorkKind = WorkKind { name: "giving back memory", time: EVERY };

/// Gives back what is free, again and again, until the handle is dropped. The C library keeps it
/// otherwise, in an arena for each of its threads: one moment's flood would be the process's size
/// from then on.
pub(crate) fn give_back_regularly() -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(Handle::current().spawn(async {
        let mut every = tokio::time::interval(EVERY);
        loop {
            every.tick().await;
            // An error: it is tried again.
            let _ = belljar_work::run(&GIVE_BACK, OPERATOR, |_| give_back()).await;
        }
    }))
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library's own function, which takes a number")]
fn give_back() {
    // SAFETY: it may be called at any time from any thread.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}
