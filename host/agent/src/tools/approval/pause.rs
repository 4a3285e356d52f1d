//! Measures how long agents wait for a person. This time counts against no time limit, neither an agent's own
//! nor an ancestor's, because the ancestors wait too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The waiting time of one agent and its descendants.
#[derive(Debug, Default)]
pub(crate) struct PauseClock {
    above: Option<Arc<PauseClock>>,
    state: Mutex<PauseState>,
    over: Notify,
}

#[derive(Debug, Default)]
struct PauseState {
    /// The number of open questions.
    open: u32,
    /// When the present wait began; `None` = no question is open.
    since: Option<Instant>,
    /// The total of earlier waits. If several questions were open at once, the time counts once.
    total: Duration,
}

/// One open question. Dropping it ends the wait.
#[derive(Debug)]
pub(crate) struct PersonWait(Arc<PauseClock>);

impl PauseClock {
    /// A clock for an agent below the agent of `above`.
    pub(crate) fn for_child(above: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self { above: Some(Arc::clone(above)), ..Self::default() })
    }

    /// Begins a wait of the agent and of all its ancestors.
    pub(crate) fn begin_wait(self: &Arc<Self>) -> PersonWait {
        self.for_each_above(|pause| {
            let mut state = pause.lock_state();
            state.open += 1;
            state.since.get_or_insert_with(Instant::now);
        });
        PersonWait(Arc::clone(self))
    }

    /// The total of all ended waits, by which deadlines move.
    pub(crate) fn total_wait(&self) -> Duration {
        self.lock_state().total
    }

    /// Returns whether a question is open now.
    pub(crate) fn is_open(&self) -> bool {
        self.lock_state().open > 0
    }

    /// Waits until no question is open.
    pub(crate) async fn wait_until_closed(&self) {
        loop {
            let changed = self.over.notified();
            if self.lock_state().open == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Ends one wait here and above; the time counts once the last open question is closed.
    fn end_wait(&self) {
        self.for_each_above(|pause| {
            let mut state = pause.lock_state();
            state.open = state.open.saturating_sub(1);
            if state.open == 0
                && let Some(since) = state.since.take()
            {
                state.total = state.total.saturating_add(since.elapsed());
                drop(state);
                pause.over.notify_waiters();
            }
        });
    }

    /// Calls `act` for this clock and the clocks of all ancestors.
    fn for_each_above(&self, mut act: impl FnMut(&Self)) {
        let mut here = Some(self);
        while let Some(pause) = here {
            act(pause);
            here = pause.above.as_deref();
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, PauseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PersonWait {
    fn drop(&mut self) {
        self.0.end_wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn questions_side_by_side_count_once_and_for_everybody_above() {
        let top = Arc::new(PauseClock::default());
        let (left, right) = (PauseClock::for_child(&top), PauseClock::for_child(&top));
        let first = left.begin_wait();
        tokio::time::advance(Duration::from_secs(10)).await;
        let second = right.begin_wait();
        tokio::time::advance(Duration::from_secs(10)).await;
        drop(first);
        tokio::time::advance(Duration::from_secs(10)).await;
        drop(second);
        top.wait_until_closed().await;
        let seconds = |pause: &PauseClock| pause.total_wait().as_secs();
        assert_eq!((seconds(&left), seconds(&right), seconds(&top)), (20, 20, 30));
    }
}
