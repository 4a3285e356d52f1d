//! Converts error answers and broken connections to [`ModelError`]s.

use std::error::Error as _;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::ModelError;
use crate::text::quote_text;
use crate::wire::context;

/// The error for a status other than success. `body` is the part of the body that was read.
pub(crate) fn from_status(status: u16, retry_after: Option<Duration>, body: &str) -> ModelError {
    let value: Option<Value> = serde_json::from_str(body).ok();
    let message = value.as_ref().and_then(message_in).unwrap_or(body);
    let message = if message.trim().is_empty() { "no reason given" } else { message };
    let kind = value.as_ref().and_then(kind_in).unwrap_or_default();
    let raw = value.as_ref().and_then(raw_in).unwrap_or_default();
    let is_raw = context::is_too_long(status, "", raw);
    let is_context = is_raw || context::is_too_long(status, kind, message);
    let message = quote_text(if is_raw { raw } else { message });
    match status {
        _ if is_context => ModelError::ContextLength { message },
        401 | 403 => ModelError::Auth { status, message },
        // Providers report an empty account like a rate limit, but waiting does not help.
        429 if kind != "insufficient_quota" => ModelError::RateLimited { retry_after, message },
        300..=399 => ModelError::Http {
            status,
            retry_after: None,
            message: "redirects are not followed; set `base_url` to where the server really is"
                .to_owned(),
        },
        _ => ModelError::Http { status, retry_after, message },
    }
}

/// The error that a JSON object of a stream reports, in one of the forms that servers use; `None` if it
/// reports none. `is_error` is true if the event's type is `error`.
pub(crate) fn reported_error(value: &Value, is_error: bool) -> Option<ModelError> {
    let field = |name: &str| value.get(name).filter(|field| !field.is_null());
    let is_said = |error: &&Value| match error {
        Value::Null => false,
        Value::Bool(is_error) => *is_error,
        Value::Number(code) => code.as_i64() != Some(0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    };
    if let Some(error) = field("error").filter(is_said) {
        // Some servers put the error's code beside `error`.
        let has_code = error.get("code").or(error.get("status")).or(error.get("type")).is_some();
        return Some(in_stream(if has_code || error.is_string() { error } else { value }));
    }
    // MiniMax sends a status with every chunk; 0 means success.
    let base = field("base_resp").filter(|base| {
        base.get("status_code").and_then(Value::as_i64).is_some_and(|code| code != 0)
    });
    if let Some(base) = base {
        return Some(in_stream(base));
    }
    let says = |name: &str| field(name).and_then(Value::as_str) == Some("error");
    let is_answer = ["choices", "message", "delta", "content_block", "usage"]
        .iter()
        .any(|name| field(name).is_some_and(|field| !field.is_string()));
    let has_message = ["message", "detail", "error_msg", "msg", "errorMessage"]
        .iter()
        .any(|name| field(name).is_some());
    let has_code = ["code", "status", "error_code", "statusCode"]
        .iter()
        .any(|name| field(name).is_some_and(|code| code.as_i64() != Some(0)));
    let is_it = is_error
        || says("object")
        || says("type")
        || (!is_answer && has_message && (has_code || field("detail").is_some()));
    is_it.then(|| in_stream(value))
}

/// The error for the value of `error` in `{"error": ...}` within a stream, in any form.
pub(crate) fn in_stream(error: &Value) -> ModelError {
    let message = message_in(error).unwrap_or("no reason given");
    let inner = error.get("error").filter(|inner| inner.is_object()).unwrap_or(error);
    let status = [error, inner].iter().find_map(|place| status_in(place));
    let kind = kind_in(error).unwrap_or(NO_KIND);
    if context::is_too_long(status.unwrap_or(400), kind, message) {
        return ModelError::ContextLength { message: quote_text(message) };
    }
    let message = quote_text(message);
    match (status, kind.to_ascii_lowercase().as_str()) {
        (_, "rate_limit_error" | "rate_limit_exceeded" | "resource_exhausted") | (Some(429), _) => {
            ModelError::RateLimited { retry_after: None, message }
        }
        (_, "overloaded_error" | "overloaded") => {
            ModelError::Http { status: 529, retry_after: None, message }
        }
        (_, "authentication_error" | "permission_error") => {
            ModelError::Auth { status: status.unwrap_or(401), message }
        }
        (Some(status), _) => ModelError::Http { status, retry_after: None, message },
        (None, lower) => ModelError::Provider {
            transient: TRANSIENT.contains(&lower) || lower == NO_KIND && is_transient(&message),
            kind: quote_text(kind),
            message,
        },
    }
}

/// The code of an error that has none.
const NO_KIND: &str = "error";

/// Returns whether the text of an error without a code suggests that another attempt may succeed.
fn is_transient(message: &str) -> bool {
    const SAYS: [&str; 12] = [
        "overloaded",
        "unavailable",
        "loading",
        "timeout",
        "timed out",
        "try again",
        "busy",
        "at capacity",
        "upstream",
        "internal error",
        "connection",
        "went away",
    ];
    let message = message.to_ascii_lowercase();
    SAYS.iter().any(|words| message.contains(words))
}

/// Codes of failures that may end within a moment.
const TRANSIENT: [&str; 9] = [
    "api_error",
    "server_error",
    "timeout_error",
    "timeout",
    "internal_server_error",
    "internal",
    "internal_error",
    "service_unavailable",
    "unavailable",
];

/// The HTTP status in one of an error's fields, as a number or a text.
fn status_in(error: &Value) -> Option<u16> {
    let fields = ["code", "status", "status_code", "statusCode", "error_code"];
    let status = |field: &&str| {
        let code = crate::wire::lenient::read_count(error, field)?;
        u16::try_from(code).ok().filter(|code| (400..600).contains(code))
    };
    fields.iter().find_map(status)
}

/// The text for people in an error answer, in one of the forms that servers use.
fn message_in(value: &Value) -> Option<&str> {
    if let Value::Array(items) = value {
        return items.first().and_then(message_in);
    }
    value.as_str().or_else(|| {
        ["error", "message", "detail", "msg", "status_msg", "error_msg", "errorMessage"]
            .iter()
            .find_map(|field| value.get(*field).and_then(message_in))
    })
}

/// The error of the provider behind OpenRouter, which OpenRouter passes on unchanged.
fn raw_in(value: &Value) -> Option<&str> {
    value.get("error")?.get("metadata")?.get("raw")?.as_str()
}

/// The code in an error answer.
fn kind_in(value: &Value) -> Option<&str> {
    if let Value::Array(items) = value {
        return items.first().and_then(kind_in);
    }
    let error = value.get("error").filter(|error| error.is_object()).unwrap_or(value);
    let mut words =
        ["code", "type", "status"].iter().filter_map(|field| error.get(*field)?.as_str());
    words.find(|word| *word != "error" && word.parse::<u16>().is_err())
}

/// The wait that a `Retry-After` header requests: in seconds, or until an HTTP date seen from `now`.
pub(crate) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// The error for a failed connection, without the URL, which may contain credentials.
pub(crate) fn network_error(error: reqwest::Error) -> ModelError {
    let error = error.without_url();
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    ModelError::Network { message: quote_text(&message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 30);
        assert_eq!(retry_after(" 7 ", now), Some(Duration::from_secs(7)));
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(retry_after(date, now), Some(Duration::from_secs(30)));
        assert_eq!(retry_after(date, now + Duration::from_secs(90)), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
        assert_eq!(retry_after("-1", now), None);
    }

    #[test]
    fn the_message_is_found_in_every_shape_that_servers_use() {
        for body in [
            r#"{"error": {"message": "no", "type": "x"}}"#,
            r#"{"error": "no"}"#,
            r#"{"object": "error", "message": "no"}"#,
            r#"{"detail": "no"}"#,
            "no",
        ] {
            let error = from_status(400, None, body);
            let expected =
                ModelError::Http { status: 400, retry_after: None, message: "no".into() };
            assert_eq!(error, expected, "{body}");
        }
    }

    #[test]
    fn an_empty_account_is_not_retried() {
        let body = r#"{"error": {"message": "pay", "code": "insufficient_quota"}}"#;
        assert!(!from_status(429, None, body).is_retryable());
        assert!(from_status(429, None, "slow down").is_retryable());
    }

    #[test]
    fn an_overloaded_provider_is_retryable_inside_a_stream_too() {
        let error = serde_json::json!({"type": "overloaded_error", "message": "busy"});
        assert!(in_stream(&error).is_retryable());
        let error = serde_json::json!({"code": 502, "message": "bad gateway"});
        assert!(in_stream(&error).is_retryable());
        let error = serde_json::json!({"type": "invalid_request_error", "message": "no"});
        assert!(!in_stream(&error).is_retryable());
        assert!(in_stream(&serde_json::json!("upstream went away")).is_retryable());
        assert!(in_stream(&serde_json::json!("The model is loading")).is_retryable());
        assert!(!in_stream(&serde_json::json!("no such model")).is_retryable());
    }

    #[test]
    fn the_words_of_the_provider_behind_a_router_tell_that_a_request_is_too_long() {
        let raw =
            "{\"error\":{\"message\":\"prompt is too long: 250000 tokens > 200000 maximum\"}}";
        let body = serde_json::json!({"error": {"code": 400, "message": "Provider returned error",
            "metadata": {"raw": raw, "provider_name": "Anthropic"}}});
        let error = from_status(400, None, &body.to_string());
        assert!(matches!(error, ModelError::ContextLength { .. }), "{error:?}");
    }
}
