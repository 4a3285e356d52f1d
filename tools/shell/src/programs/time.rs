//! Points in time as `ls` and `diff` print them, in UTC.

use std::time::{Duration, SystemTime};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Older than this, `ls` prints the year instead of the time of day: half a year.
const RECENT: Duration = Duration::from_secs(31_556_952 / 2);

/// A point in time by the calendar.
struct Moment {
    year: i64,
    month: usize,
    day: u64,
    seconds: u64,
    nanos: u32,
}

impl Moment {
    /// Times before 1970 are shown as 1970.
    fn of(time: SystemTime) -> Moment {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let days = since.as_secs() / 86_400;
        // Years are counted from March, so that a leap day ends one; an era has 400 of them.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 2 } else { from_march - 10 };
        let year = (year_of_era + era * 400 + u64::from(month <= 1)).cast_signed();
        Moment {
            year,
            month: usize::try_from(month).unwrap_or_default(),
            day,
            seconds: since.as_secs() % 86_400,
            nanos: since.subsec_nanos(),
        }
    }

    fn clock(&self) -> (u64, u64, u64) {
        (self.seconds / 3_600, self.seconds / 60 % 60, self.seconds % 60)
    }
}

/// `Jan  5 10:30`, or `Jan  5  2020` where that is long ago.
pub(super) fn short(time: SystemTime, now: SystemTime) -> String {
    let moment = Moment::of(time);
    let month = MONTHS.get(moment.month).copied().unwrap_or_default();
    let is_recent = now.duration_since(time).is_ok_and(|age| age < RECENT);
    if is_recent {
        let (hours, minutes, _) = moment.clock();
        format!("{month} {:2} {hours:02}:{minutes:02}", moment.day)
    } else {
        format!("{month} {:2}  {}", moment.day, moment.year)
    }
}

/// `2024-01-05 10:30:00.000000000 +0000`.
pub(super) fn long(time: SystemTime) -> String {
    let moment = Moment::of(time);
    let (hours, minutes, seconds) = moment.clock();
    format!(
        "{}-{:02}-{:02} {hours:02}:{minutes:02}:{seconds:02}.{:09} +0000",
        moment.year,
        moment.month + 1,
        moment.day,
        moment.nanos
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn the_calendar_is_right_around_leap_days_and_centuries() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00.000000000 +0000"),
            (951_782_399, "2000-02-28 23:59:59.000000000 +0000"),
            (951_782_400, "2000-02-29 00:00:00.000000000 +0000"),
            (1_709_164_800, "2024-02-29 00:00:00.000000000 +0000"),
            (1_735_689_599, "2024-12-31 23:59:59.000000000 +0000"),
            (4_107_542_400, "2100-03-01 00:00:00.000000000 +0000"),
        ] {
            assert_eq!(long(at(seconds)), expected);
        }
    }

    #[test]
    fn an_old_time_shows_its_year() {
        let now = at(1_735_689_600);
        assert_eq!(short(at(1_735_689_000), now), "Dec 31 23:50");
        assert_eq!(short(at(1_577_836_800), now), "Jan  1  2020");
    }
}
