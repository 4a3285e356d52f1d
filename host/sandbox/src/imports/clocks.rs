//! The clocks of guests. They show real time in steps of a millisecond; in a repeatable call, the simulated
//! time of its [`CallCourse`](crate::CallCourse).
//!
//! A tool needs the date, and how long it waited. Finer steps are withheld, because they would help to
//! measure the host's caches and other guests.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

use crate::jar::course::CourseFollower;

const STEP: Duration = Duration::from_millis(1);
const STEP_NANOS: u64 = 1_000_000;

/// The clock that shows the date.
pub(crate) struct StoreWallClock(pub(crate) Arc<CourseFollower>);

/// The clock that shows the time since the store opened. It starts at one step, because Go's runtime takes a
/// clock that shows zero for broken.
pub(crate) struct StoreMonotonicClock(pub(crate) Instant, pub(crate) Arc<CourseFollower>);

impl HostWallClock for StoreWallClock {
    fn resolution(&self) -> Duration {
        STEP
    }

    fn now(&self) -> Duration {
        if let Some(nanos) = self.0.course_time() {
            return Duration::from_nanos(nanos);
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Duration::from_millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
    }
}

impl HostMonotonicClock for StoreMonotonicClock {
    fn resolution(&self) -> u64 {
        STEP_NANOS
    }

    fn now(&self) -> u64 {
        if let Some(nanos) = self.1.course_time() {
            return nanos;
        }
        let millis = u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX);
        millis.saturating_add(1).saturating_mul(STEP_NANOS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_new_store_does_not_read_zero() {
        assert!(StoreMonotonicClock(Instant::now(), Arc::default()).now() >= STEP_NANOS);
    }
}
