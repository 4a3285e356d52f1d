//! The types of a transcript file. The parser reads and the recorder writes these types.

use std::fmt;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::check::Expect;
use crate::{Reasoning, StopReason, TokenUsage};

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transcript {
    pub(crate) transcript: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) each_run: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) text_only: bool,
    pub(crate) agents: Vec<Agent>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agent {
    pub(crate) agent: String,
    #[serde(default)]
    pub(crate) spawn: Spawn,
    pub(crate) turns: Vec<Turn>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Turn {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expect: Option<Expect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) think: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) say: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<Call>,
    /// The reasoning that is stored with the answer and sent back to the same model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning: Option<Reasoning>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<Stop>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Tokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fail: Option<Fail>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) hang: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
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
pub(crate) struct Tokens {
    #[serde(default)]
    pub(crate) input: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) cached: u64,
    #[serde(default)]
    pub(crate) output: u64,
}

impl From<Tokens> for TokenUsage {
    fn from(tokens: Tokens) -> Self {
        Self {
            input_tokens: tokens.input,
            cached_tokens: tokens.cached,
            output_tokens: tokens.output,
        }
    }
}

impl From<TokenUsage> for Tokens {
    fn from(usage: TokenUsage) -> Self {
        Self { input: usage.input_tokens, cached: usage.cached_tokens, output: usage.output_tokens }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fail {
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

/// A spawn index or `any`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spawn {
    Index(u32),
    Any,
}

impl Default for Spawn {
    fn default() -> Self {
        Self::Index(0)
    }
}

impl fmt::Display for Spawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Any => f.write_str("any"),
        }
    }
}

impl Serialize for Spawn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Index(index) => serializer.serialize_u32(*index),
            Self::Any => serializer.serialize_str("any"),
        }
    }
}

impl<'de> Deserialize<'de> for Spawn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpawnVisitor)
    }
}

struct SpawnVisitor;

impl Visitor<'_> for SpawnVisitor {
    type Value = Spawn;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from 0 or `any`")
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Spawn, E> {
        let index = u32::try_from(value).map_err(|_| E::custom("spawn index too large"))?;
        Ok(Spawn::Index(index))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Spawn, E> {
        let index = u32::try_from(value)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(value), &self))?;
        Ok(Spawn::Index(index))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Spawn, E> {
        match value {
            "any" => Ok(Spawn::Any),
            other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
        }
    }
}

/// A stop reason as one word.
#[derive(Clone, Debug)]
pub(crate) struct Stop(StopReason);

impl From<Stop> for StopReason {
    fn from(stop: Stop) -> Self {
        stop.0
    }
}

impl From<StopReason> for Stop {
    fn from(stop: StopReason) -> Self {
        Self(stop)
    }
}

impl Serialize for Stop {
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

impl<'de> Deserialize<'de> for Stop {
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
