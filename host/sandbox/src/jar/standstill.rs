//! The clock of a call, stopped during nested calls: a nested call has limits of its own, and may wait for a
//! person's answer, so the wait does not count against the outer call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The clock of one call: running or stopped.
#[derive(Debug, Default)]
pub(crate) struct Standstill(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    since: Option<Instant>,
    total: Duration,
}

/// A stopped clock; it runs again when this value is dropped.
#[derive(Debug)]
pub(crate) struct Standing(Arc<Standstill>);

impl Standstill {
    /// Stops the clock. A guest has at most one pending wait.
    pub(crate) fn begin(self: &Arc<Self>) -> Standing {
        self.state().since.get_or_insert_with(Instant::now);
        Standing(Arc::clone(self))
    }

    /// Restarts the clock, without any stopped time.
    pub(crate) fn reset(&self) {
        *self.state() = State::default();
    }

    /// The stopped time so far; `None` = stopped now.
    pub(crate) fn total(&self) -> Option<Duration> {
        let state = self.state();
        state.since.is_none().then_some(state.total)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if let Some(since) = state.since.take() {
            state.total = state.total.saturating_add(since.elapsed());
        }
    }
}
