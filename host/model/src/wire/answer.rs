//! An answer while it streams in: bounded, and passed on as it grows.

use belljar_received::json::mended;

use crate::limits::{MAX_ARGUMENT_BYTES, MAX_NAME_BYTES, MAX_TEXT_BYTES, MAX_TOOL_CALLS};
use crate::text::quoted;
use crate::{
    ChatRequest, Message, ModelError, Reply, StopReason, StreamEvent, TokenUsage, ToolCall,
};

/// Passes events to the caller, and knows whether the answer has begun: from then on nothing
/// is retried.
pub(crate) struct Sink<'e> {
    events: &'e mut (dyn FnMut(StreamEvent) + Send),
    started: bool,
}

impl<'e> Sink<'e> {
    pub(crate) fn new(events: &'e mut (dyn FnMut(StreamEvent) + Send)) -> Self {
        Self { events, started: false }
    }

    /// Whether the first token has been passed on.
    pub(crate) fn started(&self) -> bool {
        self.started
    }

    /// Passes on something that is not part of the answer.
    pub(crate) fn notice(&mut self, event: StreamEvent) {
        (self.events)(event);
    }

    fn part(&mut self, event: StreamEvent) {
        if !self.started {
            self.started = true;
            (self.events)(StreamEvent::Started);
        }
        (self.events)(event);
    }
}

/// The parts of an answer that have come so far.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    text: String,
    calls: Vec<PartialCall>,
    pub(crate) usage: TokenUsage,
    pub(crate) stop: Option<StopReason>,
    /// Number that the ids made up for calls carry, so that they are unique in a conversation.
    turn: usize,
}

/// A tool call whose arguments may still grow.
#[derive(Debug)]
pub(crate) struct PartialCall {
    /// The server's number for it: an index of calls or of content blocks.
    pub(crate) key: u64,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// Its first piece held all of its arguments.
    pub(crate) whole: bool,
}

impl Answer {
    /// An empty answer to `request`.
    pub(crate) fn to(request: &ChatRequest) -> Self {
        let turns =
            request.messages.iter().filter(|message| matches!(message, Message::Assistant { .. }));
        Self { turn: turns.count() + 1, ..Self::default() }
    }

    pub(crate) fn push_text(&mut self, text: &str, sink: &mut Sink<'_>) -> Result<(), ModelError> {
        if text.is_empty() {
            return Ok(());
        }
        if self.text.len().saturating_add(text.len()) > MAX_TEXT_BYTES {
            return Err(ModelError::TooLarge { what: "bytes of text", limit: MAX_TEXT_BYTES });
        }
        self.text.push_str(text);
        sink.part(StreamEvent::TextDelta(text.to_owned()));
        Ok(())
    }

    pub(crate) fn push_thinking(text: &str, sink: &mut Sink<'_>) {
        if !text.is_empty() {
            sink.part(StreamEvent::ThinkingDelta(text.to_owned()));
        }
    }

    /// Begins a call under the server's number `key`.
    pub(crate) fn begin_call(
        &mut self,
        key: u64,
        id: &str,
        name: &str,
        sink: &mut Sink<'_>,
    ) -> Result<&mut PartialCall, ModelError> {
        if self.calls.len() >= MAX_TOOL_CALLS {
            return Err(ModelError::TooLarge { what: "tool calls", limit: MAX_TOOL_CALLS });
        }
        check_names(id, name)?;
        sink.part(StreamEvent::CallStarted { name: name.to_owned() });
        let at = self.calls.len();
        self.calls.push(PartialCall {
            key,
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
            whole: false,
        });
        self.calls
            .get_mut(at)
            .ok_or_else(|| ModelError::Protocol { message: "a tool call was lost".to_owned() })
    }

    /// The newest call with the server's number `key`.
    pub(crate) fn call(&mut self, key: u64) -> Option<&mut PartialCall> {
        self.calls.iter_mut().rev().find(|call| call.key == key)
    }

    /// The newest call.
    pub(crate) fn last_call(&mut self) -> Option<&mut PartialCall> {
        self.calls.last_mut()
    }

    /// How many calls have begun.
    pub(crate) fn call_count(&self) -> usize {
        self.calls.len()
    }

    /// Whether anything of the answer has come.
    pub(crate) fn has_content(&self) -> bool {
        !self.text.is_empty() || !self.calls.is_empty()
    }

    /// The whole answer. The caller has seen that it is complete.
    pub(crate) fn finish(mut self) -> Reply {
        // Cached input is input, whatever a server says.
        self.usage.input_tokens = self.usage.input_tokens.max(self.usage.cached_tokens);
        let mut calls: Vec<ToolCall> = Vec::with_capacity(self.calls.len());
        for (index, call) in self.calls.into_iter().enumerate() {
            // An id that is missing or used twice could not tell two results apart.
            let usable = !call.id.is_empty() && calls.iter().all(|other| other.id != call.id);
            let id = if usable { call.id } else { format!("call_{}_{}", self.turn, index + 1) };
            // No arguments at all is how some servers write an empty object.
            let empty = call.arguments.trim().is_empty();
            // INV-470: mended here, so that the conversation holds what everybody can read.
            let arguments = if empty { "{}".to_owned() } else { mended(call.arguments) };
            calls.push(ToolCall { id, name: call.name, arguments });
        }
        let stop = match self.stop {
            // Some servers say that they stopped when they mean that they wait for results.
            None | Some(StopReason::EndTurn) if !calls.is_empty() => StopReason::ToolUse,
            stop => stop.unwrap_or(StopReason::EndTurn),
        };
        Reply { text: self.text, calls, usage: self.usage, stop }
    }
}

impl PartialCall {
    /// Takes an id or a name that comes after the call has begun.
    pub(crate) fn identify(&mut self, id: &str, name: &str) -> Result<(), ModelError> {
        check_names(id, name)?;
        if self.id.is_empty() {
            id.clone_into(&mut self.id);
        }
        if self.name.is_empty() {
            name.clone_into(&mut self.name);
        }
        Ok(())
    }

    pub(crate) fn push_arguments(&mut self, part: &str) -> Result<(), ModelError> {
        if self.arguments.len().saturating_add(part.len()) > MAX_ARGUMENT_BYTES {
            return Err(ModelError::TooLarge {
                what: "bytes of arguments in one tool call",
                limit: MAX_ARGUMENT_BYTES,
            });
        }
        self.arguments.push_str(part);
        Ok(())
    }
}

fn check_names(id: &str, name: &str) -> Result<(), ModelError> {
    if id.len() > MAX_NAME_BYTES || name.len() > MAX_NAME_BYTES {
        return Err(ModelError::TooLarge {
            what: "bytes in a tool name or id",
            limit: MAX_NAME_BYTES,
        });
    }
    Ok(())
}

/// A stop reason that has no name here.
pub(crate) fn other_stop(word: &str) -> StopReason {
    StopReason::Other(quoted(word))
}
