//! Collects an answer while it is streamed: within limits, and passing on each piece.

use belljar_received::json::mend_owned;

use crate::limits::{MAX_ARGUMENT_BYTES, MAX_NAME_BYTES, MAX_TEXT_BYTES, MAX_TOOL_CALLS};
use crate::wire::thoughts::StreamedReasoning;
use crate::{
    ChatMessage, ChatRequest, ModelError, ModelReply, StopReason, StreamEvent, TokenUsage, ToolCall,
};

/// Passes events to the caller, and records how far an attempt has come: after text was passed on, another
/// attempt is made only if the caller can withdraw the text.
pub(crate) struct AttemptSink<'e> {
    events: &'e mut (dyn FnMut(StreamEvent) + Send),
    started: bool,
    said: bool,
}

impl<'e> AttemptSink<'e> {
    pub(crate) fn new(events: &'e mut (dyn FnMut(StreamEvent) + Send)) -> Self {
        Self { events, started: false, said: false }
    }

    /// Returns whether the first token of this attempt has been passed on.
    pub(crate) fn has_started(&self) -> bool {
        self.started
    }

    /// Returns whether text of this attempt has been passed on.
    pub(crate) fn has_text(&self) -> bool {
        self.said
    }

    /// Tells the caller that an attempt failed and another follows.
    pub(crate) fn begin_retry(&mut self, event: StreamEvent) {
        (self.started, self.said) = (false, false);
        (self.events)(event);
    }

    /// Passes an event on, preceded by [`StreamEvent::Started`] if it is the first one of the attempt.
    fn forward_event(&mut self, event: StreamEvent) {
        if !self.started {
            self.started = true;
            (self.events)(StreamEvent::Started);
        }
        self.said |= matches!(event, StreamEvent::TextDelta(_));
        (self.events)(event);
    }
}

/// The parts of an answer that have arrived.
#[derive(Debug, Default)]
pub(crate) struct StreamedAnswer {
    text: String,
    calls: Vec<PartialCall>,
    pub(crate) usage: TokenUsage,
    pub(crate) stop: Option<StopReason>,
    pub(crate) thoughts: StreamedReasoning,
    /// The identity of the model, for example `openai:kimi-k2@api.moonshot.ai`, to label its reasoning.
    model: String,
    /// A number in the ids of calls that the server sent without an id, so these ids are unique in a
    /// conversation.
    turn: usize,
}

/// A tool call whose arguments may still grow.
#[derive(Debug)]
pub(crate) struct PartialCall {
    /// The server's number for the call: an index of calls or of content blocks.
    pub(crate) key: Option<u64>,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// True after the server has sent the name again although the arguments were complete.
    pub(crate) again: bool,
    /// The state of the arguments, which shows whether they are a complete JSON object.
    shape: ArgumentShape,
}

/// Follows the arguments byte by byte, in constant time for each, and detects when the JSON object is
/// complete.
#[derive(Debug, Default)]
struct ArgumentShape {
    depth: usize,
    in_text: bool,
    escaped: bool,
    whole: bool,
}

impl ArgumentShape {
    /// Counts brackets outside of texts; the arguments are complete when the depth returns to 0.
    fn push(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_text => self.escaped = true,
                b'"' => self.in_text = !self.in_text,
                _ if self.in_text => {}
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.whole |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

impl StreamedAnswer {
    /// An empty answer to `request` by the model with the identity `model`.
    pub(crate) fn for_request(request: &ChatRequest, model: &str) -> Self {
        let turns = request
            .messages
            .iter()
            .filter(|message| matches!(message, ChatMessage::Assistant { .. }));
        Self { turn: turns.count() + 1, model: model.to_owned(), ..Self::default() }
    }

    /// Adds text within the limit, and passes it on.
    pub(crate) fn push_text(
        &mut self,
        text: &str,
        sink: &mut AttemptSink<'_>,
    ) -> Result<(), ModelError> {
        if text.is_empty() {
            return Ok(());
        }
        if self.text.len().saturating_add(text.len()) > MAX_TEXT_BYTES {
            return Err(ModelError::TooLarge { what: "bytes of text", limit: MAX_TEXT_BYTES });
        }
        self.text.push_str(text);
        sink.forward_event(StreamEvent::TextDelta(text.to_owned()));
        Ok(())
    }

    /// Returns whether a call's arguments have begun and are not complete.
    pub(crate) fn is_cut_in_a_call(&self) -> bool {
        self.calls.iter().any(|call| call.shape.depth > 0)
    }

    /// Passes on a piece of reasoning for display. Its stored form is kept in [`StreamedReasoning`].
    pub(crate) fn push_thinking(text: &str, sink: &mut AttemptSink<'_>) {
        if !text.is_empty() {
            sink.forward_event(StreamEvent::ThinkingDelta(text.to_owned()));
        }
    }

    /// Begins a call, with the server's number `key` if it sent one. Returns the call's position.
    pub(crate) fn begin_call(
        &mut self,
        key: Option<u64>,
        id: &str,
        name: &str,
        sink: &mut AttemptSink<'_>,
    ) -> Result<usize, ModelError> {
        if self.calls.len() >= MAX_TOOL_CALLS {
            return Err(ModelError::TooLarge { what: "tool calls", limit: MAX_TOOL_CALLS });
        }
        check_names(id, name)?;
        sink.forward_event(StreamEvent::CallStarted { name: name.to_owned() });
        self.calls.push(PartialCall {
            key,
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
            again: false,
            shape: ArgumentShape::default(),
        });
        Ok(self.calls.len() - 1)
    }

    /// The position of the newest call for which `holds` is true.
    pub(crate) fn find_call(&self, holds: impl Fn(&PartialCall) -> bool) -> Option<usize> {
        self.calls.iter().rposition(holds)
    }

    /// The call at a position.
    pub(crate) fn call_mut(&mut self, at: usize) -> Option<&mut PartialCall> {
        self.calls.get_mut(at)
    }

    /// The position of the newest call.
    pub(crate) fn last_call(&self) -> Option<usize> {
        self.calls.len().checked_sub(1)
    }

    /// The number of begun calls.
    pub(crate) fn call_count(&self) -> usize {
        self.calls.len()
    }

    /// The bytes of text so far.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns whether a part of the answer has arrived.
    pub(crate) fn has_content(&self) -> bool {
        !self.text.is_empty() || !self.calls.is_empty()
    }

    /// Converts the collected parts to the answer. The caller has checked that the answer is complete.
    pub(crate) fn into_reply(mut self) -> ModelReply {
        // Cached tokens count as input tokens, although some servers report them separately.
        self.usage.input_tokens = self.usage.input_tokens.max(self.usage.cached_tokens);
        let cut = self.stop == Some(StopReason::MaxTokens);
        // The answer was cut between a call's name and its arguments, so the call must not be made with empty
        // arguments.
        self.calls.pop_if(|call| cut && call.arguments.trim().is_empty());
        let reasoning = self.thoughts.into_reasoning(&self.model, self.calls.len(), cut);
        let mut calls: Vec<ToolCall> = Vec::with_capacity(self.calls.len());
        for (index, call) in self.calls.into_iter().enumerate() {
            // Results are matched by id, so a missing or repeated id is replaced.
            let usable = !call.id.is_empty() && calls.iter().all(|other| other.id != call.id);
            let id = if usable { call.id } else { format!("call_{}_{}", self.turn, index + 1) };
            // Some servers send no arguments at all in place of an empty object.
            let empty = matches!(call.arguments.trim(), "" | "null");
            // INV-470: repaired here, so the stored conversation is readable by every program.
            let arguments =
                if empty { "{}".to_owned() } else { mend_owned(unwrap_arguments(call.arguments)) };
            calls.push(ToolCall { id, name: call.name, arguments });
        }
        let stop = match self.stop {
            // Some servers state another reason, or none, although the model waits for results.
            None | Some(StopReason::EndTurn) if !calls.is_empty() => StopReason::ToolUse,
            None => StopReason::Other(NO_REASON.to_owned()),
            Some(stop) => stop,
        };
        ModelReply { text: self.text, calls, reasoning, usage: self.usage, stop }
    }
}

/// If the arguments are a JSON text that contains an object, returns the object: some servers encode them
/// twice.
fn unwrap_arguments(arguments: String) -> String {
    if !arguments.trim_start().starts_with('"') {
        return arguments;
    }
    let inner: Option<String> = serde_json::from_str(arguments.trim()).ok();
    let is_object = |inner: &String| {
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(inner).is_ok()
    };
    inner.filter(is_object).unwrap_or(arguments)
}

/// The stop reason of an answer that ended without one.
const NO_REASON: &str = "no reason given";

impl PartialCall {
    /// Sets an id or name that arrived after the call had begun.
    pub(crate) fn set_identity(&mut self, id: &str, name: &str) -> Result<(), ModelError> {
        check_names(id, name)?;
        if self.id.is_empty() {
            id.clone_into(&mut self.id);
        }
        if self.name.is_empty() {
            name.clone_into(&mut self.name);
        }
        Ok(())
    }

    /// Returns whether the arguments are a complete JSON object, so a further piece belongs to another call.
    pub(crate) fn is_whole(&self) -> bool {
        self.shape.whole && self.shape.depth == 0
    }

    /// Appends a piece of the arguments, within the limit.
    pub(crate) fn push_arguments(&mut self, part: &str) -> Result<(), ModelError> {
        if self.arguments.len().saturating_add(part.len()) > MAX_ARGUMENT_BYTES {
            return Err(ModelError::TooLarge {
                what: "bytes of arguments in one tool call",
                limit: MAX_ARGUMENT_BYTES,
            });
        }
        self.arguments.push_str(part);
        self.shape.push(part);
        Ok(())
    }

    /// Replaces the arguments that have arrived so far.
    pub(crate) fn replace_arguments(&mut self, arguments: &str) -> Result<(), ModelError> {
        self.arguments.clear();
        self.shape = ArgumentShape::default();
        self.push_arguments(arguments)
    }
}

/// Checks the lengths of a call's id and name.
fn check_names(id: &str, name: &str) -> Result<(), ModelError> {
    if id.len() > MAX_NAME_BYTES || name.len() > MAX_NAME_BYTES {
        return Err(ModelError::TooLarge {
            what: "bytes in a tool name or id",
            limit: MAX_NAME_BYTES,
        });
    }
    Ok(())
}
