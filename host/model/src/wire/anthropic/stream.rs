//! Reads the events of a streamed answer of Anthropic's API, or an answer in one piece.

use serde_json::{Map, Value};

use crate::wire::{
    AnswerProgress, AttemptSink, ReplyDecoder, StreamedAnswer, events, lenient, reason,
};
use crate::{ChatRequest, ModelError, ModelReply};

/// The answer as far as it has arrived.
pub(crate) struct AnthropicStream {
    answer: StreamedAnswer,
    counts: UsageCounts,
    over: bool,
}

impl AnthropicStream {
    /// A decoder of the answer to `request`, before the first event.
    pub(crate) fn new(request: &ChatRequest, model: &str) -> Self {
        Self {
            answer: StreamedAnswer::for_request(request, model),
            counts: UsageCounts::default(),
            over: false,
        }
    }
}

/// The counts of input tokens: three numbers that do not overlap.
#[derive(Default)]
struct UsageCounts {
    fresh: u64,
    cache_written: u64,
    cache_read: u64,
    output: u64,
}

impl ReplyDecoder for AnthropicStream {
    /// Handles an event by its type: the beginning, a content block or piece of one, or the end.
    fn decode_event(
        &mut self,
        name: &str,
        data: &str,
        sink: &mut AttemptSink<'_>,
    ) -> Result<(), ModelError> {
        // `[DONE]` is not part of this API, but some servers send it.
        if self.over || data.trim() == "[DONE]" {
            return Ok(());
        }
        let Some(event) = events::parse_event(name, data)? else { return Ok(()) };
        let kind = event.get("type").and_then(Value::as_str).unwrap_or(name);
        let index = lenient::read_count(&event, "index").unwrap_or_default();
        let nothing = Value::Null;
        let field = |name: &str| event.get(name).unwrap_or(&nothing);
        match kind {
            "message_start" => self.read_usage(field("message")),
            "content_block_start" => self.begin_block(index, field("content_block"), sink)?,
            "content_block_delta" => self.apply_delta(index, field("delta"), sink)?,
            "message_delta" => {
                self.read_usage(&event);
                self.read_stop(field("delta"))?;
            }
            "message_stop" => self.over = true,
            "message" => self.decode_message(&event, sink)?,
            // `ping`, `content_block_stop`, and kinds that the API may add later, are ignored.
            _ => {}
        }
        Ok(())
    }

    /// How far the answer has arrived.
    fn progress(&self) -> AnswerProgress {
        match (self.over, &self.answer.stop) {
            (true, _) => AnswerProgress::Over,
            (false, Some(_)) => AnswerProgress::Complete,
            (false, None) => AnswerProgress::Partial,
        }
    }

    fn decode_whole(&mut self, body: &str, sink: &mut AttemptSink<'_>) -> Result<(), ModelError> {
        self.decode_event("", body, sink)
    }

    fn into_reply(self: Box<Self>) -> ModelReply {
        self.answer.into_reply()
    }
}

impl AnthropicStream {
    /// Reads an answer that is not streamed.
    fn decode_message(
        &mut self,
        message: &Value,
        sink: &mut AttemptSink<'_>,
    ) -> Result<(), ModelError> {
        for (block, index) in lenient::read_items(message, "content").iter().zip(0..) {
            self.begin_block(index, block, sink)?;
        }
        self.read_usage(message);
        self.over = true;
        self.read_stop(message)
    }

    /// Begins a content block: text, reasoning or a tool call.
    fn begin_block(
        &mut self,
        index: u64,
        block: &Value,
        sink: &mut AttemptSink<'_>,
    ) -> Result<(), ModelError> {
        match block.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text" => self.answer.push_text(&lenient::read_text(block, "text"), sink),
            "thinking" | "redacted_thinking" => {
                StreamedAnswer::push_thinking(&lenient::read_text(block, "thinking"), sink);
                let block: Map<String, Value> = block.as_object().cloned().unwrap_or_default();
                let (text, calls) = (self.answer.text_bytes(), self.answer.call_count());
                self.answer.thoughts.begin_block(index, block, text, calls);
                Ok(())
            }
            "tool_use" => {
                let (id, name) =
                    (lenient::read_text(block, "id"), lenient::read_text(block, "name"));
                let at = self.answer.begin_call(Some(index), &id, &name, sink)?;
                // Anthropic's own servers begin with an empty input; others send the whole input here.
                match (lenient::read_object(block, "input"), self.answer.call_mut(at)) {
                    (Some(input), Some(call)) => {
                        call.push_arguments(&Value::Object(input.clone()).to_string())
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Adds a piece to the content block with this index.
    fn apply_delta(
        &mut self,
        index: u64,
        delta: &Value,
        sink: &mut AttemptSink<'_>,
    ) -> Result<(), ModelError> {
        match delta.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text_delta" => self.answer.push_text(&lenient::read_text(delta, "text"), sink),
            "thinking_delta" => {
                let thinking = lenient::read_text(delta, "thinking");
                StreamedAnswer::push_thinking(&thinking, sink);
                self.answer.thoughts.grow_block(index, "thinking", &thinking, false);
                Ok(())
            }
            "signature_delta" => {
                let signature = lenient::read_text(delta, "signature");
                self.answer.thoughts.grow_block(index, "signature", &signature, true);
                Ok(())
            }
            "input_json_delta" => {
                let at = self.answer.find_call(|call| call.key == Some(index));
                match at.and_then(|at| self.answer.call_mut(at)) {
                    Some(call) => call.push_arguments(&lenient::read_text(delta, "partial_json")),
                    // The input belongs to a block of a kind that is ignored.
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Stores the reason why the model stopped, if stated.
    fn read_stop(&mut self, place: &Value) -> Result<(), ModelError> {
        let word = place.get("stop_reason").and_then(Value::as_str);
        if let Some(word) = word.filter(|word| !word.is_empty()) {
            self.answer.stop = Some(reason::parse_stop_reason(word)?);
        }
        Ok(())
    }

    /// Stores the token counts of an event, which are totals. Counts that are absent stay as they were.
    fn read_usage(&mut self, place: &Value) {
        let Some(usage) = place.get("usage").filter(|usage| usage.is_object()) else { return };
        let counts = &mut self.counts;
        for (count, field) in [
            (&mut counts.fresh, "input_tokens"),
            (&mut counts.cache_written, "cache_creation_input_tokens"),
            (&mut counts.cache_read, "cache_read_input_tokens"),
            (&mut counts.output, "output_tokens"),
        ] {
            *count = lenient::read_count(usage, field).unwrap_or(*count);
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
