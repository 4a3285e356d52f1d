//! The result of a call.

use std::fmt;

use belljar_policy::{DenyCode, ExhaustedLimit};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Receipt;

/// A call's outcome and its receipt.
#[derive(Debug, Clone)]
pub struct CallResult {
    /// The output, or the error.
    pub outcome: Result<ToolOutput, CallError>,
    /// The record of the call's effects, present for every outcome.
    pub receipt: Receipt,
}

/// The checked answer of a tool: within the output limit, JSON parts parse, names are clean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// The parts, in the tool's order.
    pub parts: Vec<OutputPart>,
}

/// One part of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputPart {
    /// Text, unchanged. Escape it before showing it to a person.
    Text(String),
    /// Valid JSON text, unchanged.
    Json(String),
    /// A file.
    Attachment {
        /// A display name: one path component, without control characters; never empty.
        name: String,
        /// The media type, as `type/subtype`.
        media_type: String,
        /// The content.
        data: Bytes,
    },
}

/// Why a call has no output. The text is for the model: it names no host path and no way to widen a right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The tool returned an error.
    Tool {
        /// The kind of error.
        kind: ToolErrorKind,
        /// The tool's message.
        message: String,
    },
    /// Refused before guest code ran, or the tool's text contains a secret.
    Refused(DenyCode),
    /// The guest trapped; the text is the trap's name.
    Trapped(String),
    /// The budget of the call or of an ancestor is used up.
    Exhausted(ExhaustedLimit),
    /// The call exceeded its limit of wall-clock time, in seconds.
    TimedOut(u64),
    /// The run was cancelled.
    Cancelled,
    /// The output breaks the contract; holds the reason.
    BadOutput(String),
    /// The tool's component does not load; holds the reason, without host paths.
    NotLoaded(String),
    /// The host failed. Its log has the details.
    HostFault,
}

/// The kinds of tool errors, as in the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolErrorKind {
    /// The arguments do not match the schema.
    InvalidArguments,
    /// An object that the call names does not exist.
    NotFound,
    /// The sandbox refused an access that the call needs.
    Denied,
    /// The input or the result is too large.
    TooLarge,
    /// Any other error.
    Failed,
}

impl ToolOutput {
    /// The text and JSON parts, one below the other, without attachments. Foreign text: escape it before
    /// showing it to a person.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            OutputPart::Text(text) | OutputPart::Json(text) => Some(text.as_str()),
            OutputPart::Attachment { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Bytes of all parts, names and media types included.
    pub fn size(&self) -> u64 {
        self.parts.iter().map(OutputPart::size).fold(0, u64::saturating_add)
    }
}

impl OutputPart {
    fn size(&self) -> u64 {
        let bytes = match self {
            Self::Text(text) | Self::Json(text) => text.len(),
            Self::Attachment { name, media_type, data } => {
                name.len() + media_type.len() + data.len()
            }
        };
        bytes as u64
    }
}

impl ToolErrorKind {
    /// The name of the kind in the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArguments => "invalid-arguments",
            Self::NotFound => "not-found",
            Self::Denied => "denied",
            Self::TooLarge => "too-large",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for ToolErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool { kind, message } => write!(f, "{kind}: {message}"),
            Self::Refused(code) => write!(f, "refused: {code}"),
            Self::Trapped(trap) => write!(f, "the tool crashed: {trap}"),
            Self::Exhausted(which) => write!(f, "stopped: {which}"),
            Self::TimedOut(seconds) => write!(f, "stopped: the call took over {seconds} seconds"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::BadOutput(why) => write!(f, "the tool's output is not usable: {why}"),
            Self::NotLoaded(why) => write!(f, "the tool does not load: {why}"),
            Self::HostFault => f.write_str("the host failed; its log says more"),
        }
    }
}

impl std::error::Error for CallError {}
