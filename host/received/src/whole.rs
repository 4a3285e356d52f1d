//! Converts whole numbers to integers. `5.0` and `1e1` are integers in JSON Schema, and several models and
//! languages write integers so, but a strict parser of integers refuses both.
//!
//! Numbers are rewritten digit by digit, never through a float, so no value changes. Fractions, numbers
//! beyond 64 bits and invalid JSON stay as they are; the parser then reports the error.
//!
//! - [`by_schema`] rewrites only numbers for which a schema demands an integer. For example, `{"n": 5.0}`
//!   becomes `{"n": 5}`.
//! - [`normalize_integers`] and [`IntegerNormalizer`] rewrite every whole number, for messages parsed into
//!   Rust types, whose floats accept integers too. Numbers beyond 2^53 stay, because a float is not exact
//!   there.

mod schema;

use std::borrow::Cow;

use serde_json::Value;

pub use schema::by_schema;

/// The largest integer up to which a 64-bit float is exact.
const EXACT: u64 = 1 << 53;

/// The most bytes of a number to rewrite; a longer number stays.
const MAX_NUMBER: usize = 64;

/// The most bytes by which a message may grow, because `1e9`, for example, gets longer. After that many,
/// numbers stay.
const MAX_GROWTH: usize = 4 << 10;

/// Writes every whole number in a JSON text as an integer, as far as a float is exact. Returns the borrowed
/// text if nothing changes.
pub fn normalize_integers(text: &[u8]) -> Cow<'_, [u8]> {
    if !has_float_notation(text) {
        return Cow::Borrowed(text);
    }
    let (mut wholes, mut out) = (IntegerNormalizer::default(), Vec::with_capacity(text.len()));
    wholes.push(text, &mut out);
    wholes.end(&mut out);
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// Does the same as [`normalize_integers`] for a stream of messages, each on a line. Stores a number at the
/// end of a piece, at most 64 bytes, until the next piece.
#[derive(Debug, Default)]
pub struct IntegerNormalizer {
    quoted: bool,
    escaped: bool,
    /// The bytes of the number being read.
    held: Vec<u8>,
    /// Whether the number being read is too long, so that its bytes pass unchanged.
    passing: bool,
    grown: usize,
    /// Set by [`IntegerNormalizer::without_infinite`].
    infinite_as_text: bool,
}

impl IntegerNormalizer {
    /// Makes a normalizer that also writes a number beyond every float, for example `1e400`, as a text. A
    /// strict parser would refuse the whole message, and the sender would get no answer; this way a receiver
    /// refuses only the text in place of a number.
    pub fn without_infinite() -> Self {
        Self { infinite_as_text: true, ..Self::default() }
    }

    /// Converts a piece of the stream; appends bytes to `out` as soon as they are final.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        for byte in piece {
            if !self.quoted && is_number_byte(*byte) {
                match self.passing {
                    true => out.push(*byte),
                    false => self.held.push(*byte),
                }
                if self.held.len() > MAX_NUMBER {
                    self.passing = true;
                    out.append(&mut self.held);
                }
                continue;
            }
            self.number_ends(out);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.quoted => self.escaped = true,
                b'"' => self.quoted = !self.quoted,
                // A new message begins, because JSON strings cannot contain a bare line end.
                b'\n' => self.reset_state(),
                _ => {}
            }
            out.push(*byte);
        }
    }

    /// Ends the stream: appends the stored bytes.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.number_ends(out);
        self.reset_state();
    }

    fn reset_state(&mut self) {
        *self = Self { infinite_as_text: self.infinite_as_text, ..Self::default() };
    }

    /// Writes the number that has just ended. An integral number such as `1e2` is written as `100`, if the
    /// text does not grow too much. A number that is too large for a float may be written as a string. All
    /// others are written unchanged.
    fn number_ends(&mut self, out: &mut Vec<u8>) {
        self.passing = false;
        if self.held.is_empty() {
            return;
        }
        let more = |whole: &WholeNumber| whole.text.len().saturating_sub(self.held.len());
        let negative_zero =
            |whole: &WholeNumber| whole.magnitude == 0 && self.held.starts_with(b"-");
        let whole = parse_integer(&self.held).filter(|whole| {
            whole.magnitude <= EXACT
                && !negative_zero(whole)
                && self.grown + more(whole) <= MAX_GROWTH
        });
        match whole {
            Some(whole) => {
                self.grown += more(&whole);
                out.extend_from_slice(whole.text.as_bytes());
                self.held.clear();
            }
            None if self.infinite_as_text && is_infinite(&self.held) && self.grown < MAX_GROWTH => {
                self.grown += 2;
                out.push(b'"');
                out.append(&mut self.held);
                out.push(b'"');
            }
            None => out.append(&mut self.held),
        }
    }
}

/// Whether the bytes are a JSON number beyond every float.
fn is_infinite(number: &[u8]) -> bool {
    let text = std::str::from_utf8(number).unwrap_or_default();
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && text.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// The value as `u64`, if it is a whole number and not negative; `5.0` counts as 5.
pub fn to_unsigned(value: &Value) -> Option<u64> {
    let whole = || parse_integer(value.as_number()?.to_string().as_bytes());
    value.as_u64().or_else(|| whole()?.text.parse().ok())
}

/// Whether a text may contain a whole number that is not written as an integer, for example `5.0`, `1e1` or
/// `-0`.
pub fn may_contain_float(text: &str) -> bool {
    has_float_notation(text.as_bytes())
}

/// Whether the bytes may contain a whole number that is not written as an integer, for example `5.0`, `1e1`
/// or `-0`.
fn has_float_notation(text: &[u8]) -> bool {
    text.windows(2).any(|pair| match pair {
        [digit, b'.' | b'e' | b'E'] => digit.is_ascii_digit(),
        b"-0" => true,
        _ => false,
    })
}

fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E')
}

/// A whole number: as text, and its absolute value.
struct WholeNumber {
    text: String,
    magnitude: u64,
}

/// Converts a JSON number with a fraction or an exponent, or `-0`, to an integer. `None`: the number is an
/// integer already, not whole, or beyond 64 bits.
fn parse_integer(number: &[u8]) -> Option<WholeNumber> {
    let text = std::str::from_utf8(number).ok().filter(|text| text.len() <= MAX_NUMBER)?;
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (before, after) = match mantissa.split_once('.') {
        Some((before, after)) => (before, Some(after)),
        None => (mantissa, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let leads = before.len() > 1 && before.starts_with('0');
    if !digits(before) || leads || after.is_some_and(|after| !digits(after)) {
        return None;
    }
    let is_float = exponent.is_some() || after.is_some() || (negative && before == "0");
    let exponent = match exponent {
        None => 0,
        Some(written) => {
            let unsigned = written.strip_prefix(['+', '-']).unwrap_or(written);
            if !digits(unsigned) || unsigned.len() > 4 {
                return None;
            }
            written.strip_prefix('+').unwrap_or(written).parse::<i64>().ok()?
        }
    };
    if !is_float {
        return None;
    }
    let all = format!("{before}{}", after.unwrap_or_default());
    let significant = all.trim_start_matches('0');
    if significant.is_empty() {
        return Some(WholeNumber { text: "0".to_owned(), magnitude: 0 });
    }
    // The position of the decimal point among the significant digits.
    let skipped = i64::try_from(all.len() - significant.len()).ok()?;
    let point = i64::try_from(before.len()).ok()?.checked_sub(skipped)?.checked_add(exponent)?;
    let point = usize::try_from(point).ok().filter(|point| (1..=20).contains(point))?;
    let (kept, fraction) = significant.split_at(point.min(significant.len()));
    if fraction.bytes().any(|digit| digit != b'0') {
        return None;
    }
    let text = format!("{kept:0<point$}");
    let magnitude = text.parse::<u64>().ok()?;
    match negative {
        false => Some(WholeNumber { text, magnitude }),
        true => (magnitude <= i64::MIN.unsigned_abs())
            .then(|| WholeNumber { text: format!("-{text}"), magnitude }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn whole(text: &str) -> String {
        String::from_utf8(normalize_integers(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn a_whole_number_is_written_as_an_integer_and_no_other_changes() {
        for (number, expected) in [
            ("5.0", "5"),
            ("-5.0", "-5"),
            ("1e1", "10"),
            ("1E+1", "10"),
            ("10e-1", "1"),
            ("1.50e1", "15"),
            ("0.5e1", "5"),
            ("0.0", "0"),
            ("0e9999", "0"),
            ("9007199254740992.0", "9007199254740992"),
        ] {
            assert_eq!(whole(number), expected, "{number}");
        }
        for kept in [
            "5",
            "-5",
            "0",
            "-0",
            "-0.0",
            "1.5",
            "15e-1",
            "1e-1",
            "1e400",
            "1e99999",
            "-1e400",
            "9007199254740993.0",
            "1e20",
            "01.0",
            "1.",
            ".5",
            "1e",
            "1e+",
            "--1.0",
            "1.0.0",
            "+1.0",
        ] {
            assert_eq!(whole(kept), kept);
        }
    }

    #[test]
    fn a_value_is_a_number_without_sign_where_it_is_whole() {
        for (value, expected) in [
            (json!(5), Some(5)),
            (json!(5.0), Some(5)),
            (json!(1e3), Some(1_000)),
            (json!(u64::MAX), Some(u64::MAX)),
            (json!(5.5), None),
            (json!(-5), None),
            (json!(-5.0), None),
            (json!(1e30), None),
            (json!("5"), None),
            (json!(null), None),
        ] {
            assert_eq!(to_unsigned(&value), expected, "{value}");
        }
    }

    #[test]
    fn a_number_that_no_float_holds_is_a_text_where_that_is_asked_for() {
        let (mut wholes, mut out) = (IntegerNormalizer::without_infinite(), Vec::new());
        wholes.push(b"[1e400,-1e400,1e1,\"1e400\",1e-400,1e308]\n{\"a\":1e999}\n", &mut out);
        let expected = "[\"1e400\",\"-1e400\",10,\"1e400\",1e-400,1e308]\n{\"a\":\"1e999\"}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn what_stands_in_a_text_stays() {
        let text = r#"{"a":"5.0 \" 1e1","b":[1.0,{"c.0":2.0}],"d":"\\","e":3.0}"#;
        let expected = r#"{"a":"5.0 \" 1e1","b":[1,{"c.0":2}],"d":"\\","e":3}"#;
        assert_eq!(whole(text), expected);
        assert!(matches!(normalize_integers(br#"{"a":"5.0"}"#), Cow::Borrowed(_)));
    }

    #[test]
    fn a_message_grows_by_no_more_than_a_bound() {
        let many = format!("[{}]", vec!["1e15"; 100_000].join(","));
        let read = whole(&many);
        assert!(read.len() <= many.len() + MAX_GROWTH, "{}", read.len());
        assert!(read.starts_with("[1000000000000000,"));
        // The limit is per message.
        let (mut wholes, mut out) = (IntegerNormalizer::default(), Vec::new());
        wholes.push(many.as_bytes(), &mut out);
        wholes.push(b"\n1e15\n", &mut out);
        assert!(out.ends_with(b"\n1000000000000000\n"));
    }

    proptest! {
        #[test]
        fn how_a_message_is_cut_makes_no_difference(
            pieces in prop::collection::vec(
                prop::sample::select(vec!["1.0", "\"", "\\", "5e1", ",", "-0.0", "\n", "x", ".5", " "]), 0..12),
            size in 1_usize..9,
        ) {
            let text = pieces.concat();
            let (mut wholes, mut out) = (IntegerNormalizer::default(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                wholes.push(piece, &mut out);
                prop_assert!(wholes.held.len() <= MAX_NUMBER);
            }
            wholes.end(&mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), whole(&text));
        }

        #[test]
        fn no_value_changes(number in any::<f64>().prop_filter("finite", |it| it.is_finite())) {
            let text = serde_json::to_string(&json!([number])).unwrap();
            let schema = json!({"items": {"type": "integer"}});
            for read in [whole(&text), by_schema(&text, &schema).into_owned()] {
                let read: Vec<f64> = serde_json::from_str(&read).unwrap();
                prop_assert_eq!(read[0], number);
            }
        }

        #[test]
        fn any_text_is_looked_through_without_a_panic(text in any::<String>()) {
            let _ = by_schema(&text, &json!({"type": "integer", "items": {"type": "integer"}}));
            let _ = normalize_integers(text.as_bytes());
        }
    }
}
