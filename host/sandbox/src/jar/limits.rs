//! The fixed limits of a store, and the limiter of its memory, whose bound comes from a grant.

use belljar_policy::{Budget, ExhaustedLimit, Meter};
use wasmtime::{Error, ResourceLimiter, Result};

/// How many resources (streams, pollables, requests, descriptors) a store has in the host at a time. Each
/// uses from 100 bytes to some KiB of host memory, which the memory budget does not count.
pub(crate) const MAX_RESOURCES: usize = 4_096;

/// How many component handles a store has at a time. Bounded, because a guest makes them without a call into
/// the host.
pub(crate) const MAX_HANDLES: usize = 10_000;

/// The most bytes that one call into the host, or an answer of `invoke`, may pass. Bounded, because they are
/// copied to host memory before any check.
pub(crate) const MAX_HOSTCALL: usize = 16 << 20;

/// The most random bytes of a request, because the host's thread fills them: 64 KiB takes microseconds.
pub(crate) const MAX_RANDOM: u64 = 64 << 10;

/// The most core instances, memories and tables of a store. A Python tool has 14, 1 and 2.
pub(crate) const MAX_INSTANCES: u32 = 64;
const MAX_MEMORIES: usize = 16;
const MAX_TABLES: usize = 32;

/// The bytes of host memory that one table element uses.
const TABLE_ELEMENT: u64 = 16;

/// The limiter of a store's memory, called by wasmtime for each growth, the initial memories included.
/// Growth is reserved from the jar's budget, which all stores of a jar share, so their memories and tables
/// count together. Dropping the limiter releases its reservation.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    budget: Budget,
    /// The bytes that are reserved now.
    held: u64,
    /// The most bytes that were reserved at a time, since the last [`Self::take_peak`].
    peak: u64,
    /// The bytes of the last permitted growth, which may still fail.
    pending: u64,
    refused: Option<ExhaustedLimit>,
}

impl MemoryLimiter {
    /// Makes a limiter for a store without memory yet.
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget, held: 0, peak: 0, pending: 0, refused: None }
    }

    /// Returns the most bytes reserved at a time since the last call of this method.
    pub(crate) fn take_peak(&mut self) -> u64 {
        std::mem::replace(&mut self.peak, self.held)
    }

    /// Returns the first growth refused since the last call of this method.
    pub(crate) fn take_refused(&mut self) -> Option<ExhaustedLimit> {
        self.refused.take()
    }

    /// Reserves memory for a growth of a guest's memory or table. Returns whether the budget allows the
    /// growth.
    fn allow_growth(&mut self, current: u64, desired: u64) -> bool {
        self.pending = 0;
        let more = desired.saturating_sub(current);
        match self.budget.reserve(Meter::Memory, more) {
            Ok(()) => {
                self.pending = more;
                self.held = self.held.saturating_add(more);
                self.peak = self.peak.max(self.held);
                true
            }
            Err(refused) => {
                self.refused.get_or_insert(refused);
                false
            }
        }
    }

    /// Takes a permitted growth back: wasmtime may fail to grow after permission, for example in a full
    /// slot. It may also report a failure without having asked; then nothing is pending.
    fn undo_growth(&mut self) {
        let back = std::mem::take(&mut self.pending);
        self.held = self.held.saturating_sub(back);
        self.budget.refund(Meter::Memory, back);
    }
}

impl Drop for MemoryLimiter {
    fn drop(&mut self) {
        self.budget.refund(Meter::Memory, self.held);
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        Ok(self.allow_growth(current as u64, desired as u64))
    }

    fn memory_grow_failed(&mut self, _: Error) -> Result<()> {
        self.undo_growth();
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        let bytes = |elements: usize| (elements as u64).saturating_mul(TABLE_ELEMENT);
        Ok(self.allow_growth(bytes(current), bytes(desired)))
    }

    fn table_grow_failed(&mut self, _: Error) -> Result<()> {
        self.undo_growth();
        Ok(())
    }

    fn instances(&self) -> usize {
        MAX_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use belljar_policy::{BudgetCaps, BudgetLevel};

    use super::*;

    fn budget(bytes: u64) -> Budget {
        Budget::new_root(
            BudgetLevel::Subagent,
            BudgetCaps::unlimited().with_cap(Meter::Memory, bytes),
        )
    }

    #[test]
    fn two_stores_share_one_budget_and_give_it_back() {
        let budget = budget(300);
        let mut a = MemoryLimiter::new(budget.clone());
        let mut b = MemoryLimiter::new(budget.clone());
        assert!(a.memory_growing(0, 200, None).unwrap());
        assert!(!b.memory_growing(0, 200, None).unwrap());
        assert_eq!(b.take_refused().unwrap().limit, 300);
        drop(a);
        assert!(b.memory_growing(0, 200, None).unwrap());
        drop(b);
        assert_eq!(budget.spent_amount(Meter::Memory), 0);
    }

    #[test]
    fn a_growth_that_fails_after_all_is_refunded_once() {
        let budget = budget(300);
        let mut a = MemoryLimiter::new(budget.clone());
        assert!(a.memory_growing(0, 200, None).unwrap());
        a.memory_grow_failed(Error::msg("full")).unwrap();
        a.memory_grow_failed(Error::msg("full")).unwrap();
        assert_eq!(budget.spent_amount(Meter::Memory), 0);
        assert_eq!((a.take_peak(), a.take_peak()), (200, 0));
    }

    #[test]
    fn tables_count_too() {
        let budget = budget(16 * 10);
        let mut a = MemoryLimiter::new(budget);
        assert!(!a.table_growing(0, 11, None).unwrap());
        assert!(a.table_growing(0, 10, None).unwrap());
    }
}
