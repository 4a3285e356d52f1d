//! INV-473: masks the key if a server repeats the key in an answer.
//!
//! The texts of an answer are searched after parsing, never the bytes on the wire: a key that is also a word
//! of the protocol must not break the JSON. If a streamed text ends in the beginning of the key, that ending
//! is kept back until the next piece shows whether the key follows.

use serde_json::Value;

use crate::key::{ApiKey, REDACTED, begun_key_len};
use crate::{ModelReply, StopReason, StreamEvent, ToolCall};

/// Passes events on to the caller with the key masked.
pub(crate) struct KeyMask<'k, 'e> {
    /// The key to mask; `None` if there is none.
    key: Option<&'k str>,
    events: &'e mut (dyn FnMut(StreamEvent) + Send),
    text: String,
    thinking: String,
}

impl<'k, 'e> KeyMask<'k, 'e> {
    /// Passes events on to `events`, with the key masked where it could occur in answers.
    pub(crate) fn new(
        key: Option<&'k ApiKey>,
        events: &'e mut (dyn FnMut(StreamEvent) + Send),
    ) -> Self {
        let key = key.and_then(ApiKey::in_answers);
        Self { key, events, text: String::new(), thinking: String::new() }
    }

    /// Passes an event on, with the key masked in its text.
    pub(crate) fn mask_event(&mut self, event: StreamEvent) {
        let Some(key) = self.key else { return (self.events)(event) };
        match event {
            StreamEvent::TextDelta(text) => {
                self.flush_thinking();
                if let Some(text) = release_piece(&mut self.text, key, &text) {
                    (self.events)(StreamEvent::TextDelta(text));
                }
            }
            StreamEvent::ThinkingDelta(text) => {
                self.flush_text();
                if let Some(text) = release_piece(&mut self.thinking, key, &text) {
                    (self.events)(StreamEvent::ThinkingDelta(text));
                }
            }
            StreamEvent::CallStarted { name } => {
                self.flush_all();
                let name = replace_key(key, name);
                (self.events)(StreamEvent::CallStarted { name });
            }
            other => {
                self.flush_all();
                (self.events)(other);
            }
        }
    }

    /// Passes on the text that was kept back.
    pub(crate) fn flush_all(&mut self) {
        self.flush_text();
        self.flush_thinking();
    }

    fn flush_text(&mut self) {
        if !self.text.is_empty() {
            (self.events)(StreamEvent::TextDelta(std::mem::take(&mut self.text)));
        }
    }

    fn flush_thinking(&mut self) {
        if !self.thinking.is_empty() {
            (self.events)(StreamEvent::ThinkingDelta(std::mem::take(&mut self.thinking)));
        }
    }

    /// Masks the key in an answer. Its arguments stay valid JSON.
    pub(crate) fn mask_reply(&self, mut reply: ModelReply) -> ModelReply {
        let Some(key) = self.key else { return reply };
        reply.text = replace_key(key, reply.text);
        if let StopReason::Other(word) = reply.stop {
            reply.stop = StopReason::Other(replace_key(key, word));
        }
        // Reasoning is signed, so it is kept unchanged, or dropped if it contains the key.
        reply.reasoning = reply
            .reasoning
            .filter(|kept| serde_json::to_string(kept).is_ok_and(|text| !text.contains(key)));
        let clean = |call: ToolCall| ToolCall {
            id: replace_key(key, call.id),
            name: replace_key(key, call.name),
            arguments: mask_arguments(key, call.arguments),
        };
        reply.calls = reply.calls.into_iter().map(clean).collect();
        reply
    }
}

/// Returns the part of a streamed text that cannot contain the beginning of the key; the rest is kept back.
fn release_piece(kept: &mut String, key: &str, text: &str) -> Option<String> {
    kept.push_str(text);
    let mut out = String::new();
    let mut rest = kept.as_str();
    while let Some((before, after)) = rest.split_once(key) {
        out.push_str(before);
        out.push_str(REDACTED);
        rest = after;
    }
    let (sure, begins) =
        rest.split_at_checked(rest.len() - begun_key_len(rest, key)).unwrap_or((rest, ""));
    out.push_str(sure);
    *kept = begins.to_owned();
    (!out.is_empty()).then_some(out)
}

fn replace_key(key: &str, text: String) -> String {
    if text.contains(key) { text.replace(key, REDACTED) } else { text }
}

/// Masks the key in the texts of JSON arguments. Arguments without the key keep the model's own bytes.
fn mask_arguments(key: &str, text: String) -> String {
    // An escaped letter may hide the key, so only a text without escapes can be skipped.
    if !text.contains(key) && !text.contains('\\') {
        return text;
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(mut value) => match mask_value(key, &mut value) {
            true => value.to_string(),
            false => text,
        },
        // Malformed JSON is masked as plain text, because no parser reads its escapes.
        Err(_) => replace_key(key, text),
    }
}

/// Masks the key in all texts of a value; returns whether it occurred. The depth is bounded by the parser.
fn mask_value(key: &str, value: &mut Value) -> bool {
    match value {
        Value::String(text) if text.contains(key) => {
            *text = text.replace(key, REDACTED);
            true
        }
        Value::Array(items) => {
            items.iter_mut().fold(false, |any, item| mask_value(key, item) | any)
        }
        Value::Object(fields) => {
            let mut any =
                fields.values_mut().fold(false, |any, value| mask_value(key, value) | any);
            if fields.keys().any(|name| name.contains(key)) {
                let taken = std::mem::take(fields).into_iter();
                fields.extend(taken.map(|(name, value)| (replace_key(key, name), value)));
                any = true;
            }
            any
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-hunter2";

    fn told(key: &str, pieces: &[&str]) -> Vec<StreamEvent> {
        let key = ApiKey::new(key.into());
        let mut told = Vec::new();
        let mut events = |event| told.push(event);
        let mut masked = KeyMask::new(Some(&key), &mut events);
        for text in pieces {
            masked.mask_event(StreamEvent::TextDelta((*text).to_owned()));
        }
        masked.flush_all();
        told
    }

    fn text(events: &[StreamEvent]) -> String {
        let text = |event: &StreamEvent| match event {
            StreamEvent::TextDelta(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        events.iter().map(text).collect()
    }

    #[test]
    fn a_key_that_comes_in_pieces_is_masked_and_nothing_else_is_lost() {
        let whole = "a sk-hunter2, s sk-hunt sk-sk-hunter2sk-hunter";
        let expected = "a [key], s sk-hunt sk-[key]sk-hunter";
        for size in 1..whole.len() {
            let pieces: Vec<&str> =
                whole.as_bytes().chunks(size).map(|it| std::str::from_utf8(it).unwrap()).collect();
            assert_eq!(text(&told(KEY, &pieces)), expected, "{size}");
        }
        assert_eq!(told(KEY, &["a", "b"]).len(), 2, "nothing waits without need");
    }

    #[test]
    fn a_placeholder_is_masked_nowhere() {
        for word in ["none", "content", "assistant", "no-key-required"] {
            assert_eq!(text(&told(word, &[word])), word);
        }
    }

    #[test]
    fn arguments_stay_json_and_their_own_bytes_where_nothing_is_in_them() {
        for (given, expected) in [
            (r#"{ "path" : "a\n" }"#, r#"{ "path" : "a\n" }"#),
            (r#"{"text": "is sk-hunter2"}"#, r#"{"text":"is [key]"}"#),
            (r#"{"b": [{"sk-hunter2": "\u0073k-hunter2\""}]}"#, r#"{"b":[{"[key]":"[key]\""}]}"#),
            (r#"{"text": "sk-hunter2"#, r#"{"text": "[key]"#),
            ("", ""),
        ] {
            assert_eq!(mask_arguments(KEY, given.to_owned()), expected);
        }
    }
}
