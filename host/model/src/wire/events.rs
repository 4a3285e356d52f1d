//! Parses the data of a stream's event, also as relays and proxies change streams: keep-alives of every form,
//! and unannounced errors.

use serde_json::Value;

use crate::ModelError;
use crate::text::quote_text;
use crate::wire::failure;

/// The names of events that only keep a connection open.
const KEEP_ALIVES: [&str; 4] = ["ping", "heartbeat", "keepalive", "keep-alive"];

/// The most bytes of data that is no JSON and still counts as a keep-alive.
const MAX_WORD: usize = 64;

/// The JSON of an event; `None` if the event only keeps the connection open.
///
/// # Errors
/// When the event reports a failure, or does not follow the protocol.
pub(crate) fn parse_event(name: &str, data: &str) -> Result<Option<Value>, ModelError> {
    let text = data.trim();
    let is_error = name.eq_ignore_ascii_case("error");
    if text.is_empty() || KEEP_ALIVES.iter().any(|word| name.eq_ignore_ascii_case(word)) {
        return Ok(None);
    }
    match serde_json::from_str::<Value>(text) {
        // Gemini sends its errors in a list.
        Ok(Value::Array(items)) => read_object(items.into_iter().next(), is_error),
        Ok(value) => read_object(Some(value), is_error),
        Err(_) if is_error || starts_with_error(text) => Err(failure::in_stream(&text.into())),
        Err(_) if text.len() <= MAX_WORD && !text.starts_with(['{', '[', '"', '<']) => Ok(None),
        Err(error) => Err(ModelError::Protocol {
            // The position of the error is left out, because it refers to a line of the server's and does not
            // help.
            message: format!("an event is not of its protocol ({:?} error)", error.classify()),
        }),
    }
}

/// The object of an event, or the error that it reports; anything other than an object is ignored unless the
/// event is an error.
fn read_object(value: Option<Value>, is_error: bool) -> Result<Option<Value>, ModelError> {
    match value {
        Some(value @ Value::Object(_)) => match failure::reported_error(&value, is_error) {
            Some(error) => Err(error),
            None => Ok(Some(value)),
        },
        Some(Value::String(text)) if is_error => Err(failure::in_stream(&text.into())),
        Some(_) | None if is_error => Err(ModelError::Provider {
            kind: quote_text("error"),
            message: "no reason given".to_owned(),
            transient: false,
        }),
        Some(_) | None => Ok(None),
    }
}

fn starts_with_error(text: &str) -> bool {
    text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error"))
}
