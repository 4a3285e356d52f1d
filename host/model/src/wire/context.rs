//! Recognizes errors which state that a request is longer than the model's context, in the words of many
//! providers.

/// Error codes with this meaning, in lower case.
const KINDS: [&str; 7] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_window_exceeded",
    "model_context_window_exceeded",
    "model_max_prompt_tokens_exceeded",
    "request_too_large",
    "tokens_limit_reached",
];

/// Parts of error messages with this meaning, in lower case: a message must contain all parts of a row, in
/// this order.
const PHRASES: [&[&str]; 35] = [
    // OpenAI, DeepSeek, vLLM, Mistral, Together, OpenRouter.
    &["maximum context length"],
    &["model's context length", "exceed"],
    // OpenAI's newer models, Copilot.
    &["exceed", "context window"],
    &["context window", "exceed"],
    &["context window is full"],
    &["context is full"],
    // Anthropic, and Bedrock in front of it.
    &["prompt is too long"],
    &["input is too long"],
    &["exceed context limit"],
    // llama.cpp, Ollama, LM Studio.
    &["exceed", "context size"],
    &["context size", "exceed"],
    &["exceed", "context length"],
    &["context length", "exceed"],
    &["greater than the context length"],
    &["longer than the context"],
    &["prompt too long"],
    // Gemini.
    &["input token count", "exceeds the maximum"],
    // Mistral.
    &["too large for model with", "context"],
    // Groq, Azure.
    &["reduce the length of the messages"],
    // xAI, Kimi, GLM, Qwen.
    &["maximum prompt length"],
    &["exceeded model token limit"],
    &["prompt exceeds max length"],
    &["range of input length should be"],
    // vLLM.
    &["longer than the maximum model length"],
    &["exceed", "max_model_len"],
    &["exceed", "maximum model length"],
    // LM Studio.
    &["context length of only", "not enough"],
    &["n_keep", ">= n_ctx"],
    &["context the overflows"],
    // llama.cpp.
    &["context shift is disabled"],
    // Text Generation Inference.
    &["`inputs` tokens", "must be <="],
    &["`inputs` must have less than"],
    // Cohere.
    &["tokens in the prompt cannot exceed"],
    // Cerebras.
    &["current length is", "while limit is"],
    // Copilot.
    &["prompt token count", "exceeds the limit"],
];

/// Returns whether an error states that the request does not fit the context. `kind` is the error's code.
pub(super) fn is_too_long(status: u16, kind: &str, message: &str) -> bool {
    // Errors about rates mention tokens too, and errors about keys may contain any words, so only these
    // statuses count.
    if !matches!(status, 400 | 413 | 422 | 500) {
        return false;
    }
    let (kind, message) = (kind.to_ascii_lowercase(), message.to_ascii_lowercase());
    let says = |parts: &&[&str]| {
        let mut rest = message.as_str();
        parts.iter().all(|part| match rest.split_once(part) {
            Some((_, behind)) => {
                rest = behind;
                true
            }
            None => false,
        })
    };
    KINDS.contains(&kind.as_str()) || PHRASES.iter().any(says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_s_words_are_understood_and_a_rate_is_something_else() {
        for (kind, message) in [
            ("context_length_exceeded", "no"),
            (
                "",
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            ),
            (
                "exceed_context_size_error",
                "the request exceeds the available context size, try increasing it",
            ),
            ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
            (
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            ),
            (
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ),
            (
                "invalid_request_error",
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            ),
            (
                "",
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            ),
            (
                "",
                "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
            ),
            ("", "Invalid request: Your request exceeded model token limit: 262144"),
            (
                "",
                "The number of tokens to keep from the initial prompt is greater than the context length",
            ),
            ("", "Please reduce the length of the messages or completion."),
            ("", "Input is too long for requested model."),
            (
                "BadRequestError",
                "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
            ),
            ("", "The total number of tokens (9000) exceeds the model's max_model_len 8192"),
            (
                "",
                "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
            ),
            ("", "Cannot truncate prompt with n_keep (9000) >= n_ctx (4096)"),
            ("server_error", "context shift is disabled"),
            (
                "validation",
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 500 `max_new_tokens`",
            ),
            (
                "validation",
                "Input validation error: `inputs` must have less than 1024 tokens. Given: 5000",
            ),
            (
                "",
                "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
            ),
            ("", "Current length is 9000 while limit is 8192"),
            ("", "prompt token count of 150000 exceeds the limit of 128000"),
        ] {
            assert!(is_too_long(400, kind, message), "{kind} {message}");
        }
        assert!(!is_too_long(429, "", "maximum context length"));
        assert!(!is_too_long(403, "context_length_exceeded", ""));
        assert!(!is_too_long(400, "invalid_request_error", "max_tokens must be positive"));
        assert!(!is_too_long(400, "invalid_request_error", "unknown field `context_length`"));
    }
}
