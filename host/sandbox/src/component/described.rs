//! Checks the answer of a component's `describe`: a stranger's text that every later request to a model
//! repeats.
//!
//! An answer that breaks a rule is refused as a whole, because a component with one false statement is not
//! trusted. The module needs no engine, so that the fuzzer can compile it.

use std::collections::BTreeSet;
use std::time::Duration;

use belljar_policy::{ShownText, ToolName};
use serde_json::Value;

use crate::component::tool_info::{ToolHints, ToolInfo};
use crate::json::check_json;

/// The most bytes of a tool's name, by the contract.
const MAX_NAME: usize = 64;

/// The limits of running `describe`, and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescribeLimits {
    /// Fuel. Default: 10 G, enough for the start of a Python runtime.
    pub fuel: u64,
    /// The bytes of linear memory and tables. Default: 256 MiB, one slot of the pool.
    pub memory_bytes: u64,
    /// The wall time. Default: 5 seconds.
    pub time: Duration,
    /// The most tools of a component. Default: 64, more than a model chooses among well.
    pub tools: usize,
    /// The most bytes of a description. Default: 16 KiB, because every request to a model repeats it.
    pub description_bytes: usize,
    /// The most bytes of a schema. Default: 64 KiB.
    pub schema_bytes: usize,
}

/// A tool as its component describes it, not yet checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolClaim {
    pub(crate) name: String,
    pub(crate) description: String,
    /// A JSON Schema of the arguments, as text.
    pub(crate) schema: String,
    pub(crate) hints: ToolHints,
}

impl Default for DescribeLimits {
    fn default() -> Self {
        Self {
            fuel: 10_000_000_000,
            memory_bytes: 256 << 20,
            time: Duration::from_secs(5),
            tools: 64,
            description_bytes: 16 << 10,
            schema_bytes: 64 << 10,
        }
    }
}

/// Checks all descriptions of a component. The error is a text for the tool's author.
pub(crate) fn check_claims(
    claims: Vec<ToolClaim>,
    limits: &DescribeLimits,
) -> Result<Vec<ToolInfo>, String> {
    if claims.is_empty() {
        return Err("it offers no tool".to_owned());
    }
    if claims.len() > limits.tools {
        return Err(format!("{} tools, and at most {} are accepted", claims.len(), limits.tools));
    }
    let mut names = BTreeSet::new();
    let mut tools = Vec::with_capacity(claims.len());
    for claim in claims {
        let tool = check_one(claim, limits)?;
        if !names.insert(tool.name.clone()) {
            return Err(format!("two tools are named `{}`", tool.name));
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn check_one(claim: ToolClaim, limits: &DescribeLimits) -> Result<ToolInfo, String> {
    let ToolClaim { name, description, schema, hints } = claim;
    let name = check_name(&name)?;
    let wrong = |what: String| format!("tool `{name}`: {what}");
    let schema = check_words(&description, &schema, limits).map_err(wrong)?;
    Ok(ToolInfo { name, description, schema, hints })
}

/// Checks a stranger's texts about one tool: the description and the schema are within the limits and
/// contain no hidden characters, and the schema is one of an object. Returns the schema, parsed.
///
/// # Errors
///
/// A text that names the broken rule.
pub fn check_words(
    description: &str,
    schema: &str,
    limits: &DescribeLimits,
) -> Result<Value, String> {
    check_text(description, limits.description_bytes)?;
    check_schema(schema, limits.schema_bytes)
}

/// Checks a tool's name from a description. The error says which names are allowed.
fn check_name(name: &str) -> Result<ToolName, String> {
    let fits = name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let error = || {
        let shown = ShownText::clip_line(name, MAX_NAME);
        format!(
            "`{shown}` is not a tool name: use a small letter, then small letters, digits or `_`, at most {MAX_NAME} in all"
        )
    };
    if fits { ToolName::new(name).map_err(|_| error()) } else { Err(error()) }
}

/// Checks a description. Hidden characters are refused, because a model and the operator read it.
fn check_text(text: &str, limit: usize) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("it has no description".to_owned());
    }
    if text.len() > limit {
        return Err(format!(
            "its description has {} bytes, and at most {limit} are accepted",
            text.len()
        ));
    }
    check_visible(text, "its description")
}

fn check_visible(text: &str, what: &str) -> Result<(), String> {
    let hidden =
        |c: &char| !ShownText::multiline(c.encode_utf8(&mut [0; 4])).to_string().chars().eq([*c]);
    match text.chars().find(hidden) {
        None => Ok(()),
        Some(c) => Err(format!("{what} holds the hidden character U+{:04X}", u32::from(c))),
    }
}

fn check_schema(text: &str, limit: usize) -> Result<Value, String> {
    if text.len() > limit {
        return Err(format!(
            "its schema has {} bytes, and at most {limit} are accepted",
            text.len()
        ));
    }
    let text = &*belljar_received::json::mend_text(text);
    check_json(text).map_err(|why| format!("its schema is not JSON: {why}"))?;
    let schema: Value =
        serde_json::from_str(text).map_err(|error| format!("its schema is not JSON: {error}"))?;
    if schema.get("type") != Some(&Value::from("object")) {
        return Err("its schema is not of an object: write `\"type\": \"object\"`".to_owned());
    }
    // Checked after parsing, because escapes in JSON can hide characters.
    visible_strings(&schema)?;
    if let Err(error) = jsonschema::meta::validate(&schema) {
        let why = error.to_string();
        return Err(format!(
            "its schema is not a JSON Schema: {}",
            ShownText::clip_line(&why, 300)
        ));
    }
    Ok(schema)
}

fn visible_strings(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => check_visible(text, "its schema"),
        Value::Array(items) => items.iter().try_for_each(visible_strings),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            check_visible(key, "its schema")?;
            visible_strings(value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(name: &str, description: &str, schema: &str) -> ToolClaim {
        ToolClaim {
            name: name.to_owned(),
            description: description.to_owned(),
            schema: schema.to_owned(),
            hints: ToolHints { read_only: true, ..ToolHints::default() },
        }
    }

    const SCHEMA: &str = r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#;

    fn refused(claims: Vec<ToolClaim>) -> String {
        check_claims(claims, &DescribeLimits::default()).unwrap_err()
    }

    #[test]
    fn an_honest_answer_passes() {
        let tools = check_claims(
            vec![claim("a_1", "Does\nthings.", SCHEMA), claim("b", "Ä", SCHEMA)],
            &DescribeLimits::default(),
        )
        .unwrap();
        assert_eq!(tools[0].name.as_str(), "a_1");
        assert!(tools[0].hints.read_only && !tools[0].hints.open_world);
    }

    #[test]
    fn each_lie_is_named() {
        let ok = || claim("a", "d", SCHEMA);
        for (liar, part) in [
            (vec![], "no tool"),
            (vec![ok(), ok()], "two tools"),
            (vec![claim("A", "d", SCHEMA)], "not a tool name"),
            (vec![claim("a-b", "d", SCHEMA)], "not a tool name"),
            (vec![claim("a\u{1b}[2J", "d", SCHEMA)], "\\u{1b}"),
            (vec![claim("a", " ", SCHEMA)], "no description"),
            (vec![claim("a", "x\u{202e}y", SCHEMA)], "U+202E"),
            (vec![claim("a", "x\u{1b}[0m", SCHEMA)], "U+001B"),
            (vec![claim("a", &"x".repeat(17 << 10), SCHEMA)], "bytes"),
            (vec![claim("a", "d", "{")], "not JSON"),
            (vec![claim("a", "d", "[]")], "not of an object"),
            (vec![claim("a", "d", r#"{"type":"object","properties":3}"#)], "JSON Schema"),
            (vec![claim("a", "d", r#"{"type":"object","title":"\u202e"}"#)], "U+202E"),
            (
                vec![claim("a", "d", &format!("{{\"type\":\"object\",\"x\":{0}", "[".repeat(99)))],
                "nests",
            ),
            (vec![claim("a", "d", &format!("\"{}\"", "x".repeat(65 << 10)))], "bytes"),
            ((0..65).map(|n| claim(&format!("t{n}"), "d", SCHEMA)).collect(), "65 tools"),
        ] {
            let why = refused(liar);
            assert!(why.contains(part), "{why:?} should say {part:?}");
        }
    }
}
