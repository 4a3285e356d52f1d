//! Whole numbers as integers: `5.0` and `1e1` are integers in JSON Schema, and several models and
//! languages write theirs so. A strict reader of integers takes neither.
//!
//! A number is rewritten digit by digit and never by way of a float, so none changes its value: what
//! has a fraction, what is beyond 64 bits and what is no number of JSON stays as it came, and the
//! reader says what is wrong with it.
//!
//! - [`by_schema`] rewrites the numbers that stand where a schema asks for an integer, and no other.
//! - [`everywhere`] and [`Wholes`] rewrite each one, for messages that are read into types, whose
//!   floats take integers too. They leave what a float does not hold exactly (beyond 2^53).

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

/// The largest integer up to which a float of 64 bits holds each one.
const EXACT: u64 = 1 << 53;

/// Bytes of a number that is looked at. One that is longer is left as it is.
const MAX_NUMBER: usize = 64;

/// Bytes by which a message may grow: `1e9` is longer when it is written out. What comes after that
/// stays as it is.
const MAX_GROWTH: usize = 4 << 10;

/// How deep arguments are followed, which is deeper than tools take.
const MAX_DEPTH: usize = 64;

/// Schemas that one place of the arguments may have, `anyOf` and references followed.
const MAX_SCHEMAS: usize = 16;

/// Schemas that are looked at in all, so that neither large arguments nor a large schema makes much
/// of the other.
const MAX_STEPS: usize = 100_000;

/// The text with each number written as an integer that is whole, and that a float holds exactly. As it
/// came where there is none.
pub fn everywhere(text: &[u8]) -> Cow<'_, [u8]> {
    if !has_candidate(text) {
        return Cow::Borrowed(text);
    }
    let (mut wholes, mut out) = (Wholes::default(), Vec::with_capacity(text.len()));
    wholes.push(text, &mut out);
    wholes.end(&mut out);
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// As [`everywhere`], for messages that come in pieces, one a line. It keeps back the number that a piece
/// ends in, at most 64 bytes.
#[derive(Debug, Default)]
pub struct Wholes {
    quoted: bool,
    escaped: bool,
    /// The number that is being read.
    held: Vec<u8>,
    /// It was too long, and goes by as it is.
    passing: bool,
    grown: usize,
}

impl Wholes {
    /// Takes a piece, and adds what is decided by now to `out`.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        for byte in piece {
            if !self.quoted && is_of_number(*byte) {
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
                // The next message: no text of JSON has a bare line end in it.
                b'\n' => *self = Self::default(),
                _ => {}
            }
            out.push(*byte);
        }
    }

    /// Nothing follows: adds what was kept back.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.number_ends(out);
        *self = Self::default();
    }

    fn number_ends(&mut self, out: &mut Vec<u8>) {
        self.passing = false;
        if self.held.is_empty() {
            return;
        }
        let more = |whole: &Whole| whole.text.len().saturating_sub(self.held.len());
        let negative_zero = |whole: &Whole| whole.magnitude == 0 && self.held.starts_with(b"-");
        let whole = integer(&self.held).filter(|whole| {
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
            None => out.append(&mut self.held),
        }
    }
}

/// The number that a value is, if it is a whole one that is not negative, however it was written.
pub fn unsigned(value: &Value) -> Option<u64> {
    let whole = || integer(value.as_number()?.to_string().as_bytes());
    value.as_u64().or_else(|| whole()?.text.parse().ok())
}

/// Whether a text may have a number in it that is written as a float.
pub fn may_have(text: &str) -> bool {
    has_candidate(text.as_bytes())
}

/// The arguments with each number written as an integer that is whole and for which the schema asks for
/// an integer. As they came where there is none, and where they are no JSON.
pub fn by_schema<'t>(arguments: &'t str, schema: &Value) -> Cow<'t, str> {
    if !has_candidate(arguments.as_bytes())
        || serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err()
    {
        return Cow::Borrowed(arguments);
    }
    let mut walk = Walk {
        text: arguments.as_bytes(),
        at: 0,
        root: schema,
        edits: Vec::new(),
        steps: 0,
        grown: 0,
    };
    let mut of_all = Vec::new();
    walk.gather(schema, &mut of_all, MAX_DEPTH);
    walk.value(&of_all, 0);
    if walk.edits.is_empty() {
        return Cow::Borrowed(arguments);
    }
    let (mut out, mut from) = (String::with_capacity(arguments.len()), 0);
    for (range, whole) in walk.edits {
        out.push_str(arguments.get(from..range.start).unwrap_or_default());
        out.push_str(&whole);
        from = range.end;
    }
    out.push_str(arguments.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// A walk through a text that is JSON, beside the schemas of each place.
struct Walk<'t, 's> {
    text: &'t [u8],
    at: usize,
    root: &'s Value,
    /// The numbers that are written otherwise, in the order of the text.
    edits: Vec<(Range<usize>, String)>,
    /// Schemas that were looked at.
    steps: usize,
    grown: usize,
}

impl<'s> Walk<'_, 's> {
    fn value(&mut self, schemas: &[&'s Value], depth: usize) {
        self.blanks();
        match self.peek() {
            Some(b'{') if depth < MAX_DEPTH => self.object(schemas, depth),
            Some(b'[') if depth < MAX_DEPTH => self.array(schemas, depth),
            Some(b'{' | b'[') => self.pass(),
            Some(b'"') => drop(self.string()),
            Some(byte) if is_of_number(byte) && !byte.is_ascii_alphabetic() => self.number(schemas),
            // `true`, `false`, `null`.
            Some(_) => {
                while self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
                    self.at += 1;
                }
            }
            None => {}
        }
        self.blanks();
    }

    fn object(&mut self, schemas: &[&'s Value], depth: usize) {
        self.at += 1;
        loop {
            self.blanks();
            match self.peek() {
                Some(b'"') => {
                    let name = self.string();
                    self.blanks();
                    // The colon.
                    self.at += 1;
                    let below = self.members(schemas, name.as_deref().unwrap_or_default());
                    self.value(&below, depth + 1);
                }
                Some(b',') => self.at += 1,
                _ => {
                    self.at += 1;
                    return;
                }
            }
        }
    }

    fn array(&mut self, schemas: &[&'s Value], depth: usize) {
        self.at += 1;
        let mut place = 0;
        loop {
            self.blanks();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    place += 1;
                }
                Some(b']') | None => {
                    self.at += 1;
                    return;
                }
                Some(_) => {
                    let below = self.items(schemas, place);
                    self.value(&below, depth + 1);
                }
            }
        }
    }

    fn number(&mut self, schemas: &[&'s Value]) {
        let from = self.at;
        while self.peek().is_some_and(is_of_number) {
            self.at += 1;
        }
        let number = self.text.get(from..self.at).unwrap_or_default();
        let Some(whole) = integer(number).filter(|whole| asks_for_integer(schemas, whole)) else {
            return;
        };
        let more = whole.text.len().saturating_sub(number.len());
        if self.grown + more <= MAX_GROWTH {
            self.grown += more;
            self.edits.push((from..self.at, whole.text));
        }
    }

    /// Reads a string; `None` = a name that is no text, or that no schema has.
    fn string(&mut self) -> Option<String> {
        let from = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += match byte {
                b'\\' => 2,
                _ => 1,
            };
            if byte == b'"' {
                break;
            }
        }
        serde_json::from_slice(self.text.get(from..self.at)?).ok()
    }

    /// Goes past what nests too deep.
    fn pass(&mut self) {
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open = open.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return;
            }
        }
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The schemas of a member of an object.
    fn members(&mut self, schemas: &[&'s Value], name: &str) -> Vec<&'s Value> {
        let mut below = Vec::new();
        for schema in schemas {
            let own = schema.get("properties").and_then(|all| all.get(name));
            if let Some(schema) = own.or_else(|| schema.get("additionalProperties")) {
                self.gather(schema, &mut below, MAX_DEPTH);
            }
        }
        below
    }

    /// The schemas of an item of an array.
    fn items(&mut self, schemas: &[&'s Value], place: usize) -> Vec<&'s Value> {
        let mut below = Vec::new();
        for schema in schemas {
            let own = |list: &str| schema.get(list).and_then(|all| all.get(place));
            let own = own("prefixItems").or_else(|| own("items"));
            let rest = || schema.get("items").filter(|items| items.is_object());
            if let Some(schema) = own.or_else(rest) {
                self.gather(schema, &mut below, MAX_DEPTH);
            }
        }
        below
    }

    /// Adds a schema, and those that hold at the same place.
    fn gather(&mut self, schema: &'s Value, all: &mut Vec<&'s Value>, depth: usize) {
        self.steps += 1;
        let known = all.iter().any(|known| std::ptr::eq(*known, schema));
        if depth == 0 || known || all.len() >= MAX_SCHEMAS || self.steps > MAX_STEPS {
            return;
        }
        all.push(schema);
        if let Some(at) = schema.get("$ref").and_then(Value::as_str)
            && let Some(schema) = at.strip_prefix('#').and_then(|at| self.root.pointer(at))
        {
            self.gather(schema, all, depth - 1);
        }
        for choice in ["allOf", "anyOf", "oneOf"] {
            for schema in schema.get(choice).and_then(Value::as_array).into_iter().flatten() {
                self.gather(schema, all, depth - 1);
            }
        }
    }
}

/// Whether schemas of one place ask for an integer, and none for any number.
fn asks_for_integer(schemas: &[&Value], whole: &Whole) -> bool {
    let has = |name: &str| {
        schemas.iter().filter_map(|schema| schema.get("type")).any(|kind| match kind {
            Value::Array(kinds) => kinds.iter().any(|kind| kind == name),
            kind => kind == name,
        })
    };
    // One of some values: the integer itself stands among them.
    let listed = || {
        let lists = schemas.iter().filter_map(|schema| schema.get("enum")?.as_array());
        let alone = schemas.iter().filter_map(|schema| schema.get("const"));
        lists
            .flatten()
            .chain(alone)
            .filter_map(|value| Some(value.as_number()?.to_string()))
            .any(|number| number == whole.text)
    };
    !has("number") && (has("integer") || listed())
}

/// Whether a text may have a number in it that is written as a float.
fn has_candidate(text: &[u8]) -> bool {
    text.windows(2).any(|pair| match pair {
        [digit, b'.' | b'e' | b'E'] => digit.is_ascii_digit(),
        b"-0" => true,
        _ => false,
    })
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E')
}

/// A number that is whole.
struct Whole {
    text: String,
    magnitude: u64,
}

/// The integer that a number of JSON is which is written with a fraction or an exponent, or `-0`. `None`
/// = it is written as an integer, it is none, or none that 64 bits hold.
fn integer(number: &[u8]) -> Option<Whole> {
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
        return Some(Whole { text: "0".to_owned(), magnitude: 0 });
    }
    // Where the point stands among the digits that count.
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
        false => Some(Whole { text, magnitude }),
        true => (magnitude <= i64::MIN.unsigned_abs())
            .then(|| Whole { text: format!("-{text}"), magnitude }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn whole(text: &str) -> String {
        String::from_utf8(everywhere(text.as_bytes()).into_owned()).unwrap()
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
            assert_eq!(unsigned(&value), expected, "{value}");
        }
    }

    #[test]
    fn what_stands_in_a_text_stays() {
        let text = r#"{"a":"5.0 \" 1e1","b":[1.0,{"c.0":2.0}],"d":"\\","e":3.0}"#;
        let expected = r#"{"a":"5.0 \" 1e1","b":[1,{"c.0":2}],"d":"\\","e":3}"#;
        assert_eq!(whole(text), expected);
        assert!(matches!(everywhere(br#"{"a":"5.0"}"#), Cow::Borrowed(_)));
    }

    #[test]
    fn a_message_grows_by_no_more_than_a_bound() {
        let many = format!("[{}]", vec!["1e15"; 100_000].join(","));
        let read = whole(&many);
        assert!(read.len() <= many.len() + MAX_GROWTH, "{}", read.len());
        assert!(read.starts_with("[1000000000000000,"));
        // The next one has a bound of its own.
        let (mut wholes, mut out) = (Wholes::default(), Vec::new());
        wholes.push(many.as_bytes(), &mut out);
        wholes.push(b"\n1e15\n", &mut out);
        assert!(out.ends_with(b"\n1000000000000000\n"));
    }

    #[test]
    fn an_argument_is_an_integer_where_the_schema_asks_for_one() {
        let schema = json!({
            "type": "object",
            "properties": {
                "limit": {"type": "integer"},
                "maybe": {"type": ["integer", "null"]},
                "ratio": {"type": "number"},
                "either": {"anyOf": [{"type": "integer"}, {"type": "number"}]},
                "any": {},
                "list": {"type": "array", "items": {"$ref": "#/$defs/place"}},
                "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "number"}]},
                "one": {"enum": [1, 2, "x"]},
            },
            "additionalProperties": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
            "$defs": {"place": {"allOf": [{"properties": {"line": {"type": "integer"}}}]}},
        });
        for (given, expected) in [
            (r#"{"limit":5.0}"#, r#"{"limit":5}"#),
            (r#"{"limit" : 1e1 , "ratio":5.0}"#, r#"{"limit" : 10 , "ratio":5.0}"#),
            (r#"{"lim\u0069t":5.0}"#, r#"{"lim\u0069t":5}"#),
            (r#"{"maybe":5.0}"#, r#"{"maybe":5}"#),
            (r#"{"either":5.0,"any":5.0}"#, r#"{"either":5.0,"any":5.0}"#),
            (
                r#"{"list":[{"line":1.0},{"line":"1.0"}]}"#,
                r#"{"list":[{"line":1},{"line":"1.0"}]}"#,
            ),
            (r#"{"pair":[1.0,1.0]}"#, r#"{"pair":[1,1.0]}"#),
            (r#"{"one":2.0}"#, r#"{"one":2}"#),
            (r#"{"one":3.0}"#, r#"{"one":3.0}"#),
            (r#"{"other":7.0}"#, r#"{"other":7}"#),
            (r#"{"limit":-0.0}"#, r#"{"limit":0}"#),
            (r#"{"limit":-0}"#, r#"{"limit":0}"#),
            (r#"{"limit":9007199254740993.0}"#, r#"{"limit":9007199254740993}"#),
            (r#"{"limit":1.8446744073709551615e19}"#, r#"{"limit":18446744073709551615}"#),
            (r#"{"limit":-9223372036854775808.0}"#, r#"{"limit":-9223372036854775808}"#),
        ] {
            assert_eq!(by_schema(given, &schema), expected, "{given}");
        }
        for kept in [
            r#"{"limit":5.5}"#,
            r#"{"limit":1e400}"#,
            r#"{"limit":18446744073709551616.0}"#,
            r#"{"limit":-9223372036854775809.0}"#,
            r#"{"limit":123456789012345678901234567890,"ratio":1.0}"#,
            r#"{"ratio":-0.0}"#,
            r#"{"limit":5.0"#,
            "[5.0]",
            "5.0",
        ] {
            assert_eq!(by_schema(kept, &schema), kept);
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_and_arguments_without_end_come_to_an_end() {
        let schema = json!({"$ref": "#", "anyOf": [{"$ref": "#"}], "type": "integer",
            "items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}});
        assert_eq!(by_schema("[[1.0]]", &schema), "[[1]]");
        let deep = format!("{}1.0{}", "[".repeat(120), "]".repeat(120));
        assert_eq!(by_schema(&deep, &schema), deep);
        let wide = format!("[{}]", vec!["1.0"; 200_000].join(","));
        assert!(by_schema(&wide, &schema).len() <= wide.len());
    }

    proptest! {
        #[test]
        fn how_a_message_is_cut_makes_no_difference(
            pieces in prop::collection::vec(
                prop::sample::select(vec!["1.0", "\"", "\\", "5e1", ",", "-0.0", "\n", "x", ".5", " "]), 0..12),
            size in 1_usize..9,
        ) {
            let text = pieces.concat();
            let (mut wholes, mut out) = (Wholes::default(), Vec::new());
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
            let _ = everywhere(text.as_bytes());
        }
    }
}
