//! Host work: computation and file access that the host itself does because of a stranger's request.
//!
//! A guest's work is bounded by fuel. The host's own work on a guest's data (a diff, a pattern, a directory
//! listing) has no fuel, so all such work runs through [`run_job`], which adds four bounds:
//!
//! - a thread of its own, so that no async worker waits for it;
//! - a limit for each owner ([`MAX_RUNNING_PER_OWNER`]), so that one tenant never uses up the threads of
//!   another;
//! - a deadline, [`WorkKind::time`], which counts from the request and so includes the wait for a thread;
//! - an end: dropping the future of [`run_job`] stops the work through its [`StopSignal`].
//!
//! The lint `clippy::disallowed_methods` refuses `tokio::task::spawn_blocking` everywhere else.
//!
//! ```
//! use std::time::Duration;
//! use belljar_work::{WorkKind, WorkStopped, run_job};
//!
//! const COUNT_LINES: WorkKind = WorkKind { name: "counting lines", time: Duration::from_secs(5) };
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap().block_on(async {
//! let text = "a\nb\n".to_owned();
//! let lines = run_job(&COUNT_LINES, "tenant-1", move |stop| {
//!     let mut lines = 0;
//!     for _ in text.lines() {
//!         stop.check_raised()?;
//!         lines += 1;
//!     }
//!     Ok::<_, WorkStopped>(lines)
//! });
//! assert_eq!(lines.await.unwrap(), Ok(2));
//! # });
//! ```

mod memory;
mod owner;
mod signal;

use std::time::{Duration, Instant};

use tokio::time::timeout_at;

pub use memory::give_back_memory;
pub use signal::{StopSignal, WorkStopped};

/// Concurrent jobs of one owner: two, because a short job should pass a long one. [`OPERATOR`] has
/// [`MAX_RUNNING_OF_OPERATOR`].
pub const MAX_RUNNING_PER_OWNER: usize = 2;

/// Concurrent jobs of the operator, for example one for each tenant that a server opens. Further ones wait
/// without a limit, because the operator requested each.
pub const MAX_RUNNING_OF_OPERATOR: usize = 16;

/// Waiting jobs of one owner; the next one is refused with [`WorkError::Busy`].
pub const MAX_WAITING_PER_OWNER: usize = 256;

/// Concurrent jobs of all owners except the operator. Far below the 512 blocking threads of a tokio runtime,
/// because the runtime's own file operations use those threads too.
pub const MAX_RUNNING: usize = 64;

/// The owner of work that the operator caused: the start of a server, a command line, loading tools. The
/// operator's jobs start no further jobs, so another owner's job can wait for one without a deadlock.
pub const OPERATOR: &str = "";

/// One kind of host work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkKind {
    /// A noun for errors and logs, for example `comparing files`.
    pub name: &'static str,
    /// The longest time from the request to the result.
    pub time: Duration,
}

/// Why a job has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The deadline passed. The job was stopped; one that never checks its signal still uses a thread of its
    /// owner.
    #[error("{kind} took longer than {} seconds", .limit.as_secs())]
    TimedOut {
        /// [`WorkKind::name`].
        kind: &'static str,
        /// [`WorkKind::time`].
        limit: Duration,
    },
    /// The owner already has [`MAX_WAITING_PER_OWNER`] waiting jobs.
    #[error("{kind}: too many requests of that kind are waiting")]
    Busy {
        /// [`WorkKind::name`].
        kind: &'static str,
    },
    /// The job panicked, which is a bug of belljar. The log has the message.
    #[error("{kind} failed: a fault of belljar")]
    Panicked {
        /// [`WorkKind::name`].
        kind: &'static str,
    },
}

/// Runs `job` on a thread for `owner`, for example a tenant's id.
///
/// The job gets a [`StopSignal`] that is raised at the deadline and when this future is dropped. Until the job
/// returns, its thread counts against the owner.
///
/// # Errors
///
/// [`WorkError`]: the deadline, a full queue, a panic.
pub async fn run_job<T: Send + 'static>(
    kind: &WorkKind,
    owner: &str,
    job: impl FnOnce(&StopSignal) -> T + Send + 'static,
) -> Result<T, WorkError> {
    let deadline = Instant::now() + kind.time;
    let late = || WorkError::TimedOut { kind: kind.name, limit: kind.time };
    let place = owner::enter_queue(owner).ok_or(WorkError::Busy { kind: kind.name })?;
    let slot = timeout_at(deadline.into(), place.acquire_slot()).await.map_err(|_| late())?;
    let (signal, guard) = StopSignal::with_deadline(deadline);
    #[expect(clippy::disallowed_methods, reason = "here it has a limit, a deadline and an end")]
    let work = tokio::task::spawn_blocking(move || {
        let done = job(&signal);
        drop(slot);
        done
    });
    let ended = timeout_at(deadline.into(), work).await;
    drop(guard);
    match ended {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => Err(WorkError::Panicked { kind: kind.name }),
        Err(_) => Err(late()),
    }
}

#[cfg(test)]
mod tests;
