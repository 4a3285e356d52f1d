//! A signal by which a job learns that its result is no longer needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Stops a job: its deadline passed, or the caller disconnected. Clones share one signal.
#[derive(Debug, Clone)]
pub struct StopSignal {
    raised: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

/// The error of a stopped job, which has no result, not even a partial one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped before the end")]
pub struct WorkStopped;

/// Raises the signal when dropped.
#[derive(Debug)]
pub(crate) struct RaiseOnDrop(Arc<AtomicBool>);

impl Drop for RaiseOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl StopSignal {
    /// A signal that is never raised: for the operator's own work, which the operator can interrupt.
    pub fn never_raised() -> Self {
        Self { raised: Arc::default(), deadline: None }
    }

    /// A signal that is raised after `time`, and by [`StopSignal::raise`].
    pub fn with_timeout(time: Duration) -> Self {
        Self { raised: Arc::default(), deadline: Instant::now().checked_add(time) }
    }

    pub(crate) fn with_deadline(deadline: Instant) -> (Self, RaiseOnDrop) {
        let raised = Arc::new(AtomicBool::new(false));
        (Self { raised: Arc::clone(&raised), deadline: Some(deadline) }, RaiseOnDrop(raised))
    }

    /// This signal with an earlier deadline, for a part of a job that may take at most `time`.
    #[must_use]
    pub fn with_part_timeout(&self, time: Duration) -> Self {
        let part = Instant::now().checked_add(time);
        let deadline = match (self.deadline, part) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self { raised: Arc::clone(&self.raised), deadline }
    }

    /// Raises the signal, for all clones.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    /// Whether the job should stop. Reads a clock: call it every few thousand operations.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// [`StopSignal::is_raised`] as an error, for `?`.
    ///
    /// # Errors
    ///
    /// [`WorkStopped`] once the signal is raised.
    pub fn check_raised(&self) -> Result<(), WorkStopped> {
        if self.is_raised() { Err(WorkStopped) } else { Ok(()) }
    }
}
