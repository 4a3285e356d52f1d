//! Joins streamed reasoning so that it can be sent back unchanged.

use serde_json::{Map, Value};

use crate::limits::{MAX_REASONING_BYTES, MAX_REASONING_PARTS};
use crate::reasoning::{CallFields, PlacedBlock, Reasoning};

/// How the pieces of a field are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JoinRule {
    /// Texts, joined in order.
    Text,
    /// Lists of parts; a part may arrive in several pieces.
    Parts,
    /// Each piece replaces the earlier ones.
    Last,
}

/// The fields with reasoning in answers of OpenAI-compatible servers, which the next request must send back.
/// The comments name the servers that use a field.
const FIELDS: [(&str, JoinRule); 8] = [
    // DeepSeek, Kimi, GLM, Qwen, older vLLM, llama.cpp, SGLang.
    ("reasoning_content", JoinRule::Text),
    // OpenRouter, vLLM, Groq, Ollama.
    ("reasoning", JoinRule::Text),
    // OpenRouter, MiniMax: texts, summaries, signatures and encrypted data.
    ("reasoning_details", JoinRule::Parts),
    // GitHub Copilot.
    ("reasoning_text", JoinRule::Text),
    ("reasoning_opaque", JoinRule::Last),
    // LiteLLM in front of Anthropic.
    ("thinking_blocks", JoinRule::Parts),
    // Gemini: the signature of a text.
    ("extra_content", JoinRule::Last),
    // LiteLLM in front of Gemini.
    ("provider_specific_fields", JoinRule::Last),
];

/// The fields with reasoning inside a tool call, which the next request must send back.
const FIELDS_OF_CALLS: [&str; 3] =
    ["extra_content", "provider_specific_fields", "thought_signature"];

/// The fields of a part to which later pieces are appended; every other field is replaced.
const GROWING: [&str; 4] = ["text", "summary", "thinking", "data"];

/// The reasoning of an answer as far as it has arrived.
#[derive(Debug, Default)]
pub(crate) struct StreamedReasoning {
    reasoning: Reasoning,
    /// The number that the server gave each block.
    keys: Vec<u64>,
    bytes: usize,
    /// True if the reasoning exceeded its limit. All of it is dropped then, because a provider refuses a part
    /// of it.
    lost: bool,
}

impl StreamedReasoning {
    /// Stores the reasoning fields of a message, or of a piece of it, from an OpenAI-compatible server.
    pub(crate) fn take_message(&mut self, delta: &Value) {
        for (name, joined) in FIELDS {
            let Some(value) = delta.get(name).filter(|value| is_given(name, value)) else {
                continue;
            };
            if !self.has_room(value) {
                return;
            }
            let known = self.reasoning.fields.get_mut(name);
            match (known, joined, value) {
                (Some(Value::String(text)), JoinRule::Text, Value::String(more)) => {
                    text.push_str(more);
                }
                (Some(Value::Array(parts)), JoinRule::Parts, Value::Array(more)) => {
                    more.iter().for_each(|part| join_part(parts, part));
                    self.lost |= parts.len() > MAX_REASONING_PARTS;
                }
                (None, JoinRule::Parts, Value::Array(more)) => {
                    let mut parts = Vec::with_capacity(more.len());
                    more.iter().for_each(|part| join_part(&mut parts, part));
                    self.lost |= parts.len() > MAX_REASONING_PARTS;
                    self.reasoning.fields.insert(name.to_owned(), Value::Array(parts));
                }
                (Some(known), ..) => *known = value.clone(),
                (None, ..) => {
                    self.reasoning.fields.insert(name.to_owned(), value.clone());
                }
            }
        }
    }

    /// Stores the reasoning fields of the call with the position `call`, or of a piece of it.
    pub(crate) fn take_call(&mut self, call: usize, fragment: &Value) {
        for name in FIELDS_OF_CALLS {
            let value = fragment.get(name).filter(|value| is_given(name, value));
            let Some(value) = value.filter(|value| self.has_room(value)) else { continue };
            let calls = &mut self.reasoning.calls;
            let at = calls.iter().rposition(|known| known.call == call).unwrap_or_else(|| {
                calls.push(CallFields { call, fields: Map::new() });
                calls.len() - 1
            });
            if let Some(known) = calls.get_mut(at) {
                known.fields.insert(name.to_owned(), value.clone());
            }
        }
    }

    /// Adds reasoning in a message's content, in Mistral's form: a thought arrives in pieces, each with texts
    /// of its own. `text` and `calls` are its position.
    pub(crate) fn take_part(&mut self, part: &Map<String, Value>, text: usize, calls: usize) {
        let whole = Value::Object(part.clone());
        if !self.has_room(&whole) {
            return;
        }
        let last = self.reasoning.blocks.last_mut();
        let last = last.filter(|last| last.text == text && last.calls == calls);
        let (Some(last), Some(Value::Array(more))) = (last, part.get("thinking")) else {
            self.begin_block(u64::MAX, part.clone(), text, calls);
            return;
        };
        if let Some(Value::Array(texts)) = last.block.get_mut("thinking") {
            more.iter().for_each(|text| join_part(texts, text));
        }
        let others = part.iter().filter(|(name, _)| *name != "thinking");
        for (name, value) in others {
            last.block.insert(name.clone(), value.clone());
        }
    }

    /// Begins a block with the server's number `key`.
    pub(crate) fn begin_block(
        &mut self,
        key: u64,
        block: Map<String, Value>,
        text: usize,
        calls: usize,
    ) {
        if self.reasoning.blocks.len() >= MAX_REASONING_PARTS {
            self.lost = true;
        }
        if !self.lost && self.has_room(&Value::Object(block.clone())) {
            self.keys.push(key);
            self.reasoning.blocks.push(PlacedBlock { text, calls, block });
        }
    }

    /// Adds to a field of the block with the number `key`; if `replaces` is true, replaces the field.
    pub(crate) fn grow_block(&mut self, key: u64, field: &str, piece: &str, replaces: bool) {
        if self.lost || !self.reserve_bytes(piece.len()) {
            return;
        }
        let Some(at) = self.keys.iter().rposition(|known| *known == key) else { return };
        let Some(placed) = self.reasoning.blocks.get_mut(at) else { return };
        match placed.block.get_mut(field) {
            Some(Value::String(text)) if !replaces => text.push_str(piece),
            _ => {
                placed.block.insert(field.to_owned(), Value::String(piece.to_owned()));
            }
        }
    }

    /// All reasoning of the answer, labelled with `model`. `cut` is true if the answer was cut off, so an
    /// unsigned thought among signed ones is incomplete.
    pub(crate) fn into_reasoning(self, model: &str, calls: usize, cut: bool) -> Option<Reasoning> {
        let mut reasoning = self.reasoning;
        // A field that the model sent empty: only DeepSeek requires such a field back, and only with a call.
        if calls == 0 {
            let is_empty = |value: &Value| value.as_str().is_some_and(str::is_empty);
            reasoning.fields.retain(|_, value| !is_empty(value));
        }
        if cut {
            let is_signed = |block: &Map<String, Value>| match block.get("signature") {
                Some(Value::String(signature)) => !signature.is_empty(),
                _ => !block.contains_key("thinking"),
            };
            reasoning.blocks.retain(|placed| is_signed(&placed.block));
        }
        if self.lost || reasoning.is_empty() {
            return None;
        }
        model.clone_into(&mut reasoning.model);
        Some(reasoning)
    }

    /// Returns whether a piece of reasoning fits within the limit, and counts it.
    fn has_room(&mut self, value: &Value) -> bool {
        // Measured as JSON text, so brackets and names count too.
        let bytes = match value {
            Value::String(text) => text.len(),
            other => other.to_string().len(),
        };
        !self.lost && self.reserve_bytes(bytes)
    }

    /// Counts bytes of reasoning. Beyond the limit all of it is dropped; returns whether it was kept.
    fn reserve_bytes(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_REASONING_BYTES {
            self.lost = true;
            self.reasoning = Reasoning::default();
        }
        !self.lost
    }
}

/// Returns whether a field has a value. An empty `reasoning_content` is one, because a model may have sent no
/// reasoning before a call.
fn is_given(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty() || name == "reasoning_content",
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Appends a piece to the part that it continues, or adds it as a new part.
fn join_part(parts: &mut Vec<Value>, piece: &Value) {
    let Value::Object(piece) = piece else {
        parts.push(piece.clone());
        return;
    };
    let at = match piece.get("index").filter(|index| !index.is_null()) {
        Some(_) => parts.iter().rposition(|part| continues_part(part, piece)),
        // A piece without a number can only continue the last part, and only if that is not signed, because a
        // signed part is complete.
        None => parts.len().checked_sub(1).filter(|at| {
            parts.get(*at).is_some_and(|part| continues_part(part, piece) && !is_signed(part))
        }),
    };
    match at.and_then(|at| parts.get_mut(at)) {
        Some(Value::Object(part)) => grow_part(part, piece),
        _ => parts.push(Value::Object(piece.clone())),
    }
}

fn is_signed(part: &Value) -> bool {
    part.get("signature").and_then(Value::as_str).is_some_and(|text| !text.is_empty())
        || part.get("data").is_some_and(Value::is_string)
}

/// Returns whether a piece belongs to this part: number, kind and id are equal where both have them.
fn continues_part(part: &Value, piece: &Map<String, Value>) -> bool {
    ["index", "type", "id"].iter().all(|name| {
        let (known, new) = (part.get(*name), piece.get(*name));
        match (known.filter(|value| !value.is_null()), new.filter(|value| !value.is_null())) {
            (Some(known), Some(new)) => known == new,
            // If a part has a number, every piece of it has the number.
            (known, new) => *name != "index" || known.is_none() == new.is_none(),
        }
    })
}

/// Merges a piece into a part: texts that grow are appended, other fields replaced.
fn grow_part(part: &mut Map<String, Value>, piece: &Map<String, Value>) {
    for (name, value) in piece {
        match (part.get_mut(name), value) {
            (_, Value::Null) => {
                part.entry(name.clone()).or_insert(Value::Null);
            }
            (Some(Value::String(text)), Value::String(more))
                if GROWING.contains(&name.as_str()) =>
            {
                text.push_str(more);
            }
            _ => {
                part.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn details(pieces: &[Value]) -> Value {
        let mut thoughts = StreamedReasoning::default();
        for piece in pieces {
            thoughts.take_message(&json!({"reasoning_details": [piece]}));
        }
        let reasoning = thoughts.into_reasoning("m", 0, false).unwrap();
        reasoning.fields.get("reasoning_details").unwrap().clone()
    }

    #[test]
    fn pieces_of_a_detail_are_joined_by_number_kind_and_id() {
        let joined = details(&[
            json!({"type": "reasoning.text", "text": "a", "index": 0, "signature": null}),
            json!({"type": "reasoning.summary", "summary": "s", "index": 1}),
            json!({"type": "reasoning.text", "text": "b", "index": 0}),
            json!({"type": "reasoning.text", "signature": "sig", "index": 0}),
            json!({"type": "reasoning.encrypted", "data": "x", "id": "call_1", "index": 0}),
            json!({"type": "reasoning.encrypted", "data": "y", "id": "call_2", "index": 0}),
        ]);
        assert_eq!(
            joined,
            json!([
                {"type": "reasoning.text", "text": "ab", "index": 0, "signature": "sig"},
                {"type": "reasoning.summary", "summary": "s", "index": 1},
                {"type": "reasoning.encrypted", "data": "x", "id": "call_1", "index": 0},
                {"type": "reasoning.encrypted", "data": "y", "id": "call_2", "index": 0},
            ])
        );
    }

    #[test]
    fn pieces_without_a_number_are_joined_until_a_signature_ends_the_part() {
        let joined = details(&[
            json!({"type": "reasoning.text", "text": "a"}),
            json!({"type": "reasoning.text", "text": "b", "signature": "1"}),
            json!({"type": "reasoning.text", "text": "c"}),
        ]);
        assert_eq!(
            joined,
            json!([
                {"type": "reasoning.text", "text": "ab", "signature": "1"},
                {"type": "reasoning.text", "text": "c"},
            ])
        );
    }

    #[test]
    fn more_than_the_bound_keeps_nothing_at_all() {
        let mut thoughts = StreamedReasoning::default();
        let half = "x".repeat(MAX_REASONING_BYTES / 2 + 1);
        thoughts.take_message(&json!({"reasoning_content": half}));
        thoughts.take_message(&json!({"reasoning_content": half}));
        thoughts.take_message(&json!({"reasoning_content": "end"}));
        assert_eq!(thoughts.into_reasoning("m", 1, false), None);
        let mut thoughts = StreamedReasoning::default();
        for index in 0..=MAX_REASONING_PARTS {
            thoughts.take_message(&json!({"reasoning_details": [{"index": index, "text": "x"}]}));
        }
        assert_eq!(thoughts.into_reasoning("m", 1, false), None);
    }

    #[test]
    fn a_thought_that_was_cut_before_its_signature_is_not_kept() {
        let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
        let block = || thinking.as_object().unwrap().clone();
        let mut thoughts = StreamedReasoning::default();
        thoughts.begin_block(0, block(), 0, 0);
        thoughts.grow_block(0, "thinking", "whole", false);
        thoughts.grow_block(0, "signature", "sig", true);
        thoughts.begin_block(1, block(), 0, 0);
        thoughts.grow_block(1, "thinking", "half", false);
        let reasoning = thoughts.into_reasoning("m", 0, true).unwrap();
        assert_eq!(reasoning.blocks.len(), 1);
        assert_eq!(reasoning.blocks[0].block["thinking"], "whole");
    }
}
