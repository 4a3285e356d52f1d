//! Finds the value of a secret in a server's reply or in a tool's text.
//!
//! The forms found, each in any letter case:
//!
//! - the value itself, with each byte plain or escaped as in JSON, a URL or HTML, in any mix (see
//!   [`spelled`]);
//! - if the value is base64, the decoded value, likewise;
//! - the value in base64, in both alphabets, at each of the three positions within a longer text, and with
//!   escapes if the value is not long;
//! - the value in hexadecimal.
//!
//! A server that changes the value on purpose in another way is not stopped, because the secret was
//! entrusted to that server.
//!
//! Whoever sends the text may measure how long the search takes. So the search makes the same steps for the
//! same text, whatever the value is (INV-103): it moves a set of states as a whole for each byte and each
//! escape, and keeps a sum over each window of a form's length. No branch and no address depends on how much
//! of a form the text contains. A window is compared byte by byte only if its sum equals that of a form,
//! which happens where the whole form is. The work depends on the text and on the lengths of the forms.

mod escapes;
mod spelled;
mod sums;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use self::spelled::{SpelledTexts, TextMatcher};
use self::sums::RollingSums;

/// The least bytes of a searched form, because a shorter one would be found by chance.
const MIN_FORM: usize = 6;

/// The most bytes of a value whose base64 is also found with escapes and across line ends. These forms have
/// eight times the value's bytes, and each byte of a form costs time for every byte of text.
const MAX_SPELLED: usize = 128;

/// All searched forms of a value.
pub(crate) struct SecretForms {
    spelled: SpelledTexts,
    sums: RollingSums,
}

impl SecretForms {
    pub(crate) fn from_value(value: &[u8]) -> Self {
        let spelled = spelled_forms(value);
        let spelled = SpelledTexts::from_texts(spelled.iter().map(Vec::as_slice));
        Self { spelled, sums: RollingSums::from_texts(coded_forms(value)) }
    }
}

/// The forms found with plain or escaped bytes.
fn spelled_forms(value: &[u8]) -> BTreeSet<Vec<u8>> {
    let inner = STANDARD.decode(value).or_else(|_| URL_SAFE_NO_PAD.decode(value));
    let coded = if value.len() <= MAX_SPELLED { base64_forms(value) } else { Vec::new() };
    long_enough([value.to_vec()].into_iter().chain(inner.ok()).chain(coded))
}

/// The forms found without escapes only.
fn coded_forms(value: &[u8]) -> BTreeSet<Vec<u8>> {
    let hex = value.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
    let coded = if value.len() <= MAX_SPELLED { Vec::new() } else { base64_forms(value) };
    long_enough(coded.into_iter().chain([hex]))
}

/// Drops forms that are too short, and converts the others to lower case.
fn long_enough(forms: impl Iterator<Item = Vec<u8>>) -> BTreeSet<Vec<u8>> {
    let forms = forms.filter(|form| form.len() >= MIN_FORM);
    forms.map(|form| form.to_ascii_lowercase()).collect()
}

/// A search for several values in a text that comes in pieces; a value across two pieces is found too. Ask
/// for the result at the end only.
pub(crate) struct SecretScanner<'a> {
    searches: Vec<SecretSearch<'a>>,
    /// The end of the text so far, in lower case: as many bytes as the longest form of [`coded_forms`] has.
    /// Before the text, zeros.
    tail: Vec<u8>,
    /// The number of bytes read so far.
    seen: usize,
    /// Whether a secret was found.
    found: bool,
}

/// The search for one value.
struct SecretSearch<'a> {
    forms: &'a SecretForms,
    reading: TextMatcher,
    windows: Vec<u64>,
}

impl<'a> SecretScanner<'a> {
    pub(crate) fn for_forms(forms: Vec<&'a SecretForms>) -> Self {
        let longest = forms.iter().map(|forms| forms.sums.longest_length()).max().unwrap_or(0);
        let searches = forms.into_iter().map(SecretSearch::for_forms).collect();
        Self { searches, tail: vec![0; longest], seen: 0, found: false }
    }

    /// Searches the next piece of the text. Each call copies the tail, so pieces should not be small.
    pub(crate) fn push_piece(&mut self, piece: &[u8]) {
        let from = self.tail.len();
        self.tail.extend(piece.iter().map(u8::to_ascii_lowercase));
        for search in &mut self.searches {
            self.found |= search.search_text(&self.tail, from, self.seen);
        }
        self.seen = self.seen.saturating_add(piece.len());
        self.tail.drain(..piece.len());
    }

    /// Searches a text of its own, for example a header, which does not continue the pieces.
    pub(crate) fn search_apart(&mut self, text: &[u8]) {
        let mut scanner =
            SecretScanner::for_forms(self.searches.iter().map(|search| search.forms).collect());
        scanner.push_piece(text);
        self.found |= scanner.found;
    }

    pub(crate) fn has_match(&self) -> bool {
        self.found
    }
}

impl<'a> SecretSearch<'a> {
    fn for_forms(forms: &'a SecretForms) -> Self {
        Self { forms, reading: forms.spelled.to_matcher(), windows: forms.sums.zero_windows() }
    }

    /// Searches `text` from the position `from` on. `seen` bytes of the stream were searched before.
    fn search_text(&mut self, text: &[u8], from: usize, seen: usize) -> bool {
        self.reading.push_text(&self.forms.spelled, text.get(from..).unwrap_or_default());
        let coded = self.forms.sums.move_windows(&mut self.windows, text, from, seen);
        self.reading.has_match() | coded
    }
}

/// The base64 of a value at each of the three positions, without the characters that depend on the bytes
/// before and after it.
fn base64_forms(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for (before, dropped) in [(0, 0), (1, 2), (2, 3)] {
        let padded = [vec![0; before], value.to_vec()].concat();
        for text in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            let whole = if padded.len().is_multiple_of(3) { text.len() } else { text.len() - 1 };
            forms.push(text.as_bytes().get(dropped..whole).unwrap_or_default().to_vec());
        }
    }
    forms
}

#[cfg(test)]
mod tests;
