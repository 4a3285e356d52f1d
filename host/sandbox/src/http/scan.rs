//! Finds a secret's value in what a server sends back.
//!
//! Known forms, each in any letter case: the value itself; base64 in both alphabets, at each
//! of the three positions a longer text can put it; percent-encoded where needed or
//! everywhere; hexadecimal; escaped as in JSON and HTML; and, where the value is base64
//! itself, what it stands for. A server that transforms the value in another way on purpose
//! is not stopped: the secret was entrusted to it.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, BuildError};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;

/// The shortest form that is looked for: a shorter one would be found by chance.
const MIN_FORM: usize = 6;

/// All forms of one value.
pub(super) struct Forms {
    automaton: AhoCorasick,
    /// Lower case.
    forms: Vec<Vec<u8>>,
    /// The bytes with which a form begins, in either case: most bytes do not.
    begins: [bool; 256],
}

/// A form of a secret was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found;

impl Forms {
    pub(super) fn of(value: &[u8]) -> Result<Self, BuildError> {
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
        let forms: Vec<Vec<u8>> = forms.into_iter().collect();
        let automaton = AhoCorasick::builder().ascii_case_insensitive(true).build(&forms)?;
        let mut begins = [false; 256];
        for (byte, begins) in (0..=u8::MAX).zip(&mut begins) {
            let lower = byte.to_ascii_lowercase();
            *begins = forms.iter().any(|form| form.first() == Some(&lower));
        }
        Ok(Self { automaton, forms, begins })
    }

    pub(super) fn found_in(&self, bytes: &[u8]) -> bool {
        self.automaton.is_match(bytes)
    }

    /// How many of the last bytes could be the beginning of a form.
    fn unfinished(&self, bytes: &[u8]) -> usize {
        let longest = self.forms.iter().map(Vec::len).max().unwrap_or(0);
        let most = longest.saturating_sub(1).min(bytes.len());
        let window = bytes.get(bytes.len() - most..).unwrap_or_default();
        let unfinished = |from: &usize| {
            let tail = window.get(*from..).unwrap_or_default();
            tail.first().is_some_and(|byte| self.begins.get(usize::from(*byte)) == Some(&true))
                && self.forms.iter().any(|form| {
                    form.get(..tail.len()).is_some_and(|start| start.eq_ignore_ascii_case(tail))
                })
        };
        (0..most).find(unfinished).map_or(0, |from| most - from)
    }
}

/// Scans a body piece by piece. The bytes that could be the beginning of a form are kept
/// back until more comes, so that a value in two pieces is found before its first half is
/// out.
#[derive(Default)]
pub(super) struct Scanner {
    held: Bytes,
}

impl Scanner {
    /// Takes a piece; gives what may go on.
    pub(super) fn push(&mut self, forms: &[&Forms], piece: Bytes) -> Result<Bytes, Found> {
        let mut bytes = if self.held.is_empty() {
            piece
        } else {
            [&*std::mem::take(&mut self.held), &piece].concat().into()
        };
        if forms.iter().any(|forms| forms.found_in(&bytes)) {
            return Err(Found);
        }
        let held = forms.iter().map(|forms| forms.unfinished(&bytes)).max().unwrap_or(0);
        self.held = bytes.split_off(bytes.len() - held);
        Ok(bytes)
    }

    /// Gives what is left when nothing more comes.
    pub(super) fn finish(&mut self) -> Bytes {
        std::mem::take(&mut self.held)
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
        Forms::of(VALUE.as_bytes()).unwrap().found_in(text)
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
        let forms = Forms::of(STANDARD.encode("user:password").as_bytes()).unwrap();
        assert!(forms.found_in(b"hello user:password!"));
    }

    #[test]
    fn ordinary_text_passes_whole_and_at_once() {
        let forms = Forms::of(VALUE.as_bytes()).unwrap();
        let mut scanner = Scanner::default();
        let piece = Bytes::from_static(b"data: {\"a\": 1}\n\n");
        assert_eq!(scanner.push(&[&forms], piece.clone()).unwrap(), piece);
        assert_eq!(scanner.finish(), "");
    }

    #[test]
    fn a_value_in_pieces_is_found_before_any_of_it_is_out() {
        let forms = Forms::of(VALUE.as_bytes()).unwrap();
        let text = format!("before {VALUE} after");
        for size in 1..=text.len() {
            let mut scanner = Scanner::default();
            let mut out = Vec::new();
            let pieces = text.as_bytes().chunks(size).map(Bytes::copy_from_slice);
            let result = pieces.into_iter().try_for_each(|piece| {
                scanner.push(&[&forms], piece).map(|bytes| out.extend(bytes))
            });
            assert_eq!(result, Err(Found), "{size}");
            assert!(b"before ".starts_with(&out), "{size}: {out:?}");
        }
    }

    #[test]
    fn a_beginning_without_an_end_comes_out_when_the_body_ends() {
        let forms = Forms::of(VALUE.as_bytes()).unwrap();
        let mut scanner = Scanner::default();
        let half = Bytes::from_static(b"x s3cr\"t/");
        assert_eq!(scanner.push(&[&forms], half).unwrap(), "x ");
        assert_eq!(scanner.finish(), "s3cr\"t/");
    }
}
