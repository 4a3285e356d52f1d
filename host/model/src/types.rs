//! Messages to a model and its answers, in a form that is independent of the provider.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::{Image, Reasoning};

/// One request, with everything that the model reads.
///
/// The fields are in the order of the prompt (system, tools, messages), and none is a hash map, so the same
/// request always serializes to the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The system blocks in order, the agent's own text first. Anthropic gets each as a system block;
    /// OpenAI-compatible servers get one system message, with the blocks joined by blank lines.
    pub system: Vec<String>,
    /// The conversation so far, oldest first.
    pub messages: Vec<ChatMessage>,
    /// The tools to advertise, in this order. If it is empty, the request does not mention tools at all.
    pub tools: Vec<ToolSpec>,
    /// The call that the answer must make; `None` = the model chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<ToolChoice>,
    /// The most tokens of the answer. `None` = the model's configured value, or else the server's (Anthropic
    /// requires one, see [`crate::limits::ANTHROPIC_MAX_OUTPUT_TOKENS`]).
    pub max_output_tokens: Option<u64>,
    /// The sampling temperature. `None` = the model's configured value, or else the server's.
    pub temperature: Option<f64>,
    /// The amount of reasoning. `None` = the model's configured value, or else the server's.
    pub effort: Option<Effort>,
    /// The other sampling parameters, and the stop words.
    #[serde(default, skip_serializing_if = "Sampling::is_default")]
    pub sampling: Sampling,
    /// True if the request contains a stranger's text. Then [`crate::ModelConfig::extra_body`] is left out,
    /// because such a field could be a tool of the provider.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreign: bool,
}

/// The sampling parameters of an answer besides the temperature, and the stop words. The server decides about
/// absent ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// The share of the likeliest tokens among which the next token is drawn, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The penalty for tokens that have already occurred, -2 to 2. Anthropic's API has no such field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// The penalty for tokens in proportion to how often they have occurred, -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// The seed of the random choice. Anthropic's API has no such field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// The words before which the answer must end. A server that supports the field stops there; the caller
    /// cuts the answer in any case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
}

impl Sampling {
    /// Returns whether no parameter is set.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether these parameters set this field of a request.
    pub(crate) fn sets_field(&self, field: &str) -> bool {
        match field {
            "top_p" => self.top_p.is_some(),
            "presence_penalty" => self.presence_penalty.is_some(),
            "frequency_penalty" => self.frequency_penalty.is_some(),
            "seed" => self.seed.is_some(),
            "stop" | "stop_sequences" => !self.stop.is_empty(),
            _ => false,
        }
    }
}

/// The call that the model must make, if the provider enforces such a choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// A call of any tool.
    Required,
    /// A call of the named tool.
    Named(String),
}

/// The amount of reasoning before an answer, for providers with such a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// As little reasoning as possible.
    Low,
    /// The provider's middle setting.
    Medium,
    /// A large amount of reasoning.
    High,
    /// The most reasoning that the provider offers. Sent as `high` if the provider has no higher level.
    Max,
}

/// One entry of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum ChatMessage {
    /// A message of a person, or of a parent agent.
    User {
        /// The text, sent unchanged.
        text: String,
        /// The images, sent before the text, and only to a model that [reads
        /// images](crate::ChatModel::takes_images).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// A message of the model.
    Assistant {
        /// The text; empty if the model only made calls.
        text: String,
        /// The tool calls, in the model's order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// The reasoning, which is sent back only to the same model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Reasoning>,
    },
    /// The results of the tools.
    Tool {
        /// One result for each call of the preceding assistant message, in the order of the calls.
        results: Vec<ToolResult>,
    },
}

impl ChatMessage {
    /// A person's or parent agent's message with text only.
    #[must_use]
    pub fn from_user(text: impl Into<String>) -> Self {
        Self::User { text: text.into(), images: Vec::new() }
    }

    /// A message of the model with text only.
    #[must_use]
    pub fn from_assistant(text: impl Into<String>) -> Self {
        Self::Assistant { text: text.into(), calls: Vec::new(), reasoning: None }
    }

    /// The images of the message; empty for messages that cannot have images.
    #[must_use]
    pub fn images(&self) -> &[Image] {
        match self {
            Self::User { images, .. } => images,
            Self::Assistant { .. } | Self::Tool { .. } => &[],
        }
    }

    /// The images of the message, for loading their bytes.
    pub fn images_mut(&mut self) -> &mut [Image] {
        match self {
            Self::User { images, .. } => images,
            Self::Assistant { .. } | Self::Tool { .. } => &mut [],
        }
    }
}

/// A tool call as the model wrote it, unchecked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that connects the call with its result. If the server sent none, it is made from the call's
    /// position.
    pub id: String,
    /// The tool's name, unchanged. Perhaps no such tool was advertised.
    pub name: String,
    /// The arguments exactly as the model sent them; they may be empty or malformed JSON.
    pub arguments: String,
}

/// The result of one tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The [`ToolCall::id`] of the answered call.
    pub id: String,
    /// The tool's name, for example `file_read`.
    pub name: String,
    /// The text that the model reads.
    pub content: String,
    /// True if the call failed. Anthropic's API has a field for this; on OpenAI-compatible servers only the
    /// content can state it.
    pub is_error: bool,
}

/// A tool as advertised to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The tool's name, for example `file_read`.
    pub name: String,
    /// The purpose of the tool, and when to use it.
    pub description: String,
    /// The JSON Schema of the arguments. Its keys keep their order when they are sent.
    pub schema: serde_json::Value,
}

/// The tokens used by one or more calls, as the provider counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// The input tokens, including those read from a cache.
    pub input_tokens: u64,
    /// The part of the input that was read from the provider's prompt cache.
    pub cached_tokens: u64,
    /// The tokens of the answer, including reasoning.
    pub output_tokens: u64,
}

impl AddAssign for TokenUsage {
    /// Adds usage. A sum stops at the largest number, because the numbers come from the server.
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }
}

/// The reason why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The answer was complete.
    EndTurn,
    /// The model waits for the results of its calls.
    ToolUse,
    /// The answer reached the token limit; text and arguments may be cut short.
    MaxTokens,
    /// The model, or a filter in front of it, refused to answer.
    Refusal,
    /// Another reason, in the provider's own word, escaped and cut.
    Other(String),
}

/// A complete answer of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The text, without reasoning.
    pub text: String,
    /// The tool calls, in the model's order.
    pub calls: Vec<ToolCall>,
    /// The model's reasoning, to be stored with the message made of this answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// The tokens used; zero if the server did not count them.
    pub usage: TokenUsage,
    /// The reason why the answer ended.
    pub stop: StopReason,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_tagged_by_its_role_and_reads_back() {
        let message = ChatMessage::from_assistant("hm");
        let json = serde_json::to_string(&message).unwrap();
        assert_eq!(json, r#"{"role":"assistant","text":"hm"}"#);
        assert_eq!(serde_json::from_str::<ChatMessage>(&json).unwrap(), message);
    }

    #[test]
    fn usage_saturates_instead_of_overflowing() {
        let mut usage = TokenUsage { input_tokens: u64::MAX, ..TokenUsage::default() };
        usage += usage;
        assert_eq!(usage.input_tokens, u64::MAX);
    }
}
