//! The times and random numbers of a repeatable call.

use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

/// The clock's step at each reading, enough for scripts that measure time. Otherwise the clock is stopped,
/// because real durations are not repeatable.
const TICK_NANOS: u64 = 1_000;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// The start values of a repeatable call: with equal values, an equal guest sees equal times and random
/// numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// The seed of the random numbers.
    pub seed: [u8; 32],
    /// The start of the call, in milliseconds since 1970.
    pub began: u64,
}

/// The repeatable course of a store's present call, if any.
#[derive(Default)]
pub(crate) struct Following(Mutex<Option<Position>>);

struct Position {
    course: Course,
    looks: u64,
    blocks: u64,
}

impl Following {
    /// INV-241: begins a call. No state of the previous call's course remains.
    pub(crate) fn begin(&self, course: Option<Course>) {
        let begun = course.map(|course| Position { course, looks: 0, blocks: 0 });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = begun;
    }

    /// Nanoseconds since 1970 in a repeatable call; `None` = not repeatable.
    pub(crate) fn now(&self) -> Option<u64> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let position = slot.as_mut()?;
        position.looks = position.looks.saturating_add(1);
        let begun = position.course.began.saturating_mul(NANOS_PER_MILLI);
        Some(begun.saturating_add(position.looks.saturating_mul(TICK_NANOS)))
    }

    /// Fills in random bytes in a repeatable call; false = not repeatable.
    pub(crate) fn fill(&self, bytes: &mut [u8]) -> bool {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(position) = slot.as_mut() else { return false };
        for chunk in bytes.chunks_mut(32) {
            let mut hasher = Sha256::new();
            hasher.update(position.course.seed);
            hasher.update(position.blocks.to_le_bytes());
            position.blocks = position.blocks.saturating_add(1);
            for (byte, random) in chunk.iter_mut().zip(hasher.finalize()) {
                *byte = random;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_course_has_the_same_times_and_numbers_and_another_has_others() {
        let course = |byte| Course { seed: [byte; 32], began: 1_700_000_000_000 };
        let seen = |course: Course| {
            let following = Following::default();
            following.begin(Some(course));
            let mut bytes = [0; 70];
            assert!(following.fill(&mut bytes));
            (following.now(), following.now(), bytes)
        };
        assert_eq!(seen(course(1)), seen(course(1)));
        assert_ne!(seen(course(1)).2, seen(course(2)).2);
        let (first, second, bytes) = seen(course(1));
        assert_eq!(first, Some(1_700_000_000_000_001_000));
        assert!(first < second);
        assert_ne!(bytes[..32], bytes[32..64]);
    }

    #[test]
    fn without_a_course_there_is_neither() {
        let following = Following::default();
        following.begin(Some(Course { seed: [1; 32], began: 1 }));
        following.begin(None);
        assert_eq!(following.now(), None);
        assert!(!following.fill(&mut [0; 4]));
    }
}
