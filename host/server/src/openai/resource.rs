//! A response as the Open Responses specification defines it: every field is present, if need be as null.

use belljar_store::MessageStatus;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::openai::finished::FinishedTurn;
use crate::openai::ids;

/// The parts of a request that its response repeats, and the request's input. Stored with the turn for this
/// API alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RequestEcho {
    /// A mark that distinguishes turns of this API from others.
    pub(crate) wire: EchoWire,
    pub(crate) model: String,
    pub(crate) previous: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) input: Vec<Value>,
    pub(crate) tools: Vec<Value>,
    pub(crate) tool_choice: Value,
    pub(crate) parallel: bool,
    pub(crate) format: Value,
    pub(crate) temperature: Option<f64>,
    #[serde(default)]
    pub(crate) top_p: Option<f64>,
    #[serde(default)]
    pub(crate) presence_penalty: Option<f64>,
    #[serde(default)]
    pub(crate) frequency_penalty: Option<f64>,
    pub(crate) effort: Option<String>,
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) store: bool,
    pub(crate) background: bool,
    pub(crate) metadata: Value,
    /// Other parameters, repeated unchanged in the response.
    pub(crate) others: Map<String, Value>,
}

/// The API to which a stored turn belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EchoWire {
    /// `/v1/responses`.
    Responses,
}

/// A response.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ResponseBody {
    pub(crate) id: String,
    /// `response`.
    object: &'static str,
    /// In seconds since 1970.
    created_at: i64,
    /// The same; `null` until it is completed.
    completed_at: Option<i64>,
    /// `queued`, `in_progress`, `completed`, `incomplete`, `failed` or `cancelled`.
    pub(crate) status: &'static str,
    incomplete_details: Option<Value>,
    /// The agent.
    model: String,
    previous_response_id: Option<String>,
    instructions: Option<String>,
    /// Messages of the agent, one for each step that said something, and its calls of the caller's tools.
    /// Foreign text: escape it before a person sees it.
    pub(crate) output: Vec<Value>,
    error: Option<Value>,
    tools: Vec<Value>,
    tool_choice: Value,
    truncation: Value,
    parallel_tool_calls: bool,
    text: Value,
    top_p: f64,
    presence_penalty: f64,
    frequency_penalty: f64,
    top_logprobs: u64,
    temperature: f64,
    reasoning: Option<Value>,
    /// `null` until it has ended.
    usage: Option<Value>,
    max_output_tokens: Option<u64>,
    max_tool_calls: Option<u64>,
    store: bool,
    background: bool,
    service_tier: &'static str,
    metadata: Value,
    safety_identifier: Value,
    prompt_cache_key: Value,
    user: Value,
}

impl ResponseBody {
    /// Builds the response from the stored turn and the parts of the request that it repeats.
    pub(crate) fn from_finished(finished: &FinishedTurn, echo: &RequestEcho) -> Self {
        let status = finished.status;
        let (running, done) =
            (status == MessageStatus::InFlight, status == MessageStatus::Completed);
        let other = |name: &str| echo.others.get(name).cloned().unwrap_or(Value::Null);
        let effort = echo.effort.as_ref();
        Self {
            id: ids::response_id(&finished.message),
            object: "response",
            created_at: finished.began,
            completed_at: done.then_some(finished.ended),
            status: status_word(status),
            incomplete_details: (status == MessageStatus::Partial)
                .then(|| incomplete_details(finished)),
            model: echo.model.clone(),
            previous_response_id: echo.previous.clone(),
            instructions: echo.instructions.clone(),
            output: output_items(finished),
            error: matches!(status, MessageStatus::Failed | MessageStatus::Interrupted)
                .then(|| error_details(finished)),
            tools: echo.tools.clone(),
            tool_choice: echo.tool_choice.clone(),
            truncation: match other("truncation") {
                Value::Null => json!("disabled"),
                said => said,
            },
            parallel_tool_calls: echo.parallel,
            text: json!({"format": echo.format}),
            top_p: echo.top_p.unwrap_or(1.0),
            presence_penalty: echo.presence_penalty.unwrap_or(0.0),
            frequency_penalty: echo.frequency_penalty.unwrap_or(0.0),
            top_logprobs: 0,
            temperature: echo.temperature.unwrap_or(1.0),
            reasoning: effort.map(|effort| json!({"effort": effort, "summary": null})),
            usage: (!running).then(|| usage_details(finished)),
            max_output_tokens: echo.max_output_tokens,
            max_tool_calls: None,
            store: echo.store,
            background: echo.background,
            service_tier: "default",
            metadata: echo.metadata.clone(),
            safety_identifier: other("safety_identifier"),
            prompt_cache_key: other("prompt_cache_key"),
            user: other("user"),
        }
    }
}

/// The status of a response for the status of the agent's message.
fn status_word(status: MessageStatus) -> &'static str {
    match status {
        MessageStatus::InFlight => "in_progress",
        MessageStatus::Completed => "completed",
        MessageStatus::Partial => "incomplete",
        MessageStatus::Failed | MessageStatus::Interrupted => "failed",
        MessageStatus::Cancelled => "cancelled",
    }
}

fn incomplete_details(finished: &FinishedTurn) -> Value {
    let why = finished.error.as_ref().map(ToString::to_string);
    json!({"reason": "max_output_tokens", "message": why})
}

fn error_details(finished: &FinishedTurn) -> Value {
    let message = finished.to_problem().map(|problem| problem.to_body().detail().to_owned());
    json!({"code": finished.failure_code(), "message": message.unwrap_or_default()})
}

/// The token counts of a response.
fn usage_details(finished: &FinishedTurn) -> Value {
    let usage = &finished.usage;
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    })
}

/// The output items of a response: its texts, then its calls.
pub(crate) fn output_items(finished: &FinishedTurn) -> Vec<Value> {
    let message = &finished.message;
    let texts = finished.texts.iter().enumerate();
    let mut items: Vec<Value> =
        texts.map(|(place, text)| text_item(message, place, Some(text.as_str()))).collect();
    let from = items.len();
    items.extend((0..finished.calls.len()).map(|place| call_item(finished, from, place, true)));
    items
}

/// A message of the agent; without text while it is incomplete.
pub(crate) fn text_item(message: &str, place: usize, text: Option<&str>) -> Value {
    let content: Vec<Value> = text.map(text_part).into_iter().collect();
    json!({
        "type": "message",
        "id": ids::item_id("msg", message, place),
        "status": if text.is_some() { "completed" } else { "in_progress" },
        "role": "assistant",
        "content": content,
    })
}

/// The text part of a message.
pub(crate) fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// The item of the call with the index `place` at the end of the turn; `from` is the number of items before
/// the first call.
pub(crate) fn call_item(finished: &FinishedTurn, from: usize, place: usize, done: bool) -> Value {
    let (message, call) = (&finished.message, finished.calls.get(place));
    json!({
        "type": "function_call",
        "id": ids::item_id("fc", message, from + place),
        "call_id": ids::call_id(message, place),
        "name": call.map(|call| call.name.as_str()),
        "arguments": call.filter(|_| done).map_or("", |call| call.arguments.as_str()),
        "status": if done { "completed" } else { "in_progress" },
    })
}
