//! The result of a tool's call: its output or error, with the receipt.

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
    /// The record of the call's effects. Every outcome has one.
    pub receipt: Receipt,
}

/// The output of a tool, checked: within the output limit, with JSON parts that parse and clean attachment
/// names.
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
        /// The name to show: one path component without control characters, never empty.
        name: String,
        /// The media type, as `type/subtype`.
        media_type: String,
        /// The content.
        data: Bytes,
    },
}

/// Why a call has no output. The text is for the model: it names no path of the host and no way to widen a
/// right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The tool returned an error.
    Tool {
        /// The kind of error.
        kind: ToolErrorKind,
        /// The tool's message.
        message: String,
    },
    /// The call was refused before guest code ran, or the tool's text contains a secret.
    Refused(DenyCode),
    /// The guest trapped, with the trap's name.
    Trapped(String),
    /// The budget of the call or of an ancestor is used up.
    Exhausted(ExhaustedLimit),
    /// The call took longer than its limit, in seconds of wall time.
    TimedOut(u64),
    /// The run was cancelled.
    Cancelled,
    /// The output breaks the contract, for this reason.
    BadOutput(String),
    /// The tool's component does not load, for this reason, which names no path of the host.
    NotLoaded(String),
    /// The host failed; its log has the details.
    HostFault,
}

/// The kinds of tool errors, as in the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolErrorKind {
    /// The arguments do not match the schema.
    InvalidArguments,
    /// The call names an object that does not exist, for example a file.
    NotFound,
    /// The sandbox refused an access that the call needs.
    Denied,
    /// The input or the result is too large.
    TooLarge,
    /// Any other error.
    Failed,
}

impl ToolOutput {
    /// The text and JSON parts, joined by line ends; attachments are left out. Foreign text: escape before
    /// display.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            OutputPart::Text(text) | OutputPart::Json(text) => Some(text.as_str()),
            OutputPart::Attachment { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The bytes of all parts, including names and media types.
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
