//! Translates the words with which providers state why an answer ended.

use crate::text::quote_text;
use crate::{ModelError, StopReason};

/// A row of the table: words of providers in lower case, and their meaning.
type Row = (&'static [&'static str], fn() -> StopReason);

/// Words for the end of a usable answer.
const ENDS: [Row; 4] = [
    (
        &["stop", "eos", "eos_token", "end_turn", "end", "stop_sequence", "complete", "completed"],
        || StopReason::EndTurn,
    ),
    (&["tool_calls", "tool_call", "tool_use", "function_call", "function_calls"], || {
        StopReason::ToolUse
    }),
    (
        &[
            "length",
            "max_tokens",
            "max_length",
            "max_output_tokens",
            "model_length",
            "token_limit",
            "model_context_window_exceeded",
        ],
        || StopReason::MaxTokens,
    ),
    (
        &[
            "content_filter",
            "content_filtered",
            "refusal",
            "safety",
            "image_safety",
            "recitation",
            "language",
            "blocklist",
            "prohibited_content",
            "spii",
            "sensitive",
            "guardrail",
            "guardrail_intervened",
        ],
        || StopReason::Refusal,
    ),
];

/// Words for a failure of the provider: the text so far is no answer.
const FAILURES: [&str; 14] = [
    "error",
    "server_error",
    "network_error",
    "insufficient_system_resource",
    "abort",
    "aborted",
    "cancelled",
    "canceled",
    "timeout",
    "failed",
    "malformed_function_call",
    "malformed_tool_call",
    "unexpected_tool_call",
    "function_call_filter",
];

/// The meaning of a provider's word for the end of an answer. An unknown word becomes [`StopReason::Other`],
/// and not a good end.
///
/// # Errors
/// When the word means: the provider failed in the middle of the answer.
pub(crate) fn parse_stop_reason(word: &str) -> Result<StopReason, ModelError> {
    let lower = word.trim().to_ascii_lowercase().replace('-', "_");
    let lower = lower.strip_prefix("finishreason.").unwrap_or(&lower);
    // Gemini's compatible API adds a detail, for example `content_filter: RECITATION`.
    let known = lower.split(':').next().unwrap_or(lower).trim();
    if FAILURES.contains(&known) {
        return Err(ModelError::Provider {
            kind: quote_text(word),
            message: "the provider ended the answer with this".to_owned(),
            transient: true,
        });
    }
    let row = ENDS.iter().find(|(words, _)| words.contains(&known));
    Ok(row.map_or_else(|| StopReason::Other(quote_text(word)), |(_, stop)| stop()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_a_provider_is_told_as_what_it_is() {
        for (word, expected) in [
            ("STOP", StopReason::EndTurn),
            ("COMPLETE", StopReason::EndTurn),
            ("FinishReason.STOP", StopReason::EndTurn),
            ("tool-calls", StopReason::ToolUse),
            ("MAX_TOKENS", StopReason::MaxTokens),
            ("model_context_window_exceeded", StopReason::MaxTokens),
            ("SAFETY", StopReason::Refusal),
            ("content_filter: RECITATION", StopReason::Refusal),
            ("pause_turn", StopReason::Other("pause_turn".into())),
            ("", StopReason::Other(String::new())),
            ("stopped early", StopReason::Other("stopped early".into())),
        ] {
            assert_eq!(parse_stop_reason(word), Ok(expected), "{word}");
        }
        for word in [
            "error",
            "abort",
            "insufficient_system_resource",
            "network_error",
            "MALFORMED_FUNCTION_CALL",
            "function_call_filter: MALFORMED_FUNCTION_CALL",
        ] {
            assert!(parse_stop_reason(word).is_err_and(|error| error.is_retryable()), "{word}");
        }
    }
}
