//! Converts earlier answers of a model to a form that a provider accepts.
//!
//! A provider checks the conversation in a request more strictly than its own output. For example, a call
//! with malformed arguments or an unusual name would make every later request of the conversation fail.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The text in place of an image whose bytes are not stored any more.
pub(crate) const LOST_IMAGE: &str = "[an image that is no longer stored]";

/// The longest tool name that both providers accept in a conversation.
const MAX_WIRE_NAME: usize = 64;

/// The arguments of an earlier call as a JSON object. Malformed arguments become an object whose field
/// `invalid_json` has the model's text.
pub(crate) fn arguments_object(arguments: &str) -> Value {
    if arguments.trim().is_empty() {
        return Value::Object(Map::new());
    }
    match belljar_received::json::from_str(arguments) {
        Ok(value @ Value::Object(_)) => value,
        Ok(_) | Err(_) => {
            let mut object = Map::new();
            object.insert("invalid_json".to_owned(), Value::String(arguments.to_owned()));
            Value::Object(object)
        }
    }
}

/// The arguments of an earlier call as JSON text. Valid arguments keep the model's own bytes, so the
/// provider's prompt cache matches.
pub(crate) fn arguments_text(arguments: &str) -> Cow<'_, str> {
    match serde_json::from_str::<Value>(arguments) {
        Ok(Value::Object(_)) => Cow::Borrowed(arguments),
        Ok(_) | Err(_) => Cow::Owned(arguments_object(arguments).to_string()),
    }
}

/// A tool's name or call's id in which each character that providers do not allow is replaced by `_`.
pub(crate) fn sanitize_identifier(text: &str, max: usize) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if text.is_empty() {
        return Cow::Borrowed("_");
    }
    if text.len() <= max && text.chars().all(allowed) {
        return Cow::Borrowed(text);
    }
    let cleaned = text.chars().map(|c| if allowed(c) { c } else { '_' });
    Cow::Owned(cleaned.take(max).collect())
}

/// A tool's name like [`sanitize_identifier`], of a length that both providers accept.
pub(crate) fn tool_name(name: &str) -> Cow<'_, str> {
    sanitize_identifier(name, MAX_WIRE_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_its_bytes_and_anything_else_becomes_an_object() {
        assert_eq!(arguments_text(r#"{"a" : 1}"#), r#"{"a" : 1}"#);
        assert_eq!(arguments_text(""), "{}");
        assert_eq!(arguments_text("[1]"), r#"{"invalid_json":"[1]"}"#);
        assert_eq!(arguments_text(r#"{"a": "#), r#"{"invalid_json":"{\"a\": "}"#);
        assert_eq!(
            arguments_text(&"[".repeat(100_000)).len(),
            100_000 + r#"{"invalid_json":""}"#.len()
        );
    }

    #[test]
    fn a_name_that_no_provider_accepts_is_made_acceptable() {
        assert_eq!(sanitize_identifier("file_read", 64), "file_read");
        assert_eq!(sanitize_identifier("functions.file read:0", 64), "functions_file_read_0");
        assert_eq!(sanitize_identifier("", 64), "_");
        assert_eq!(sanitize_identifier(&"é".repeat(100), 64).len(), 64);
    }
}
