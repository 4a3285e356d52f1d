//! The limits of one tenant: turns at a time, and tokens and fuel a day.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belljar_policy::{Budget, Caps, Level, Meter};
use belljar_store::{Store, StoreError, UsageRow};
use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{RETRY_AFTER, ServiceError, ServiceLimits};
use belljar_agent::Clock;

/// Tokens that the first step of no turn passes: the models' largest contexts.
const MOST_NEEDED: u64 = 4 << 20;

/// Seconds of a day.
const DAY: i64 = 24 * 3600;

/// The limits of one tenant, with the usage.
pub(crate) struct Allowance {
    limits: Mutex<ServiceLimits>,
    /// Turns that run.
    turns: Arc<Semaphore>,
    /// Turns that run or wait.
    places: Arc<Semaphore>,
    /// Above all turns of a day.
    day: Mutex<Option<Day>>,
}

/// The day of a tenant.
struct Day {
    name: String,
    /// Tokens and fuel; `None` = no limit.
    most: (Option<u64>, Option<u64>),
    /// Above the turns that begin now.
    budget: Budget,
    /// Budgets of turns that began under earlier limits. Such turns keep their old limits, and their usage
    /// counts against the new limits too.
    before: Vec<Before>,
}

/// An earlier budget of a day.
struct Before {
    budget: Budget,
    /// The usage at the last count.
    counted: [u64; METERED.len()],
}

/// The amounts that are limited in a day.
const METERED: [Meter; 2] = [Meter::Tokens, Meter::Fuel];

/// The place of one turn.
#[derive(Debug)]
pub(crate) struct TurnSlot {
    _waits: OwnedSemaphorePermit,
    _runs: OwnedSemaphorePermit,
}

impl Allowance {
    pub(crate) fn new(limits: ServiceLimits) -> Self {
        let (turns, places) = sizes(&limits);
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
        let (was, is) = (sizes(&before), sizes(&limits));
        resize(&self.turns, was.0, is.0);
        resize(&self.places, was.1, is.1);
    }

    fn limits(&self) -> ServiceLimits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place; an error if too many turns wait already.
    pub(crate) async fn place(&self) -> Result<TurnSlot, ServiceError> {
        let full = |_| ServiceError::TenantFull { retry_after: RETRY_AFTER };
        let waits = Arc::clone(&self.places).try_acquire_owned().map_err(full)?;
        self.runs(waits).await
    }

    /// As [`Allowance::place`], without a bound on the number of waiting turns.
    pub(crate) async fn waits(&self) -> Result<TurnSlot, ServiceError> {
        let waits = Arc::clone(&self.places).acquire_owned().await;
        self.runs(waits.map_err(|_| ServiceError::Draining)?).await
    }

    async fn runs(&self, waits: OwnedSemaphorePermit) -> Result<TurnSlot, ServiceError> {
        let runs = Arc::clone(&self.turns).acquire_owned().await;
        // The semaphore is never closed.
        let runs = runs.map_err(|_| ServiceError::Draining)?;
        Ok(TurnSlot { _waits: waits, _runs: runs })
    }

    /// INV-116: an error if `more` bytes would exceed the tenant's storage.
    pub(crate) async fn room(&self, store: &Store, more: usize) -> Result<(), ServiceError> {
        let Some(limit) = self.limits().storage_bytes else { return Ok(()) };
        let used = store.stored_bytes().await?;
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        match used.saturating_add(more) > limit {
            true => Err(ServiceError::StorageFull { used, limit }),
            false => Ok(()),
        }
    }

    /// The budget of the day; the tenant's usage so far counts.
    pub(crate) async fn budget(
        &self,
        store: &Store,
        clock: &dyn Clock,
    ) -> Result<Budget, StoreError> {
        let ServiceLimits { tokens_per_day, fuel_per_day, .. } = self.limits();
        let most = (tokens_per_day, fuel_per_day);
        let today = clock.now().strftime("%Y-%m-%d").to_string();
        if let Some(budget) = known(&mut self.day(), &today, most) {
            return Ok(budget);
        }
        let budget = Budget::root(Level::Tenant, caps(most));
        let rows = store.usage(&today).await?;
        for row in rows.iter().filter(|row| row.day == today) {
            bill(&budget, row);
        }
        let mut day = self.day();
        // Another turn may have set the budget meanwhile.
        if let Some(budget) = known(&mut day, &today, most) {
            return Ok(budget);
        }
        *day = Some(Day { name: today, most, budget: budget.clone(), before: Vec::new() });
        Ok(budget)
    }

    /// INV-152: an error if the day's limit leaves too little for a step of `needed` tokens. `needed` is
    /// called only near a limit.
    pub(crate) async fn step(
        &self,
        store: &Store,
        clock: &dyn Clock,
        needed: impl AsyncFnOnce() -> Result<u64, ServiceError>,
    ) -> Result<(), ServiceError> {
        let budget = self.budget(store, clock).await?;
        let left = |meter| budget.limit(meter).saturating_sub(budget.spent(meter));
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
            // Other running turns may use less than their reserve.
            needed if needed > budget.free(Meter::Tokens) => {
                Err(ServiceError::TenantFull { retry_after: RETRY_AFTER })
            }
            _ => Ok(()),
        }
    }

    fn day(&self) -> MutexGuard<'_, Option<Day>> {
        self.day.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The budget of `today` with these limits, if the day has begun.
fn known(day: &mut Option<Day>, today: &str, most: (Option<u64>, Option<u64>)) -> Option<Budget> {
    let day = day.as_mut().filter(|day| day.name == today)?;
    day.count();
    if day.most != most {
        day.limit_to(most);
    }
    Some(day.budget.clone())
}

impl Day {
    /// Counts the usage since the last count of turns below earlier limits.
    fn count(&mut self) {
        for before in &mut self.before {
            for (meter, counted) in METERED.into_iter().zip(&mut before.counted) {
                let spent = before.budget.spent(meter);
                // Passing a limit here ends the next turn before it begins.
                let _ = self.budget.bill(meter, spent.saturating_sub(*counted));
                *counted = spent.max(*counted);
            }
        }
    }

    /// Sets limits for later turns; the day's usage stays.
    fn limit_to(&mut self, most: (Option<u64>, Option<u64>)) {
        let budget = Budget::root(Level::Tenant, caps(most));
        let counted = METERED.map(|meter| self.budget.spent(meter));
        for (meter, spent) in METERED.into_iter().zip(counted) {
            let _ = budget.bill(meter, spent);
        }
        let budget = std::mem::replace(&mut self.budget, budget);
        self.before.push(Before { budget, counted });
        self.most = most;
    }
}

fn caps((tokens, fuel): (Option<u64>, Option<u64>)) -> Caps {
    let mut caps = Caps::unlimited();
    for (meter, limit) in METERED.into_iter().zip([tokens, fuel]) {
        caps = limit.map_or(caps, |limit| caps.with(meter, limit));
    }
    caps
}

/// The numbers of turns that may run, and that may run or wait.
fn sizes(limits: &ServiceLimits) -> (usize, usize) {
    let turns = limits.concurrent_turns.max(1);
    (turns, turns.saturating_add(limits.queued_turns).min(Semaphore::MAX_PERMITS))
}

/// Changes the size of a semaphore. A smaller size is reached as permits return.
fn resize(semaphore: &Arc<Semaphore>, was: usize, is: usize) {
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

/// The beginning of the next day in UTC, and the time until then.
fn next_day(now: Timestamp) -> (Timestamp, Duration) {
    let seconds = now.as_second();
    let begins = seconds.saturating_sub(seconds.rem_euclid(DAY)).saturating_add(DAY);
    let wait = u64::try_from(begins.saturating_sub(seconds)).unwrap_or(0);
    (Timestamp::from_second(begins).unwrap_or(now), Duration::from_secs(wait))
}

fn bill(budget: &Budget, row: &UsageRow) {
    let amount = |n: i64| u64::try_from(n).unwrap_or(0);
    let tokens = amount(row.input_tokens).saturating_add(amount(row.output_tokens));
    for (meter, amount) in [(Meter::Tokens, tokens), (Meter::Fuel, amount(row.fuel))] {
        // Passing a limit here ends the next turn before it begins.
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
