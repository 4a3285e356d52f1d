//! Finds a secret's value in what a server sends back, or in what a tool says.
//!
//! Known forms, each in any letter case: the value itself; base64 in both alphabets, at each
//! of the three positions a longer text can put it; percent-encoded where needed or
//! everywhere; hexadecimal; escaped as in JSON and HTML; and, where the value is base64
//! itself, what it stands for. A server that transforms the value in another way on purpose
//! is not stopped: the secret was entrusted to it.
//!
//! Whoever sends the text may measure how long the search takes. So it does the same work for
//! every byte, whatever the byte and whatever the value (INV-103): a sum over each window of
//! a form's length, compared with the form's sum. No branch and no address depends on how much
//! of a form the text holds; a window is looked at only where its sum is a form's, which is
//! where the whole form stands. What the work depends on are the lengths of the forms.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// The shortest form that is looked for: a shorter one would be found by chance.
const MIN_FORM: usize = 6;

/// All forms of one value.
pub(super) struct Forms {
    /// What the sums are made with: odd, and unknown outside this process.
    base: u64,
    groups: Vec<Group>,
}

/// The forms of one length.
struct Group {
    length: usize,
    /// The base to the power of the length: what a byte counts as it leaves the window.
    leaving: u64,
    /// Sum and text, lower case.
    forms: Vec<(u64, Vec<u8>)>,
}

impl Forms {
    pub(super) fn of(value: &[u8]) -> Self {
        let mut by_length = BTreeMap::<usize, Vec<_>>::new();
        let base = RandomState::new().build_hasher().finish() | 1;
        for form in texts(value) {
            let sum = form.iter().fold(0, |sum, byte| added(sum, base, *byte));
            by_length.entry(form.len()).or_default().push((sum, form));
        }
        let group = |(length, forms)| {
            let leaving = (0..length).fold(1_u64, |power, _| power.wrapping_mul(base));
            Group { length, leaving, forms }
        };
        Self { base, groups: by_length.into_iter().map(group).collect() }
    }

    fn longest(&self) -> usize {
        self.groups.last().map_or(0, |group| group.length)
    }
}

/// The forms that are long enough, lower case.
fn texts(value: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut forms = BTreeSet::new();
    let mut add = |form: Vec<u8>| {
        if form.len() >= MIN_FORM {
            forms.insert(form.to_ascii_lowercase());
        }
    };
    add(value.to_vec());
    base64_forms(value).into_iter().for_each(&mut add);
    add(percent(value, |byte| !is_unreserved(byte)));
    add(percent(value, |_| true));
    add(value.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect());
    add(escaped(value, json_escape));
    add(escaped(value, |byte| (byte == b'/').then(|| "\\/".to_owned())));
    add(escaped(value, |byte| Some(format!("\\u{byte:04x}"))));
    add(escaped(value, html_escape));
    if let Ok(inner) = STANDARD.decode(value).or_else(|_| URL_SAFE_NO_PAD.decode(value)) {
        add(inner);
    }
    forms
}

fn added(sum: u64, base: u64, byte: u8) -> u64 {
    sum.wrapping_mul(base).wrapping_add(u64::from(byte))
}

impl Group {
    /// Moves the window over the text from `from` on, before which stand at least as many bytes
    /// as the forms have; `seen` of those are text. Says whether a form ends in it.
    fn pass(&self, base: u64, sum: &mut u64, text: &[u8], from: usize, seen: usize) -> bool {
        let behind = from.saturating_sub(self.length);
        let (leaves, enters) = (text.get(behind..), text.get(from..));
        let (leaves, enters) = (leaves.unwrap_or_default(), enters.unwrap_or_default());
        let mut window = *sum;
        let mut found = false;
        // Windows that begin before the text does are no windows.
        let early = self.length.saturating_sub(1).saturating_sub(seen);
        for (at, (old, new)) in leaves.iter().zip(enters).enumerate() {
            let left = u64::from(*old).wrapping_mul(self.leaving);
            window = added(window, base, *new).wrapping_sub(left);
            for (sum, form) in &self.forms {
                if *sum == window && at >= early {
                    // Equal sums are equal texts but for chance, which this takes away.
                    let place = behind.saturating_add(at).saturating_add(1);
                    let end = place.saturating_add(self.length);
                    found |= text.get(place..end).is_some_and(|text| text == form);
                }
            }
        }
        *sum = window;
        found
    }
}

/// Searches a text piece by piece, so that a value in two pieces is found too. What was found
/// is told at the end only.
pub(super) struct Scanner<'a> {
    forms: Vec<&'a Forms>,
    /// Of each group of each of them, the sum of the window that ended last.
    sums: Vec<u64>,
    /// The last bytes, lower case, as many as the longest form has; zeros before the text.
    tail: Vec<u8>,
    seen: usize,
    found: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn of(forms: Vec<&'a Forms>) -> Self {
        let sums = forms.iter().flat_map(|forms| &forms.groups).map(|_| 0).collect();
        let longest = forms.iter().map(|forms| forms.longest()).max().unwrap_or(0);
        Self { forms, sums, tail: vec![0; longest], seen: 0, found: false }
    }

    /// Takes a piece. Costs a copy of the tail, so pieces should not be small.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let from = self.tail.len();
        self.tail.extend(piece.iter().map(u8::to_ascii_lowercase));
        let groups = self.forms.iter().flat_map(|f| f.groups.iter().map(|group| (f.base, group)));
        for ((base, group), sum) in groups.zip(&mut self.sums) {
            self.found |= group.pass(base, sum, &self.tail, from, self.seen);
        }
        self.seen = self.seen.saturating_add(piece.len());
        self.tail.drain(..piece.len());
    }

    /// Searches texts that have nothing to do with each other, nor with the pieces.
    pub(super) fn apart(&mut self, text: &[u8]) {
        let mut scanner = Scanner::of(self.forms.clone());
        scanner.push(text);
        self.found |= scanner.found;
    }

    pub(super) fn found(&self) -> bool {
        self.found
    }
}

/// The characters of the value that do not depend on what stands before and after it.
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

fn percent(value: &[u8], encoded: impl Fn(u8) -> bool) -> Vec<u8> {
    escaped(value, |byte| encoded(byte).then(|| format!("%{byte:02x}")))
}

fn escaped(value: &[u8], escape: impl Fn(u8) -> Option<String>) -> Vec<u8> {
    value.iter().flat_map(|b| escape(*b).map_or(vec![*b], String::into_bytes)).collect()
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn json_escape(byte: u8) -> Option<String> {
    matches!(byte, b'"' | b'\\').then(|| format!("\\{}", char::from(byte)))
}

fn html_escape(byte: u8) -> Option<String> {
    let name = match byte {
        b'&' => "&amp;",
        b'<' => "&lt;",
        b'>' => "&gt;",
        b'"' => "&quot;",
        b'\'' => "&#39;",
        _ => return None,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "s3cr\"t/+value&42";

    fn found(text: &[u8]) -> bool {
        found_by(&Forms::of(VALUE.as_bytes()), [text])
    }

    fn found_by<'a>(forms: &Forms, pieces: impl IntoIterator<Item = &'a [u8]>) -> bool {
        let mut scanner = Scanner::of(vec![forms]);
        pieces.into_iter().for_each(|piece| scanner.push(piece));
        scanner.found()
    }

    #[test]
    fn every_stated_form_is_found_inside_other_text() {
        let v = VALUE.as_bytes();
        let hex: String = v.iter().map(|b| format!("{b:02X}")).collect();
        let json = serde_json::to_string(&format!("x{VALUE}y")).unwrap();
        let percent: String = url::form_urlencoded::byte_serialize(v).collect();
        let texts = [
            format!("a{VALUE}b"),
            VALUE.to_ascii_uppercase(),
            json,
            VALUE.replace('/', "\\/"),
            v.iter().map(|b| format!("\\u{b:04X}")).collect(),
            format!("q={percent}"),
            format!("q={}", percent.to_ascii_lowercase()),
            v.iter().map(|b| format!("%{b:02x}")).collect(),
            hex,
            format!("<b>{}</b>", VALUE.replace('&', "&amp;").replace('"', "&quot;")),
        ];
        for text in texts {
            assert!(found(text.as_bytes()), "{text}");
        }
        for before in 0..4 {
            for after in 0..4 {
                let text = [vec![b'<'; before], v.to_vec(), vec![b'>'; after]].concat();
                assert!(found(STANDARD.encode(&text).as_bytes()), "{before} {after}");
                assert!(found(URL_SAFE_NO_PAD.encode(&text).as_bytes()), "{before} {after}");
            }
        }
    }

    #[test]
    fn what_a_base64_value_stands_for_is_found() {
        let forms = Forms::of(STANDARD.encode("user:password").as_bytes());
        assert!(found_by(&forms, [&b"hello user:password!"[..]]));
    }

    #[test]
    fn a_value_in_pieces_of_any_size_is_found() {
        let forms = Forms::of(VALUE.as_bytes());
        for text in [format!("before {VALUE} after"), VALUE.to_owned()] {
            for size in 1..=text.len() {
                assert!(found_by(&forms, text.as_bytes().chunks(size)), "{size}");
            }
        }
    }

    #[test]
    fn a_value_that_lacks_a_byte_at_either_end_is_not_found() {
        let forms = Forms::of(VALUE.as_bytes());
        for end in 0..VALUE.len() {
            let (start, rest) = VALUE.split_at(end);
            for text in [start, rest, &format!("{start}.{rest}"), &rest.repeat(3)] {
                let whole = text.contains(VALUE);
                assert_eq!(found_by(&forms, [text.as_bytes()]), whole, "{text}");
                assert_eq!(found_by(&forms, text.as_bytes().chunks(1)), whole, "{text}");
            }
        }
    }

    #[test]
    fn a_form_that_begins_with_zeros_is_not_found_before_the_text() {
        let forms = Forms::of(STANDARD.encode(b"\0\0\0\0abcd").as_bytes());
        assert!(!found_by(&forms, [&b"abcd"[..]]));
        assert!(found_by(&forms, [&b"\0\0\0"[..], b"\0abcd"]));
    }

    proptest::proptest! {
        #[test]
        fn a_form_is_found_exactly_where_a_plain_search_finds_one(
            value in "[aAbB%1]{8,12}",
            text in "[aAbB%1]{0,200}",
            size in 1_usize..40,
        ) {
            let low = text.to_ascii_lowercase();
            let plain = texts(value.as_bytes()).iter().any(|form| {
                low.as_bytes().windows(form.len()).any(|window| window == form)
            });
            let forms = Forms::of(value.as_bytes());
            proptest::prop_assert_eq!(found_by(&forms, text.as_bytes().chunks(size)), plain);
        }
    }
}
