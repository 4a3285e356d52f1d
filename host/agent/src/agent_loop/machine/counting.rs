//! Counts the bytes and tokens of prompts and answers.

use belljar_model::{ChatMessage, ChatRequest, ModelReply, Reasoning, StopReason, StreamEvent};
use belljar_policy::{Budget, BudgetHold, ExhaustedLimit, Meter};

use crate::limits::{IMAGE_AS_TEXT, MAX_BYTES_PER_TOKEN};
use crate::outcome::Usage;

/// The usage that an answer is billed for. If a server reports no tokens, a token counts for every four
/// bytes, so tokens are never free.
pub fn count_usage(prompt: u64, reply: &ModelReply) -> Usage {
    let belljar_model::TokenUsage { mut input_tokens, cached_tokens, mut output_tokens } =
        reply.usage;
    if input_tokens == 0 && output_tokens == 0 {
        input_tokens = prompt / 4;
        output_tokens = len_as_u64(reply.text.len()) / 4;
    }
    Usage { input_tokens, cached_tokens, output_tokens, ..Usage::default() }
}

/// What has arrived of an answer that is still streamed.
#[derive(Debug, Default)]
pub struct PartialAnswer {
    /// The text, up to the kept length.
    pub(crate) text: String,
    /// Bytes of everything that arrived, including reasoning.
    pub bytes: u64,
    /// True if the answer has begun, so the provider bills the prompt.
    pub begun: bool,
    /// The bytes of each attempt that broke off. The provider billed the prompt for each.
    pub lost: Vec<u64>,
}

impl PartialAnswer {
    /// Counts the text of a stream event.
    pub fn on_event(&mut self, event: &StreamEvent) {
        if let StreamEvent::Retrying { .. } = event {
            if self.begun {
                self.lost.push(self.bytes);
            }
            (self.begun, self.bytes) = (false, 0);
            self.text.clear();
            return;
        }
        self.begun = true;
        if let StreamEvent::TextDelta(text) | StreamEvent::ThinkingDelta(text) = event {
            self.bytes = self.bytes.saturating_add(len_as_u64(text.len()));
        }
    }
}

/// The estimated usage of an answer that broke off: one token for every four bytes of prompt and answer.
pub fn cut_off(prompt: u64, bytes: u64) -> ModelReply {
    let stop = StopReason::Other("cut off".to_owned());
    let (input_tokens, output_tokens) = (prompt / 4, bytes / 4);
    let usage = belljar_model::TokenUsage { input_tokens, output_tokens, ..Default::default() };
    ModelReply { text: String::new(), calls: Vec::new(), reasoning: None, usage, stop }
}

/// The fewest tokens that any model could bill for a prompt of this many bytes.
pub(crate) fn least_tokens(prompt: u64) -> u64 {
    prompt / MAX_BYTES_PER_TOKEN
}

/// Reserves tokens for a request before it is sent, so parallel agents do not count on the same tokens.
/// The estimate is one token for every four bytes of the prompt, or `billed`, what a similar request cost (0
/// = unknown), if that is more.
///
/// # Errors
///
/// The budget that cannot hold even the fewest tokens of the prompt.
pub fn hold_tokens(
    budget: &Budget,
    prompt: u64,
    billed: u64,
) -> Result<BudgetHold, ExhaustedLimit> {
    let likely = (prompt / 4).max(billed);
    budget.hold_amount(Meter::Tokens, least_tokens(prompt), likely)
}

/// The bytes of a request that a model reads.
pub fn prompt_bytes(request: &ChatRequest) -> u64 {
    let system: usize = request.system.iter().map(String::len).sum();
    let tools: usize = request.tools.iter().map(|tool| tool.description.len()).sum();
    let messages: u64 = request.messages.iter().map(message_bytes).sum();
    messages.saturating_add(len_as_u64(system)).saturating_add(len_as_u64(tools))
}

/// The bytes of a message that a model reads.
pub fn message_bytes(message: &ChatMessage) -> u64 {
    let images = len_as_u64(message.images().len()).saturating_mul(IMAGE_AS_TEXT);
    images.saturating_add(len_as_u64(match message {
        ChatMessage::User { text, .. } => text.len(),
        ChatMessage::Assistant { text, calls, reasoning } => {
            let thought = reasoning.as_ref().map_or(0, Reasoning::text_bytes);
            let asked = calls.iter().map(|call| call.arguments.len()).sum::<usize>();
            text.len().saturating_add(asked).saturating_add(thought)
        }
        ChatMessage::Tool { results } => results.iter().map(|result| result.content.len()).sum(),
    }))
}

fn len_as_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
