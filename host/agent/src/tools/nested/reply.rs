//! Converts an answer, as a model reads it, to the result of a tool's nested call.

use belljar_sandbox::{OutputPart, PeerError, PeerResult, ToolErrorKind, ToolOutput};
use serde::{Deserialize, Serialize};

use crate::tools::answer::CallAnswer;

/// How the text of an answer is divided into parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnswerForm {
    /// The parts, in their order; empty = the text is one part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pieces: Vec<AnswerPiece>,
    /// The kind of error, for a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<ToolErrorKind>,
}

/// One part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnswerPiece {
    /// True for JSON, false for text.
    pub(crate) json: bool,
    /// The length of the part in bytes. One line feed separates it from the next part.
    pub(crate) bytes: usize,
}

impl AnswerForm {
    pub(crate) fn from_error_kind(kind: ToolErrorKind) -> Self {
        Self { kind: Some(kind), ..Self::default() }
    }

    /// The result for the tool. Text after the last part, which hooks have added, becomes a part of its own.
    pub(crate) fn to_peer_result(&self, answer: &CallAnswer) -> PeerResult {
        if answer.is_error {
            let kind = self.kind.unwrap_or(ToolErrorKind::Failed);
            let text = &answer.content;
            let told = text.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix(": "));
            return Err(PeerError { kind, message: told.unwrap_or(text).to_owned() });
        }
        let mut rest = answer.content.as_str();
        let mut parts = Vec::with_capacity(self.pieces.len());
        for (at, piece) in self.pieces.iter().enumerate() {
            let Some((text, behind)) = rest.split_at_checked(piece.bytes) else { break };
            let last = at + 1 == self.pieces.len();
            rest = if last { behind } else { behind.strip_prefix('\n').unwrap_or(behind) };
            let text = text.to_owned();
            parts.push(if piece.json { OutputPart::Json(text) } else { OutputPart::Text(text) });
        }
        if !rest.is_empty() || parts.is_empty() {
            parts.push(OutputPart::Text(rest.to_owned()));
        }
        Ok(ToolOutput { parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(content: &str) -> CallAnswer {
        CallAnswer { content: content.to_owned(), is_error: false }
    }

    fn text(text: &str) -> OutputPart {
        OutputPart::Text(text.to_owned())
    }

    #[test]
    fn parts_are_as_the_tool_gave_them_and_notes_stand_behind() {
        let pieces = [("é\n", false), ("{}", true)];
        let pieces = pieces.map(|(text, json)| AnswerPiece { json, bytes: text.len() }).to_vec();
        let form = AnswerForm { pieces, kind: None };
        let parts = form.to_peer_result(&ok("é\n\n{}")).unwrap().parts;
        assert_eq!(parts, [text("é\n"), OutputPart::Json("{}".to_owned())]);
        let parts = form.to_peer_result(&ok("é\n\n{}\n[note]")).unwrap().parts;
        assert_eq!(parts, [text("é\n"), OutputPart::Json("{}".to_owned()), text("\n[note]")]);
        // A cut or changed text has lost the division into parts, and becomes one part.
        assert_eq!(form.to_peer_result(&ok("é")).unwrap().parts, [text("é")]);
        assert_eq!(
            AnswerForm::default().to_peer_result(&ok("a\nb")).unwrap().parts,
            [text("a\nb")]
        );
        assert_eq!(AnswerForm::default().to_peer_result(&ok("")).unwrap().parts, [text("")]);
    }

    #[test]
    fn an_error_has_the_variant_and_its_text_once() {
        let answer = CallAnswer { content: "not-found: `a`".to_owned(), is_error: true };
        let told = AnswerForm::from_error_kind(ToolErrorKind::NotFound)
            .to_peer_result(&answer)
            .unwrap_err();
        assert_eq!((told.kind, told.message.as_str()), (ToolErrorKind::NotFound, "`a`"));
        let told = AnswerForm::default().to_peer_result(&answer).unwrap_err();
        assert_eq!((told.kind, told.message.as_str()), (ToolErrorKind::Failed, "not-found: `a`"));
    }
}
