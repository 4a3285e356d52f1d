//! Waiting until a budget is cancelled. Works without a runtime: the budget stores the wakers of the waiting
//! tasks and calls them.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::Budget;

/// The tasks that wait at one budget, by the number of their wait. A task that waits for a budget is in its
/// list and in those of all budgets above it.
#[derive(Default)]
pub(crate) struct BudgetWaiters(Mutex<BTreeMap<u64, Waker>>);

/// Completes when a budget or one above it is cancelled; made by [`Budget::wait_cancelled`].
#[derive(Debug)]
pub struct CancellationWait {
    budget: Budget,
    wait: Option<(u64, Waker)>,
}

impl BudgetWaiters {
    /// Wakes all waiting tasks, and empties the list.
    pub(crate) fn wake_all(&self) {
        let woken = std::mem::take(&mut *self.lock_list());
        // Not under the lock, because a waker may run any code.
        woken.into_values().for_each(Waker::wake);
    }

    pub(crate) fn set_waker(&self, number: u64, waker: &Waker) {
        self.lock_list().insert(number, waker.clone());
    }

    pub(crate) fn remove_waker(&self, number: u64) {
        self.lock_list().remove(&number);
    }

    /// If a thread panicked with the lock held, the list is still usable.
    fn lock_list(&self) -> MutexGuard<'_, BTreeMap<u64, Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CancellationWait {
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget, wait: None }
    }
}

impl Future for CancellationWait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.budget.is_cancelled() {
            return Poll::Ready(());
        }
        let known = this.wait.as_ref().is_some_and(|(_, waker)| waker.will_wake(cx.waker()));
        if !known {
            let number = match &this.wait {
                Some((number, _)) => *number,
                None => this.budget.next_wait(),
            };
            this.wait = Some((number, cx.waker().clone()));
            this.budget.waiter_lists().for_each(|waiters| waiters.set_waker(number, cx.waker()));
        }
        // Checked again: if the budget was cancelled before the waker was stored, nobody was woken.
        if this.budget.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for CancellationWait {
    fn drop(&mut self) {
        if let Some((number, _)) = self.wait {
            self.budget.waiter_lists().for_each(|waiters| waiters.remove_waker(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::{BudgetCaps, BudgetLevel};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn waker() -> (Arc<Count>, Waker) {
        let count = Arc::<Count>::default();
        (Arc::clone(&count), Waker::from(count))
    }

    fn tree() -> (Budget, Budget, Budget) {
        let top = Budget::new_root(BudgetLevel::Session, BudgetCaps::unlimited());
        let a = top.new_child(BudgetLevel::Subagent, BudgetCaps::unlimited());
        let b = top.new_child(BudgetLevel::Subagent, BudgetCaps::unlimited());
        (top, a, b)
    }

    #[test]
    fn a_waiter_is_woken_by_its_budget_or_one_above_and_by_no_other() {
        for (nth, reached) in [(0, true), (1, true), (2, false)] {
            let (top, a, b) = tree();
            let (count, waker) = waker();
            let mut wait = pin!(a.wait_cancelled());
            let mut cx = Context::from_waker(&waker);
            assert!(wait.as_mut().poll(&mut cx).is_pending());
            [&top, &a, &b][nth].cancel();
            assert_eq!(count.0.load(Ordering::SeqCst), usize::from(reached), "{nth}");
            assert_eq!(wait.as_mut().poll(&mut cx).is_ready(), reached, "{nth}");
            let mut late = pin!(a.wait_cancelled());
            assert_eq!(late.as_mut().poll(&mut cx).is_ready(), reached, "{nth}");
        }
    }

    #[test]
    fn a_wait_that_moves_to_another_task_wakes_that_one() {
        let (top, a, _) = tree();
        let ((first, one), (second, two)) = (waker(), waker());
        let mut wait = pin!(a.wait_cancelled());
        assert!(wait.as_mut().poll(&mut Context::from_waker(&one)).is_pending());
        assert!(wait.as_mut().poll(&mut Context::from_waker(&two)).is_pending());
        top.cancel();
        assert_eq!((first.0.load(Ordering::SeqCst), second.0.load(Ordering::SeqCst)), (0, 1));
    }

    #[test]
    fn a_wait_that_is_dropped_leaves_nothing_behind() {
        let (top, a, _) = tree();
        let (count, waker) = waker();
        {
            let mut wait = pin!(a.wait_cancelled());
            assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert!(a.waiter_lists().all(|waiters| waiters.lock_list().len() == 1));
        }
        assert!(a.waiter_lists().all(|waiters| waiters.lock_list().is_empty()));
        top.cancel();
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_cancellation_beside_a_first_poll_is_never_missed() {
        for _ in 0..500 {
            let (top, a, _) = tree();
            let (count, waker) = waker();
            #[expect(clippy::disallowed_methods, reason = "a test with two threads")]
            let canceller = std::thread::spawn(move || top.cancel());
            let mut wait = pin!(a.wait_cancelled());
            let ready = wait.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
            canceller.join().unwrap();
            assert!(ready || count.0.load(Ordering::SeqCst) == 1);
        }
    }
}
