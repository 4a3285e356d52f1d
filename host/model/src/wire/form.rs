//! The form of requests that a server accepts: fields that the server refused are omitted.

use crate::{Reasoning, ToolCall};

/// The form of one model's requests. At first the form is that of the settings; each field that the server
/// refuses by name is omitted from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestForm {
    /// True if the answer is asked for as a stream.
    pub(crate) stream: bool,
    /// True if `stream_options` asks for the usage, on an OpenAI-compatible wire.
    pub(crate) usage: bool,
    /// True if the stop words are sent.
    pub(crate) stop: bool,
    /// The messages that are sent with their reasoning.
    pub(crate) reasoning: ReasoningScope,
}

/// The messages that carry their reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningScope {
    /// All messages with reasoning.
    All,
    /// Messages with calls, because an older DeepSeek refuses reasoning in other messages.
    WithCalls,
    /// No message.
    Nowhere,
}

impl RequestForm {
    /// The form after a refusal with this text; `None` = the text names no field that can be omitted.
    pub(crate) fn after_refusal(self, status: u16, words: &str) -> Option<Self> {
        // 401, 403, 404 and 429 are about something else.
        if !matches!(status, 400 | 415 | 422 | 501) {
            return None;
        }
        let words = words.to_ascii_lowercase();
        let says = |word: &str| words.contains(word);
        if self.usage && self.stream && (says("stream_options") || says("include_usage")) {
            return Some(Self { usage: false, ..self });
        }
        // The caller cuts the answer at the stop words in any case.
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

    /// The reasoning of a message for a request to `model`; reasoning of another model is dropped.
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
