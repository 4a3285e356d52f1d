//! The time of a call, without that in which the server waits for somebody here.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How soon at the earliest a call that waits is looked at again.
const LOOK: Duration = Duration::from_millis(100);

/// The waiting of one call.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Waits that have begun: a server may ask on two streams at a time.
    open: u32,
    since: Option<Instant>,
    total: Duration,
}

/// A wait, until it is dropped.
pub(crate) struct Wait<'a>(&'a Waits);

/// The time of the call is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Late;

impl Waits {
    /// Begins to wait. Two waits at a time count once.
    pub(crate) fn begin(&self) -> Wait<'_> {
        let mut state = self.state();
        state.open = state.open.saturating_add(1);
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        Wait(self)
    }

    fn total(&self) -> Duration {
        let state = self.state();
        state.total.saturating_add(state.since.map(|since| since.elapsed()).unwrap_or_default())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open = state.open.saturating_sub(1);
        if state.open == 0
            && let Some(since) = state.since.take()
        {
            state.total = state.total.saturating_add(since.elapsed());
        }
    }
}

/// Does something that may take so long, besides what it waits.
pub(crate) async fn within<T>(
    most: Duration,
    waits: &Waits,
    doing: impl Future<Output = T>,
) -> Result<T, Late> {
    let began = Instant::now();
    let mut doing = std::pin::pin!(doing);
    loop {
        let left = most.saturating_add(waits.total()).saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(Late);
        }
        tokio::select! {
            biased;
            done = &mut doing => return Ok(done),
            () = sleep(left.max(LOOK.min(most))) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_with_its_time_and_waiting_is_none_of_it() {
        let second = Duration::from_secs(1);
        let waits = Waits::default();
        assert_eq!(within(second, &waits, sleep(second * 2)).await, Err(Late));
        assert_eq!(within(second, &waits, sleep(second / 2)).await, Ok(()));
        let asks = |after: Duration| {
            let waits = &waits;
            async move {
                let wait = waits.begin();
                sleep(second * 500).await;
                drop(wait);
                sleep(after).await;
            }
        };
        assert_eq!(within(second, &waits, asks(second / 2)).await, Ok(()));
        let waits = Waits::default();
        let (wait, beside) = (waits.begin(), waits.begin());
        sleep(second / 2).await;
        drop(beside);
        sleep(second / 2).await;
        drop(wait);
        // A wait before it began is counted once, and for nobody twice.
        assert_eq!(waits.total(), second);
    }
}
