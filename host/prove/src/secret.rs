//! The secret of an attack, which must not be seen anywhere, and the search for it.

use std::sync::{Arc, Mutex, Weak};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::lock_recovered;

/// The secret of one attack. Its value is random, so a place where it is found is due to this attack.
#[derive(Debug)]
pub(crate) struct SecretCanary {
    value: String,
    /// The value in all encodings in which it might be seen, for example base64.
    forms: Vec<String>,
    /// The first place where the value was seen.
    seen: Mutex<Option<String>>,
}

/// The secrets of all running attacks; every text that an attack causes is searched for all of them.
static LIVE: Mutex<Vec<Weak<SecretCanary>>> = Mutex::new(Vec::new());

impl SecretCanary {
    /// Makes a new secret, which is searched for as long as it exists.
    pub(crate) fn new() -> Arc<Self> {
        // The length is a multiple of three bytes, for which base64 needs no padding; so the encoded value is
        // the same within a longer text that begins at a multiple of three.
        let value: String = std::iter::repeat_with(fastrand::alphanumeric).take(36).collect();
        let hex = |byte: u8| format!("{byte:02x}");
        let percent = |byte: u8| format!("%{byte:02X}");
        let forms = vec![
            value.clone(),
            value.chars().rev().collect(),
            STANDARD_NO_PAD.encode(&value),
            URL_SAFE_NO_PAD.encode(&value),
            value.bytes().map(hex).collect(),
            value.bytes().map(percent).collect(),
        ];
        let canary = Arc::new(Self { value, forms, seen: Mutex::default() });
        let mut live = lock_recovered(&LIVE);
        live.retain(|known| known.strong_count() > 0);
        live.push(Arc::downgrade(&canary));
        canary
    }

    pub(crate) fn value(&self) -> &str {
        &self.value
    }

    /// Searches a text that was shown to someone for the value. `place` names the text in a report.
    pub(crate) fn search_text(&self, place: &str, text: &[u8]) {
        let found = self.forms.iter().any(|form| contains_bytes(text, form.as_bytes()));
        if found {
            lock_recovered(&self.seen).get_or_insert_with(|| place.to_owned());
        }
    }

    /// The first place where the value was seen.
    pub(crate) fn seen_place(&self) -> Option<String> {
        lock_recovered(&self.seen).clone()
    }
}

/// Searches a text for the secrets of all running attacks.
pub(crate) fn look_for_all(place: &str, text: &[u8]) {
    let live: Vec<_> = lock_recovered(&LIVE).iter().filter_map(Weak::upgrade).collect();
    for canary in live {
        canary.search_text(place, text);
    }
}

/// Returns whether `text` contains `needle`. The text may be a megabyte, so the first byte is searched for
/// before more is compared.
pub(crate) fn contains_bytes(text: &[u8], needle: &[u8]) -> bool {
    let Some((first, _)) = needle.split_first() else { return true };
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        let Some(here) = rest.get(at..) else { return false };
        if here.starts_with(needle) {
            return true;
        }
        rest = here.get(1..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_in_every_form_and_nowhere_else() {
        let canary = SecretCanary::new();
        canary.search_text("nowhere", b"nothing here, and nothing there");
        assert_eq!(canary.seen_place(), None);
        for form in canary.forms.clone() {
            let canary = SecretCanary { seen: Mutex::default(), ..clone(&canary) };
            canary.search_text("a line", format!("{{\"a\":\"{form}\"}}").as_bytes());
            assert_eq!(canary.seen_place().as_deref(), Some("a line"), "{form}");
        }
    }

    fn clone(canary: &SecretCanary) -> SecretCanary {
        SecretCanary {
            value: canary.value.clone(),
            forms: canary.forms.clone(),
            seen: Mutex::default(),
        }
    }
}
