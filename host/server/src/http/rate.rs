//! Limits on the rate of a caller's requests and of an address's invalid keys: a token bucket for each,
//! refilled at a steady rate. For example, 10 requests a second allow 20 at once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The most buckets in memory. A full bucket holds no information, so full buckets are dropped first.
const MAX_BUCKETS: usize = 10_000;

/// The interval in which the last use of a key is stored: with each request, it would cost a write each
/// time.
pub(crate) const NOTE_EVERY: Duration = Duration::from_secs(60);

/// The most logins of one key in a minute, and at once. Each login is stored, and has a line in the
/// audit log for as long as the log goes back.
pub(crate) const LOGINS_PER_MINUTE: u32 = 60;

/// A token bucket for each key or address: refilled at a rate, and able to hold a number of tokens that
/// may be used at once.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    per_second: f64,
    most: f64,
    buckets: Mutex<HashMap<String, RateBucket>>,
}

#[derive(Debug, Clone, Copy)]
struct RateBucket {
    left: f64,
    at: Instant,
    noted: Option<Instant>,
}

/// Whether a request is within the rate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RateVerdict {
    /// The request is allowed. `note` is true when it is time to store the key's last use.
    Yes { note: bool },
    /// No token is left; the next one is available after this wait.
    After(Duration),
}

impl RateLimiter {
    /// Allows `count` requests per second, and twice as many at once.
    pub(crate) fn per_second(count: u32) -> Self {
        let per_second = f64::from(count.max(1));
        Self { per_second, most: 2.0 * per_second, buckets: Mutex::default() }
    }

    /// Allows `count` requests per minute, all of them at once.
    pub(crate) fn per_minute(count: u32) -> Self {
        let most = f64::from(count.max(1));
        Self { per_second: most / 60.0, most, buckets: Mutex::default() }
    }

    /// The wait until the bucket of `key` has a token; `None` if it has one now. Uses no token.
    pub(crate) fn time_to_wait(&self, key: &str, now: Instant) -> Option<Duration> {
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.requests_left(buckets.get(key)?, now);
        (left < 1.0).then(|| self.time_until_next(left))
    }

    fn requests_left(&self, bucket: &RateBucket, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + passed * self.per_second).min(self.most)
    }

    fn time_until_next(&self, left: f64) -> Duration {
        Duration::from_secs_f64((1.0 - left) / self.per_second)
    }

    /// Uses one token from the bucket of `key`.
    pub(crate) fn spend_one(&self, key: &str, now: Instant) -> RateVerdict {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(key) {
            let full = Duration::from_secs_f64(self.most / self.per_second);
            buckets.retain(|_, bucket| now.saturating_duration_since(bucket.at) < full);
            // If there are too many buckets, the fuller half is dropped: their keys have sent the
            // fewest requests. A throttled key stays throttled, however many other keys arrive.
            if buckets.len() >= MAX_BUCKETS {
                let mut lefts: Vec<f64> =
                    buckets.values().map(|bucket| self.requests_left(bucket, now)).collect();
                let middle = lefts.len() / 2;
                let (_, middle, _) = lefts.select_nth_unstable_by(middle, f64::total_cmp);
                let middle = *middle;
                buckets.retain(|_, bucket| self.requests_left(bucket, now) < middle);
            }
        }
        let new = RateBucket { left: self.most, at: now, noted: None };
        let bucket = buckets.entry(key.to_owned()).or_insert(new);
        bucket.left = self.requests_left(bucket, now);
        bucket.at = now;
        if bucket.left < 1.0 {
            return RateVerdict::After(self.time_until_next(bucket.left));
        }
        bucket.left -= 1.0;
        let note = bucket.noted.is_none_or(|at| now.saturating_duration_since(at) >= NOTE_EVERY);
        if note {
            bucket.noted = Some(now);
        }
        RateVerdict::Yes { note }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_has_taken_all_waits_and_its_neighbour_does_not() {
        let (rates, now) = (RateLimiter::per_second(2), Instant::now());
        assert_eq!(rates.spend_one("a", now), RateVerdict::Yes { note: true });
        for _ in 0..3 {
            assert_eq!(rates.spend_one("a", now), RateVerdict::Yes { note: false });
        }
        assert_eq!(rates.spend_one("a", now), RateVerdict::After(Duration::from_millis(500)));
        assert_eq!(rates.spend_one("b", now), RateVerdict::Yes { note: true });
        let later = now + Duration::from_millis(500);
        assert_eq!(rates.spend_one("a", later), RateVerdict::Yes { note: false });
        assert!(matches!(rates.spend_one("a", later), RateVerdict::After(_)));
        assert_eq!(rates.spend_one("a", now + NOTE_EVERY), RateVerdict::Yes { note: true });
    }

    #[test]
    fn what_a_minute_gives_is_there_at_once_and_looking_takes_none() {
        let (rates, now) = (RateLimiter::per_minute(2), Instant::now());
        for _ in 0..2 {
            assert_eq!(rates.time_to_wait("a", now), None);
            assert!(matches!(rates.spend_one("a", now), RateVerdict::Yes { .. }));
        }
        assert_eq!(rates.time_to_wait("a", now), Some(Duration::from_secs(30)));
        assert_eq!(rates.time_to_wait("b", now), None);
        assert_eq!(rates.time_to_wait("a", now + Duration::from_secs(30)), None);
    }

    #[test]
    fn whoever_is_to_wait_waits_on_however_many_others_come() {
        let (rates, now) = (RateLimiter::per_minute(4), Instant::now());
        for _ in 0..4 {
            rates.spend_one("a", now);
        }
        for key in 0..MAX_BUCKETS * 3 {
            rates.spend_one(&key.to_string(), now);
        }
        assert!(matches!(rates.spend_one("a", now), RateVerdict::After(_)));
        assert!(rates.buckets.lock().unwrap().len() <= MAX_BUCKETS);
    }

    #[test]
    fn keys_without_number_do_not_grow_the_table_without_bound() {
        let (rates, now) = (RateLimiter::per_second(2), Instant::now());
        for key in 0..MAX_BUCKETS * 2 + 1 {
            rates.spend_one(&key.to_string(), now);
        }
        assert!(rates.buckets.lock().unwrap().len() <= MAX_BUCKETS);
    }
}
