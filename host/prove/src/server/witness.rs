//! Searches everything that a server sends for paths of the host.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The number of characters around a finding in its report.
const AROUND: usize = 120;

/// The paths that no answer may contain, and the first answer that did.
#[derive(Debug, Default)]
pub(crate) struct PathWitness {
    places: Vec<String>,
    seen: Mutex<Option<String>>,
}

impl PathWitness {
    /// Creates a search for the given paths.
    pub(crate) fn new(places: &[&Path]) -> Self {
        let places = places.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        Self { places, seen: Mutex::default() }
    }

    /// Searches the bytes of an answer, and keeps the first finding with the text around it.
    pub(crate) fn inspect_bytes(&self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        for place in &self.places {
            if let Some((before, behind)) = text.split_once(place.as_str()) {
                let before: String = before.chars().rev().take(AROUND).collect();
                let before: String = before.chars().rev().collect();
                let behind: String = behind.chars().take(AROUND).collect();
                let found = format!("an answer names a place of the host: {before}{place}{behind}");
                self.seen.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(found);
            }
        }
    }

    /// Returns the finding since the last call, if there is one.
    pub(crate) fn take_finding(&self) -> Option<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_seen_once() {
        let witness = PathWitness::new(&[Path::new("/srv/data")]);
        witness.inspect_bytes(b"nothing of /srv");
        assert_eq!(witness.take_finding(), None);
        witness.inspect_bytes(b"it is `/srv/data/x`");
        assert!(witness.take_finding().unwrap().contains("/srv/data/x"));
        assert_eq!(witness.take_finding(), None);
    }
}
