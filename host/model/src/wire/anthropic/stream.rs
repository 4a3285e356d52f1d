//! The events of a streamed message, or a message in one piece.

use serde_json::{Map, Value};

use crate::wire::{Answer, Decoder, Progress, Sink, events, lenient, reason};
use crate::{ChatRequest, ModelError, Reply};

/// The answer so far.
pub(crate) struct Stream {
    answer: Answer,
    counts: Counts,
    over: bool,
}

impl Stream {
    pub(crate) fn new(request: &ChatRequest, model: &str) -> Self {
        Self { answer: Answer::to(request, model), counts: Counts::default(), over: false }
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

impl Decoder for Stream {
    fn event(&mut self, name: &str, data: &str, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        // `[DONE]` is not a part of this API, but some servers send it.
        if self.over || data.trim() == "[DONE]" {
            return Ok(());
        }
        let Some(event) = events::read(name, data)? else { return Ok(()) };
        let kind = event.get("type").and_then(Value::as_str).unwrap_or(name);
        let index = lenient::count(&event, "index").unwrap_or_default();
        let nothing = Value::Null;
        let field = |name: &str| event.get(name).unwrap_or(&nothing);
        match kind {
            "message_start" => self.count(field("message")),
            "content_block_start" => self.begin(index, field("content_block"), sink)?,
            "content_block_delta" => self.delta(index, field("delta"), sink)?,
            "message_delta" => {
                self.count(&event);
                self.stops(field("delta"))?;
            }
            "message_stop" => self.over = true,
            "message" => self.message(&event, sink)?,
            // `ping`, `content_block_stop`, and later additions to the API.
            _ => {}
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

    fn whole(&mut self, body: &str, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        self.event("", body, sink)
    }

    fn into_reply(self: Box<Self>) -> Reply {
        self.answer.finish()
    }
}

impl Stream {
    /// A message that is not streamed.
    fn message(&mut self, message: &Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        for (block, index) in lenient::items(message, "content").iter().zip(0..) {
            self.begin(index, block, sink)?;
        }
        self.count(message);
        self.over = true;
        self.stops(message)
    }

    fn begin(&mut self, index: u64, block: &Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        match block.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text" => self.answer.push_text(&lenient::text(block, "text"), sink),
            "thinking" | "redacted_thinking" => {
                Answer::push_thinking(&lenient::text(block, "thinking"), sink);
                let block: Map<String, Value> = block.as_object().cloned().unwrap_or_default();
                let (text, calls) = (self.answer.text_bytes(), self.answer.call_count());
                self.answer.thoughts.begin_block(index, block, text, calls);
                Ok(())
            }
            "tool_use" => {
                let (id, name) = (lenient::text(block, "id"), lenient::text(block, "name"));
                let at = self.answer.begin_call(Some(index), &id, &name, sink)?;
                // Empty at first on Anthropic's own servers; others send the whole input here.
                match (lenient::object(block, "input"), self.answer.call(at)) {
                    (Some(input), Some(call)) => {
                        call.push_arguments(&Value::Object(input.clone()).to_string())
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn delta(&mut self, index: u64, delta: &Value, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        match delta.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text_delta" => self.answer.push_text(&lenient::text(delta, "text"), sink),
            "thinking_delta" => {
                let thinking = lenient::text(delta, "thinking");
                Answer::push_thinking(&thinking, sink);
                self.answer.thoughts.grow_block(index, "thinking", &thinking, false);
                Ok(())
            }
            "signature_delta" => {
                let signature = lenient::text(delta, "signature");
                self.answer.thoughts.grow_block(index, "signature", &signature, true);
                Ok(())
            }
            "input_json_delta" => {
                let at = self.answer.find(|call| call.key == Some(index));
                match at.and_then(|at| self.answer.call(at)) {
                    Some(call) => call.push_arguments(&lenient::text(delta, "partial_json")),
                    // Input of a block of a kind that is ignored.
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Stores the reason why the model stopped, if stated.
    fn stops(&mut self, place: &Value) -> Result<(), ModelError> {
        let word = place.get("stop_reason").and_then(Value::as_str);
        if let Some(word) = word.filter(|word| !word.is_empty()) {
            self.answer.stop = Some(reason::stop(word)?);
        }
        Ok(())
    }

    /// Stores new counts, which are totals. Absent counts stay unchanged.
    fn count(&mut self, place: &Value) {
        let Some(usage) = place.get("usage").filter(|usage| usage.is_object()) else { return };
        let counts = &mut self.counts;
        for (count, field) in [
            (&mut counts.fresh, "input_tokens"),
            (&mut counts.cache_written, "cache_creation_input_tokens"),
            (&mut counts.cache_read, "cache_read_input_tokens"),
            (&mut counts.output, "output_tokens"),
        ] {
            *count = lenient::count(usage, field).unwrap_or(*count);
        }
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
