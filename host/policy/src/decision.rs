//! The words of a decision: who decided, the code a guest may read, and the facts for the operator.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who decided about a request: one of the four sources of rights, or a hook or belljar itself, which can
/// only refuse. If several refuse, the first in this order decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionSource {
    /// The agent's own definition, a file.
    Definition,
    /// The tool's manifest, `tool.toml`.
    Manifest,
    /// The operator's grants in `belljar.toml`.
    Grants,
    /// The rights of the agent that started this one as a subagent.
    Parent,
    /// A hook of the operator, about one call.
    Hook,
    /// belljar itself: the tool is unknown, or is not offered at this point of a run.
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

/// What the operator's settings say about calls of a tool.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum CallPermission {
    /// Calls are refused. This is the value for a tool the settings do not mention.
    Deny,
    /// The person at the root is asked before each call. If nobody can be asked, the call is refused.
    Ask,
    /// Calls are allowed.
    Allow,
}

/// The short code of a refusal. A guest or a model reads nothing else about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DenyCode {
    /// The agent may not call the tool.
    ToolNotAllowed,
    /// A person has to approve the call, and nobody can be asked.
    NobodyToAsk,
    /// The path is outside of every mount, or protected.
    PathNotAllowed,
    /// The mount is read-only.
    ReadOnly,
    /// Mounts refuse files of this kind: FIFOs, devices and sockets.
    SpecialFile,
    /// No rule allows the request's host, scheme or port.
    HostNotAllowed,
    /// The name of the host resolves to an address no rule allows.
    AddressNotAllowed,
    /// Requests of this form are refused whatever their target, for example because of a header.
    RequestNotAllowed,
    /// The reply was withheld, because it contains a secret.
    SecretInReply,
    /// The tool was not granted this interface of the host.
    InterfaceNotGranted,
    /// A budget or limit is used up.
    LimitReached,
    /// A hook of the operator refused the call.
    DeniedByHook,
}

impl DenyCode {
    /// The text the guest and the model read. It contains no names and no advice.
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

/// A refusal, with a code for the guest and facts for the operator. `Display` writes the facts; pass only
/// [`PolicyDenial::code`] to a guest or a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{facts} ({by} decided)")]
pub struct PolicyDenial {
    /// The reason, which the guest and the model may read.
    pub code: DenyCode,
    /// The source that refused.
    pub by: DecisionSource,
    /// The facts for the operator's log. Foreign text in them is escaped.
    pub facts: String,
    /// Lines for `belljar.toml` that would grant the request, if there are such lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl PolicyDenial {
    /// Makes a refusal without a hint.
    pub fn new(code: DenyCode, by: DecisionSource, facts: impl Into<String>) -> Self {
        Self { code, by, facts: facts.into(), hint: None }
    }
}
