//! Compares the result of a call with the case's expectation.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use belljar_sandbox::{CallError, CallResult, OutputPart, ProgressReport};
use serde_json::{Value, json};

use crate::cases::{self, AnswerCheck, CallExpectation, LogExpectation, OneOrMore};

/// How far a guest's clock may be from the host's.
const CLOCK: Duration = Duration::from_secs(60);

/// The most characters of a foreign text that a fault shows.
const MAX_SHOWN: usize = 200;

/// The random answers of a case so far, in all its jars.
#[derive(Default)]
pub(crate) struct SeenAnswers(Mutex<BTreeSet<String>>);

/// The first fault of a call's result; `None`: the result is as expected. Foreign text in the fault is cut
/// but not escaped.
pub(crate) fn first_fault(
    expect: &CallExpectation,
    result: &CallResult,
    progress: &[ProgressReport],
    seen: &SeenAnswers,
) -> Option<String> {
    outcome_fault(expect, result)
        .or_else(|| expect.logs.as_ref().and_then(|logs| log_fault(logs, result)))
        .or_else(|| expect.progress.and_then(|wanted| progress_fault(wanted, progress)))
        .or_else(|| stream_fault("stdout", expect.stdout.as_deref(), &result.receipt.stdout))
        .or_else(|| stream_fault("stderr", expect.stderr.as_deref(), &result.receipt.stderr))
        .or_else(|| match expect.check {
            Some(AnswerCheck::Clock) => clock_fault(result),
            Some(AnswerCheck::Random) => random_fault(result, seen),
            None => None,
        })
}

/// Compares the outcome of a call with the one expectation that the case states: an error, an ending, all
/// parts, or the single part's text, size or JSON. Returns the difference.
fn outcome_fault(expect: &CallExpectation, result: &CallResult) -> Option<String> {
    if let Some(kinds) = &expect.error {
        return error_fault(kinds, expect.says.as_deref(), result);
    }
    if let Some(endings) = &expect.ending {
        let found = result.receipt.ending.as_str();
        return (!endings.has_word(found))
            .then(|| format!("it ended as `{found}` and not as {endings}"));
    }
    let parts = match &result.outcome {
        Ok(output) => &output.parts,
        Err(error) => return Some(format!("it failed: {}", clip_text(&error.to_string()))),
    };
    if let Some(wanted) = &expect.parts {
        let found: Vec<Value> = parts.iter().map(describe_part).collect();
        return (found != *wanted)
            .then(|| difference_text(&Value::from(found), &Value::from(wanted.clone())));
    }
    let only = match &parts[..] {
        [only] => only,
        parts => return Some(format!("its answer has {} parts and not one", parts.len())),
    };
    if let Some(wanted) = &expect.text {
        let found = describe_part(only);
        let wanted = json!({ "text": wanted });
        return (found != wanted).then(|| difference_text(&found, &wanted));
    }
    if let Some(wanted) = expect.size {
        return size_fault(only, wanted);
    }
    if let Some(wanted) = &expect.json {
        let found = parse_json_part(only)?;
        let wanted = &cases::expand_repeated(wanted).unwrap_or_else(|| wanted.clone());
        return (!is_equal_json(&found, wanted)).then(|| difference_text(&found, wanted));
    }
    let sizes = expect.json_size.as_ref()?;
    let found = parse_json_part(only).unwrap_or_default();
    sizes.iter().find_map(|(key, wanted)| {
        let bytes = found.get(key).and_then(Value::as_str).map(str::len);
        (bytes != Some(*wanted))
            .then(|| format!("`{key}` has {} bytes and not {wanted}", bytes.unwrap_or_default()))
    })
}

fn error_fault(kinds: &OneOrMore, says: Option<&str>, result: &CallResult) -> Option<String> {
    match &result.outcome {
        Ok(_) => Some(format!("it gave an answer and not the error {kinds}")),
        Err(CallError::Tool { kind, message }) if kinds.has_word(kind.as_str()) => {
            let words = says.filter(|words| !message.contains(words))?;
            Some(format!("its message lacks `{words}`: {}", clip_text(message)))
        }
        Err(error) => Some(format!("it is not {kinds}: {}", clip_text(&error.to_string()))),
    }
}

fn size_fault(part: &OutputPart, wanted: usize) -> Option<String> {
    match part {
        OutputPart::Text(text) if text.len() == wanted => None,
        OutputPart::Text(text) => {
            Some(format!("its text has {} bytes and not {wanted}", text.len()))
        }
        OutputPart::Json(_) | OutputPart::Attachment { .. } => {
            Some("its answer is no text".to_owned())
        }
    }
}

/// Compares the log lines in the receipt with the expectation. Returns the difference.
fn log_fault(wanted: &LogExpectation, result: &CallResult) -> Option<String> {
    let receipt = &result.receipt;
    if receipt.logs.len() != wanted.kept || receipt.logs_dropped != wanted.dropped {
        let (kept, dropped) = (receipt.logs.len(), receipt.logs_dropped);
        return Some(format!("{kept} lines were kept and {dropped} dropped"));
    }
    let other = receipt
        .logs
        .iter()
        .find(|line| line.level != wanted.level || line.message != wanted.message)?;
    Some(format!("a line is `{}: {}`", clip_text(&other.level), clip_text(&other.message)))
}

fn progress_fault(wanted: u64, found: &[ProgressReport]) -> Option<String> {
    if found.len() as u64 != wanted {
        return Some(format!("{} reports arrived and not {wanted}", found.len()));
    }
    let wrong = (1..).zip(found).find(|(number, report)| {
        report.done != *number
            || report.total.is_none_or(|total| total < wanted)
            || report.message != format!("step {number}")
    })?;
    Some(format!("report {} is `{}`", wrong.0, clip_text(&format!("{:?}", wrong.1))))
}

fn stream_fault(name: &str, wanted: Option<&str>, found: &str) -> Option<String> {
    let wanted = wanted.filter(|wanted| !found.contains(wanted))?;
    Some(format!("{name} lacks `{wanted}`: {}", clip_text(found)))
}

fn clock_fault(result: &CallResult) -> Option<String> {
    let answer = json_answer(result);
    let number = |key: &str| answer.get(key).and_then(Value::as_f64);
    let Some(wall) = number("wall_ms") else { return Some("there is no `wall_ms`".to_owned()) };
    if number("elapsed_ns").is_none_or(|elapsed| elapsed < 0.0) {
        return Some("`elapsed_ns` is no number from 0 on".to_owned());
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let apart = (wall / 1000.0 - now.as_secs_f64()).abs();
    (apart > CLOCK.as_secs_f64()).then(|| format!("its clock is {apart:.0} s from the host's"))
}

fn random_fault(result: &CallResult, seen: &SeenAnswers) -> Option<String> {
    let answer = json_answer(result);
    let Some(hex) = answer.get("hex").and_then(Value::as_str) else {
        return Some("there is no `hex`".to_owned());
    };
    if hex.len() != 32 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Some(format!("`{}` is not 16 bytes in hexadecimal", clip_text(hex)));
    }
    let new = seen.0.lock().unwrap_or_else(PoisonError::into_inner).insert(hex.to_owned());
    (!new).then(|| format!("`{hex}` came twice"))
}

/// The first part of an answer as JSON; `null` if there is no part.
fn json_answer(result: &CallResult) -> Value {
    let parts = result.outcome.as_ref().map(|output| output.parts.as_slice()).unwrap_or_default();
    parts.first().and_then(parse_json_part).unwrap_or_default()
}

/// The value of a JSON part; `None`: the JSON is invalid. A part of another kind becomes a text that no case
/// expects.
fn parse_json_part(part: &OutputPart) -> Option<Value> {
    match part {
        OutputPart::Json(text) => serde_json::from_str(text).ok(),
        OutputPart::Text(_) | OutputPart::Attachment { .. } => {
            Some(Value::String("(no JSON part)".to_owned()))
        }
    }
}

/// A part in the format of `cases.yaml`.
fn describe_part(part: &OutputPart) -> Value {
    match part {
        OutputPart::Text(text) => json!({ "text": text }),
        OutputPart::Json(text) => {
            json!({ "json": serde_json::from_str::<Value>(text).unwrap_or_default() })
        }
        OutputPart::Attachment { name, media_type, data } => {
            json!({ "attachment": name, "media_type": media_type, "bytes": data.len() })
        }
    }
}

/// Whether two JSON values are equal: `3` equals `3.0`, and the order of keys does not matter.
fn is_equal_json(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal_json(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_equal_json(a, b)))
        }
        (a, b) => a == b,
    }
}

fn difference_text(found: &Value, wanted: &Value) -> String {
    format!(
        "it answered {} and not {}",
        clip_text(&found.to_string()),
        clip_text(&wanted.to_string())
    )
}

/// Cuts a foreign text to [`MAX_SHOWN`] characters.
pub(crate) fn clip_text(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_the_order_of_keys_are_compared_as_json_has_them() {
        assert!(is_equal_json(&json!({ "a": 3.0, "b": [1] }), &json!({ "b": [1.0], "a": 3 })));
        for (a, b) in [(json!(3), json!(3.5)), (json!({"a": 1}), json!({})), (json!("3"), json!(3))]
        {
            assert!(!is_equal_json(&a, &b), "{a} {b}");
        }
    }

    #[test]
    fn a_long_foreign_text_is_clipped_between_characters() {
        let text = clip_text(&"ü".repeat(MAX_SHOWN + 1));
        assert_eq!(text.chars().count(), MAX_SHOWN + 3);
        assert_eq!(clip_text("short"), "short");
    }
}
