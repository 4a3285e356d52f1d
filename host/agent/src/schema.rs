//! JSON Schemas of callers: compiled once, with bounds that hold whatever a stranger wrote.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use belljar_policy::Shown;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::limits::{MAX_CALLER_TOOL_BYTES, MAX_FORMED_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_WEIGHT};

/// Characters of a message about a value that does not fit.
const MAX_WHY: usize = 300;

/// A compiled schema. Clones share it.
#[derive(Clone)]
pub(crate) struct Schema(Arc<Validator>);

impl Schema {
    /// Compiles a schema, or says why it cannot be used. INV-283: it is small, refers to itself
    /// alone and not in a circle, and its patterns are matched in linear time, so that no value
    /// takes long to check.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        if schema.to_string().len() > MAX_CALLER_TOOL_BYTES {
            return Err(format!("has more than {MAX_CALLER_TOOL_BYTES} bytes"));
        }
        let mut known = BTreeMap::new();
        let weight = weight(schema, schema, 0, &mut known)?;
        if weight > MAX_SCHEMA_WEIGHT {
            return Err("is too large where it refers to parts of itself".to_owned());
        }
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        match options.build(schema) {
            Ok(validator) => Ok(Self(Arc::new(validator))),
            Err(error) => Err(format!("is no JSON Schema: {}", shown(&error.to_string()))),
        }
    }

    /// Whether a text is JSON that fits, or why not.
    pub(crate) fn check(&self, text: &str) -> Result<(), String> {
        if text.len() > MAX_FORMED_BYTES {
            return Err(format!("it has more than {MAX_FORMED_BYTES} bytes"));
        }
        let value: Value = belljar_received::json::from_str(text.trim())
            .map_err(|error| format!("it is not one JSON value: {error}"))?;
        self.check_value(&value)
    }

    /// The same of a value.
    pub(crate) fn check_value(&self, value: &Value) -> Result<(), String> {
        match self.0.validate(value) {
            Ok(()) => Ok(()),
            Err(error) => {
                let at = error.instance_path().to_string();
                let at = if at.is_empty() { String::new() } else { format!("at `{at}`: ") };
                Err(shown(&format!("{at}{error}")))
            }
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}

fn shown(text: &str) -> String {
    Shown::clipped(text, MAX_WHY).to_string()
}

/// The nodes of a part of a schema, those that it refers to included, as often as it does.
fn weight(
    root: &Value,
    part: &Value,
    depth: usize,
    known: &mut BTreeMap<String, Option<u64>>,
) -> Result<u64, String> {
    if depth > MAX_SCHEMA_DEPTH {
        return Err(format!("is deeper than {MAX_SCHEMA_DEPTH}"));
    }
    let mut sum = 1_u64;
    match part {
        Value::Object(map) => {
            for (key, value) in map {
                let more = match (key.as_str(), value.as_str()) {
                    ("$ref", Some(reference)) => referred(root, reference, depth, known)?,
                    ("$dynamicRef" | "$recursiveRef" | "$id" | "$anchor", Some(_)) => {
                        return Err(format!("has `{key}`, which is not supported"));
                    }
                    _ => weight(root, value, depth + 1, known)?,
                };
                sum = sum.saturating_add(more);
            }
        }
        Value::Array(list) => {
            for value in list {
                sum = sum.saturating_add(weight(root, value, depth + 1, known)?);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(sum)
}

fn referred(
    root: &Value,
    reference: &str,
    depth: usize,
    known: &mut BTreeMap<String, Option<u64>>,
) -> Result<u64, String> {
    match known.get(reference) {
        Some(Some(weight)) => return Ok(*weight),
        Some(None) => return Err("refers to itself in a circle".to_owned()),
        None => {}
    }
    let part = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
    let Some(part) = part else {
        return Err(format!(
            "refers to `{}`, which is no part of it",
            Shown::clipped(reference, 60)
        ));
    };
    known.insert(reference.to_owned(), None);
    let weight = weight(root, part, depth + 1, known)?;
    known.insert(reference.to_owned(), Some(weight));
    Ok(weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn why(schema: &Value) -> String {
        Schema::compile(schema).map(drop).unwrap_err()
    }

    #[test]
    fn a_value_fits_or_it_is_said_where_it_does_not() {
        let schema = json!({
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/n"}},
            "required": ["n"],
            "additionalProperties": false,
            "$defs": {"n": {"type": "integer"}},
        });
        let schema = Schema::compile(&schema).unwrap();
        assert_eq!(schema.check(" {\"n\": 1}\n"), Ok(()));
        assert!(schema.check("{\"n\": \"1\"}").unwrap_err().starts_with("at `/n`: "));
        assert!(schema.check("```json\n{}\n```").unwrap_err().contains("not one JSON value"));
        assert!(schema.check("{}").unwrap_err().contains('n'));
    }

    /// INV-283.
    #[test]
    fn a_schema_that_would_take_long_is_refused() {
        let circle =
            json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"});
        assert!(why(&circle).contains("circle"));
        let mut defs = serde_json::Map::new();
        defs.insert("d0".to_owned(), json!({"type": "string"}));
        for n in 1..30 {
            let below = json!({"$ref": format!("#/$defs/d{}", n - 1)});
            defs.insert(format!("d{n}"), json!({"allOf": [below, below]}));
        }
        let doubling = json!({"$defs": defs, "$ref": "#/$defs/d29"});
        assert!(why(&doubling).contains("too large"), "{}", why(&doubling));
        assert!(why(&json!({"$ref": "https://example.com/x"})).contains("no part of it"));
        assert!(why(&json!({"$ref": "file:///etc/passwd"})).contains("no part of it"));
        assert!(why(&json!({"title": "x".repeat(1 << 20)})).contains("bytes"));
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({"items": deep});
        }
        assert!(why(&deep).contains("deeper"));
        // What another engine would try for ever is matched at once, or refused.
        let slow = json!({"type": "string", "pattern": "^(a+)+$"});
        let schema = Schema::compile(&slow).unwrap();
        assert!(schema.check(&format!("\"{}b\"", "a".repeat(20_000))).is_err());
        assert!(Schema::compile(&json!({"pattern": "(?<=a)b"})).is_err());
    }
}
