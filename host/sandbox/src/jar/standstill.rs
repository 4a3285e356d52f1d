//! The clock of a call, which is stopped during its nested calls. A nested call has limits of its own and
//! may wait for a person's answer, so its time does not count against the outer call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The clock of a call, running or stopped.
#[derive(Debug, Default)]
pub(crate) struct CallClock(Mutex<ClockState>);

/// `since`: when the clock was stopped, if it is stopped now. `total`: how long it was stopped before.
#[derive(Debug, Default)]
struct ClockState {
    since: Option<Instant>,
    total: Duration,
}

/// Proof that a clock is stopped; dropping it restarts the clock.
#[derive(Debug)]
pub(crate) struct StoppedClock(Arc<CallClock>);

impl CallClock {
    /// Stops the clock until the returned value is dropped. A guest makes one batch of nested calls at a
    /// time, so stops do not overlap.
    pub(crate) fn stop_clock(self: &Arc<Self>) -> StoppedClock {
        self.lock_state().since.get_or_insert_with(Instant::now);
        StoppedClock(Arc::clone(self))
    }

    /// Starts the clock afresh for a new call, with no stopped time.
    pub(crate) fn reset_clock(&self) {
        *self.lock_state() = ClockState::default();
    }

    /// How long the clock was stopped so far; `None` if it is stopped now.
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
