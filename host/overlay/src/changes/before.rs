//! The original state of a change, stored with an apply so that an undo can restore it.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::{ChangeOrigin, Digest, OriginalState};
use serde::{Deserialize, Serialize};

use crate::changes::ChangesError;
use crate::changes::journal::ApplyEntry;
use crate::changes::paths::AnyPath;

/// Seconds since 1970, and the nanoseconds after them.
type Time = (i64, u32);

/// The state of a file that the agent began with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RecordedOriginal {
    /// The path before all steps.
    pub(crate) place: AnyPath,
    identity: (u64, u64),
    size: u64,
    modified: Time,
    changed: Time,
    mode: u32,
    directory: bool,
    link: bool,
    hidden: Option<Time>,
    links: u64,
    digest: Option<String>,
    /// Whether the workspace's file was still in this state at the apply.
    pub(crate) same: bool,
    /// Whether the journal has the text, under this entry's index.
    pub(crate) base: bool,
}

impl RecordedOriginal {
    /// The state of a lower file before the change, in the journal's form.
    pub(crate) fn new(place: PathBuf, original: &OriginalState, same: bool, base: bool) -> Self {
        Self {
            place: AnyPath(place),
            identity: original.identity,
            size: original.size,
            modified: to_time(original.modified),
            changed: to_time(original.changed),
            mode: original.mode,
            directory: original.directory,
            link: original.link,
            hidden: original.hidden.map(to_time),
            links: original.links,
            digest: original.digest.map(|digest| digest.to_string()),
            same,
            base,
        }
    }

    /// The state for the overlay. `same` = the file has not changed since.
    pub(crate) fn to_before(
        &self,
        entry: &ApplyEntry,
        at: usize,
        same: bool,
    ) -> Result<ChangeOrigin, ChangesError> {
        let original = OriginalState {
            identity: self.identity,
            size: self.size,
            modified: from_time(self.modified),
            changed: from_time(self.changed),
            mode: self.mode,
            directory: self.directory,
            link: self.link,
            hidden: self.hidden.map(from_time),
            links: self.links,
            digest: self.digest.as_deref().and_then(Digest::from_hex),
        };
        let from = entry.base_path(at);
        let open = || File::open(&from).map_err(ChangesError::from_io("open", &from));
        let base = self.base.then(open).transpose()?;
        let same = same && self.same;
        Ok(ChangeOrigin { place: self.place.0.clone(), original: Some(original), same, base })
    }
}

/// A time in the journal's form: seconds and nanoseconds since 1970.
fn to_time(time: SystemTime) -> Time {
    let seconds = |whole: u64| i64::try_from(whole).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => (seconds(since.as_secs()), since.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            match before.subsec_nanos() {
                0 => (-seconds(before.as_secs()), 0),
                part => (-seconds(before.as_secs()) - 1, 1_000_000_000 - part),
            }
        }
    }
}

/// The system's time of a time in the journal's form.
fn from_time((seconds, nanoseconds): Time) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let epoch = SystemTime::UNIX_EPOCH;
    let begun = if seconds < 0 { epoch.checked_sub(whole) } else { epoch.checked_add(whole) };
    let time = begun.and_then(|time| time.checked_add(Duration::from_nanos(nanoseconds.into())));
    time.unwrap_or(epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_were_written_before_1970_too() {
        for time in [(0, 0), (1, 1), (-1, 0), (-1, 999_999_999), (-2, 1), (1_700_000_000, 5)] {
            assert_eq!(to_time(from_time(time)), time);
        }
    }
}
