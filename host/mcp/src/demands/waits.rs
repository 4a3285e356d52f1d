//! Measures the time of a call without the waits for a person.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The shortest pause between two checks whether a call's time is over.
const LOOK: Duration = Duration::from_millis(100);

/// The time that the calls of one connection have waited for a person.
#[derive(Debug, Default)]
pub(crate) struct PersonWaits(Mutex<WaitsState>);

#[derive(Debug, Default)]
struct WaitsState {
    /// The number of waits that go on now; a server may send requests on two streams at a time.
    open: u32,
    since: Option<Instant>,
    total: Duration,
}

/// A wait, which ends when this guard is dropped.
pub(crate) struct WaitGuard<'a>(&'a PersonWaits);

/// The error of a call whose time is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallTimeout;

impl PersonWaits {
    /// Begins a wait. Two waits at the same time count once.
    pub(crate) fn begin_wait(&self) -> WaitGuard<'_> {
        let mut state = self.lock_state();
        state.open = state.open.saturating_add(1);
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        WaitGuard(self)
    }

    fn total_wait(&self) -> Duration {
        let state = self.lock_state();
        state.total.saturating_add(state.since.map(|since| since.elapsed()).unwrap_or_default())
    }

    fn lock_state(&self) -> MutexGuard<'_, WaitsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock_state();
        state.open = state.open.saturating_sub(1);
        if state.open == 0
            && let Some(since) = state.since.take()
        {
            state.total = state.total.saturating_add(since.elapsed());
        }
    }
}

/// The time of one call since it was requested. Waits for a person, in this call or in an earlier one of its
/// queue, do not count.
#[derive(Debug)]
pub(crate) struct ServerCallClock<'a> {
    waits: &'a PersonWaits,
    began: Instant,
    /// The waiting time before this call was requested.
    before: Duration,
    most: Duration,
}

impl<'a> ServerCallClock<'a> {
    /// Starts the clock of a call with the limit `most`. `waits` counts the waits of all calls in the same
    /// queue.
    pub(crate) fn with_limit(most: Duration, waits: &'a PersonWaits) -> Self {
        Self { waits, began: Instant::now(), before: waits.total_wait(), most }
    }

    /// The time limit of the call.
    pub(crate) fn call_limit(&self) -> Duration {
        self.most
    }

    /// Runs a part of the call until the call's time is over.
    pub(crate) async fn run_within<T>(
        &self,
        doing: impl Future<Output = T>,
    ) -> Result<T, CallTimeout> {
        let mut doing = std::pin::pin!(doing);
        loop {
            let waited = self.waits.total_wait().saturating_sub(self.before);
            let left = self.most.saturating_add(waited).saturating_sub(self.began.elapsed());
            if left.is_zero() {
                return Err(CallTimeout);
            }
            tokio::select! {
                biased;
                done = &mut doing => return Ok(done),
                () = sleep(left.max(LOOK.min(self.most))) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::SessionQueue;

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_with_its_time_and_waiting_is_none_of_it() {
        let second = Duration::from_secs(1);
        let waits = PersonWaits::default();
        let clock = || ServerCallClock::with_limit(second, &waits);
        assert_eq!(clock().run_within(sleep(second * 2)).await, Err(CallTimeout));
        assert_eq!(clock().run_within(sleep(second / 2)).await, Ok(()));
        let asks = |after: Duration| {
            let waits = &waits;
            async move {
                let wait = waits.begin_wait();
                sleep(second * 500).await;
                drop(wait);
                sleep(after).await;
            }
        };
        assert_eq!(clock().run_within(asks(second / 2)).await, Ok(()));
        // The waiting time of earlier calls does not extend later ones.
        assert_eq!(clock().run_within(sleep(second * 2)).await, Err(CallTimeout));
        // Two parts of a call share its time.
        let whole = clock();
        assert_eq!(whole.run_within(sleep(second * 3 / 4)).await, Ok(()));
        assert_eq!(whole.run_within(sleep(second * 3 / 4)).await, Err(CallTimeout));
        let waits = PersonWaits::default();
        let (wait, beside) = (waits.begin_wait(), waits.begin_wait());
        sleep(second / 2).await;
        drop(beside);
        sleep(second / 2).await;
        drop(wait);
        // A wait that began before the call is counted once.
        assert_eq!(waits.total_wait(), second);
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_of_a_call_in_line_stands_still_while_a_person_answers_the_one_before() {
        let (second, waits, line) =
            (Duration::from_secs(1), PersonWaits::default(), SessionQueue::default());
        let first = async {
            let mut front = line.wait_for_front().await;
            *front = Some(());
            let wait = waits.begin_wait();
            sleep(second * 500).await;
            drop(wait);
            sleep(second / 2).await;
            front.settle();
        };
        let clock = ServerCallClock::with_limit(second, &waits);
        let next = async {
            let front = clock.run_within(line.wait_for_front()).await;
            front.map(|front| front.is_some())
        };
        let ((), next) = tokio::join!(first, next);
        assert_eq!(next, Ok(true));
        // While no one is waited for, the clock runs.
        let held = line.wait_for_front().await;
        assert!(
            ServerCallClock::with_limit(second, &waits)
                .run_within(line.wait_for_front())
                .await
                .is_err()
        );
        drop(held);
    }
}
