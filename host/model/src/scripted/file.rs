//! The types of a transcript file, for reading and for writing.

use std::fmt;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::check::RequestExpectation;
use crate::{Reasoning, StopReason, TokenUsage};

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TranscriptDocument {
    pub(crate) transcript: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) each_run: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) text_only: bool,
    pub(crate) agents: Vec<AgentEntry>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentEntry {
    pub(crate) agent: String,
    #[serde(default)]
    pub(crate) spawn: SpawnSelector,
    pub(crate) turns: Vec<TurnEntry>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expect: Option<RequestExpectation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) think: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) say: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<CallEntry>,
    /// The reasoning that is stored with the answer and sent back to the same model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning: Option<Reasoning>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<StopWord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<TokensEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fail: Option<FailEntry>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) hang: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallEntry {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) raw_arguments: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokensEntry {
    #[serde(default)]
    pub(crate) input: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) cached: u64,
    #[serde(default)]
    pub(crate) output: u64,
}

impl From<TokensEntry> for TokenUsage {
    fn from(tokens: TokensEntry) -> Self {
        Self {
            input_tokens: tokens.input,
            cached_tokens: tokens.cached,
            output_tokens: tokens.output,
        }
    }
}

impl From<TokenUsage> for TokensEntry {
    fn from(usage: TokenUsage) -> Self {
        Self { input: usage.input_tokens, cached: usage.cached_tokens, output: usage.output_tokens }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<FailKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FailKind {
    Context,
    Cut,
    Network,
    Protocol,
}

/// The subagents that an entry answers: the one with this spawn index, or `any`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpawnSelector {
    Index(u32),
    Any,
}

impl Default for SpawnSelector {
    fn default() -> Self {
        Self::Index(0)
    }
}

impl fmt::Display for SpawnSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Any => f.write_str("any"),
        }
    }
}

impl Serialize for SpawnSelector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Index(index) => serializer.serialize_u32(*index),
            Self::Any => serializer.serialize_str("any"),
        }
    }
}

impl<'de> Deserialize<'de> for SpawnSelector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpawnVisitor)
    }
}

struct SpawnVisitor;

impl Visitor<'_> for SpawnVisitor {
    type Value = SpawnSelector;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from 0 or `any`")
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<SpawnSelector, E> {
        let index = u32::try_from(value).map_err(|_| E::custom("spawn index too large"))?;
        Ok(SpawnSelector::Index(index))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<SpawnSelector, E> {
        let index = u32::try_from(value)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(value), &self))?;
        Ok(SpawnSelector::Index(index))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<SpawnSelector, E> {
        match value {
            "any" => Ok(SpawnSelector::Any),
            other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
        }
    }
}

/// A stop reason as one word.
#[derive(Clone, Debug)]
pub(crate) struct StopWord(StopReason);

impl From<StopWord> for StopReason {
    fn from(stop: StopWord) -> Self {
        stop.0
    }
}

impl From<StopReason> for StopWord {
    fn from(stop: StopReason) -> Self {
        Self(stop)
    }
}

impl Serialize for StopWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match &self.0 {
            StopReason::EndTurn => "end-turn",
            StopReason::ToolUse => "tool-use",
            StopReason::MaxTokens => "max-tokens",
            StopReason::Refusal => "refusal",
            StopReason::Other(word) => word,
        })
    }
}

impl<'de> Deserialize<'de> for StopWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        if word.is_empty() {
            return Err(D::Error::custom("`stop` is empty"));
        }
        Ok(Self(match word.as_str() {
            "end-turn" => StopReason::EndTurn,
            "tool-use" => StopReason::ToolUse,
            "max-tokens" => StopReason::MaxTokens,
            "refusal" => StopReason::Refusal,
            _ => StopReason::Other(word),
        }))
    }
}
