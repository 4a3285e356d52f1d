//! Converts numbers in a call's arguments according to the tool's JSON Schema.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use super::{MAX_GROWTH, WholeNumber, has_float_notation, is_number_byte, parse_integer};

/// The deepest nesting of arguments that is converted; tools accept less.
const MAX_DEPTH: usize = 64;

/// The most schemas followed for a value, through `anyOf` and references.
const MAX_SCHEMAS: usize = 16;

/// The most schemas visited in all, so that large arguments and a large schema do not multiply.
const MAX_STEPS: usize = 100_000;

/// Writes each whole number in the arguments as an integer if the schema demands an integer there. Returns
/// the text unchanged if there is no such number or the JSON is invalid.
pub fn by_schema<'t>(arguments: &'t str, schema: &Value) -> Cow<'t, str> {
    if !has_float_notation(arguments.as_bytes())
        || serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err()
    {
        return Cow::Borrowed(arguments);
    }
    let mut walk = SchemaWalk {
        text: arguments.as_bytes(),
        at: 0,
        root: schema,
        edits: Vec::new(),
        steps: 0,
        grown: 0,
    };
    let mut of_all = Vec::new();
    walk.gather_schemas(schema, &mut of_all, MAX_DEPTH);
    walk.walk_value(&of_all, 0);
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

/// A walk through a JSON text, with the schemas for the value at each position.
struct SchemaWalk<'t, 's> {
    text: &'t [u8],
    /// The position of the next byte.
    at: usize,
    root: &'s Value,
    /// The replaced numbers, in the order of the text.
    edits: Vec<(Range<usize>, String)>,
    /// How many schemas were visited.
    steps: usize,
    grown: usize,
}

impl<'s> SchemaWalk<'_, 's> {
    fn walk_value(&mut self, schemas: &[&'s Value], depth: usize) {
        self.skip_blanks();
        match self.peek() {
            Some(b'{') if depth < MAX_DEPTH => self.walk_object(schemas, depth),
            Some(b'[') if depth < MAX_DEPTH => self.walk_array(schemas, depth),
            Some(b'{' | b'[') => self.skip_nested(),
            Some(b'"') => drop(self.read_string()),
            Some(byte) if is_number_byte(byte) && !byte.is_ascii_alphabetic() => {
                self.walk_number(schemas)
            }
            // `true`, `false` or `null`.
            Some(_) => {
                while self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
                    self.at += 1;
                }
            }
            None => {}
        }
        self.skip_blanks();
    }

    fn walk_object(&mut self, schemas: &[&'s Value], depth: usize) {
        self.at += 1;
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'"') => {
                    let name = self.read_string();
                    self.skip_blanks();
                    // Skips the colon.
                    self.at += 1;
                    let below = self.member_schemas(schemas, name.as_deref().unwrap_or_default());
                    self.walk_value(&below, depth + 1);
                }
                Some(b',') => self.at += 1,
                _ => {
                    self.at += 1;
                    return;
                }
            }
        }
    }

    /// Walks the items of an array, each with the schemas for its position.
    fn walk_array(&mut self, schemas: &[&'s Value], depth: usize) {
        self.at += 1;
        let mut place = 0;
        loop {
            self.skip_blanks();
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
                    let below = self.item_schemas(schemas, place);
                    self.walk_value(&below, depth + 1);
                }
            }
        }
    }

    /// Skips a number. If a schema asks for an integer and the number is one in another notation, records an
    /// edit.
    fn walk_number(&mut self, schemas: &[&'s Value]) {
        let from = self.at;
        while self.peek().is_some_and(is_number_byte) {
            self.at += 1;
        }
        let number = self.text.get(from..self.at).unwrap_or_default();
        let Some(whole) = parse_integer(number).filter(|whole| asks_for_integer(schemas, whole))
        else {
            return;
        };
        let more = whole.text.len().saturating_sub(number.len());
        if self.grown + more <= MAX_GROWTH {
            self.grown += more;
            self.edits.push((from..self.at, whole.text));
        }
    }

    /// Reads a string; `None`: the string is malformed.
    fn read_string(&mut self) -> Option<String> {
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

    /// Skips a value that nests too deeply.
    fn skip_nested(&mut self) {
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.read_string();
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

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The schemas for a member of an object.
    fn member_schemas(&mut self, schemas: &[&'s Value], name: &str) -> Vec<&'s Value> {
        let mut below = Vec::new();
        for schema in schemas {
            if let Some(own) = schema.get("properties").and_then(|all| all.get(name)) {
                self.gather_schemas(own, &mut below, MAX_DEPTH);
                continue;
            }
            // All patterns count, matching or not. That is safe, because a number becomes an integer only if
            // no schema accepts other numbers.
            let by_pattern = schema.get("patternProperties").and_then(Value::as_object);
            let others = ["additionalProperties", "unevaluatedProperties"];
            let others = others.iter().filter_map(|other| schema.get(*other));
            for schema in by_pattern.into_iter().flat_map(|all| all.values()).chain(others) {
                self.gather_schemas(schema, &mut below, MAX_DEPTH);
            }
        }
        below
    }

    /// The schemas for an item of an array.
    fn item_schemas(&mut self, schemas: &[&'s Value], place: usize) -> Vec<&'s Value> {
        let mut below = Vec::new();
        for schema in schemas {
            let own = |list: &str| schema.get(list).and_then(|all| all.get(place));
            let own = own("prefixItems").or_else(|| own("items"));
            let rest = || {
                let all = ["items", "additionalItems", "unevaluatedItems"];
                all.iter().filter_map(|all| schema.get(*all)).find(|items| items.is_object())
            };
            if let Some(schema) = own.or_else(rest) {
                self.gather_schemas(schema, &mut below, MAX_DEPTH);
            }
        }
        below
    }

    /// Adds a schema, and further schemas for the same value, for example from `anyOf`.
    fn gather_schemas(&mut self, schema: &'s Value, all: &mut Vec<&'s Value>, depth: usize) {
        self.steps += 1;
        let known = all.iter().any(|known| std::ptr::eq(*known, schema));
        if depth == 0 || known || all.len() >= MAX_SCHEMAS || self.steps > MAX_STEPS {
            return;
        }
        all.push(schema);
        for reference in ["$ref", "$dynamicRef"] {
            let at = schema.get(reference).and_then(Value::as_str);
            let at = at.and_then(|at| at.strip_prefix('#'));
            if let Some(schema) = at.and_then(|at| self.root.pointer(at)) {
                self.gather_schemas(schema, all, depth - 1);
            }
        }
        for branch in ["then", "else"] {
            if let Some(schema) = schema.get(branch) {
                self.gather_schemas(schema, all, depth - 1);
            }
        }
        for choice in ["allOf", "anyOf", "oneOf"] {
            for schema in schema.get(choice).and_then(Value::as_array).into_iter().flatten() {
                self.gather_schemas(schema, all, depth - 1);
            }
        }
    }
}

/// Whether a schema demands an integer, and no schema accepts other numbers.
fn asks_for_integer(schemas: &[&Value], whole: &WholeNumber) -> bool {
    let has = |name: &str| {
        schemas.iter().filter_map(|schema| schema.get("type")).any(|kind| match kind {
            Value::Array(kinds) => kinds.iter().any(|kind| kind == name),
            kind => kind == name,
        })
    };
    // Whether an enumeration contains the integer.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
    fn an_integer_is_one_wherever_the_schema_names_it() {
        let integer = json!({"type": "integer"});
        for schema in [
            json!({"patternProperties": {"^n": integer}}),
            json!({"unevaluatedProperties": integer}),
            json!({"if": {}, "then": {"properties": {"n": integer}}}),
            json!({"if": {}, "else": {"properties": {"n": integer}}}),
            json!({"$dynamicRef": "#/$defs/a", "$defs": {"a": {"properties": {"n": integer}}}}),
        ] {
            assert_eq!(by_schema(r#"{"n":5.00}"#, &schema), r#"{"n":5}"#, "{schema}");
        }
        for schema in [
            json!({"items": [{}], "additionalItems": integer}),
            json!({"prefixItems": [{}], "unevaluatedItems": integer}),
        ] {
            assert_eq!(by_schema("[5.0,5.0]", &schema), "[5.0,5]", "{schema}");
        }
        let either = json!({"patternProperties": {"^n": integer, "^m": {"type": "number"}}});
        assert_eq!(by_schema(r#"{"n":5.0}"#, &either), r#"{"n":5.0}"#);
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
}
