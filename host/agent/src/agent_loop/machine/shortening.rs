//! Shortens a conversation that exceeds the model's context.

use std::sync::Arc;

use belljar_model::ChatMessage;

use super::{AgentLoop, prompt_bytes};
use crate::limits::MAX_KEPT_RESULT;
use crate::prompt::frame;

impl AgentLoop {
    /// Sets how many messages at the beginning are from earlier turns.
    pub(crate) fn with_past(self, past: usize) -> Self {
        Self { past, ..self }
    }

    /// Replaces the messages of earlier turns by shorter ones.
    pub(crate) fn replace_past(&mut self, messages: Vec<ChatMessage>) {
        let request = Arc::make_mut(&mut self.request);
        let before = self.past.min(request.messages.len());
        self.past = messages.len();
        request.messages.splice(..before, messages);
        self.bytes = prompt_bytes(&self.request);
    }

    /// Replaces the text of this turn's long results by a short note, except for results that the model has
    /// not read. Returns the number of bytes removed.
    pub(crate) fn cut_results(&mut self) -> u64 {
        let request = Arc::make_mut(&mut self.request);
        let own = request.messages.get_mut(self.past..).unwrap_or_default();
        let is_answer = |message: &ChatMessage| matches!(message, ChatMessage::Assistant { .. });
        let read = own.iter().rposition(is_answer).unwrap_or(0);
        for message in own.iter_mut().take(read) {
            let ChatMessage::Tool { results } = message else { continue };
            for result in results.iter_mut().filter(|it| it.content.len() > MAX_KEPT_RESULT) {
                result.content = frame::format_removed_result(result.content.len());
            }
        }
        let before = std::mem::replace(&mut self.bytes, prompt_bytes(&self.request));
        before.saturating_sub(self.bytes)
    }
}
