//! How many requests a caller may make: one bucket for each key, refilled at a steady rate.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Most buckets that are kept. A full one says nothing, so those go first.
const MAX_BUCKETS: usize = 10_000;

/// How often the use of a key is noted in the store: seconds would cost a write for each request.
pub(crate) const NOTE_EVERY: Duration = Duration::from_secs(60);

/// What one key may do: so many requests a second, and at once as many as two seconds give.
#[derive(Debug)]
pub(crate) struct Rates {
    per_second: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
    noted: Option<Instant>,
}

/// What came of taking one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// There was one. `note`: it is time to note that the key was used.
    Yes { note: bool },
    /// There was none; there will be after this.
    After(Duration),
}

impl Rates {
    pub(crate) fn new(per_second: u32) -> Self {
        Self { per_second: f64::from(per_second.max(1)), buckets: Mutex::default() }
    }

    /// Takes one from the bucket of a key.
    pub(crate) fn take(&self, key: &str, now: Instant) -> Taken {
        let most = 2.0 * self.per_second;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(key) {
            let full = Duration::from_secs(2);
            buckets.retain(|_, bucket| now.saturating_duration_since(bucket.at) < full);
            // All of them at work: whoever comes is as good as they are.
            if buckets.len() >= MAX_BUCKETS {
                buckets.clear();
            }
        }
        let new = Bucket { left: most, at: now, noted: None };
        let bucket = buckets.entry(key.to_owned()).or_insert(new);
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + passed * self.per_second).min(most);
        bucket.at = now;
        if bucket.left < 1.0 {
            return Taken::After(Duration::from_secs_f64((1.0 - bucket.left) / self.per_second));
        }
        bucket.left -= 1.0;
        let note = bucket.noted.is_none_or(|at| now.saturating_duration_since(at) >= NOTE_EVERY);
        if note {
            bucket.noted = Some(now);
        }
        Taken::Yes { note }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_has_taken_all_waits_and_its_neighbour_does_not() {
        let (rates, now) = (Rates::new(2), Instant::now());
        assert_eq!(rates.take("a", now), Taken::Yes { note: true });
        for _ in 0..3 {
            assert_eq!(rates.take("a", now), Taken::Yes { note: false });
        }
        assert_eq!(rates.take("a", now), Taken::After(Duration::from_millis(500)));
        assert_eq!(rates.take("b", now), Taken::Yes { note: true });
        let later = now + Duration::from_millis(500);
        assert_eq!(rates.take("a", later), Taken::Yes { note: false });
        assert!(matches!(rates.take("a", later), Taken::After(_)));
        assert_eq!(rates.take("a", now + NOTE_EVERY), Taken::Yes { note: true });
    }

    #[test]
    fn keys_without_number_do_not_grow_the_table_without_bound() {
        let (rates, now) = (Rates::new(2), Instant::now());
        for key in 0..MAX_BUCKETS * 2 + 1 {
            rates.take(&key.to_string(), now);
        }
        assert!(rates.buckets.lock().unwrap().len() <= MAX_BUCKETS);
    }
}
