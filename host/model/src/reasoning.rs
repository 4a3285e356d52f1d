//! The reasoning that a model sends with an answer, in the form that its provider requires back.
//!
//! Some providers refuse a later request if their model's reasoning, or the signature of a call, is missing.
//! Reasoning is stored with the answer and sent back unchanged to the same model. It is never interpreted,
//! sent to another model, or shown to a person.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The reasoning of one answer, in the model's form, to be sent back to that model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The kind of API, the name and the host of the model, for example `openai:kimi-k2@api.moonshot.ai`.
    pub(crate) model: String,
    /// Fields of the message, for OpenAI-compatible servers, for example `reasoning_content`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) fields: Map<String, Value>,
    /// Fields of the answer's calls, for example Gemini's `extra_content`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<CallFields>,
    /// Blocks of the message for Anthropic's API, or parts of the message's content for OpenAI's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) blocks: Vec<PlacedBlock>,
}

/// The reasoning fields of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallFields {
    /// The position of the call among the calls of the model's answer, from 0.
    pub(crate) call: usize,
    /// The fields to send back with the call, for example Gemini's `extra_content`.
    pub(crate) fields: Map<String, Value>,
}

/// A block with its position in the answer: the amount of text and calls before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlacedBlock {
    /// The bytes of the answer's text before the block.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) text: usize,
    /// The number of the answer's calls before the block.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) calls: usize,
    pub(crate) block: Map<String, Value>,
}

impl Reasoning {
    /// The approximate bytes of text that a provider counts when the reasoning is sent back.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| map_bytes(&call.fields));
        let blocks = self.blocks.iter().map(|placed| map_bytes(&placed.block));
        map_bytes(&self.fields)
            .saturating_add(calls.sum::<usize>())
            .saturating_add(blocks.sum::<usize>())
    }

    /// Returns whether the reasoning has no field and no block.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.calls.is_empty() && self.blocks.is_empty()
    }
}

fn map_bytes(map: &Map<String, Value>) -> usize {
    map.iter().map(|(name, value)| name.len().saturating_add(value_bytes(value))).sum()
}

/// The bytes of all texts in a JSON value. The recursion is bounded, because the JSON parser bounds the
/// depth.
fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_bytes).sum(),
        Value::Object(map) => map_bytes(map),
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
