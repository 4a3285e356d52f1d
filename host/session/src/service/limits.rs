//! The limits of one tenant: how many turns run at a time, and tokens and fuel of one day.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Meter};
use belljar_store::{Store, StoreError, UsageRow};
use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{RETRY_AFTER, ServiceError, ServiceLimits};
use belljar_agent::Clock;

/// An upper bound of the tokens that the first step of a turn needs: as many as the largest context of a
/// model. With more tokens left in the day, the exact need is not computed.
const MOST_NEEDED: u64 = 4 << 20;

/// Seconds of a day.
const DAY: i64 = 24 * 3600;

/// The limits of one tenant, and the present usage.
pub(crate) struct TenantQuota {
    limits: Mutex<ServiceLimits>,
    /// A permit for each turn that runs.
    turns: Arc<Semaphore>,
    /// A permit for each turn that runs or waits.
    places: Arc<Semaphore>,
    /// The budget of the present day, above the budgets of all turns; `None` until a turn begins.
    day: Mutex<Option<DayBudget>>,
}

/// A tenant's budget for one day in UTC.
struct DayBudget {
    name: String,
    /// The limits of tokens and of fuel; `None` = no limit.
    most: (Option<u64>, Option<u64>),
    /// The budget above the turns that begin under the present limits.
    budget: Budget,
    /// Budgets of turns that began under earlier limits. Such turns keep their old limits, and their usage
    /// counts against the new limits too.
    before: Vec<EarlierBudget>,
}

/// The budget of turns that began under earlier limits of the same day.
struct EarlierBudget {
    budget: Budget,
    /// The usage at the last count, for each meter of `METERED`.
    counted: [u64; METERED.len()],
}

/// The amounts that are limited in a day.
const METERED: [Meter; 2] = [Meter::Tokens, Meter::Fuel];

/// The two permits of a turn, to wait and to run. Dropping the slot frees both.
#[derive(Debug)]
pub(crate) struct TurnSlot {
    _waits: OwnedSemaphorePermit,
    _runs: OwnedSemaphorePermit,
}

impl TenantQuota {
    pub(crate) fn new(limits: ServiceLimits) -> Self {
        let (turns, places) = semaphore_sizes(&limits);
        Self {
            turns: Arc::new(Semaphore::new(turns)),
            places: Arc::new(Semaphore::new(places)),
            day: Mutex::default(),
            limits: Mutex::new(limits),
        }
    }

    /// Sets new limits. Running turns keep the limits of their beginning.
    pub(crate) fn limit_to(&self, limits: ServiceLimits) {
        let before = {
            let mut known = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *known, limits)
        };
        let (was, is) = (semaphore_sizes(&before), semaphore_sizes(&limits));
        resize_semaphore(&self.turns, was.0, is.0);
        resize_semaphore(&self.places, was.1, is.1);
    }

    fn current_limits(&self) -> ServiceLimits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the turn may run; an error if too many turns wait already.
    pub(crate) async fn place(&self) -> Result<TurnSlot, ServiceError> {
        let full = |_| ServiceError::TenantFull { retry_after: RETRY_AFTER };
        let waits = Arc::clone(&self.places).try_acquire_owned().map_err(full)?;
        self.wait_to_run(waits).await
    }

    /// As [`TenantQuota::place`], without a bound on the number of waiting turns.
    pub(crate) async fn wait_place(&self) -> Result<TurnSlot, ServiceError> {
        let waits = Arc::clone(&self.places).acquire_owned().await;
        self.wait_to_run(waits.map_err(|_| ServiceError::Draining)?).await
    }

    /// Waits for the permit to run, for a turn that has a permit to wait.
    async fn wait_to_run(&self, waits: OwnedSemaphorePermit) -> Result<TurnSlot, ServiceError> {
        let runs = Arc::clone(&self.turns).acquire_owned().await;
        // The semaphore is never closed.
        let runs = runs.map_err(|_| ServiceError::Draining)?;
        Ok(TurnSlot { _waits: waits, _runs: runs })
    }

    /// INV-116: an error if `more` bytes would exceed the tenant's storage.
    pub(crate) async fn check_room(&self, store: &Store, more: usize) -> Result<(), ServiceError> {
        let Some(limit) = self.current_limits().storage_bytes else { return Ok(()) };
        let used = store.stored_bytes().await?;
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        match used.saturating_add(more) > limit {
            true => Err(ServiceError::StorageFull { used, limit }),
            false => Ok(()),
        }
    }

    /// The budget of today, made from the stored usage of the day if the day is new.
    pub(crate) async fn day_budget(
        &self,
        store: &Store,
        clock: &dyn Clock,
    ) -> Result<Budget, StoreError> {
        let ServiceLimits { tokens_per_day, fuel_per_day, .. } = self.current_limits();
        let most = (tokens_per_day, fuel_per_day);
        let today = clock.now().strftime("%Y-%m-%d").to_string();
        if let Some(budget) = todays_budget(&mut self.lock_day(), &today, most) {
            return Ok(budget);
        }
        let budget = Budget::new_root(BudgetLevel::Tenant, day_caps(most));
        let rows = store.usage_by_day(&today).await?;
        for row in rows.iter().filter(|row| row.day == today) {
            bill_usage(&budget, row);
        }
        let mut day = self.lock_day();
        // Another turn may have made the budget meanwhile.
        if let Some(budget) = todays_budget(&mut day, &today, most) {
            return Ok(budget);
        }
        *day = Some(DayBudget { name: today, most, budget: budget.clone(), before: Vec::new() });
        Ok(budget)
    }

    /// INV-152: an error if less than `needed` tokens are left of the day's limit. `needed` is only computed
    /// if less than `MOST_NEEDED` are left.
    pub(crate) async fn check_step(
        &self,
        store: &Store,
        clock: &dyn Clock,
        needed: impl AsyncFnOnce() -> Result<u64, ServiceError>,
    ) -> Result<(), ServiceError> {
        let budget = self.day_budget(store, clock).await?;
        let left = |meter| budget.limit(meter).saturating_sub(budget.spent_amount(meter));
        let (tokens, fuel) = (left(Meter::Tokens), left(Meter::Fuel));
        let used = |limit, meter, left, needed| {
            let (resets, retry_after) = next_day(clock.now());
            let most = budget.limit(meter);
            Err(ServiceError::DayUsed { limit, most, left, needed, resets, retry_after })
        };
        if fuel == 0 {
            return used("tenant_fuel_per_day", Meter::Fuel, fuel, 1);
        }
        if tokens == 0 {
            return used("tenant_tokens_per_day", Meter::Tokens, tokens, 1);
        }
        if tokens >= MOST_NEEDED {
            return Ok(());
        }
        match needed().await? {
            needed if needed > tokens => {
                used("tenant_tokens_per_day", Meter::Tokens, tokens, needed)
            }
            // Tokens are left, but other running turns have reserved them.
            needed if needed > budget.free_amount(Meter::Tokens) => {
                Err(ServiceError::TenantFull { retry_after: RETRY_AFTER })
            }
            _ => Ok(()),
        }
    }

    fn lock_day(&self) -> MutexGuard<'_, Option<DayBudget>> {
        self.day.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The budget of the day `today` with the limits `most`; `None` = no turn has begun in this day.
fn todays_budget(
    day: &mut Option<DayBudget>,
    today: &str,
    most: (Option<u64>, Option<u64>),
) -> Option<Budget> {
    let day = day.as_mut().filter(|day| day.name == today)?;
    day.count_earlier();
    if day.most != most {
        day.limit_to(most);
    }
    Some(day.budget.clone())
}

impl DayBudget {
    /// Adds to the budget what turns under earlier limits have used since the last count.
    fn count_earlier(&mut self) {
        for before in &mut self.before {
            for (meter, counted) in METERED.into_iter().zip(&mut before.counted) {
                let spent = before.budget.spent_amount(meter);
                // If this exceeds the limit, the error appears when the next turn begins.
                let _ = self.budget.bill(meter, spent.saturating_sub(*counted));
                *counted = spent.max(*counted);
            }
        }
    }

    /// Makes a budget with new limits for later turns; the day's usage so far counts in it.
    fn limit_to(&mut self, most: (Option<u64>, Option<u64>)) {
        let budget = Budget::new_root(BudgetLevel::Tenant, day_caps(most));
        let counted = METERED.map(|meter| self.budget.spent_amount(meter));
        for (meter, spent) in METERED.into_iter().zip(counted) {
            let _ = budget.bill(meter, spent);
        }
        let budget = std::mem::replace(&mut self.budget, budget);
        self.before.push(EarlierBudget { budget, counted });
        self.most = most;
    }
}

/// The caps of a day's budget, from the limits of tokens and of fuel.
fn day_caps((tokens, fuel): (Option<u64>, Option<u64>)) -> BudgetCaps {
    let mut caps = BudgetCaps::unlimited();
    for (meter, limit) in METERED.into_iter().zip([tokens, fuel]) {
        caps = limit.map_or(caps, |limit| caps.with_cap(meter, limit));
    }
    caps
}

/// How many turns may run, and how many may run or wait.
fn semaphore_sizes(limits: &ServiceLimits) -> (usize, usize) {
    let turns = limits.concurrent_turns.max(1);
    (turns, turns.saturating_add(limits.queued_turns).min(Semaphore::MAX_PERMITS))
}

/// Changes the size of a semaphore. A smaller size is reached as running turns return their permits.
fn resize_semaphore(semaphore: &Arc<Semaphore>, was: usize, is: usize) {
    if is >= was {
        return semaphore.add_permits(is - was);
    }
    let taken = semaphore.forget_permits(was - is);
    let owed = u32::try_from((was - is).saturating_sub(taken)).unwrap_or(u32::MAX);
    let semaphore = Arc::clone(semaphore);
    tokio::spawn(async move {
        // The semaphore is never closed.
        if let Ok(permits) = semaphore.acquire_many_owned(owed).await {
            permits.forget();
        }
    });
}

/// The beginning of the next day in UTC, and the time from `now` until then.
fn next_day(now: Timestamp) -> (Timestamp, Duration) {
    let seconds = now.as_second();
    let begins = seconds.saturating_sub(seconds.rem_euclid(DAY)).saturating_add(DAY);
    let wait = u64::try_from(begins.saturating_sub(seconds)).unwrap_or(0);
    (Timestamp::from_second(begins).unwrap_or(now), Duration::from_secs(wait))
}

/// Counts a stored row of usage in the day's budget.
fn bill_usage(budget: &Budget, row: &UsageRow) {
    let amount = |n: i64| u64::try_from(n).unwrap_or(0);
    let tokens = amount(row.input_tokens).saturating_add(amount(row.output_tokens));
    for (meter, amount) in [(Meter::Tokens, tokens), (Meter::Fuel, amount(row.fuel))] {
        // If this exceeds the limit, the error appears when the next turn begins.
        let _ = budget.bill(meter, amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_midnight_in_utc() {
        let at = |now: &str| {
            let (resets, wait) = next_day(now.parse().unwrap());
            (resets.to_string(), wait.as_secs())
        };
        let next = || "2026-03-02T00:00:00Z".to_owned();
        assert_eq!(at("2026-03-01T23:59:59.5Z"), (next(), 1));
        assert_eq!(at("2026-03-01T00:00:00Z"), (next(), 86_400));
    }
}
