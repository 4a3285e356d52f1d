//! The events of a streamed message.

use serde::Deserialize;
use serde_json::Value;

use crate::wire::answer::other_stop;
use crate::wire::{Answer, Decoder, Progress, Sink, failure};
use crate::{ChatRequest, ModelError, Reply, StopReason};

/// The answer so far.
pub(crate) struct Stream {
    answer: Answer,
    counts: Counts,
    over: bool,
}

impl Stream {
    pub(crate) fn new(request: &ChatRequest) -> Self {
        Self { answer: Answer::to(request), counts: Counts::default(), over: false }
    }
}

/// Input is counted in three parts that do not overlap.
#[derive(Default)]
struct Counts {
    fresh: u64,
    cache_written: u64,
    cache_read: u64,
    output: u64,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    MessageDelta {
        delta: MessageDelta,
        usage: Option<WireUsage>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    /// `ping`, `content_block_stop`, and whatever is added to the API later.
    #[serde(other)]
    Ignored,
}

#[derive(Deserialize)]
struct Start {
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        /// Empty at first on Anthropic's own servers; others send the whole input here.
        input: Option<Value>,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
    },
    #[serde(other)]
    Ignored,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(other)]
    Ignored,
}

#[derive(Deserialize)]
struct MessageDelta {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Decoder for Stream {
    fn event(&mut self, _: &str, data: &str, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        if self.over {
            return Ok(());
        }
        let event: Event = serde_json::from_str(data).map_err(|error| ModelError::Protocol {
            // The position in a line tells nothing, and the line is the peer's.
            message: format!("an event is not of the messages API ({:?} error)", error.classify()),
        })?;
        match event {
            Event::MessageStart { message } => self.count(message.usage),
            Event::ContentBlockStart { index, content_block } => {
                self.begin(index, content_block, sink)?
            }
            Event::ContentBlockDelta { index, delta } => self.delta(index, delta, sink)?,
            Event::MessageDelta { delta, usage } => {
                self.count(usage);
                if let Some(reason) = delta.stop_reason {
                    self.answer.stop = Some(stop(&reason));
                }
            }
            Event::MessageStop => self.over = true,
            Event::Error { error } => return Err(failure::in_stream(&error)),
            Event::Ignored => {}
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        match (self.over, &self.answer.stop) {
            (true, _) => Progress::Over,
            (false, Some(_)) => Progress::Complete,
            (false, None) => Progress::Partial,
        }
    }

    fn into_reply(self: Box<Self>) -> Reply {
        self.answer.finish()
    }
}

impl Stream {
    fn begin(&mut self, index: u64, block: Block, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        match block {
            Block::Text { text } => self.answer.push_text(&text, sink),
            Block::Thinking { thinking } => {
                Answer::push_thinking(&thinking, sink);
                Ok(())
            }
            Block::ToolUse { id, name, input } => {
                let call = self.answer.begin_call(index, &id, &name, sink)?;
                match input {
                    Some(Value::Object(input)) if !input.is_empty() => {
                        call.push_arguments(&Value::Object(input).to_string())
                    }
                    Some(_) | None => Ok(()),
                }
            }
            Block::Ignored => Ok(()),
        }
    }

    fn delta(&mut self, index: u64, delta: Delta, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        match delta {
            Delta::Text { text } => self.answer.push_text(&text, sink),
            Delta::Thinking { thinking } => {
                Answer::push_thinking(&thinking, sink);
                Ok(())
            }
            Delta::InputJson { partial_json } => match self.answer.call(index) {
                Some(call) => call.push_arguments(&partial_json),
                // Input of a block of a kind that is ignored.
                None => Ok(()),
            },
            Delta::Ignored => Ok(()),
        }
    }

    /// Takes new counts; they are totals, and those that are absent stay as they were.
    fn count(&mut self, usage: Option<WireUsage>) {
        let Some(usage) = usage else { return };
        let counts = &mut self.counts;
        counts.fresh = usage.input_tokens.unwrap_or(counts.fresh);
        counts.cache_written = usage.cache_creation_input_tokens.unwrap_or(counts.cache_written);
        counts.cache_read = usage.cache_read_input_tokens.unwrap_or(counts.cache_read);
        counts.output = usage.output_tokens.unwrap_or(counts.output);
        self.answer.usage = crate::TokenUsage {
            input_tokens: counts
                .fresh
                .saturating_add(counts.cache_written)
                .saturating_add(counts.cache_read),
            cached_tokens: counts.cache_read,
            output_tokens: counts.output,
        };
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "refusal" => StopReason::Refusal,
        other => other_stop(other),
    }
}
