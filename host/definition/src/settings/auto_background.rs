//! `auto_background` in a grant's `subagents`: how long an agent waits for a subagent before the subagent
//! continues in the background.

use std::time::Duration;

use toml::de::DeTable;

use super::schema::SettingsLoader;

/// The key.
pub(super) const KEY: &str = "auto_background";

/// The shortest wait, because less would send every subagent to the background.
const LEAST: u64 = 1;

/// The longest wait: a day, because an agent's own time limit ends before that.
const MOST: u64 = 24 * 60 * 60;

/// The value that cancels the wait of a wider section.
const NEVER: &str = "never";

/// The units of a time, each in seconds.
const UNITS: [(char, u64); 3] = [('s', 1), ('m', 60), ('h', 60 * 60)];

/// The operator's setting for how long an agent waits for a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AutoBackground {
    /// Until the subagent ends, which is the default.
    Never,
    /// This long; then the subagent continues in the background.
    After(Duration),
}

impl AutoBackground {
    /// Parses `60s`, `5m`, `1h` or `never`; `None` = invalid or out of range.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == NEVER {
            return Some(Self::Never);
        }
        let (unit, seconds) = UNITS.iter().find(|(unit, _)| text.ends_with(*unit))?;
        let number = text.strip_suffix(*unit).filter(|digits| is_number(digits))?;
        let seconds = number.parse::<u64>().ok()?.checked_mul(*seconds)?;
        (LEAST..=MOST).contains(&seconds).then(|| Self::After(Duration::from_secs(seconds)))
    }

    /// The wait; `None` = until the subagent ends.
    pub(super) fn wait_time(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::After(wait) => Some(wait),
        }
    }
}

/// Whether a text consists only of digits, because `parse` also accepts a sign.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl<'t> SettingsLoader<'_, 't, '_> {
    /// Reads `auto_background` of a grant's `subagents` in the home file.
    pub(super) fn auto_background(&mut self, subagents: &DeTable<'t>) -> Option<AutoBackground> {
        let item = subagents.get(KEY)?;
        if !self.is_home() {
            let message = format!("`{KEY}` has no place in a workspace's `belljar.toml`");
            let hint = "a workspace can only narrow: move it to `belljar.toml` at home";
            let at = self.reader.position_of(item.span());
            self.reader.findings.error_hint(at, "not-here", message, hint);
            return None;
        }
        let read = item.get_ref().as_str().and_then(AutoBackground::parse);
        read.or_else(|| {
            self.reader.report_unfit_value(
                KEY,
                item,
                "a time from \"1s\" to \"24h\", such as \"60s\" or \"5m\", or \"never\"",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_number_with_its_unit_from_a_second_to_a_day() {
        let after = |seconds| Some(AutoBackground::After(Duration::from_secs(seconds)));
        for (text, read) in [
            ("60s", after(60)),
            ("1s", after(1)),
            ("5m", after(300)),
            ("24h", after(86_400)),
            ("never", Some(AutoBackground::Never)),
        ] {
            assert_eq!(AutoBackground::parse(text), read, "{text}");
        }
        for text in [
            "",
            "s",
            "60",
            "0s",
            "0m",
            "25h",
            "86401s",
            "-1s",
            "+5s",
            " 5s",
            "5 s",
            "5S",
            "5d",
            "1.5m",
            "Never",
            "18446744073709551615h",
            "99999999999999999999s",
            "٥s",
            "5s5s",
        ] {
            assert_eq!(AutoBackground::parse(text), None, "{text}");
        }
        assert_eq!(AutoBackground::Never.wait_time(), None);
    }
}
