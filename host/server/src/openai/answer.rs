//! The JSON answer of a chat completion.

use belljar_agent::Usage;
use belljar_store::MessageStatus;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::openai::finished::FinishedTurn;
use crate::openai::ids;

/// A chat completion.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Completion {
    id: String,
    /// `chat.completion`.
    object: &'static str,
    /// In seconds since 1970.
    created: i64,
    /// The agent.
    model: String,
    /// One.
    choices: Vec<Choice>,
    usage: CompletionUsage,
    service_tier: &'static str,
    system_fingerprint: Option<String>,
}

/// The answer in a completion.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Choice {
    index: u32,
    message: CompletionMessage,
    logprobs: Option<Value>,
    /// `stop`, `length` or `tool_calls`.
    finish_reason: &'static str,
}

/// The message in it. Foreign text: escape it before a person sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompletionMessage {
    role: &'static str,
    content: Option<String>,
    refusal: Option<String>,
    annotations: Vec<Value>,
    /// Calls of the caller's tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
}

/// The usage of the whole turn, subagents included.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    /// `cached_tokens`: those that the provider read from its cache.
    prompt_tokens_details: Value,
    completion_tokens_details: Value,
}

impl CompletionUsage {
    /// Converts the usage of a turn to OpenAI's form; counts that belljar does not have are 0.
    pub(crate) fn from_usage(usage: &Usage) -> Self {
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
            prompt_tokens_details: json!({"cached_tokens": usage.cached_tokens, "audio_tokens": 0}),
            completion_tokens_details: json!({
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            }),
        }
    }
}

impl Completion {
    /// The answer for a turn that has ended: its text, its calls of the caller's tools, and its usage.
    pub(crate) fn from_finished(finished: &FinishedTurn, model: &str) -> Self {
        let text = finished.joined_text();
        let calls = finished.calls.iter().enumerate();
        let tool_calls = calls.map(|(place, call)| {
            let function = json!({"name": call.name, "arguments": call.arguments});
            let id = ids::call_id(&finished.message, place);
            json!({"id": id, "type": "function", "function": function})
        });
        let message = CompletionMessage {
            role: "assistant",
            content: Some(text).filter(|text| !text.is_empty() || finished.calls.is_empty()),
            refusal: None,
            annotations: Vec::new(),
            tool_calls: tool_calls.collect(),
        };
        let finish_reason = finish_reason(finished);
        Self {
            id: ids::completion_id(&finished.message),
            object: "chat.completion",
            created: finished.began,
            model: model.to_owned(),
            choices: vec![Choice { index: 0, message, logprobs: None, finish_reason }],
            usage: CompletionUsage::from_usage(&finished.usage),
            service_tier: "default",
            system_fingerprint: None,
        }
    }
}

/// The value of `finish_reason` for a turn: `tool_calls`, `length` or `stop`.
pub(crate) fn finish_reason(finished: &FinishedTurn) -> &'static str {
    match finished.status {
        _ if !finished.calls.is_empty() => "tool_calls",
        MessageStatus::Partial => "length",
        MessageStatus::Completed
        | MessageStatus::InFlight
        | MessageStatus::Failed
        | MessageStatus::Interrupted
        | MessageStatus::Cancelled => "stop",
    }
}
