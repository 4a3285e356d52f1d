//! Reads the events of a streamed chat completion, or a completion in one piece.
//!
//! Servers differ from OpenAI in many details, which are all accepted here: calls sent whole instead of in
//! pieces; calls without an index, without an id, or all with index 0 (`calls.rs`); arguments as an object
//! instead of a text; reasoning in fields of many names; content as a list of parts; no usage, a usage that
//! is no whole number, or cache counts elsewhere (llama.cpp's `timings`, DeepSeek's
//! `prompt_cache_hit_tokens`, Groq's `x_groq`); keep-alives of every form; errors inside a stream that began
//! with status 200; no `[DONE]`.

use serde_json::Value;

use super::calls::{self, CallFragment};
use crate::wire::{
    AnswerProgress, AttemptSink, ReplyDecoder, StreamedAnswer, events, lenient, reason,
};
use crate::{ChatRequest, ModelError, ModelReply, StopReason, TokenUsage};

/// The answer as far as it has arrived.
pub(crate) struct OpenAiStream {
    answer: StreamedAnswer,
    /// True after the server sent a usage, which counts more than its timings.
    has_usage: bool,
    /// True if the model refused to answer, in a separate field.
    refused: bool,
    done: bool,
    /// The number of the choice that contains the answer; `None` before the first choice, or if it has no
    /// number.
    choice: Option<u64>,
}

impl OpenAiStream {
    pub(crate) fn new(request: &ChatRequest, model: &str) -> Self {
        let answer = StreamedAnswer::for_request(request, model);
        Self { answer, has_usage: false, refused: false, done: false, choice: None }
    }
}

impl ReplyDecoder for OpenAiStream {
    /// Handles a chunk of the stream: its choice and its usage.
    fn decode_event(
        &mut self,
        name: &str,
        data: &str,
        sink: &mut AttemptSink<'_>,
    ) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let Some(chunk) = events::parse_event(name, data)? else { return Ok(()) };
        // Only one choice was requested. Pieces of a second one, which is another answer, are skipped.
        let number = |choice: &&Value| lenient::read_count(choice, "index");
        let choices = lenient::read_items(&chunk, "choices").iter();
        if let Some(choice) = choices.min_by_key(number) {
            let number = number(&choice);
            self.choice = self.choice.or(number);
            if number.is_none() || number == self.choice {
                self.apply_choice(choice, sink)?;
            }
        }
        self.read_usage(&chunk);
        Ok(())
    }

    /// How far the answer has arrived. Without a stop reason, an answer with content is over when the server
    /// sent `[DONE]`.
    fn progress(&self) -> AnswerProgress {
        let has_answer = self.answer.has_content() && !self.answer.is_cut_in_a_call();
        if self.done && (self.answer.stop.is_some() || has_answer) {
            AnswerProgress::Over
        } else if self.answer.stop.is_some() {
            AnswerProgress::Complete
        } else {
            AnswerProgress::Partial
        }
    }

    fn decode_whole(&mut self, body: &str, sink: &mut AttemptSink<'_>) -> Result<(), ModelError> {
        self.decode_event("", body, sink)?;
        self.done = true;
        Ok(())
    }

    fn into_reply(self: Box<Self>) -> ModelReply {
        self.answer.into_reply()
    }
}

impl OpenAiStream {
    /// Handles a choice: an error, a piece of the answer, and the reason of its end.
    fn apply_choice(
        &mut self,
        choice: &Value,
        sink: &mut AttemptSink<'_>,
    ) -> Result<(), ModelError> {
        if let Some(error) = choice.get("error").filter(|error| !error.is_null()) {
            return Err(crate::wire::failure::in_stream(error));
        }
        let delta = choice.get("delta").filter(|delta| delta.is_object());
        // A message with the whole answer. After pieces it only repeats them, and is ignored.
        let message = || choice.get("message").filter(|_| !self.answer.has_content());
        if let Some(delta) = delta.or_else(message) {
            let delta = delta.clone();
            self.apply_delta(&delta, sink)?;
        }
        let word = choice.get("finish_reason").and_then(Value::as_str);
        // Some servers send an empty reason with every piece.
        if let Some(word) = word.filter(|word| !word.is_empty()) {
            let stop = reason::parse_stop_reason(word)?;
            let refused = self.refused && stop == StopReason::EndTurn;
            self.answer.stop = Some(if refused { StopReason::Refusal } else { stop });
        }
        Ok(())
    }

    /// Adds a piece of the answer: its reasoning, content, refusal and calls.
    fn apply_delta(&mut self, delta: &Value, sink: &mut AttemptSink<'_>) -> Result<(), ModelError> {
        let thinking = ["reasoning_content", "reasoning", "reasoning_text"];
        let mut thinking = thinking.iter().filter_map(|name| delta.get(*name)?.as_str());
        let thinking = thinking.find(|text| !text.is_empty());
        StreamedAnswer::push_thinking(thinking.unwrap_or_default(), sink);
        self.answer.thoughts.take_message(delta);
        match delta.get("content") {
            Some(Value::String(text)) => self.answer.push_text(text, sink)?,
            Some(Value::Array(parts)) => {
                parts.iter().try_for_each(|part| self.apply_part(part, sink))?;
            }
            _ => {}
        }
        let refusal = lenient::read_text(delta, "refusal");
        if !refusal.is_empty() {
            self.refused = true;
            self.answer.push_text(&refusal, sink)?;
        }
        for call in lenient::read_items(delta, "tool_calls") {
            calls::take_fragment(&mut self.answer, CallFragment::from_call(call), sink)?;
        }
        if let Some(call) = lenient::read_object(delta, "function_call") {
            calls::take_fragment(&mut self.answer, CallFragment::from_function(call), sink)?;
        }
        Ok(())
    }

    /// Adds one part of a content that is a list.
    fn apply_part(&mut self, part: &Value, sink: &mut AttemptSink<'_>) -> Result<(), ModelError> {
        let thought = part.as_object().filter(|part| part.contains_key("thinking"));
        let Some(thought) = thought else {
            let text = part.as_str().or_else(|| part.get("text")?.as_str());
            return self.answer.push_text(text.unwrap_or_default(), sink);
        };
        for text in lenient::read_items(part, "thinking") {
            let text = text.as_str().or_else(|| text.get("text")?.as_str());
            StreamedAnswer::push_thinking(text.unwrap_or_default(), sink);
        }
        let (text, calls) = (self.answer.text_bytes(), self.answer.call_count());
        self.answer.thoughts.take_part(thought, text, calls);
        Ok(())
    }

    /// Stores the token counts of a chunk: from `usage`, from Groq's `x_groq`, or from llama.cpp's `timings`.
    fn read_usage(&mut self, chunk: &Value) {
        let timings = chunk.get("timings").filter(|timings| timings.is_object());
        let cache_n = timings.and_then(|timings| lenient::read_count(timings, "cache_n"));
        let usage = chunk.get("usage").filter(|usage| usage.is_object());
        let usage = usage.or_else(|| chunk.get("x_groq")?.get("usage"));
        if let Some(usage) = usage.filter(|usage| usage.is_object()) {
            let details = usage.get("prompt_tokens_details");
            let details = details.and_then(|details| lenient::read_count(details, "cached_tokens"));
            let cached =
                details.or(lenient::read_count(usage, "prompt_cache_hit_tokens")).or(cache_n);
            let known = self.answer.usage;
            self.has_usage = true;
            self.answer.usage = TokenUsage {
                input_tokens: lenient::read_count(usage, "prompt_tokens")
                    .unwrap_or(known.input_tokens),
                cached_tokens: cached.unwrap_or(known.cached_tokens),
                output_tokens: lenient::read_count(usage, "completion_tokens")
                    .unwrap_or(known.output_tokens),
            };
        } else if let Some(timings) = timings {
            let cached = cache_n.unwrap_or(0);
            if self.has_usage {
                let counted = &mut self.answer.usage.cached_tokens;
                *counted = (*counted).max(cached);
            } else {
                let fresh = lenient::read_count(timings, "prompt_n").unwrap_or(0);
                self.answer.usage = TokenUsage {
                    input_tokens: fresh.saturating_add(cached),
                    cached_tokens: cached,
                    output_tokens: lenient::read_count(timings, "predicted_n").unwrap_or(0),
                };
            }
        }
    }
}
