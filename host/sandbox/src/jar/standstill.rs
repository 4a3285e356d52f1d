//! The clock of a call, stopped during nested calls: a nested call has limits of its own, and may wait for a
//! person's answer, so the wait does not count against the outer call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The clock of one call: running or stopped.
#[derive(Debug, Default)]
pub(crate) struct CallClock(Mutex<ClockState>);

#[derive(Debug, Default)]
struct ClockState {
    since: Option<Instant>,
    total: Duration,
}

/// A stopped clock; it runs again when this value is dropped.
#[derive(Debug)]
pub(crate) struct StoppedClock(Arc<CallClock>);

impl CallClock {
    /// Stops the clock. A guest has at most one pending wait.
    pub(crate) fn stop_clock(self: &Arc<Self>) -> StoppedClock {
        self.lock_state().since.get_or_insert_with(Instant::now);
        StoppedClock(Arc::clone(self))
    }

    /// Restarts the clock, without any stopped time.
    pub(crate) fn reset_clock(&self) {
        *self.lock_state() = ClockState::default();
    }

    /// The stopped time so far; `None` = stopped now.
    pub(crate) fn stopped_time(&self) -> Option<Duration> {
        let state = self.lock_state();
        state.since.is_none().then_some(state.total)
    }

    fn lock_state(&self) -> MutexGuard<'_, ClockState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StoppedClock {
    fn drop(&mut self) {
        let mut state = self.0.lock_state();
        if let Some(since) = state.since.take() {
            state.total = state.total.saturating_add(since.elapsed());
        }
    }
}
