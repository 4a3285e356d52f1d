//! Host work: computation and file access by the host itself, at the request of a stranger, for example
//! comparing two files.
//!
//! A guest's work is bounded by fuel. The host's own work on a guest's data (a diff, a pattern, a listing)
//! uses no fuel, so all of it runs through [`run_job`], which adds four bounds:
//!
//! - a separate thread, so that no async worker waits for the work;
//! - a limit per owner ([`MAX_RUNNING_PER_OWNER`]), so that one tenant cannot use up the threads of another;
//! - a deadline, [`WorkKind::time`], counted from the request, so the wait for a thread is included;
//! - an end: dropping the future of [`run_job`] stops the work, through a [`StopSignal`].
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

/// The most concurrent jobs of an owner: two, so that a short job can pass a long job. For [`OPERATOR`] the
/// limit is [`MAX_RUNNING_OF_OPERATOR`].
pub const MAX_RUNNING_PER_OWNER: usize = 2;

/// The most concurrent jobs of the operator, for example a job for each tenant that a server opens. Any
/// number may wait, because the operator requested each.
pub const MAX_RUNNING_OF_OPERATOR: usize = 16;

/// The most waiting jobs of an owner; the next job is refused with [`WorkError::Busy`].
pub const MAX_WAITING_PER_OWNER: usize = 256;

/// The most concurrent jobs of all owners but the operator. Far below the 512 blocking threads of a tokio
/// runtime, because the runtime's own file operations use the same threads.
pub const MAX_RUNNING: usize = 64;

/// The owner of work for the operator: starting a server, a command line, loading tools. The operator's jobs
/// start no further jobs, so a job of another owner can wait for an operator's job without a deadlock.
pub const OPERATOR: &str = "";

/// A kind of host work, with the time limit of its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkKind {
    /// The name for errors and logs, for example `comparing files`.
    pub name: &'static str,
    /// The most time from the request to the result.
    pub time: Duration,
}

/// Why a job has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The deadline passed, and the job was told to stop. A job that never checks its signal goes on using a
    /// thread of its owner.
    #[error("{kind} took longer than {} seconds", .limit.as_secs())]
    TimedOut {
        /// The name of the job's kind: [`WorkKind::name`].
        kind: &'static str,
        /// The time limit of the job's kind: [`WorkKind::time`].
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

/// Runs `job` on a thread, counted against `owner`, for example a tenant's id.
///
/// The job gets a [`StopSignal`], raised at the deadline or when the returned future is dropped. The thread
/// counts against the owner until the job returns.
///
/// # Errors
///
/// [`WorkError`]: the deadline passed, the owner's queue is full, or the job panicked.
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
