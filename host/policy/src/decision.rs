//! The vocabulary of a decision: the deciding source, the code for the guest, the facts for the operator.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The deciding source: one of the four intersected sources, or a hook or belljar itself, which only refuse.
/// If several refuse, the first one decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionSource {
    /// The agent's own file.
    Definition,
    /// The tool's manifest, `tool.toml`.
    Manifest,
    /// The operator's `belljar.toml`.
    Grants,
    /// The rights of the agent that spawned this one.
    Parent,
    /// A hook of the operator's settings, for one call.
    Hook,
    /// Belljar itself: the tool is unknown, or not offered at this point of a run.
    Host,
}

impl fmt::Display for DecisionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Definition => "the agent definition",
            Self::Manifest => "the tool manifest",
            Self::Grants => "the operator's grants",
            Self::Parent => "the parent's rights",
            Self::Hook => "a hook",
            Self::Host => "belljar itself",
        })
    }
}

/// The operator's setting for one tool.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum CallPermission {
    /// Never. The value of anything unstated.
    Deny,
    /// Ask the person at the root before each call; refused if no person can be asked.
    Ask,
    /// Yes.
    Allow,
}

/// The short code of a refusal: all that a guest or a model can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DenyCode {
    /// The tool is outside the allowlist.
    ToolNotAllowed,
    /// The tool needs a person's approval, and no person can be asked.
    NobodyToAsk,
    /// The path is outside every mount, or protected.
    PathNotAllowed,
    /// The mount is read-only.
    ReadOnly,
    /// The file is of a kind that mounts refuse: a FIFO, a device, a socket.
    SpecialFile,
    /// The host, scheme or port is outside the allowlist.
    HostNotAllowed,
    /// The name resolves to an address that is not allowed.
    AddressNotAllowed,
    /// The request has a form that is always refused, whatever the target.
    RequestNotAllowed,
    /// The reply would have revealed a secret to the guest.
    SecretInReply,
    /// The interface is not granted to this tool.
    InterfaceNotGranted,
    /// A budget or limit is used up.
    LimitReached,
    /// A hook of the operator refused the call.
    DeniedByHook,
}

impl DenyCode {
    /// The text for the guest and the model. Contains no names and no advice.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolNotAllowed => "tool not allowed",
            Self::NobodyToAsk => "permission needed and nobody to ask",
            Self::PathNotAllowed => "path not allowed",
            Self::ReadOnly => "read-only",
            Self::SpecialFile => "not a regular file or directory",
            Self::HostNotAllowed => "host not allowed",
            Self::AddressNotAllowed => "address not allowed",
            Self::RequestNotAllowed => "request not allowed",
            Self::SecretInReply => "reply withheld",
            Self::InterfaceNotGranted => "interface not granted",
            Self::LimitReached => "limit reached",
            Self::DeniedByHook => "denied by a hook",
        }
    }
}

impl fmt::Display for DenyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A refusal with both of its texts. `Display` shows the operator's text; pass only [`PolicyDenial::code`] to a
/// guest or a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{facts} ({by} decided)")]
pub struct PolicyDenial {
    /// The reason that the guest and the model may read.
    pub code: DenyCode,
    /// The deciding source.
    pub by: DecisionSource,
    /// All facts, for the operator's log. Foreign text in it is already escaped.
    pub facts: String,
    /// Lines for `belljar.toml` that would grant the request, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl PolicyDenial {
    /// A refusal without a hint.
    pub fn new(code: DenyCode, by: DecisionSource, facts: impl Into<String>) -> Self {
        Self { code, by, facts: facts.into(), hint: None }
    }
}
