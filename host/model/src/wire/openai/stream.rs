//! The events of a streamed chat completion.
//!
//! Differences of other servers from OpenAI, all of them accepted here: calls sent whole instead of
//! in pieces; calls without an index, without an id, or all with index 0; arguments as an object
//! instead of its text; thinking in `reasoning_content` or `reasoning`; content as a list of parts;
//! no usage, or cache counts elsewhere (llama.cpp's `timings`, DeepSeek's
//! `prompt_cache_hit_tokens`); errors inside a stream that began with status 200; no `[DONE]`.

use serde::Deserialize;
use serde_json::Value;

use crate::wire::answer::{PartialCall, other_stop};
use crate::wire::{Answer, Decoder, Progress, Sink, failure};
use crate::{ChatRequest, ModelError, Reply, StopReason, TokenUsage};

/// The answer so far.
pub(crate) struct Stream {
    answer: Answer,
    /// The server sent a usage, which weighs more than its timings.
    has_usage: bool,
    /// The model declined in a field of its own.
    refused: bool,
    done: bool,
}

impl Stream {
    pub(crate) fn new(request: &ChatRequest) -> Self {
        Self { answer: Answer::to(request), has_usage: false, refused: false, done: false }
    }
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    usage: Option<WireUsage>,
    timings: Option<Timings>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Value>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

/// The counts of llama.cpp; `prompt_n` leaves out what came from its cache.
#[derive(Deserialize)]
struct Timings {
    cache_n: Option<u64>,
    prompt_n: Option<u64>,
    predicted_n: Option<u64>,
}

impl Decoder for Stream {
    fn event(&mut self, _: &str, data: &str, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| ModelError::Protocol {
            // The position in a line tells nothing, and the line is the peer's.
            message: format!(
                "an event is not a chat completion chunk ({:?} error)",
                error.classify()
            ),
        })?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(failure::in_stream(&error));
        }
        // One choice was asked for; a second would be another answer.
        if let Some(choice) = chunk.choices.and_then(|choices| choices.into_iter().next()) {
            if let Some(delta) = choice.delta {
                self.delta(delta, sink)?;
            }
            if let Some(reason) = choice.finish_reason {
                self.answer.stop = Some(self.stop(&reason));
            }
        }
        self.count(chunk.usage, chunk.timings);
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.done && (self.answer.stop.is_some() || self.answer.has_content()) {
            Progress::Over
        } else if self.answer.stop.is_some() {
            Progress::Complete
        } else {
            Progress::Partial
        }
    }

    fn into_reply(self: Box<Self>) -> Reply {
        self.answer.finish()
    }
}

impl Stream {
    fn delta(&mut self, delta: Delta, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let thinking = delta.reasoning_content.filter(|text| !text.is_empty()).or(delta.reasoning);
        Answer::push_thinking(&thinking.unwrap_or_default(), sink);
        match &delta.content {
            Some(Value::String(text)) => self.answer.push_text(text, sink)?,
            Some(Value::Array(parts)) => {
                for text in parts.iter().filter_map(|part| part.get("text")?.as_str()) {
                    self.answer.push_text(text, sink)?;
                }
            }
            _ => {}
        }
        if let Some(refusal) = delta.refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.answer.push_text(&refusal, sink)?;
        }
        for call in delta.tool_calls.unwrap_or_default() {
            self.call(call, sink)?;
        }
        Ok(())
    }

    fn call(&mut self, delta: CallDelta, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        let (name, arguments) = match delta.function {
            Some(function) => (function.name.unwrap_or_default(), function.arguments),
            None => (String::new(), None),
        };
        let id = delta.id.unwrap_or_default();
        let arguments = match arguments {
            Some(Value::String(part)) => part,
            None | Some(Value::Null) => String::new(),
            Some(object) => object.to_string(),
        };
        let open = match delta.index {
            Some(index) => self.answer.call(index),
            None => self.answer.last_call(),
        };
        if let Some(open) = open.filter(|open| !begins_another(open, &id, &name)) {
            open.identify(&id, &name)?;
            return open.push_arguments(&arguments);
        }
        let count = u64::try_from(self.answer.call_count()).unwrap_or(u64::MAX);
        let call = self.answer.begin_call(delta.index.unwrap_or(count), &id, &name, sink)?;
        // Looked at only once per call, so that a peer cannot make it costly.
        call.whole = serde_json::from_str::<serde::de::IgnoredAny>(&arguments).is_ok();
        call.push_arguments(&arguments)
    }

    fn stop(&self, reason: &str) -> StopReason {
        match reason {
            "stop" if self.refused => StopReason::Refusal,
            "stop" | "eos" => StopReason::EndTurn,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            "length" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            other => other_stop(other),
        }
    }

    fn count(&mut self, usage: Option<WireUsage>, timings: Option<Timings>) {
        let cache_n = timings.as_ref().and_then(|timings| timings.cache_n);
        if let Some(usage) = usage {
            let details = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
            let cached = details.or(usage.prompt_cache_hit_tokens).or(cache_n);
            self.has_usage = true;
            self.answer.usage = TokenUsage {
                input_tokens: usage.prompt_tokens.unwrap_or(0),
                cached_tokens: cached.unwrap_or(self.answer.usage.cached_tokens),
                output_tokens: usage.completion_tokens.unwrap_or(0),
            };
        } else if let Some(timings) = timings {
            let cached = timings.cache_n.unwrap_or(0);
            if self.has_usage {
                let counted = &mut self.answer.usage.cached_tokens;
                *counted = (*counted).max(cached);
            } else {
                self.answer.usage = TokenUsage {
                    input_tokens: timings.prompt_n.unwrap_or(0).saturating_add(cached),
                    cached_tokens: cached,
                    output_tokens: timings.predicted_n.unwrap_or(0),
                };
            }
        }
    }
}

/// Whether a delta that carries `id` and `name` is about another call than `open`.
fn begins_another(open: &PartialCall, id: &str, name: &str) -> bool {
    if !id.is_empty() && !open.id.is_empty() {
        return id != open.id;
    }
    // No ids to go by. A name that is only repeated, or comes late, begins nothing.
    !name.is_empty() && !open.name.is_empty() && (open.whole || open.name != name)
}
