//! Records the calls of a model as a transcript that the scripted model can play.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use super::check::{ExpectResult, RequestExpectation, new_results};
use super::file;
use super::transcript::VERSION;
use crate::limits::MAX_TRANSCRIPT_BYTES;
use crate::{
    CallContext, ChatModel, ChatRequest, ModelError, ModelReply, Reasoning, StreamEvent, ToolCall,
};

/// The deepest arguments that are written as YAML. Deeper ones are written as JSON text, because YAML parsers
/// allow less depth than JSON parsers.
const MAX_YAML_DEPTH: usize = 16;

/// The calls recorded so far. Clones share one list, so all models of a run record into one transcript.
#[derive(Clone, Debug, Default)]
pub struct Recording(Arc<Mutex<RecordingState>>);

#[derive(Debug, Default)]
struct RecordingState {
    turns: BTreeMap<(String, u32), Vec<file::TurnEntry>>,
    /// The bytes of the recorded texts and arguments.
    bytes: usize,
}

/// The reason why a recording cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The run was longer than a transcript may be.
    #[error("the run said more than the {MAX_TRANSCRIPT_BYTES} bytes that a transcript may have")]
    TooLarge,
    /// The YAML writer failed.
    #[error("the transcript cannot be written as YAML: {0}")]
    Yaml(String),
}

impl Recording {
    /// An empty recording.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes the transcript: one entry for each agent and spawn index, sorted. Each turn expects the same
    /// tools, and results of the same tools; no text is compared. Ids of calls and whitespace in arguments
    /// are left out.
    ///
    /// # Errors
    /// [`RecordingError`] if the run was too long for a transcript.
    pub fn to_yaml(&self) -> Result<String, RecordingError> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.bytes > MAX_TRANSCRIPT_BYTES {
            return Err(RecordingError::TooLarge);
        }
        let agents = state.turns.iter().map(|((agent, spawn), turns)| file::AgentEntry {
            agent: agent.clone(),
            spawn: file::SpawnSelector::Index(*spawn),
            turns: turns.clone(),
        });
        let file = file::TranscriptDocument {
            transcript: VERSION,
            each_run: false,
            text_only: false,
            agents: agents.collect(),
        };
        let options = serde_yaml::ser_options! { yaml_12: true, prefer_block_scalars: false };
        let yaml = serde_yaml::to_string_with_options(&file, options);
        yaml.map_err(|error| RecordingError::Yaml(error.to_string()))
    }

    /// Adds a request with its answer, without calling a model.
    pub fn record_reply(&self, cx: &CallContext<'_>, request: &ChatRequest, reply: &ModelReply) {
        let (turn, bytes) = reply_turn(request, reply);
        self.add_turn(cx, turn, bytes);
    }

    /// Adds a turn, unless the recording has become too large.
    fn add_turn(&self, cx: &CallContext<'_>, turn: file::TurnEntry, bytes: usize) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes = state.bytes.saturating_add(bytes);
        if state.bytes <= MAX_TRANSCRIPT_BYTES {
            let turns = state.turns.entry((cx.agent.to_owned(), cx.spawn_index));
            turns.or_default().push(turn);
        }
    }
}

/// A model that calls another one and records the calls.
pub struct RecordingModel {
    inner: Arc<dyn ChatModel>,
    recording: Recording,
}

impl RecordingModel {
    /// Wraps `inner`, with a new recording.
    #[must_use]
    pub fn new(inner: Arc<dyn ChatModel>) -> Self {
        Self::with_recording(Recording::new(), inner)
    }

    /// Wraps `inner`, and adds its calls to `recording`.
    #[must_use]
    pub fn with_recording(recording: Recording, inner: Arc<dyn ChatModel>) -> Self {
        Self { inner, recording }
    }

    /// The calls recorded so far.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Writes the transcript so far; see [`Recording::to_yaml`].
    ///
    /// # Errors
    /// [`RecordingError`] if the run was too long for a transcript.
    pub fn to_yaml(&self) -> Result<String, RecordingError> {
        self.recording.to_yaml()
    }
}

#[async_trait]
impl ChatModel for RecordingModel {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn takes_images(&self) -> bool {
        self.inner.takes_images()
    }

    /// Makes the call with the inner model, and records its answer or failure.
    async fn chat(
        &self,
        request: &ChatRequest,
        cx: &CallContext<'_>,
        events: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<ModelReply, ModelError> {
        let (mut said, mut thought) = (String::new(), String::new());
        let result = {
            let mut listen = |event: StreamEvent| {
                match &event {
                    StreamEvent::TextDelta(text) => said.push_str(text),
                    StreamEvent::ThinkingDelta(text) => thought.push_str(text),
                    // Text before a retry is void.
                    StreamEvent::Retrying { .. } => {
                        said.clear();
                        thought.clear();
                    }
                    StreamEvent::Started | StreamEvent::CallStarted { .. } => {}
                }
                events(event);
            };
            self.inner.chat(request, cx, &mut listen).await
        };
        let (mut turn, bytes) = match &result {
            Ok(reply) => reply_turn(request, reply),
            // A mismatch is a fault of the transcript that is being played, not an answer of the model, so it
            // is not recorded.
            Err(ModelError::Script(_)) => return result,
            Err(error) => {
                let (bytes, fail) = (said.len(), fail_entry(error));
                let turn = file::TurnEntry {
                    expect: Some(request_expectation(request)),
                    say: (!said.is_empty()).then_some(said),
                    hang: fail.is_none(),
                    fail,
                    ..file::TurnEntry::default()
                };
                (turn, bytes)
            }
        };
        let bytes = bytes.saturating_add(thought.len());
        turn.think = (!thought.is_empty()).then_some(thought);
        self.recording.add_turn(cx, turn, bytes);
        result
    }
}

/// Converts an answer to a transcript's turn; also returns the answer's bytes.
fn reply_turn(request: &ChatRequest, reply: &ModelReply) -> (file::TurnEntry, usize) {
    let arguments: usize = reply.calls.iter().map(|call| call.arguments.len()).sum();
    let turn = file::TurnEntry {
        expect: Some(request_expectation(request)),
        say: (!reply.text.is_empty() || reply.calls.is_empty()).then(|| reply.text.clone()),
        calls: reply.calls.iter().map(call_entry).collect(),
        reasoning: reply.reasoning.clone().filter(is_flat),
        stop: Some(reply.stop.clone().into()),
        usage: Some(reply.usage.into()),
        ..file::TurnEntry::default()
    };
    let reasoning = turn.reasoning.as_ref().map_or(0, Reasoning::text_bytes);
    (turn, reply.text.len() + arguments + reasoning)
}

/// Returns whether the reasoning is no deeper than a transcript may be. A model can send any JSON in it.
fn is_flat(reasoning: &Reasoning) -> bool {
    serde_json::to_value(reasoning).is_ok_and(|value| depth_within(&value, MAX_YAML_DEPTH))
}

/// The expectation of a recorded turn: the same tools, and results of the same tools.
fn request_expectation(request: &ChatRequest) -> RequestExpectation {
    let tools: Vec<String> = request.tools.iter().map(|tool| tool.name.clone()).collect();
    let results = new_results(request).into_iter().map(|result| ExpectResult {
        name: result.name.clone(),
        is_error: Some(result.is_error),
        ..ExpectResult::default()
    });
    RequestExpectation {
        no_tools: tools.is_empty(),
        tools: (!tools.is_empty()).then_some(tools),
        results: Some(results.collect()),
        ..RequestExpectation::default()
    }
}

/// A call in the form of a transcript: arguments as YAML if they are a shallow object, otherwise as text.
fn call_entry(call: &ToolCall) -> file::CallEntry {
    let object = match serde_json::from_str::<Value>(&call.arguments) {
        Ok(value @ Value::Object(_)) if depth_within(&value, MAX_YAML_DEPTH) => Some(value),
        Ok(_) | Err(_) => None,
    };
    file::CallEntry {
        name: call.name.clone(),
        id: None,
        raw_arguments: object.is_none().then(|| call.arguments.clone()),
        arguments: object,
    }
}

/// Returns whether a value has at most `depth` levels.
fn depth_within(value: &Value, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    match value {
        Value::Object(object) => object.values().all(|value| depth_within(value, depth)),
        Value::Array(items) => items.iter().all(|value| depth_within(value, depth)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// The failure in the form of a transcript; `None` if the model did not answer in time.
fn fail_entry(error: &ModelError) -> Option<file::FailEntry> {
    let fail = |status, kind, message: &str| {
        Some(file::FailEntry {
            status,
            kind,
            message: (!message.is_empty()).then(|| message.to_owned()),
            retry_after: error.retry_after().map(|time| time.as_secs()),
        })
    };
    match error {
        ModelError::Cancelled | ModelError::Timeout { .. } => None,
        ModelError::RateLimited { message, .. } => fail(Some(429), None, message),
        ModelError::Auth { status, message } | ModelError::Http { status, message, .. } => {
            fail(Some(*status), None, message)
        }
        ModelError::ContextLength { message } => fail(None, Some(file::FailKind::Context), message),
        ModelError::Network { message } => fail(None, Some(file::FailKind::Network), message),
        ModelError::Cut => fail(None, Some(file::FailKind::Cut), ""),
        ModelError::Provider { .. }
        | ModelError::Protocol { .. }
        | ModelError::TooLarge { .. }
        | ModelError::Script(_) => fail(None, Some(file::FailKind::Protocol), &error.to_string()),
    }
}

impl std::fmt::Debug for RecordingModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordingModel").field("inner", &self.inner.id()).finish_non_exhaustive()
    }
}
