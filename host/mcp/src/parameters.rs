//! Arguments that are repeated in HTTP headers, as a tool's schema requires (`x-mcp-header`), so proxies can
//! route requests by them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::limits::MAX_PARAMETERS;

/// The keyword in the schema of an argument.
const KEY: &str = "x-mcp-header";

/// The prefix of such headers' names.
const PREFIX: &str = "mcp-param-";

/// The deepest nesting of arguments within objects.
const MAX_DEPTH: usize = 16;

/// An argument that is repeated in a header.
#[derive(Debug, PartialEq, Eq)]
struct MirroredArgument<'a> {
    path: Vec<&'a str>,
    header: HeaderName,
}

/// The headers for a call with the given arguments. An argument that is missing, `null` or a list, for
/// example, gets none.
pub(crate) fn argument_headers(schema: &Value, arguments: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // The accepted schema was checked before; an invalid one adds no headers.
    for mirrored in find_mirrored(schema).unwrap_or_default() {
        let value = mirrored.path.iter().try_fold(arguments, |value, key| value.get(key));
        if let Some(value) = value.and_then(header_value) {
            headers.insert(mirrored.header, value);
        }
    }
    headers
}

/// Checks the headers that a schema requires.
///
/// # Errors
/// When a header has no argument: such a tool is not offered.
pub(crate) fn check_headers(schema: &Value) -> Result<(), String> {
    let found = find_mirrored(schema)?;
    match count_keyword(schema) == found.len() {
        true => Ok(()),
        false => Err(format!("`{KEY}` stands where no argument is")),
    }
}

fn find_mirrored(schema: &Value) -> Result<Vec<MirroredArgument<'_>>, String> {
    let mut found = Vec::new();
    collect_mirrored(schema, &mut Vec::new(), &mut found)?;
    Ok(found)
}

/// Collects the arguments with a header, also those within objects; `path` is the present object's position.
fn collect_mirrored<'a>(
    schema: &'a Value,
    path: &mut Vec<&'a str>,
    found: &mut Vec<MirroredArgument<'a>>,
) -> Result<(), String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    if path.len() >= MAX_DEPTH {
        return Ok(());
    }
    for (name, property) in properties.into_iter().flatten() {
        path.push(name);
        if let Some(header) = property.get(KEY) {
            // Checked before the search for another argument with the same header, which costs time for each.
            if found.len() >= MAX_PARAMETERS {
                return Err(format!("more than {MAX_PARAMETERS} arguments would go into headers"));
            }
            let header = header_name(header)?;
            let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
            if !matches!(kind, "string" | "integer" | "boolean") {
                return Err(format!("`{KEY}` of an argument that is no text, integer or boolean"));
            }
            if found.iter().any(|other| other.header == header) {
                return Err(format!("`{KEY}` names one header twice"));
            }
            found.push(MirroredArgument { path: path.clone(), header });
        }
        collect_mirrored(property, path, found)?;
        path.pop();
    }
    Ok(())
}

/// Parses the name of a header; upper and lower case are equal.
fn header_name(name: &Value) -> Result<HeaderName, String> {
    let name = name.as_str().filter(|name| !name.is_empty());
    let header = name.and_then(|name| format!("{PREFIX}{name}").parse().ok());
    header.ok_or_else(|| format!("`{KEY}` is no name of a header"))
}

/// Counts the keyword in a schema. A key whose value is an object does not count, because the key is then the
/// name of an argument.
fn count_keyword(schema: &Value) -> usize {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                usize::from(key == KEY && !value.is_object()) + count_keyword(value)
            })
            .sum(),
        Value::Array(items) => items.iter().map(count_keyword).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The header of an argument's value; `None` for a list, an object or `null`.
fn header_value(value: &Value) -> Option<HeaderValue> {
    let text = match value {
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => encode_header(text),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    HeaderValue::from_str(&text).ok()
}

/// Encodes a text for a header: as it is if possible, otherwise in base64.
fn encode_header(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text;
    match plain && !text.starts_with("=?base64?") {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(properties: &Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn arguments_go_into_the_headers_that_the_schema_names_and_others_do_not() {
        let schema = schema(&json!({
            "a": {"type": "string", "x-mcp-header": "Region"},
            "b": {"type": "integer", "x-mcp-header": "Count"},
            "c": {"type": "boolean", "x-mcp-header": "On"},
            "d": {"type": "string", "x-mcp-header": "Method"},
            "e": {"type": "string", "x-mcp-header": "Empty"},
            "f": {"type": "string", "x-mcp-header": "Gone"},
            "g": {"type": "object", "properties": {"h": {"type": "string", "x-mcp-header": "In"}}},
            "i": {"type": "string"},
        }));
        assert_eq!(check_headers(&schema), Ok(()));
        let arguments = json!({
            "a": "Hello, 世界", "b": 42, "c": true, "d": " padded", "e": "", "f": null,
            "g": {"h": "deep down"}, "i": "no header",
        });
        let found = argument_headers(&schema, &arguments);
        let text = |name: &str| found.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(text("mcp-param-region"), Some("=?base64?SGVsbG8sIOS4lueVjA==?="));
        assert_eq!(text("mcp-param-count"), Some("42"));
        assert_eq!(text("mcp-param-on"), Some("true"));
        assert_eq!(text("mcp-param-method"), Some("=?base64?IHBhZGRlZA==?="));
        assert_eq!((text("mcp-param-empty"), text("mcp-param-gone")), (Some(""), None));
        assert_eq!((text("mcp-param-in"), found.len()), (Some("deep down"), 6));
        assert_eq!(encode_header("a\r\nHost: b"), "=?base64?YQ0KSG9zdDogYg==?=");
        assert_eq!(encode_header("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }

    #[test]
    fn a_schema_that_asks_for_headers_that_cannot_be_is_refused() {
        let one = |property: Value| schema(&json!({ "a": property }));
        for wrong in [
            one(json!({"type": "string", "x-mcp-header": ""})),
            one(json!({"type": "string", "x-mcp-header": "a b"})),
            one(json!({"type": "string", "x-mcp-header": "a:b"})),
            one(json!({"type": "string", "x-mcp-header": "é"})),
            one(json!({"type": "string", "x-mcp-header": "a\r\nb"})),
            one(json!({"type": "string", "x-mcp-header": 3})),
            one(json!({"type": "number", "x-mcp-header": "A"})),
            one(json!({"type": "object", "x-mcp-header": "A"})),
            one(json!({"type": "null", "x-mcp-header": "A"})),
            one(json!({"x-mcp-header": "A"})),
            one(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}})),
            schema(&json!({
                "a": {"type": "string", "x-mcp-header": "Same"},
                "b": {"type": "string", "x-mcp-header": "same"},
            })),
        ] {
            assert!(check_headers(&wrong).is_err(), "{wrong}");
        }
        assert_eq!(check_headers(&one(json!({"type": "string"}))), Ok(()));
        // As many as fit into one message; each would be compared with all before it.
        let many = (0..60_000)
            .map(|n| (format!("a{n}"), json!({"type": "string", "x-mcp-header": format!("H{n}")})));
        let why = check_headers(&schema(&Value::Object(many.collect()))).unwrap_err();
        assert!(why.contains("more than 32 arguments"), "{why}");
    }
}
