//! Simulated time and random numbers, for calls that can be repeated with the same result.

use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

/// How far each reading moves the simulated clock, in nanoseconds: enough for scripts that divide by a
/// measured time. Between readings the clock does not move, because real durations are not repeatable.
const TICK_NANOS: u64 = 1_000;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// The start values of a repeatable call. With equal values, the same guest reads the same times and random
/// numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCourse {
    /// The seed of the random numbers.
    pub seed: [u8; 32],
    /// The time at which the call starts, in milliseconds since 1970.
    pub began: u64,
}

/// The simulated clock and random numbers of a store's running call; `None` inside if the call is not
/// repeatable.
#[derive(Default)]
pub(crate) struct CourseFollower(Mutex<Option<CoursePosition>>);

/// How far a repeatable call has come: its readings of the clock, and the blocks of random bytes it used.
struct CoursePosition {
    course: CallCourse,
    looks: u64,
    blocks: u64,
}

impl CourseFollower {
    /// INV-241: begins a call, with a new simulation or none. Nothing of the previous call's simulation
    /// remains.
    pub(crate) fn begin_call(&self, course: Option<CallCourse>) {
        let begun = course.map(|course| CoursePosition { course, looks: 0, blocks: 0 });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = begun;
    }

    /// Reads the simulated clock, in nanoseconds since 1970: the start of the call, plus [`TICK_NANOS`] for
    /// each reading. `None`: the call is not repeatable.
    pub(crate) fn course_time(&self) -> Option<u64> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let position = slot.as_mut()?;
        position.looks = position.looks.saturating_add(1);
        let begun = position.course.began.saturating_mul(NANOS_PER_MILLI);
        Some(begun.saturating_add(position.looks.saturating_mul(TICK_NANOS)))
    }

    /// Fills `bytes` with random bytes that follow from the seed. `false`: the call is not repeatable, and
    /// `bytes` is unchanged.
    pub(crate) fn fill_random(&self, bytes: &mut [u8]) -> bool {
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
        let course = |byte| CallCourse { seed: [byte; 32], began: 1_700_000_000_000 };
        let seen = |course: CallCourse| {
            let following = CourseFollower::default();
            following.begin_call(Some(course));
            let mut bytes = [0; 70];
            assert!(following.fill_random(&mut bytes));
            (following.course_time(), following.course_time(), bytes)
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
        let following = CourseFollower::default();
        following.begin_call(Some(CallCourse { seed: [1; 32], began: 1 }));
        following.begin_call(None);
        assert_eq!(following.course_time(), None);
        assert!(!following.fill_random(&mut [0; 4]));
    }
}
