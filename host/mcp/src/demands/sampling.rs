//! A server's request for a text of a model, parsed and bounded. The server can choose neither the model nor
//! tools.

use belljar_received::whole::to_unsigned;
use serde_json::Value;

use crate::answer::escape_text;

/// The most messages in one request.
const MAX_MESSAGES: usize = 32;

/// The most bytes that a model would read for one request.
const MAX_BYTES: usize = 64 << 10;

/// The most tokens of one text.
const MAX_TOKENS: u64 = 4_096;

/// A server's request for a text. Its texts are the server's, escaped.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRequest {
    /// The messages for the model, each preceded by the role that the server states.
    pub words: String,
    /// The most tokens of the text.
    pub max_tokens: u64,
    /// The sampling temperature.
    pub temperature: Option<f64>,
}

impl SampleRequest {
    /// Parses the parameters of a request. INV-363: only texts are accepted; tools, files and contexts are
    /// refused.
    pub(super) fn from_params(params: &Value) -> Result<Self, &'static str> {
        if ["tools", "toolChoice", "task"].iter().any(|key| params.get(key).is_some()) {
            return Err("a text is wanted with tools, which a server is not given");
        }
        let max_tokens = params.get("maxTokens").and_then(to_unsigned).filter(|most| *most > 0);
        let max_tokens = max_tokens.ok_or("a text is wanted of no length")?.min(MAX_TOKENS);
        let messages = params.get("messages").and_then(Value::as_array);
        let messages = messages.filter(|all| !all.is_empty() && all.len() <= MAX_MESSAGES);
        let messages = messages.ok_or("a text is wanted of no messages, or of too many")?;
        let mut words = String::new();
        if let Some(system) = params.get("systemPrompt").and_then(Value::as_str) {
            words.push_str(&format_words("its system prompt", system));
        }
        for message in messages {
            let role = match message.get("role").and_then(Value::as_str) {
                Some("user") => "user",
                Some("assistant") => "assistant",
                Some(_) | None => return Err("a text is wanted of somebody unknown's words"),
            };
            for text in
                message_texts(message).ok_or("a text is wanted of something else than words")?
            {
                words.push_str(&format_words(role, text));
            }
        }
        match words.len() > MAX_BYTES {
            true => Err("a text is wanted of too many words"),
            false => {
                let temperature = params.get("temperature").and_then(Value::as_f64);
                let temperature = temperature.filter(|heat| (0.0..=2.0).contains(heat));
                Ok(Self { words, max_tokens, temperature })
            }
        }
    }
}

fn format_words(who: &str, text: &str) -> String {
    format!("[{who}]\n{}\n\n", escape_text(text))
}

/// The texts of a message, which has one part or a list of parts; `None` if a part is no text.
fn message_texts(message: &Value) -> Option<Vec<&str>> {
    let text =
        |part: &'_ Value| -> Option<()> { (part.get("type")?.as_str()? == "text").then_some(()) };
    let content = message.get("content")?;
    let parts = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
    parts
        .iter()
        .map(|part| text(part).and_then(|()| part.get("text")?.as_str()))
        .collect::<Option<Vec<_>>>()
        .filter(|texts| !texts.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_asked_for_in_words_alone_and_within_bounds() {
        let text = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
        let sample = SampleRequest::from_params(&json!({
            "systemPrompt": "be\u{202e} kind",
            "messages": [text("a"), {"role": "assistant", "content": [{"type": "text", "text": "b"}]}],
            "maxTokens": 1_000_000,
            "modelPreferences": {"hints": [{"name": "the-dearest"}]},
            "includeContext": "allServers",
            "temperature": 9,
        }))
        .unwrap();
        assert_eq!(
            sample.words,
            "[its system prompt]\nbe\\u{202e} kind\n\n[user]\na\n\n[assistant]\nb\n\n"
        );
        assert_eq!((sample.max_tokens, sample.temperature), (MAX_TOKENS, None));
        let image = json!({"role": "user", "content": {"type": "image", "data": "YQ=="}});
        let role = json!({"role": "system", "content": {"type": "text", "text": "x"}});
        for wrong in [
            json!({}),
            json!({"messages": [text("a")]}),
            json!({"messages": [text("a")], "maxTokens": 0}),
            json!({"messages": [], "maxTokens": 1}),
            json!({"messages": vec![text("a"); MAX_MESSAGES + 1], "maxTokens": 1}),
            json!({"messages": [text(&"x".repeat(MAX_BYTES))], "maxTokens": 1}),
            json!({"messages": [image], "maxTokens": 1}),
            json!({"messages": [role], "maxTokens": 1}),
            json!({"messages": [text("a")], "maxTokens": 1, "tools": []}),
            json!({"messages": [text("a")], "maxTokens": 1, "toolChoice": {"mode": "none"}}),
        ] {
            assert!(SampleRequest::from_params(&wrong).is_err(), "{wrong}");
        }
    }
}
