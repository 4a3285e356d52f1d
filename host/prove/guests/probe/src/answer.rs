//! Answers that a host should not take as they are.

use belljar_guest::{Attachment, Output, Part, ToolError, ToolResult};
use serde::Deserialize;

/// One answer.
#[expect(clippy::enum_variant_names, reason = "the prefix tells an answer from other steps")]
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Step {
    /// A text part of `text`, `times` times.
    AnswerText {
        text: String,
        #[serde(default = "once")]
        times: usize,
    },
    /// The text as a part that claims to be JSON.
    AnswerJson { text: String },
    /// JSON that nests so deep.
    AnswerDeep { depth: usize },
    /// So many empty parts.
    AnswerParts { parts: usize },
    /// An attachment of `bytes` bytes.
    AnswerAttachment { name: String, media: String, bytes: usize },
    /// A tool error of a kind: `invalid-arguments`, `not-found`, `denied`, `too-large`, `failed`.
    AnswerError { kind: String, text: String },
}

fn once() -> usize {
    1
}

impl Step {
    pub(crate) fn run(self) -> ToolResult {
        match self {
            Self::AnswerText { text, times } => Ok(Output::text(text.repeat(times))),
            Self::AnswerJson { text } => Ok(Output { parts: vec![Part::Json(text)] }),
            Self::AnswerDeep { depth } => {
                let text = "[".repeat(depth) + &"]".repeat(depth);
                Ok(Output { parts: vec![Part::Json(text)] })
            }
            Self::AnswerParts { parts } => {
                Ok(Output { parts: vec![Part::Text(String::new()); parts] })
            }
            Self::AnswerAttachment { name, media, bytes } => {
                let data = vec![b'x'; bytes];
                let attachment = Attachment { name, media_type: media, data };
                Ok(Output { parts: vec![Part::Attachment(attachment)] })
            }
            Self::AnswerError { kind, text } => Err(match kind.as_str() {
                "invalid-arguments" => ToolError::InvalidArguments(text),
                "not-found" => ToolError::NotFound(text),
                "denied" => ToolError::Denied(text),
                "too-large" => ToolError::TooLarge(text),
                _ => ToolError::Failed(text),
            }),
        }
    }
}
