//! Budgets: counters with limits, in a tree.
//!
//! The levels of the tree are tenant, session, team, subagent and call. What a child uses is also billed to
//! every budget above it. So starting more subagents does not reset a limit, and a budget used up stops
//! everything below it. For example, if a session may use 1,000 tokens, both of its subagents stop when they
//! have used 1,000 together.
//!
//! There are three ways to use a budget. [`Budget::reserve`] is for use that can still be refused (memory,
//! bytes, steps): nothing is added unless the amount fits at every level. [`Budget::bill`] is for use that
//! has already happened (fuel, tokens): the amount is always added, and exceeding a limit is reported.
//! [`Budget::hold_amount`] keeps an amount free for work that runs now and is billed later.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::Limits;
use crate::cancel::{BudgetWaiters, CancellationWait};

/// What a budget counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Meter {
    /// Answers of the model with the calls in them.
    #[strum(to_string = "step")]
    Steps,
    /// Tokens of the input and the output of models.
    #[strum(to_string = "token")]
    Tokens,
    /// Roughly, executed WebAssembly instructions.
    Fuel,
    /// Bytes of linear memory and tables that are in use.
    Memory,
    /// Bytes that calls of tools returned.
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

/// All meters, in the order of [`Meter`].
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

/// The level of a budget in the tree, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum BudgetLevel {
    /// All sessions of one tenant.
    Tenant,
    /// A session, or a run.
    Session,
    /// All stages of one team run.
    Team,
    /// One agent: that of the run itself, or a subagent. Written as `agent`.
    #[strum(to_string = "agent")]
    Subagent,
    /// One tool call.
    Call,
}

/// The limit of each meter. The default has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetCaps([u64; METERS.len()]);

/// A limit exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("the {meter} budget of the {level} is used up ({limit})")]
pub struct ExhaustedLimit {
    /// What is counted.
    pub meter: Meter,
    /// At which level of the tree.
    pub level: BudgetLevel,
    /// The limit.
    pub limit: u64,
}

/// An amount kept free, in a budget and all above it, for work that runs now. Dropping it frees the amount.
/// It only counts against other holds, not as used.
#[derive(Debug)]
#[must_use = "the room is given back with it"]
pub struct BudgetHold {
    budget: Budget,
    meter: Meter,
    amount: u64,
}

impl Drop for BudgetHold {
    fn drop(&mut self) {
        self.budget.nodes_to_root().for_each(|node| node.let_go(self.meter, self.amount));
    }
}

/// A budget in the tree. Clones share the counters.
#[derive(Clone)]
pub struct Budget(Arc<BudgetNode>);

struct BudgetNode {
    parent: Option<Budget>,
    level: BudgetLevel,
    caps: BudgetCaps,
    spent: [AtomicU64; METERS.len()],
    /// The amounts that holds keep free.
    held: [AtomicU64; METERS.len()],
    cancelled: AtomicBool,
    waiters: BudgetWaiters,
    /// The number of the next wait. Only that of the root is used.
    waits: AtomicU64,
}

impl Meter {
    /// The index of a meter in arrays of amounts, in the order of [`METERS`].
    fn meter_index(self) -> usize {
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

impl BudgetCaps {
    /// No limits, except for those of the budgets above.
    pub fn unlimited() -> Self {
        Self([u64::MAX; METERS.len()])
    }

    /// The caps of a subagent with these limits.
    pub fn for_agent(limits: &Limits) -> Self {
        Self::unlimited()
            .with_cap(Meter::Steps, limits.steps)
            .with_cap(Meter::Tokens, limits.tokens)
            .with_cap(Meter::Fuel, limits.fuel)
            .with_cap(Meter::Memory, limits.memory_bytes)
            .with_cap(Meter::Output, limits.output_total_bytes)
            .with_cap(Meter::Read, limits.read_bytes)
            .with_cap(Meter::Write, limits.write_bytes)
            .with_cap(Meter::Egress, limits.egress_bytes)
            .with_cap(Meter::Ingress, limits.ingress_bytes)
    }

    /// The caps of one call of a tool with these limits.
    pub fn for_call(limits: &Limits) -> Self {
        Self::unlimited()
            .with_cap(Meter::Fuel, limits.fuel_per_call)
            .with_cap(Meter::Output, limits.output_bytes)
    }

    /// Returns the caps with another limit for one meter.
    #[must_use]
    pub fn with_cap(mut self, meter: Meter, limit: u64) -> Self {
        if let Some(slot) = self.0.get_mut(meter.meter_index()) {
            *slot = limit;
        }
        self
    }

    /// The limit of a meter; `u64::MAX`: none.
    pub fn limit(&self, meter: Meter) -> u64 {
        self.0.get(meter.meter_index()).copied().unwrap_or(0)
    }
}

impl Budget {
    /// Makes a budget without a parent.
    pub fn new_root(level: BudgetLevel, caps: BudgetCaps) -> Self {
        Self::new(None, level, caps)
    }

    /// Makes a budget below this one. What it uses is also billed to this one.
    #[must_use]
    pub fn new_child(&self, level: BudgetLevel, caps: BudgetCaps) -> Self {
        Self::new(Some(self.clone()), level, caps)
    }

    /// Adds what was used to the budget and all above it. The amount is added even if that exceeds a limit,
    /// which the error reports.
    pub fn bill(&self, meter: Meter, amount: u64) -> Result<(), ExhaustedLimit> {
        let mut over = None;
        for node in self.nodes_to_root() {
            let before = node.add_amount(meter, amount);
            let limit = node.caps.limit(meter);
            if before.saturating_add(amount) > limit {
                over = Some(ExhaustedLimit { meter, level: node.level, limit });
            }
        }
        over.map_or(Ok(()), Err)
    }

    /// Adds an amount to the budget and all above it, if it fits in each; if not, adds nothing.
    pub fn reserve(&self, meter: Meter, amount: u64) -> Result<(), ExhaustedLimit> {
        for (depth, node) in self.nodes_to_root().enumerate() {
            if let Err(error) = node.spend_amount(meter, amount) {
                self.nodes_to_root().take(depth).for_each(|node| node.give_back(meter, amount));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Keeps an amount free for new work, in the budget and all above it: `likely`, or what is left if that
    /// is less, but not less than `least`. The work is billed later for what it uses.
    ///
    /// # Errors
    ///
    /// The first budget in which less than `least` is free beside the other holds; nothing is kept then.
    /// [`Budget::check_fits`] says whether it would fit without them, so that waiting makes sense.
    pub fn hold_amount(
        &self,
        meter: Meter,
        least: u64,
        likely: u64,
    ) -> Result<BudgetHold, ExhaustedLimit> {
        loop {
            let amount = likely.min(self.free_amount(meter)).max(least);
            let full = self.nodes_to_root().position(|node| !node.reserve_hold(meter, amount));
            let Some(depth) = full else {
                return Ok(BudgetHold { budget: self.clone(), meter, amount });
            };
            self.nodes_to_root().take(depth).for_each(|node| node.let_go(meter, amount));
            let without = |node: &BudgetNode| node.free_amount(meter) < least;
            if let Some(node) = self.nodes_to_root().find(|node| without(node)) {
                return Err(node.exhausted_limit(meter));
            }
            // Another thread kept an amount meanwhile, so try again with what is left.
        }
    }

    /// Checks that an amount fits in the budget and all above it, as if there were no holds.
    ///
    /// # Errors
    ///
    /// The first budget in which less is left.
    pub fn check_fits(&self, meter: Meter, amount: u64) -> Result<(), ExhaustedLimit> {
        let full = |node: &&BudgetNode| {
            node.caps.limit(meter).saturating_sub(node.spent_amount(meter)) < amount
        };
        self.nodes_to_root().find(full).map_or(Ok(()), |node| Err(node.exhausted_limit(meter)))
    }

    /// The amount that is neither used nor held: the least of the budget and all above it.
    pub fn free_amount(&self, meter: Meter) -> u64 {
        self.nodes_to_root().map(|node| node.free_amount(meter)).min().unwrap_or(0)
    }

    /// Adds an amount to all budgets above, if it fits in each; if not, adds nothing. To this budget it is
    /// then added even beyond its limit.
    pub fn reserve_above(&self, meter: Meter, amount: u64) -> Result<(), ExhaustedLimit> {
        if let Some(above) = &self.0.parent {
            above.reserve(meter, amount)?;
        }
        self.0.add_amount(meter, amount);
        Ok(())
    }

    /// Subtracts an amount reserved and not used, or billed too much.
    pub fn refund(&self, meter: Meter, amount: u64) {
        self.nodes_to_root().for_each(|node| node.give_back(meter, amount));
    }

    /// The amount not used yet: the least of the budget and all above it.
    pub fn remaining_amount(&self, meter: Meter) -> u64 {
        let left =
            |node: &BudgetNode| node.caps.limit(meter).saturating_sub(node.spent_amount(meter));
        self.nodes_to_root().map(left).min().unwrap_or(0)
    }

    /// The amount used in the budget, and below it.
    pub fn spent_amount(&self, meter: Meter) -> u64 {
        self.0.spent_amount(meter)
    }

    /// The limit of the budget itself.
    pub fn limit(&self, meter: Meter) -> u64 {
        self.0.caps.limit(meter)
    }

    /// The first budget whose limit is reached, from this one upwards.
    pub fn exhausted_limit(&self, meter: Meter) -> Option<ExhaustedLimit> {
        self.nodes_to_root().find_map(|node| {
            let limit = node.caps.limit(meter);
            (node.spent_amount(meter) >= limit).then_some(ExhaustedLimit {
                meter,
                level: node.level,
                limit,
            })
        })
    }

    /// Stops all work of the budget and below, for good. Wakes the tasks that wait for it.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.0.waiters.wake_all();
    }

    /// Completes when this budget or one above it is cancelled. Needs no runtime, because [`Budget::cancel`]
    /// wakes the task.
    pub fn wait_cancelled(&self) -> CancellationWait {
        CancellationWait::new(self.clone())
    }

    /// Whether the budget or one above it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.nodes_to_root().any(|node| node.cancelled.load(Ordering::SeqCst))
    }

    fn new(parent: Option<Self>, level: BudgetLevel, caps: BudgetCaps) -> Self {
        let none = || [const { AtomicU64::new(0) }; METERS.len()];
        Self(Arc::new(BudgetNode {
            parent,
            level,
            caps,
            spent: none(),
            held: none(),
            cancelled: AtomicBool::new(false),
            waiters: BudgetWaiters::default(),
            waits: AtomicU64::new(0),
        }))
    }

    /// The lists of waiting tasks of the budget and all above it.
    pub(crate) fn waiter_lists(&self) -> impl Iterator<Item = &BudgetWaiters> {
        self.nodes_to_root().map(|node| &node.waiters)
    }

    /// A number for a wait that no other in the tree has.
    pub(crate) fn next_wait(&self) -> u64 {
        self.nodes_to_root().last().map_or(0, |root| root.waits.fetch_add(1, Ordering::Relaxed))
    }

    fn nodes_to_root(&self) -> impl Iterator<Item = &BudgetNode> {
        std::iter::successors(Some(&*self.0), |node| node.parent.as_ref().map(|up| &*up.0))
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Budget");
        shown.field("level", &self.0.level);
        for meter in METERS {
            shown
                .field(&meter.to_string(), &(self.0.spent_amount(meter), self.0.caps.limit(meter)));
        }
        shown.finish_non_exhaustive()
    }
}

impl BudgetNode {
    fn spent_cell(&self, meter: Meter) -> &AtomicU64 {
        // The index comes from a match over all meters, so it always fits; the first cell only satisfies the
        // type.
        self.spent.get(meter.meter_index()).unwrap_or(&self.spent[0])
    }

    fn spent_amount(&self, meter: Meter) -> u64 {
        self.spent_cell(meter).load(Ordering::Relaxed)
    }

    /// Adds without a limit and without overflow. Returns the value before.
    fn add_amount(&self, meter: Meter, amount: u64) -> u64 {
        self.update_spent(meter, |spent| Some(spent.saturating_add(amount))).unwrap_or(u64::MAX)
    }

    /// Keeps the amount if so much is free; returns whether it did.
    fn reserve_hold(&self, meter: Meter, amount: u64) -> bool {
        let left = self.caps.limit(meter).saturating_sub(self.spent_amount(meter));
        let fits = |held: u64| held.checked_add(amount).filter(|sum| *sum <= left);
        self.held_cell(meter).fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn let_go(&self, meter: Meter, amount: u64) {
        let less = |held: u64| Some(held.saturating_sub(amount));
        let _ = self.held_cell(meter).fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn free_amount(&self, meter: Meter) -> u64 {
        let held = self.held_cell(meter).load(Ordering::Relaxed);
        self.caps.limit(meter).saturating_sub(self.spent_amount(meter)).saturating_sub(held)
    }

    fn held_cell(&self, meter: Meter) -> &AtomicU64 {
        // The index always fits, as in `spent_cell`.
        self.held.get(meter.meter_index()).unwrap_or(&self.held[0])
    }

    fn exhausted_limit(&self, meter: Meter) -> ExhaustedLimit {
        ExhaustedLimit { meter, level: self.level, limit: self.caps.limit(meter) }
    }

    fn spend_amount(&self, meter: Meter, amount: u64) -> Result<(), ExhaustedLimit> {
        let limit = self.caps.limit(meter);
        let fits = |spent: u64| spent.checked_add(amount).filter(|sum| *sum <= limit);
        match self.update_spent(meter, fits) {
            Ok(_) => Ok(()),
            Err(_) => Err(ExhaustedLimit { meter, level: self.level, limit }),
        }
    }

    fn give_back(&self, meter: Meter, amount: u64) {
        let _ = self.update_spent(meter, |spent| Some(spent.saturating_sub(amount)));
    }

    fn update_spent(&self, meter: Meter, f: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64> {
        self.spent_cell(meter).fetch_update(Ordering::Relaxed, Ordering::Relaxed, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(session: u64, child: u64) -> (Budget, Budget, Budget) {
        let top = Budget::new_root(
            BudgetLevel::Session,
            BudgetCaps::unlimited().with_cap(Meter::Fuel, session),
        );
        let caps = BudgetCaps::unlimited().with_cap(Meter::Fuel, child);
        let (a, b) = (
            top.new_child(BudgetLevel::Subagent, caps),
            top.new_child(BudgetLevel::Subagent, caps),
        );
        (top, a, b)
    }

    #[test]
    fn a_child_is_billed_to_its_parent_and_halts_its_sibling() {
        let (top, a, b) = tree(100, 80);
        a.bill(Meter::Fuel, 80).unwrap();
        assert_eq!(b.remaining_amount(Meter::Fuel), 20);
        let error = b.bill(Meter::Fuel, 21).unwrap_err();
        assert_eq!((error.level, error.limit), (BudgetLevel::Session, 100));
        assert_eq!(top.spent_amount(Meter::Fuel), 101, "what happened is recorded");
        assert!(a.exhausted_limit(Meter::Fuel).is_some());
    }

    #[test]
    fn a_reservation_that_does_not_fit_takes_nothing_anywhere() {
        let (top, a, _) = tree(50, 80);
        a.reserve(Meter::Fuel, 40).unwrap();
        assert_eq!(a.reserve(Meter::Fuel, 20).unwrap_err().level, BudgetLevel::Session);
        assert_eq!((a.spent_amount(Meter::Fuel), top.spent_amount(Meter::Fuel)), (40, 40));
        a.refund(Meter::Fuel, 40);
        assert_eq!((a.spent_amount(Meter::Fuel), top.spent_amount(Meter::Fuel)), (0, 0));
    }

    #[test]
    fn what_passes_ones_own_limit_passes_none_above() {
        let (top, a, b) = tree(11, 10);
        a.reserve(Meter::Fuel, 10).unwrap();
        assert_eq!(a.reserve(Meter::Fuel, 1).unwrap_err().level, BudgetLevel::Subagent);
        a.reserve_above(Meter::Fuel, 1).unwrap();
        assert_eq!((a.spent_amount(Meter::Fuel), top.spent_amount(Meter::Fuel)), (11, 11));
        assert_eq!(b.reserve_above(Meter::Fuel, 1).unwrap_err().level, BudgetLevel::Session);
        assert_eq!((b.spent_amount(Meter::Fuel), top.spent_amount(Meter::Fuel)), (0, 11));
    }

    #[test]
    fn what_is_under_way_is_not_given_to_another() {
        let (top, a, b) = tree(100, 80);
        // More than what is left is likely. The work may start, because it may use less.
        let held = a.hold_amount(Meter::Fuel, 20, 90).unwrap();
        assert_eq!((a.free_amount(Meter::Fuel), b.free_amount(Meter::Fuel)), (0, 20));
        assert_eq!(b.hold_amount(Meter::Fuel, 21, 21).unwrap_err().level, BudgetLevel::Session);
        // It would fit without the other hold, so waiting makes sense; a hold stops nobody.
        b.check_fits(Meter::Fuel, 21).unwrap();
        assert!(
            top.exhausted_limit(Meter::Fuel).is_none() && a.exhausted_limit(Meter::Fuel).is_none()
        );
        assert_eq!(top.remaining_amount(Meter::Fuel), 100);
        let small = b.hold_amount(Meter::Fuel, 10, 50).unwrap();
        assert_eq!(top.free_amount(Meter::Fuel), 0, "no more is kept than is left");
        drop(held);
        a.bill(Meter::Fuel, 30).unwrap();
        drop(small);
        assert_eq!((top.spent_amount(Meter::Fuel), b.spent_amount(Meter::Fuel)), (30, 0));
        assert_eq!((top.free_amount(Meter::Fuel), b.free_amount(Meter::Fuel)), (70, 70));
        assert_eq!(b.check_fits(Meter::Fuel, 71).unwrap_err().level, BudgetLevel::Session);
    }

    #[test]
    fn room_that_many_threads_keep_never_passes_the_limit_and_comes_back() {
        let top = Budget::new_root(
            BudgetLevel::Session,
            BudgetCaps::unlimited().with_cap(Meter::Tokens, 1_000),
        );
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let own = top.new_child(BudgetLevel::Subagent, BudgetCaps::unlimited());
                scope.spawn(move || {
                    for _ in 0..1_000 {
                        let held = own.hold_amount(Meter::Tokens, 100, 300);
                        assert!(own.free_amount(Meter::Tokens) <= 1_000);
                        drop(held);
                    }
                });
            }
        });
        assert_eq!(top.free_amount(Meter::Tokens), 1_000);
    }

    #[test]
    fn spawning_again_does_not_reset_the_parents_limit() {
        let (top, a, _) = tree(100, 80);
        a.bill(Meter::Fuel, 80).unwrap();
        drop(a);
        let again = top.new_child(BudgetLevel::Subagent, BudgetCaps::unlimited());
        assert_eq!(again.remaining_amount(Meter::Fuel), 20);
    }

    #[test]
    fn cancelling_reaches_down_and_not_up() {
        let (top, a, b) = tree(1, 1);
        a.cancel();
        assert!(a.is_cancelled() && !b.is_cancelled() && !top.is_cancelled());
        top.cancel();
        assert!(
            b.is_cancelled()
                && a.new_child(BudgetLevel::Call, BudgetCaps::unlimited()).is_cancelled()
        );
    }

    #[test]
    fn huge_amounts_neither_wrap_nor_pass() {
        let (top, a, _) = tree(100, 100);
        assert!(a.reserve(Meter::Fuel, u64::MAX).is_err());
        assert!(a.bill(Meter::Fuel, u64::MAX).is_err());
        assert!(a.bill(Meter::Fuel, u64::MAX).is_err());
        assert_eq!(top.spent_amount(Meter::Fuel), u64::MAX);
    }
}
