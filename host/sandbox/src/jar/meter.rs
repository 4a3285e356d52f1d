//! Bills the work of a call, and ends the call at its limits.
//!
//! The fuel of a running store cannot be changed from outside. So the store gets all fuel the call may use,
//! and [`MeteredCall`] watches the call: after every [`INTERVAL`] units wasmtime yields, by waking its own
//! task and returning `Pending`. Such a wake-up happens during the poll, which tells it apart from one by
//! I/O. Each yield bills an interval to the shared budget, which stops the call when the budget of an
//! ancestor is used up. The exact amount is settled at the end of the call.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use belljar_policy::{Budget, CancellationWait, ExhaustedLimit, Meter};
use futures::task::AtomicWaker;
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::jar::standstill::CallClock;
use crate::receipt::record::CallRecord;

/// The fuel between two yields: about 9 µs of a tight loop. The yields cost 3 % of the loop's time.
pub(crate) const INTERVAL: u64 = 100_000;

/// The fuel billed for a call into the host: about a microsecond, at 11 fuel per nanosecond.
const FUEL_PER_HOST_CALL: u64 = 10_000;

/// The fuel billed for each byte the host reads, writes, sends or receives for the guest.
const FUEL_PER_BYTE: u64 = 1;

/// Why a call was ended by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStop {
    /// The budget of the call, or of an ancestor, is used up.
    Exhausted(ExhaustedLimit),
    /// The deadline has passed.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
}

/// The budgets billed for a call.
#[derive(Clone, Copy)]
pub(crate) struct CallBudgets<'a> {
    /// The call's own budget, whose ancestors include the agent's.
    pub(crate) budget: &'a Budget,
    /// If the call is nested in another one, the remaining fuel of that outer call.
    pub(crate) slice: Option<&'a Budget>,
}

impl CallBudgets<'_> {
    /// The fuel all budgets still allow: the least of them.
    pub(crate) fn remaining_fuel(self) -> u64 {
        let own = self.budget.remaining_amount(Meter::Fuel);
        self.slice.map_or(own, |slice| own.min(slice.remaining_amount(Meter::Fuel)))
    }

    /// Bills fuel to all budgets. `Err`: one is used up.
    fn bill_fuel(self, fuel: u64) -> Result<(), ExhaustedLimit> {
        let own = self.budget.bill(Meter::Fuel, fuel);
        let above = self.slice.map_or(Ok(()), |slice| slice.bill(Meter::Fuel, fuel));
        own.and(above)
    }

    fn refund_fuel(self, fuel: u64) {
        self.budget.refund(Meter::Fuel, fuel);
        if let Some(slice) = self.slice {
            slice.refund(Meter::Fuel, fuel);
        }
    }

    /// The first budget used up, if any.
    pub(crate) fn exhausted_budget(self) -> Option<ExhaustedLimit> {
        let above = || self.slice.and_then(|slice| slice.exhausted_limit(Meter::Fuel));
        self.budget.exhausted_limit(Meter::Fuel).or_else(above)
    }
}

/// The limits of a call, with the records to check them against.
pub(crate) struct CallBounds<'a> {
    /// The budgets that pay for the call.
    pub(crate) purse: CallBudgets<'a>,
    /// Counts the host's work for the call.
    pub(crate) record: &'a CallRecord,
    /// The deadline, before the time is added in which the call's clock was stopped.
    pub(crate) deadline: Instant,
    /// The call's clock, which is stopped during nested calls and questions to a person.
    pub(crate) standstill: &'a CallClock,
    /// Ends the call early.
    pub(crate) cancel: &'a CancellationToken,
}

/// The fuel billed, and the time measured, since the start of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallTally {
    /// Fuel billed for guest code, in whole intervals.
    pub(crate) guest_fuel: u64,
    /// Fuel billed for host work.
    pub(crate) host_fuel: u64,
    /// The time inside of polls, in which guest code ran.
    pub(crate) guest_time: Duration,
}

impl CallBounds<'_> {
    /// The deadline with the stopped time added; `None` while the clock is stopped.
    fn current_deadline(&self) -> Option<Instant> {
        self.deadline.checked_add(self.standstill.stopped_time()?)
    }
}

impl CallTally {
    /// Corrects the bill at the end of a call: bills or refunds the difference between the fuel the guest
    /// used and the fuel billed so far.
    pub(crate) fn settle_fuel(&mut self, used: u64, purse: CallBudgets<'_>, record: &CallRecord) {
        let _ = self.bill_host(purse, record);
        match used.checked_sub(self.guest_fuel) {
            Some(more) => drop(purse.bill_fuel(more)),
            None => purse.refund_fuel(self.guest_fuel - used),
        }
        self.guest_fuel = used;
    }

    /// All fuel billed so far, for guest code and host work.
    pub(crate) fn total_fuel(&self) -> u64 {
        self.guest_fuel.saturating_add(self.host_fuel)
    }

    /// Bills the host work recorded since the last bill.
    fn bill_host(
        &mut self,
        purse: CallBudgets<'_>,
        record: &CallRecord,
    ) -> Result<(), ExhaustedLimit> {
        let (calls, bytes) = record.host_work();
        let total = calls
            .saturating_mul(FUEL_PER_HOST_CALL)
            .saturating_add(bytes.saturating_mul(FUEL_PER_BYTE));
        let more = total.saturating_sub(self.host_fuel);
        self.host_fuel += more;
        if more == 0 { Ok(()) } else { purse.bill_fuel(more) }
    }
}

/// A waker that notes whether wasmtime woke its own task during a poll, which means a yield.
#[derive(Debug, Default)]
pub(crate) struct YieldFlag {
    woken: AtomicBool,
    task: AtomicWaker,
}

impl Wake for YieldFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

/// A future that polls a call and ends it at a limit. Dropping it ends the guest at once.
pub(crate) struct MeteredCall<'a, F> {
    call: Pin<&'a mut F>,
    bounds: CallBounds<'a>,
    tally: &'a mut CallTally,
    flag: Arc<YieldFlag>,
    waker: Waker,
    /// Made when the call first waits for I/O, because most calls never do.
    waits: Option<StopWaits>,
}

/// What a waiting call is woken by: the deadline, or a cancellation.
struct StopWaits {
    sleep: Pin<Box<Sleep>>,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    budget: CancellationWait,
}

impl<'a, F: Future> MeteredCall<'a, F> {
    /// Polls `call` until it ends or a limit is reached.
    pub(crate) fn new(
        call: Pin<&'a mut F>,
        bounds: CallBounds<'a>,
        tally: &'a mut CallTally,
    ) -> Self {
        let flag = Arc::<YieldFlag>::default();
        let waker = Waker::from(Arc::clone(&flag));
        Self { call, bounds, tally, flag, waker, waits: None }
    }

    /// The limit reached at the time `now`, if any. Bills the host work that is new.
    fn check_bounds(&mut self, now: Instant) -> Option<CallStop> {
        let CallBounds { purse, record, cancel, .. } = self.bounds;
        if cancel.is_cancelled() || purse.budget.is_cancelled() {
            return Some(CallStop::Cancelled);
        }
        if let Err(which) = self.tally.bill_host(purse, record) {
            return Some(CallStop::Exhausted(which));
        }
        let late = self.bounds.current_deadline().is_some_and(|deadline| now >= deadline);
        late.then_some(CallStop::TimedOut)
    }

    /// Registers the task to be woken at the deadline, or when the run or a budget is cancelled. Returns the
    /// reason if that has happened.
    fn poll_stop(&mut self, cx: &mut Context<'_>) -> Option<CallStop> {
        let CallBounds { purse, deadline, cancel, .. } = self.bounds;
        let waits = self.waits.get_or_insert_with(|| StopWaits {
            sleep: Box::pin(tokio::time::sleep_until(deadline.into())),
            cancelled: Box::pin(cancel.clone().cancelled_owned()),
            budget: purse.budget.wait_cancelled(),
        });
        let budget = Pin::new(&mut waits.budget).poll(cx);
        if budget.is_ready() || waits.cancelled.as_mut().poll(cx).is_ready() {
            return Some(CallStop::Cancelled);
        }
        // While the clock is stopped there is no deadline; the nested call wakes the task.
        let deadline: tokio::time::Instant = self.bounds.current_deadline()?.into();
        if waits.sleep.deadline() != deadline {
            waits.sleep.as_mut().reset(deadline);
        }
        waits.sleep.as_mut().poll(cx).is_ready().then_some(CallStop::TimedOut)
    }
}

impl<F: Future> Future for MeteredCall<'_, F> {
    type Output = Result<F::Output, CallStop>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.flag.task.register(cx.waker());
        this.flag.woken.store(false, Ordering::Release);
        let before = Instant::now();
        // If a limit was reached while the task slept, no guest code may run.
        if let Some(stop) = this.check_bounds(before) {
            return Poll::Ready(Err(stop));
        }
        let polled = this.call.as_mut().poll(&mut Context::from_waker(&this.waker));
        let after = Instant::now();
        this.tally.guest_time += after.duration_since(before);
        if let Poll::Ready(output) = polled {
            return Poll::Ready(Ok(output));
        }
        if this.flag.woken.swap(false, Ordering::AcqRel) {
            this.tally.guest_fuel += INTERVAL;
            if let Err(which) = this.bounds.purse.bill_fuel(INTERVAL) {
                return Poll::Ready(Err(CallStop::Exhausted(which)));
            }
            // The task is already woken and polls again at once.
            return match this.check_bounds(after) {
                Some(stop) => Poll::Ready(Err(stop)),
                None => Poll::Pending,
            };
        }
        match this.check_bounds(after).or_else(|| this.poll_stop(cx)) {
            Some(stop) => Poll::Ready(Err(stop)),
            None => Poll::Pending,
        }
    }
}
