//! The time and the random numbers of a run. They are passed in, so tests can fix both.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The wall clock and the source of random ids. Timeouts run on tokio's clock instead, which tests pause.
pub trait Clock: Send + Sync {
    /// Now, in UTC.
    fn now(&self) -> Timestamp;

    /// Returns a random number that reveals nothing about earlier numbers, because one generator makes the
    /// ids of all tenants.
    fn random_number(&self) -> u32;
}

/// Nanoseconds of a millisecond: five digits in base 16.
const NANOS_OF_A_MILLISECOND: u32 = 1_000_000;

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// A clock for tests that stands still. Its random numbers count up.
#[derive(Debug)]
pub struct FixedClock {
    now: Timestamp,
    next: AtomicU32,
}

/// The id of a run or a named row: the UTC time in milliseconds, then the nanoseconds and a random number, so
/// that ids sort by time as text, and no id reveals the number of others. Ids of older programs, with a
/// shorter suffix, stay valid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct RunId(Arc<str>);

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn random_number(&self) -> u32 {
        // INV-113: random numbers are a keyed hash of a counter. If ids showed a plain counter, or a
        // generator whose state can be found, the reader of some ids could count the ids in between.
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let hash = KEY.hash_one(NEXT.fetch_add(1, Ordering::Relaxed));
        // Either half of the hash would do.
        u32::try_from(hash >> 32).unwrap_or_default()
    }
}

impl FixedClock {
    /// A clock that always returns `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { now, next: AtomicU32::new(0) }
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn random_number(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

impl RunId {
    /// A new id.
    pub fn new(clock: &dyn Clock) -> Self {
        let now = clock.now();
        let time = now.strftime("%Y%m%dT%H%M%S%3fZ");
        let within = now.subsec_nanosecond().unsigned_abs() % NANOS_OF_A_MILLISECOND;
        Self(format!("{time}-{within:05x}{:08x}", clock.random_number()).into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for RunId {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_process_sort_in_the_order_made() {
        let ids: Vec<RunId> = (0..1000).map(|_| RunId::new(&SystemClock)).collect();
        // Two ids may have the same time, so the order is not strict.
        let time = |id: &RunId| id.as_str()[..id.as_str().len() - 8].to_owned();
        assert!(ids.iter().map(time).is_sorted(), "{ids:?}");
    }

    #[test]
    fn ids_do_not_tell_how_many_were_made_between_them() {
        // The suffixes of one tenant's ids, with 0, 1 or 100 ids of other tenants between each two.
        for others in [0, 1, 100] {
            let own: Vec<u32> = (0..200)
                .map(|_| {
                    (0..others).for_each(|_| drop(RunId::new(&SystemClock)));
                    let id = RunId::new(&SystemClock);
                    let (_, suffix) = id.as_str().rsplit_once('-').unwrap();
                    u32::from_str_radix(&suffix[5..], 16).unwrap()
                })
                .collect();
            // No difference between two suffixes repeats, and they go up as often as down.
            let gaps: Vec<i64> =
                own.windows(2).map(|two| i64::from(two[1]) - i64::from(two[0])).collect();
            let distinct: std::collections::HashSet<_> = gaps.iter().collect();
            assert!(distinct.len() > 190, "{others}: {gaps:?}");
            let up = gaps.iter().filter(|gap| **gap > 0).count();
            assert!((50..=150).contains(&up), "{others}: {up} of {}", gaps.len());
        }
    }

    #[test]
    fn ids_of_older_programs_sort_among_the_others_by_time() {
        let old = RunId::from("20261120T100000000Z-7fffffff".to_owned());
        let before = FixedClock::new("2026-11-20T09:59:59.999999999Z".parse().unwrap());
        let after = FixedClock::new("2026-11-20T10:00:00.001Z".parse().unwrap());
        assert!(RunId::new(&before) < old && old < RunId::new(&after));
    }

    #[test]
    fn ids_sort_by_time_and_differ_within_a_millisecond() {
        let early = FixedClock::new("2026-11-20T09:59:59.999Z".parse().unwrap());
        let late = FixedClock::new("2026-11-20T10:00:00Z".parse().unwrap());
        let ids = [RunId::new(&early), RunId::new(&early), RunId::new(&late)];
        assert!(ids[0] < ids[1] && ids[1] < ids[2], "{ids:?}");
        assert_eq!(ids[0].as_str(), "20261120T095959999Z-0000000000000");
    }
}
