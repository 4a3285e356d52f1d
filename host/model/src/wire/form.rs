//! Which optional fields a server accepts: fields that it has refused are left out of further requests.

use crate::{Reasoning, ToolCall};

/// The optional parts of a model's requests. At first all are sent; each field that the server refuses by
/// name is left out from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestForm {
    /// True if the answer is requested as a stream.
    pub(crate) stream: bool,
    /// True if `stream_options` requests the usage, for OpenAI-compatible servers.
    pub(crate) usage: bool,
    /// True if the stop words are sent.
    pub(crate) stop: bool,
    /// The messages whose reasoning is sent back.
    pub(crate) reasoning: ReasoningScope,
}

/// The messages that carry their reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningScope {
    /// All messages with reasoning.
    All,
    /// Only messages with calls, because an older DeepSeek refuses reasoning in other messages.
    WithCalls,
    /// No message.
    Nowhere,
}

impl RequestForm {
    /// The parts to send after a refusal with this text; `None` if the text names no field that can be left
    /// out.
    pub(crate) fn after_refusal(self, status: u16, words: &str) -> Option<Self> {
        // Other statuses, for example 401, 403, 404 and 429, are about something else.
        if !matches!(status, 400 | 415 | 422 | 501) {
            return None;
        }
        let words = words.to_ascii_lowercase();
        let says = |word: &str| words.contains(word);
        if self.usage && self.stream && (says("stream_options") || says("include_usage")) {
            return Some(Self { usage: false, ..self });
        }
        // Without the field the caller still cuts the answer at the stop words.
        let of_stop = ["'stop'", "\"stop\"", "`stop`", "stop_sequences", "argument supplied: stop"];
        if self.stop && of_stop.iter().any(|word| says(word)) {
            return Some(Self { stop: false, ..self });
        }
        let refuses = ["not supported", "unsupported", "not support", "not allowed", "disabled"];
        if self.stream && says("stream") && refuses.iter().any(|word| says(word)) {
            return Some(Self { stream: false, ..self });
        }
        let of_thoughts = ["reasoning", "thinking", "extra_content", "provider_specific_fields"];
        if of_thoughts.iter().any(|word| says(word)) {
            let reasoning = match self.reasoning {
                ReasoningScope::All => ReasoningScope::WithCalls,
                ReasoningScope::WithCalls => ReasoningScope::Nowhere,
                ReasoningScope::Nowhere => return None,
            };
            return Some(Self { reasoning, ..self });
        }
        None
    }

    /// The part of a message's reasoning that a request to `model` contains; reasoning of another model is
    /// left out.
    pub(crate) fn carried_reasoning<'r>(
        self,
        reasoning: Option<&'r Reasoning>,
        calls: &[ToolCall],
        model: &str,
    ) -> Option<&'r Reasoning> {
        let is_wanted = match self.reasoning {
            ReasoningScope::All => true,
            ReasoningScope::WithCalls => !calls.is_empty(),
            ReasoningScope::Nowhere => false,
        };
        reasoning.filter(|reasoning| is_wanted && reasoning.model == model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: RequestForm =
        RequestForm { stream: true, usage: true, stop: true, reasoning: ReasoningScope::All };

    #[test]
    fn only_what_a_refusal_names_is_left_out() {
        let without = |words| FULL.after_refusal(400, words);
        let usage = Some(RequestForm { usage: false, ..FULL });
        assert_eq!(without("Unrecognized request argument supplied: stream_options"), usage);
        assert_eq!(without(r#"{"loc": ["body", "stream_options"]}"#), usage);
        let whole = Some(RequestForm { stream: false, ..FULL });
        assert_eq!(without("streaming is not supported"), whole);
        let endless = RequestForm { stop: false, ..FULL };
        let refusal = "Unsupported parameter: 'stop' is not supported with this model.";
        assert_eq!(without(refusal), Some(endless));
        assert_eq!(endless.after_refusal(400, refusal), None, "it was sent none");
        let fewer = without("property 'reasoning' is unsupported").unwrap();
        assert_eq!(fewer.reasoning, ReasoningScope::WithCalls);
        assert_eq!(
            fewer.after_refusal(422, "reasoning").unwrap().reasoning,
            ReasoningScope::Nowhere
        );
        assert_eq!(without("temperature must be at most 1"), None);
        assert_eq!(FULL.after_refusal(429, "stream_options"), None);
    }
}
