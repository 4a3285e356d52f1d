//! The signal by which a job learns that nobody needs its result any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Tells a job to stop, because the deadline passed or the caller is gone. Clones share the signal.
#[derive(Debug, Clone)]
pub struct StopSignal {
    raised: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

/// The error of a stopped job. A stopped job has no result, not even a partial one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped before the end")]
pub struct WorkStopped;

/// Raises the signal of a job when dropped.
#[derive(Debug)]
pub(crate) struct RaiseOnDrop(Arc<AtomicBool>);

impl Drop for RaiseOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl StopSignal {
    /// Makes a signal that is never raised, for work of the operator, who can interrupt the program.
    pub fn never_raised() -> Self {
        Self { raised: Arc::default(), deadline: None }
    }

    /// Makes a signal raised after `time`, or by [`StopSignal::raise`].
    pub fn with_timeout(time: Duration) -> Self {
        Self { raised: Arc::default(), deadline: Instant::now().checked_add(time) }
    }

    pub(crate) fn with_deadline(deadline: Instant) -> (Self, RaiseOnDrop) {
        let raised = Arc::new(AtomicBool::new(false));
        (Self { raised: Arc::clone(&raised), deadline: Some(deadline) }, RaiseOnDrop(raised))
    }

    /// Returns this signal with a deadline `time` from now, unless the present deadline is earlier; for a
    /// part of a job.
    #[must_use]
    pub fn with_part_timeout(&self, time: Duration) -> Self {
        let part = Instant::now().checked_add(time);
        let deadline = match (self.deadline, part) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self { raised: Arc::clone(&self.raised), deadline }
    }

    /// Raises the signal in all clones.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    /// Whether the job should stop. Reads a clock, so call this only every few thousand operations.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns [`StopSignal::is_raised`] as an error, for `?`.
    ///
    /// # Errors
    ///
    /// [`WorkStopped`] if the signal is raised.
    pub fn check_raised(&self) -> Result<(), WorkStopped> {
        if self.is_raised() { Err(WorkStopped) } else { Ok(()) }
    }
}
