//! Finds texts in which each byte may be plain or escaped, in any mix. For example `a%62c` and `\u0061bc`
//! both match `abc`.
//!
//! The search keeps a set of states: one bit for each byte of the texts. A bit is set if the input so far
//! ends with the text's beginning up to that byte, in some spelling. Each input byte moves the whole set by
//! one row of a table; so does each escape, from the set as it was before the escape. In this way all
//! readings of an input are followed at once: what may be an escape is also searched as plain text.
//!
//! INV-103: the input alone decides which rows are used and how often. No bit of the set decides about a
//! branch or an address.

use super::escapes::{EscapeEffect, PartialEscape};

/// How many escapes may be open at a time. A byte of an escape may be escaped itself: in `%26quot%3B`, an
/// HTML quote is inside a URL. More layers than this are not decoded.
const MAX_OPEN: usize = 4;

/// The texts to find, one after the other, as a table of bits.
pub(crate) struct SpelledTexts {
    /// For each byte value, the positions where the texts have that byte: one bit per byte of the texts.
    rows: Vec<u64>,
    /// The positions of the texts' first bytes, and of their last bytes.
    first: Vec<u64>,
    last: Vec<u64>,
}

/// A running search for [`SpelledTexts`].
pub(crate) struct TextMatcher {
    set: Vec<u64>,
    /// The set as it was before the last input byte.
    before: Vec<u64>,
    /// The unfinished escapes, the innermost last; only the first `count` are in use.
    open: [OpenEscape; MAX_OPEN],
    count: usize,
    /// The last bytes of the texts that were found so far.
    met: Vec<u64>,
}

/// An escape that has begun and not ended.
struct OpenEscape {
    escape: PartialEscape,
    /// The set as it was before the escape.
    before: Vec<u64>,
}

impl SpelledTexts {
    /// Prepares the search. The texts must be in lower case.
    pub(crate) fn from_texts<'a>(texts: impl IntoIterator<Item = &'a [u8]> + Clone) -> Self {
        let bytes = texts.clone().into_iter().map(<[u8]>::len).sum::<usize>();
        let words = bytes.div_ceil(64);
        let mut rows = vec![0; words.saturating_mul(256)];
        let (mut first, mut last) = (vec![0; words], vec![0; words]);
        let mut at = 0_usize;
        for text in texts {
            set_bit(&mut first, at);
            for byte in text {
                set_bit(row_mut(&mut rows, words, *byte), at);
                if *byte == b' ' {
                    // Forms and queries of URLs write a blank as `+`.
                    set_bit(row_mut(&mut rows, words, b'+'), at);
                }
                at = at.saturating_add(1);
            }
            set_bit(&mut last, at.saturating_sub(1));
        }
        Self { rows, first, last }
    }

    pub(crate) fn to_matcher(&self) -> TextMatcher {
        let none = || vec![0; self.first.len()];
        let open = || OpenEscape { escape: PartialEscape::Backslash, before: none() };
        let open = std::array::from_fn(|_| open());
        TextMatcher { set: none(), before: none(), open, count: 0, met: none() }
    }

    fn byte_row(&self, byte: u8) -> &[u64] {
        let words = self.first.len();
        let from = usize::from(byte).saturating_mul(words);
        self.rows.get(from..from.saturating_add(words)).unwrap_or_default()
    }
}

fn row_mut(rows: &mut [u64], words: usize, byte: u8) -> &mut [u64] {
    let from = usize::from(byte).saturating_mul(words);
    rows.get_mut(from..from.saturating_add(words)).unwrap_or_default()
}

fn set_bit(words: &mut [u64], bit: usize) {
    if let Some(word) = words.get_mut(bit / 64) {
        *word |= 1 << (bit % 64);
    }
}

impl TextMatcher {
    /// Searches further input, which must be in lower case.
    pub(crate) fn push_text(&mut self, spelled: &SpelledTexts, text: &[u8]) {
        for byte in text {
            std::mem::swap(&mut self.set, &mut self.before);
            self.set.fill(0);
            advance_states(spelled, *byte, &self.before, &mut self.set, &mut self.met);
            if self.count > 0 || matches!(byte, b'\\' | b'%' | b'&' | b'\r' | b'\n') {
                self.advance_escapes(spelled, *byte);
            }
        }
    }

    /// Whether a text was found.
    pub(crate) fn has_match(&self) -> bool {
        self.met.iter().any(|met| *met != 0)
    }

    /// Passes a byte to the open escapes, and opens a new one if the byte begins an escape.
    fn advance_escapes(&mut self, spelled: &SpelledTexts, mut byte: u8) {
        // The slot of the escape that ended with this byte; `None`: the byte is plain.
        let mut ended = None;
        loop {
            if matches!(byte, b'\\' | b'\r' | b'\n') {
                // A backslash may belong to the escape of the next byte (in JSON inside JSON there are
                // several), and a line end may be inside base64. So the states before this byte stay
                // possible.
                let ended = ended.and_then(|place: usize| self.open.get(place));
                or_words(&mut self.set, ended.map_or(&self.before, |open| &open.before));
            }
            if let Some(escape) = PartialEscape::begun_by(byte) {
                return self.begin_escape(escape, ended);
            }
            let Some(place) = self.count.checked_sub(1) else { return };
            let Some(open) = self.open.get_mut(place) else { return };
            match open.escape.push_byte(byte) {
                EscapeEffect::Open(escape) => return open.escape = escape,
                EscapeEffect::Nothing => return self.count = 0,
                EscapeEffect::Is(stands_for) => {
                    byte = stands_for.to_ascii_lowercase();
                    advance_states(spelled, byte, &open.before, &mut self.set, &mut self.met);
                    (self.count, ended) = (place, Some(place));
                }
            }
        }
    }

    /// Opens an escape. It begins with the last input byte, or with the escape in the slot `ended`, which
    /// stands for such a byte, for example `%5C` for a backslash.
    fn begin_escape(&mut self, escape: PartialEscape, ended: Option<usize>) {
        let innermost = self.count.checked_sub(1).and_then(|place| self.open.get(place));
        let again = escape == PartialEscape::Backslash
            && innermost.is_some_and(|open| open.escape == PartialEscape::Backslash);
        let place = match self.count {
            // The second of two backslashes was the byte the first escapes.
            count if again => count.saturating_sub(1),
            // There are too many open escapes, so all are given up.
            MAX_OPEN => 0,
            count => count,
        };
        match ended {
            Some(ended) => self.open.swap(ended, place),
            None => {
                if let Some(open) = self.open.get_mut(place) {
                    open.before.copy_from_slice(&self.before);
                }
            }
        }
        if let Some(open) = self.open.get_mut(place) {
            open.escape = escape;
        }
        self.count = place.saturating_add(1);
    }
}

fn or_words(to: &mut [u64], from: &[u64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
}

/// Adds to `to` the states that one byte reaches from the states `before`.
fn advance_states(
    spelled: &SpelledTexts,
    byte: u8,
    before: &[u64],
    to: &mut [u64],
    met: &mut [u64],
) {
    let mut carried = 0;
    let texts = spelled.byte_row(byte).iter().zip(&spelled.first).zip(&spelled.last);
    let sets = before.iter().zip(to).zip(met);
    for (((before, to), met), ((row, first), last)) in sets.zip(texts) {
        // Shifting also moves the last bit of a text to the first of the next. That does no harm, because
        // the first bit of every text is set in any case.
        let moved = (before << 1 | carried | first) & row;
        carried = before >> 63;
        *to |= moved;
        *met |= moved & last;
    }
}
