//! The cost of a call, and its end.
//!
//! A store's fuel cannot be changed from outside while a call runs, so the store gets the
//! call's share and [`MeteredCall`] watches: wasmtime yields every [`INTERVAL`] units by waking
//! its own task and returning `Pending`, and such a wake-up differs from one by I/O because it happens during
//! the poll. Each yield is billed to the shared budget, which stops the call when an ancestor's budget is
//! used up; the exact amount is settled at the call's end.

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

/// Fuel for one call into the host: about a microsecond at 11 fuel a nanosecond.
const FUEL_PER_HOST_CALL: u64 = 10_000;

/// Fuel for each byte that the host reads, writes, sends or receives for the guest.
const FUEL_PER_BYTE: u64 = 1;

/// Why a call was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A budget above the call ran out.
    Exhausted(Exhausted),
    /// Its time is up.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
}

/// The budgets of one call.
#[derive(Clone, Copy)]
pub(crate) struct Purse<'a> {
    /// The call's own, including its agent's and ancestors'.
    pub(crate) budget: &'a Budget,
    /// The rest of the outer call, if a tool made this one.
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

    /// The exhausted budget.
    pub(crate) fn exhausted(self) -> Option<Exhausted> {
        let above = || self.slice.and_then(|slice| slice.exhausted(Meter::Fuel));
        self.budget.exhausted(Meter::Fuel).or_else(above)
    }
}

/// The bounds of one call.
pub(crate) struct Bounds<'a> {
    /// Its budgets.
    pub(crate) purse: Purse<'a>,
    /// Host work of the call.
    pub(crate) record: &'a Record,
    /// The deadline, unless the clock stands still meanwhile.
    pub(crate) deadline: Instant,
    /// Its clock.
    pub(crate) standstill: &'a Standstill,
    /// Ends it early.
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
    /// When the call must end; `None` while its clock stands still.
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

    /// Everything billed.
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

/// Tells wake-ups during a poll from others.
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

/// A call under its bounds. Dropping `MeteredCall` ends the guest at once.
pub(crate) struct MeteredCall<'a, F> {
    call: Pin<&'a mut F>,
    bounds: Bounds<'a>,
    tally: &'a mut Tally,
    flag: Arc<YieldFlag>,
    waker: Waker,
    /// Made when the call first waits: most calls never do.
    waits: Option<Waits>,
}

struct Waits {
    sleep: Pin<Box<Sleep>>,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    budget: Cancelled,
}

impl<'a, F: Future> MeteredCall<'a, F> {
    /// Runs `call` until it ends or a bound is reached.
    pub(crate) fn new(call: Pin<&'a mut F>, bounds: Bounds<'a>, tally: &'a mut Tally) -> Self {
        let flag = Arc::<YieldFlag>::default();
        let waker = Waker::from(Arc::clone(&flag));
        Self { call, bounds, tally, flag, waker, waits: None }
    }

    /// Whether a bound is reached, `now`.
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

    /// Asks to be woken when the time is up, or the run or a budget above it is cancelled.
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
        // With a stopped clock there is no deadline, and the awaited call wakes this one.
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
        // A wake-up between two polls must not start guest code after the bound.
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
            // The task is awake already and looks again at once.
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
