//! The time that an agent waits for a person. It counts against no time limit: neither the agent's own nor an
//! ancestor's, because the ancestors wait too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The waiting time of one agent and its descendants.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    above: Option<Arc<Pause>>,
    state: Mutex<State>,
    over: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Questions that are open.
    open: u32,
    /// The beginning of the present wait; `None` = no wait.
    since: Option<Instant>,
    /// The duration of earlier waits; simultaneous waits count once.
    total: Duration,
}

/// An open question, closed on drop.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<Pause>);

impl Pause {
    /// The waiting time of an agent below `above`.
    pub(crate) fn below(above: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self { above: Some(Arc::clone(above)), ..Self::default() })
    }

    /// Begins to wait, here and above.
    pub(crate) fn begin(self: &Arc<Self>) -> Waiting {
        self.each(|pause| {
            let mut state = pause.state();
            state.open += 1;
            state.since.get_or_insert_with(Instant::now);
        });
        Waiting(Arc::clone(self))
    }

    /// The total of the waits, by which deadlines move.
    pub(crate) fn total(&self) -> Duration {
        self.state().total
    }

    /// Returns whether a question is open.
    pub(crate) fn is_open(&self) -> bool {
        self.state().open > 0
    }

    /// Waits until no question is open.
    pub(crate) async fn over(&self) {
        loop {
            let changed = self.over.notified();
            if self.state().open == 0 {
                return;
            }
            changed.await;
        }
    }

    fn end(&self) {
        self.each(|pause| {
            let mut state = pause.state();
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

    fn each(&self, mut act: impl FnMut(&Self)) {
        let mut here = Some(self);
        while let Some(pause) = here {
            act(pause);
            here = pause.above.as_deref();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn questions_side_by_side_count_once_and_for_everybody_above() {
        let top = Arc::new(Pause::default());
        let (left, right) = (Pause::below(&top), Pause::below(&top));
        let first = left.begin();
        tokio::time::advance(Duration::from_secs(10)).await;
        let second = right.begin();
        tokio::time::advance(Duration::from_secs(10)).await;
        drop(first);
        tokio::time::advance(Duration::from_secs(10)).await;
        drop(second);
        top.over().await;
        let seconds = |pause: &Pause| pause.total().as_secs();
        assert_eq!((seconds(&left), seconds(&right), seconds(&top)), (20, 20, 30));
    }
}
