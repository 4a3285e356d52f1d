//! Time and randomness as the session sees them: passed in, so that tests fix them.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The wall clock and the source of random ids. Timeouts do not use it: those run on tokio's
/// clock, which tests pause.
pub trait Clock: Send + Sync {
    /// Now, in UTC.
    fn now(&self) -> Timestamp;

    /// A number that the last id did not have.
    fn random(&self) -> u32;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// A clock that stands still and counts its random numbers up: for tests.
#[derive(Debug)]
pub struct FixedClock {
    now: Timestamp,
    next: AtomicU32,
}

/// The id of a run: the time of its start in UTC to the millisecond, then a random suffix, so
/// that ids sort by time as text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct RunId(Arc<str>);

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn random(&self) -> u32 {
        // Counts from a random start: ids of one process sort by when they were made, within a
        // millisecond too, and those of two processes do not meet.
        static NEXT: LazyLock<AtomicU32> =
            LazyLock::new(|| AtomicU32::new(fastrand::u32(..u32::MAX / 2)));
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}

impl FixedClock {
    /// A clock that always says `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { now, next: AtomicU32::new(0) }
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn random(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

impl RunId {
    /// A new id.
    pub fn new(clock: &dyn Clock) -> Self {
        let time = clock.now().strftime("%Y%m%dT%H%M%S%3fZ");
        Self(format!("{time}-{:08x}", clock.random()).into())
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
        let ids: Vec<u32> = (0..1000).map(|_| SystemClock.random()).collect();
        assert!(ids.is_sorted(), "{ids:?}");
    }

    #[test]
    fn ids_sort_by_time_and_differ_within_a_millisecond() {
        let early = FixedClock::new("2026-11-20T09:59:59.999Z".parse().unwrap());
        let late = FixedClock::new("2026-11-20T10:00:00Z".parse().unwrap());
        let ids = [RunId::new(&early), RunId::new(&early), RunId::new(&late)];
        assert!(ids[0] < ids[1] && ids[1] < ids[2], "{ids:?}");
        assert_eq!(ids[0].as_str(), "20261120T095959999Z-00000000");
    }
}
