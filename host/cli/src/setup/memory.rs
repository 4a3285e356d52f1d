//! Returns a server's free memory to the system after its callers have gone.

use std::time::Duration;

use belljar_work::{OPERATOR, WorkKind, give_back_memory};

use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

/// The time between two returns of free memory. Each takes milliseconds, and memory that is needed again has
/// to be requested again.
const EVERY: Duration = Duration::from_secs(10);

/// The kind of host work that returns free memory to the system.
const GIVE_BACK: WorkKind = WorkKind { name: "giving back memory", time: EVERY };

/// Returns free memory to the system at this interval, until the handle is dropped.
pub(crate) fn give_back_regularly() -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(Handle::current().spawn(async {
        let mut every = tokio::time::interval(EVERY);
        loop {
            every.tick().await;
            // After an error, the next attempt follows at the next interval.
            let _ = belljar_work::run_job(&GIVE_BACK, OPERATOR, |_| give_back_memory()).await;
        }
    }))
}
