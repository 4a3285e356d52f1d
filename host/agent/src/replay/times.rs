//! Removes times from texts before a replay compares them, because a file that is written again has another
//! time.

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Replaces each word of a time or a date by `~`, and each run of blanks by one blank, because columns move.
/// A time has a colon between digits (for example `09:41`, `09:41:07.12`). A date is a month or a weekday by
/// its short name, the day after a month, or three numbers with dashes.
pub(crate) fn without_times(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.split('\n') {
        let (mut after_month, mut after_month_day) = (false, false);
        for word in line.split([' ', '\t']).filter(|word| !word.is_empty()) {
            let month = MONTHS.contains(&word);
            let day = after_month && word.len() <= 2 && is_digits(word);
            let year = after_month_day && word.len() == 4 && is_digits(word);
            let time = month
                || day
                || year
                || is_epoch(word)
                || is_temporary(word)
                || DAYS.contains(&word)
                || is_time(word)
                || is_date(word);
            plain.push_str(if time { "~" } else { word });
            plain.push(' ');
            (after_month, after_month_day) = (month, day);
        }
        plain.push('\n');
    }
    plain
}

fn is_digits(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_time(word: &str) -> bool {
    let whole = word.split_once('.').filter(|(_, rest)| is_digits(rest)).map_or(word, |(it, _)| it);
    let parts: Vec<&str> = whole.split(':').collect();
    (2..=3).contains(&parts.len()) && parts.iter().all(|part| part.len() == 2 && is_digits(part))
}

/// Returns whether a word is a number of seconds since 1970, possibly with a fraction.
fn is_epoch(word: &str) -> bool {
    let whole = word.split_once('.').filter(|(_, rest)| is_digits(rest)).map_or(word, |(it, _)| it);
    whole.len() == 10 && is_digits(whole) && whole.starts_with('1')
}

/// Returns whether a word is the name of a temporary file of `sed -i`.
fn is_temporary(word: &str) -> bool {
    word.contains(".bashkit-sed-")
}

fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    parts.iter().map(|part| part.len()).eq([4, 2, 2]) && parts.iter().all(|part| is_digits(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_and_dates_are_the_same_but_for_their_times() {
        for (then, now) in [
            ("-rw-r--r-- 1 u g 5 Nov 23 09:41 a.txt", "-rw-r--r-- 1 u g 5 Dec  1 10:02 a.txt"),
            ("--- a\t2026-11-23 09:41:07.123 +0000\n-x", "--- a\t2026-12-01 10:00:00.5 +0000\n-x"),
            ("Mon Nov 23 09:41:07 UTC 2026", "Tue Nov 24 09:41:08 UTC 2026"),
        ] {
            assert_eq!(without_times(then), without_times(now));
        }
    }

    #[test]
    fn everything_else_still_counts() {
        for (then, now) in [
            ("5 Nov 23 09:41 a.txt", "6 Nov 23 09:41 a.txt"),
            ("a:b", "c:d"),
            ("1:2", "1:3"),
            ("12 files", "13 files"),
            ("v1-2-3", "v1-2-4"),
            ("a b", "ab"),
            ("a\nb", "a b"),
        ] {
            assert_ne!(without_times(then), without_times(now), "{then}");
        }
    }
}
