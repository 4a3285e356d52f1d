//! Bills a call, and ends it at its limits.
//!
//! A store's fuel cannot be changed from outside while a call runs. So the store gets the call's share, and
//! [`MeteredCall`] watches: wasmtime yields every [`INTERVAL`] units by waking its own task and returning
//! `Pending`. Such a wake-up differs from one by I/O because it happens during the poll. Each yield is billed
//! to the shared budget, which stops the call when an ancestor's budget is used up; the exact amount is
//! settled at the call's end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use belljar_policy::{Budget, Cancelled, Exhausted, Meter};
use futures::task::AtomicWaker;
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::jar::standstill::Standstill;
use crate::receipt::record::Record;

/// Fuel between two yields: about 9 µs of a tight loop. The yields cost 3 % of its time.
pub(crate) const INTERVAL: u64 = 100_000;

/// Fuel for one call into the host: about a microsecond, at 11 fuel per nanosecond.
const FUEL_PER_HOST_CALL: u64 = 10_000;

/// Fuel for each byte that the host reads, writes, sends or receives for the guest.
const FUEL_PER_BYTE: u64 = 1;

/// Why a call was ended by the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A budget of the call or an ancestor is used up.
    Exhausted(Exhausted),
    /// The time is up.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
}

/// The budgets that pay for one call.
#[derive(Clone, Copy)]
pub(crate) struct Purse<'a> {
    /// The call's own budget, whose ancestors include the agent's.
    pub(crate) budget: &'a Budget,
    /// The remaining fuel of the outer call, if this one is nested.
    pub(crate) slice: Option<&'a Budget>,
}

impl Purse<'_> {
    /// The fuel left in all budgets.
    pub(crate) fn remaining(self) -> u64 {
        let own = self.budget.remaining(Meter::Fuel);
        self.slice.map_or(own, |slice| own.min(slice.remaining(Meter::Fuel)))
    }

    /// Bills all budgets; `Err` = one is used up.
    fn bill(self, fuel: u64) -> Result<(), Exhausted> {
        let own = self.budget.bill(Meter::Fuel, fuel);
        let above = self.slice.map_or(Ok(()), |slice| slice.bill(Meter::Fuel, fuel));
        own.and(above)
    }

    fn refund(self, fuel: u64) {
        self.budget.refund(Meter::Fuel, fuel);
        if let Some(slice) = self.slice {
            slice.refund(Meter::Fuel, fuel);
        }
    }

    /// The first exhausted budget.
    pub(crate) fn exhausted(self) -> Option<Exhausted> {
        let above = || self.slice.and_then(|slice| slice.exhausted(Meter::Fuel));
        self.budget.exhausted(Meter::Fuel).or_else(above)
    }
}

/// The limits of one call.
pub(crate) struct Bounds<'a> {
    /// Its budgets.
    pub(crate) purse: Purse<'a>,
    /// The counts of the host's work for the call.
    pub(crate) record: &'a Record,
    /// The deadline, extended by the time in which the call's clock was stopped.
    pub(crate) deadline: Instant,
    /// The call's clock, which nested calls and questions stop.
    pub(crate) standstill: &'a Standstill,
    /// Ends the call early.
    pub(crate) cancel: &'a CancellationToken,
}

/// The amounts billed and measured so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Fuel billed for guest code, in whole intervals.
    pub(crate) guest_fuel: u64,
    /// Fuel billed for host work.
    pub(crate) host_fuel: u64,
    /// Time inside polls.
    pub(crate) guest_time: Duration,
}

impl Bounds<'_> {
    /// The present deadline; `None` while the clock is stopped.
    fn deadline(&self) -> Option<Instant> {
        self.deadline.checked_add(self.standstill.total()?)
    }
}

impl Tally {
    /// Bills the difference between the billed and the used fuel.
    pub(crate) fn settle(&mut self, used: u64, purse: Purse<'_>, record: &Record) {
        let _ = self.bill_host(purse, record);
        match used.checked_sub(self.guest_fuel) {
            Some(more) => drop(purse.bill(more)),
            None => purse.refund(self.guest_fuel - used),
        }
        self.guest_fuel = used;
    }

    /// All fuel billed so far.
    pub(crate) fn fuel(&self) -> u64 {
        self.guest_fuel.saturating_add(self.host_fuel)
    }

    fn bill_host(&mut self, purse: Purse<'_>, record: &Record) -> Result<(), Exhausted> {
        let (calls, bytes) = record.work();
        let total = calls
            .saturating_mul(FUEL_PER_HOST_CALL)
            .saturating_add(bytes.saturating_mul(FUEL_PER_BYTE));
        let more = total.saturating_sub(self.host_fuel);
        self.host_fuel += more;
        if more == 0 { Ok(()) } else { purse.bill(more) }
    }
}

/// Distinguishes wake-ups during a poll from others.
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

/// A call with its limits. Dropping `MeteredCall` ends the guest at once.
pub(crate) struct MeteredCall<'a, F> {
    call: Pin<&'a mut F>,
    bounds: Bounds<'a>,
    tally: &'a mut Tally,
    flag: Arc<YieldFlag>,
    waker: Waker,
    /// Made when the call first waits, because most calls never do.
    waits: Option<Waits>,
}

struct Waits {
    sleep: Pin<Box<Sleep>>,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    budget: Cancelled,
}

impl<'a, F: Future> MeteredCall<'a, F> {
    /// Runs `call` until it ends or a limit is reached.
    pub(crate) fn new(call: Pin<&'a mut F>, bounds: Bounds<'a>, tally: &'a mut Tally) -> Self {
        let flag = Arc::<YieldFlag>::default();
        let waker = Waker::from(Arc::clone(&flag));
        Self { call, bounds, tally, flag, waker, waits: None }
    }

    /// Whether a limit is reached at the time `now`.
    fn check(&mut self, now: Instant) -> Option<Stop> {
        let Bounds { purse, record, cancel, .. } = self.bounds;
        if cancel.is_cancelled() || purse.budget.is_cancelled() {
            return Some(Stop::Cancelled);
        }
        if let Err(which) = self.tally.bill_host(purse, record) {
            return Some(Stop::Exhausted(which));
        }
        let late = self.bounds.deadline().is_some_and(|deadline| now >= deadline);
        late.then_some(Stop::TimedOut)
    }

    /// Registers to be woken at the deadline, or when the run or a budget is cancelled.
    fn wait(&mut self, cx: &mut Context<'_>) -> Option<Stop> {
        let Bounds { purse, deadline, cancel, .. } = self.bounds;
        let waits = self.waits.get_or_insert_with(|| Waits {
            sleep: Box::pin(tokio::time::sleep_until(deadline.into())),
            cancelled: Box::pin(cancel.clone().cancelled_owned()),
            budget: purse.budget.cancelled(),
        });
        let budget = Pin::new(&mut waits.budget).poll(cx);
        if budget.is_ready() || waits.cancelled.as_mut().poll(cx).is_ready() {
            return Some(Stop::Cancelled);
        }
        // With a stopped clock no deadline applies, and the awaited call wakes this one.
        let deadline: tokio::time::Instant = self.bounds.deadline()?.into();
        if waits.sleep.deadline() != deadline {
            waits.sleep.as_mut().reset(deadline);
        }
        waits.sleep.as_mut().poll(cx).is_ready().then_some(Stop::TimedOut)
    }
}

impl<F: Future> Future for MeteredCall<'_, F> {
    type Output = Result<F::Output, Stop>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.flag.task.register(cx.waker());
        this.flag.woken.store(false, Ordering::Release);
        let before = Instant::now();
        // After a wake-up past the limit, no guest code may run.
        if let Some(stop) = this.check(before) {
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
            if let Err(which) = this.bounds.purse.bill(INTERVAL) {
                return Poll::Ready(Err(Stop::Exhausted(which)));
            }
            // The task is already woken and polls again at once.
            return match this.check(after) {
                Some(stop) => Poll::Ready(Err(stop)),
                None => Poll::Pending,
            };
        }
        match this.check(after).or_else(|| this.wait(cx)) {
            Some(stop) => Poll::Ready(Err(stop)),
            None => Poll::Pending,
        }
    }
}
