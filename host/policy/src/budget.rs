//! Budgets: counters with limits, shared by reference along a tree.
//!
//! The levels are tenant > session > team > subagent > call. A child's usage is billed to every budget above,
//! so spawning cannot reset a limit, and an exhausted budget stops everything below. For example, a session
//! limited to 1,000 tokens stops both of its subagents once they have used 1,000 tokens together.
//!
//! There are three ways to use a budget. [`Budget::reserve`] is for usage that can be refused beforehand
//! (memory, bytes, steps): it adds nothing unless the amount fits at every level. [`Budget::bill`] is for
//! past usage (fuel, tokens): it always adds the amount, and returns an error if a limit is exceeded.
//! [`Budget::hold`] keeps room for running work whose usage is billed later.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::Limits;
use crate::cancel::{Cancelled, Waiters};

/// A counted quantity.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Meter {
    /// Steps.
    #[strum(to_string = "step")]
    Steps,
    /// Input and output tokens.
    #[strum(to_string = "token")]
    Tokens,
    /// Executed guest instructions, roughly.
    Fuel,
    /// Bytes of linear memory and tables, in use at present.
    Memory,
    /// Bytes that tool calls returned.
    Output,
    /// Bytes read from mounts.
    Read,
    /// Bytes written to mounts.
    Write,
    /// Bytes sent over the network.
    Egress,
    /// Bytes received over the network.
    Ingress,
}

/// All meters, in the order of their index.
pub const METERS: [Meter; 9] = [
    Meter::Steps,
    Meter::Tokens,
    Meter::Fuel,
    Meter::Memory,
    Meter::Output,
    Meter::Read,
    Meter::Write,
    Meter::Egress,
    Meter::Ingress,
];

/// The level of a budget in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Level {
    /// All sessions of one tenant.
    Tenant,
    /// A session, or a run.
    Session,
    /// All stages of one team run.
    Team,
    /// One agent: the run's own agent, or one of its subagents. Displayed as `agent`.
    #[strum(to_string = "agent")]
    Subagent,
    /// One tool call.
    Call,
}

/// The limit of each meter; the default has no limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps([u64; METERS.len()]);

/// An exceeded limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("the {meter} budget of the {level} is used up ({limit})")]
pub struct Exhausted {
    /// The meter.
    pub meter: Meter,
    /// The level of the budget.
    pub level: Level,
    /// The limit.
    pub limit: u64,
}

/// Room kept in a budget and its ancestors for running work, released when dropped. Only other holds count it
/// as used.
#[derive(Debug)]
#[must_use = "the room is given back with it"]
pub struct Hold {
    budget: Budget,
    meter: Meter,
    amount: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.budget.path().for_each(|node| node.let_go(self.meter, self.amount));
    }
}

/// A budget of the tree. Clones share the counters.
#[derive(Clone)]
pub struct Budget(Arc<Node>);

struct Node {
    parent: Option<Budget>,
    level: Level,
    caps: Caps,
    spent: [AtomicU64; METERS.len()],
    /// Amounts kept by holds.
    held: [AtomicU64; METERS.len()],
    cancelled: AtomicBool,
    waiters: Waiters,
    /// The next number of a wait; only the root's counter is used.
    waits: AtomicU64,
}

impl Meter {
    fn index(self) -> usize {
        match self {
            Self::Steps => 0,
            Self::Tokens => 1,
            Self::Fuel => 2,
            Self::Memory => 3,
            Self::Output => 4,
            Self::Read => 5,
            Self::Write => 6,
            Self::Egress => 7,
            Self::Ingress => 8,
        }
    }
}

impl Caps {
    /// No limits of its own: the ancestors' limits still apply.
    pub fn unlimited() -> Self {
        Self([u64::MAX; METERS.len()])
    }

    /// The caps of a subagent with these limits.
    pub fn of(limits: &Limits) -> Self {
        Self::unlimited()
            .with(Meter::Steps, limits.steps)
            .with(Meter::Tokens, limits.tokens)
            .with(Meter::Fuel, limits.fuel)
            .with(Meter::Memory, limits.memory_bytes)
            .with(Meter::Output, limits.output_total_bytes)
            .with(Meter::Read, limits.read_bytes)
            .with(Meter::Write, limits.write_bytes)
            .with(Meter::Egress, limits.egress_bytes)
            .with(Meter::Ingress, limits.ingress_bytes)
    }

    /// The caps of one call of a tool with these limits.
    pub fn of_call(limits: &Limits) -> Self {
        Self::unlimited()
            .with(Meter::Fuel, limits.fuel_per_call)
            .with(Meter::Output, limits.output_bytes)
    }

    /// The same caps with one meter limited.
    #[must_use]
    pub fn with(mut self, meter: Meter, limit: u64) -> Self {
        if let Some(slot) = self.0.get_mut(meter.index()) {
            *slot = limit;
        }
        self
    }

    /// The limit of a meter; `u64::MAX` = unlimited.
    pub fn limit(&self, meter: Meter) -> u64 {
        self.0.get(meter.index()).copied().unwrap_or(0)
    }
}

impl Budget {
    /// A budget without a parent.
    pub fn root(level: Level, caps: Caps) -> Self {
        Self::new(None, level, caps)
    }

    /// A budget below this one, whose usage is also billed here.
    #[must_use]
    pub fn child(&self, level: Level, caps: Caps) -> Self {
        Self::new(Some(self.clone()), level, caps)
    }

    /// Adds past usage to this budget and its ancestors. The amount is added even if the error reports an
    /// exceeded limit.
    pub fn bill(&self, meter: Meter, amount: u64) -> Result<(), Exhausted> {
        let mut over = None;
        for node in self.path() {
            let before = node.add(meter, amount);
            let limit = node.caps.limit(meter);
            if before.saturating_add(amount) > limit {
                over = Some(Exhausted { meter, level: node.level, limit });
            }
        }
        over.map_or(Ok(()), Err)
    }

    /// Adds the amount to this budget and every ancestor; if any of them lacks room, no budget changes.
    pub fn reserve(&self, meter: Meter, amount: u64) -> Result<(), Exhausted> {
        for (depth, node) in self.path().enumerate() {
            if let Err(error) = node.take(meter, amount) {
                self.path().take(depth).for_each(|node| node.give_back(meter, amount));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Keeps room for new work in this budget and its ancestors: `likely`, or the free rest if that is less,
    /// but at least `least`. The actual usage is billed afterwards.
    ///
    /// # Errors
    ///
    /// The first budget with less than `least` free beside the other holds. Nothing is kept then;
    /// [`Budget::fits`] returns whether waiting for the other holds makes sense.
    pub fn hold(&self, meter: Meter, least: u64, likely: u64) -> Result<Hold, Exhausted> {
        loop {
            let amount = likely.min(self.free(meter)).max(least);
            let full = self.path().position(|node| !node.keep(meter, amount));
            let Some(depth) = full else {
                return Ok(Hold { budget: self.clone(), meter, amount });
            };
            self.path().take(depth).for_each(|node| node.let_go(meter, amount));
            let without = |node: &Node| node.free(meter) < least;
            if let Some(node) = self.path().find(|node| without(node)) {
                return Err(node.exhausted(meter));
            }
            // A concurrent hold left less, so the next round keeps the rest.
        }
    }

    /// Checks that the amount fits in this budget and its ancestors, ignoring holds.
    ///
    /// # Errors
    ///
    /// The first budget with less left.
    pub fn fits(&self, meter: Meter, amount: u64) -> Result<(), Exhausted> {
        let full = |node: &&Node| node.caps.limit(meter).saturating_sub(node.spent(meter)) < amount;
        self.path().find(full).map_or(Ok(()), |node| Err(node.exhausted(meter)))
    }

    /// The amount neither used nor held: the minimum over this budget and its ancestors.
    pub fn free(&self, meter: Meter) -> u64 {
        self.path().map(|node| node.free(meter)).min().unwrap_or(0)
    }

    /// Adds the amount to every ancestor; if any of them lacks room, no budget changes. This budget adds the
    /// amount even past its own limit.
    pub fn reserve_above(&self, meter: Meter, amount: u64) -> Result<(), Exhausted> {
        if let Some(above) = &self.0.parent {
            above.reserve(meter, amount)?;
        }
        self.0.add(meter, amount);
        Ok(())
    }

    /// Subtracts a reserved amount, or one that was billed too high.
    pub fn refund(&self, meter: Meter, amount: u64) {
        self.path().for_each(|node| node.give_back(meter, amount));
    }

    /// The unused amount: the minimum over this budget and its ancestors.
    pub fn remaining(&self, meter: Meter) -> u64 {
        let left = |node: &Node| node.caps.limit(meter).saturating_sub(node.spent(meter));
        self.path().map(left).min().unwrap_or(0)
    }

    /// The amount used here and below.
    pub fn spent(&self, meter: Meter) -> u64 {
        self.0.spent(meter)
    }

    /// The limit of this budget alone.
    pub fn limit(&self, meter: Meter) -> u64 {
        self.0.caps.limit(meter)
    }

    /// The first budget, from this one upwards, whose meter is used up.
    pub fn exhausted(&self, meter: Meter) -> Option<Exhausted> {
        self.path().find_map(|node| {
            let limit = node.caps.limit(meter);
            (node.spent(meter) >= limit).then_some(Exhausted { meter, level: node.level, limit })
        })
    }

    /// Stops all work on this budget and below, permanently. Waiting tasks are woken.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.0.waiters.wake();
    }

    /// Completes when this budget or an ancestor is cancelled. Needs no runtime: [`Budget::cancel`] wakes the
    /// polling task.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled::new(self.clone())
    }

    /// Whether this budget or an ancestor was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.path().any(|node| node.cancelled.load(Ordering::SeqCst))
    }

    fn new(parent: Option<Self>, level: Level, caps: Caps) -> Self {
        let none = || [const { AtomicU64::new(0) }; METERS.len()];
        Self(Arc::new(Node {
            parent,
            level,
            caps,
            spent: none(),
            held: none(),
            cancelled: AtomicBool::new(false),
            waiters: Waiters::default(),
            waits: AtomicU64::new(0),
        }))
    }

    /// The lists of waiting tasks, from this budget upwards.
    pub(crate) fn waiters(&self) -> impl Iterator<Item = &Waiters> {
        self.path().map(|node| &node.waiters)
    }

    /// A unique number for a wait in this tree.
    pub(crate) fn next_wait(&self) -> u64 {
        self.path().last().map_or(0, |root| root.waits.fetch_add(1, Ordering::Relaxed))
    }

    fn path(&self) -> impl Iterator<Item = &Node> {
        std::iter::successors(Some(&*self.0), |node| node.parent.as_ref().map(|up| &*up.0))
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Budget");
        shown.field("level", &self.0.level);
        for meter in METERS {
            shown.field(&meter.to_string(), &(self.0.spent(meter), self.0.caps.limit(meter)));
        }
        shown.finish_non_exhaustive()
    }
}

impl Node {
    fn cell(&self, meter: Meter) -> &AtomicU64 {
        // The index comes from an exhaustive match, so it always fits; the first cell is only there
        // to satisfy the type.
        self.spent.get(meter.index()).unwrap_or(&self.spent[0])
    }

    fn spent(&self, meter: Meter) -> u64 {
        self.cell(meter).load(Ordering::Relaxed)
    }

    /// Adds without a limit and without overflow; returns the previous value.
    fn add(&self, meter: Meter, amount: u64) -> u64 {
        self.update(meter, |spent| Some(spent.saturating_add(amount))).unwrap_or(u64::MAX)
    }

    /// Holds the amount if that much is free.
    fn keep(&self, meter: Meter, amount: u64) -> bool {
        let left = self.caps.limit(meter).saturating_sub(self.spent(meter));
        let fits = |held: u64| held.checked_add(amount).filter(|sum| *sum <= left);
        self.held(meter).fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn let_go(&self, meter: Meter, amount: u64) {
        let less = |held: u64| Some(held.saturating_sub(amount));
        let _ = self.held(meter).fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn free(&self, meter: Meter) -> u64 {
        let held = self.held(meter).load(Ordering::Relaxed);
        self.caps.limit(meter).saturating_sub(self.spent(meter)).saturating_sub(held)
    }

    fn held(&self, meter: Meter) -> &AtomicU64 {
        // As in `cell`, the index always fits.
        self.held.get(meter.index()).unwrap_or(&self.held[0])
    }

    fn exhausted(&self, meter: Meter) -> Exhausted {
        Exhausted { meter, level: self.level, limit: self.caps.limit(meter) }
    }

    fn take(&self, meter: Meter, amount: u64) -> Result<(), Exhausted> {
        let limit = self.caps.limit(meter);
        let fits = |spent: u64| spent.checked_add(amount).filter(|sum| *sum <= limit);
        match self.update(meter, fits) {
            Ok(_) => Ok(()),
            Err(_) => Err(Exhausted { meter, level: self.level, limit }),
        }
    }

    fn give_back(&self, meter: Meter, amount: u64) {
        let _ = self.update(meter, |spent| Some(spent.saturating_sub(amount)));
    }

    fn update(&self, meter: Meter, f: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64> {
        self.cell(meter).fetch_update(Ordering::Relaxed, Ordering::Relaxed, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(session: u64, child: u64) -> (Budget, Budget, Budget) {
        let top = Budget::root(Level::Session, Caps::unlimited().with(Meter::Fuel, session));
        let caps = Caps::unlimited().with(Meter::Fuel, child);
        let (a, b) = (top.child(Level::Subagent, caps), top.child(Level::Subagent, caps));
        (top, a, b)
    }

    #[test]
    fn a_child_is_billed_to_its_parent_and_halts_its_sibling() {
        let (top, a, b) = tree(100, 80);
        a.bill(Meter::Fuel, 80).unwrap();
        assert_eq!(b.remaining(Meter::Fuel), 20);
        let error = b.bill(Meter::Fuel, 21).unwrap_err();
        assert_eq!((error.level, error.limit), (Level::Session, 100));
        assert_eq!(top.spent(Meter::Fuel), 101, "what happened is recorded");
        assert!(a.exhausted(Meter::Fuel).is_some());
    }

    #[test]
    fn a_reservation_that_does_not_fit_takes_nothing_anywhere() {
        let (top, a, _) = tree(50, 80);
        a.reserve(Meter::Fuel, 40).unwrap();
        assert_eq!(a.reserve(Meter::Fuel, 20).unwrap_err().level, Level::Session);
        assert_eq!((a.spent(Meter::Fuel), top.spent(Meter::Fuel)), (40, 40));
        a.refund(Meter::Fuel, 40);
        assert_eq!((a.spent(Meter::Fuel), top.spent(Meter::Fuel)), (0, 0));
    }

    #[test]
    fn what_passes_ones_own_limit_passes_none_above() {
        let (top, a, b) = tree(11, 10);
        a.reserve(Meter::Fuel, 10).unwrap();
        assert_eq!(a.reserve(Meter::Fuel, 1).unwrap_err().level, Level::Subagent);
        a.reserve_above(Meter::Fuel, 1).unwrap();
        assert_eq!((a.spent(Meter::Fuel), top.spent(Meter::Fuel)), (11, 11));
        assert_eq!(b.reserve_above(Meter::Fuel, 1).unwrap_err().level, Level::Session);
        assert_eq!((b.spent(Meter::Fuel), top.spent(Meter::Fuel)), (0, 11));
    }

    #[test]
    fn what_is_under_way_is_not_given_to_another() {
        let (top, a, b) = tree(100, 80);
        // More than is left is likely; it begins, since it may turn out to be less.
        let held = a.hold(Meter::Fuel, 20, 90).unwrap();
        assert_eq!((a.free(Meter::Fuel), b.free(Meter::Fuel)), (0, 20));
        assert_eq!(b.hold(Meter::Fuel, 21, 21).unwrap_err().level, Level::Session);
        // It would fit without the other, so it is worth to wait; nobody is halted by what is kept.
        b.fits(Meter::Fuel, 21).unwrap();
        assert!(top.exhausted(Meter::Fuel).is_none() && a.exhausted(Meter::Fuel).is_none());
        assert_eq!(top.remaining(Meter::Fuel), 100);
        let small = b.hold(Meter::Fuel, 10, 50).unwrap();
        assert_eq!(top.free(Meter::Fuel), 0, "no more is kept than is left");
        drop(held);
        a.bill(Meter::Fuel, 30).unwrap();
        drop(small);
        assert_eq!((top.spent(Meter::Fuel), b.spent(Meter::Fuel)), (30, 0));
        assert_eq!((top.free(Meter::Fuel), b.free(Meter::Fuel)), (70, 70));
        assert_eq!(b.fits(Meter::Fuel, 71).unwrap_err().level, Level::Session);
    }

    #[test]
    fn room_that_many_threads_keep_never_passes_the_limit_and_comes_back() {
        let top = Budget::root(Level::Session, Caps::unlimited().with(Meter::Tokens, 1_000));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let own = top.child(Level::Subagent, Caps::unlimited());
                scope.spawn(move || {
                    for _ in 0..1_000 {
                        let held = own.hold(Meter::Tokens, 100, 300);
                        assert!(own.free(Meter::Tokens) <= 1_000);
                        drop(held);
                    }
                });
            }
        });
        assert_eq!(top.free(Meter::Tokens), 1_000);
    }

    #[test]
    fn spawning_again_does_not_reset_the_parents_limit() {
        let (top, a, _) = tree(100, 80);
        a.bill(Meter::Fuel, 80).unwrap();
        drop(a);
        let again = top.child(Level::Subagent, Caps::unlimited());
        assert_eq!(again.remaining(Meter::Fuel), 20);
    }

    #[test]
    fn cancelling_reaches_down_and_not_up() {
        let (top, a, b) = tree(1, 1);
        a.cancel();
        assert!(a.is_cancelled() && !b.is_cancelled() && !top.is_cancelled());
        top.cancel();
        assert!(b.is_cancelled() && a.child(Level::Call, Caps::unlimited()).is_cancelled());
    }

    #[test]
    fn huge_amounts_neither_wrap_nor_pass() {
        let (top, a, _) = tree(100, 100);
        assert!(a.reserve(Meter::Fuel, u64::MAX).is_err());
        assert!(a.bill(Meter::Fuel, u64::MAX).is_err());
        assert!(a.bill(Meter::Fuel, u64::MAX).is_err());
        assert_eq!(top.spent(Meter::Fuel), u64::MAX);
    }
}
