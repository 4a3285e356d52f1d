//! Converts the output of a tool to the text that the model reads, the receipt and the attachments.

use belljar_sandbox::{
    CallEnding, CallError, CallResult, Denial, OutputPart, Receipt, ToolErrorKind,
};

use crate::events::MAX_SHOWN;
use crate::limits::{MAX_NAME_BYTES, truncate_str};
use crate::outcome::Attachment;
use crate::prompt::frame::INTERRUPTED;
use crate::tools::answer::CallAnswer;
use crate::tools::dispatch::{CallRefusal, RefusalReason};
use crate::tools::nested::reply::{AnswerForm, AnswerPiece};

/// A call that was executed or refused, with its records.
#[derive(Debug)]
pub(crate) struct ExecutedCall {
    pub(crate) answer: CallAnswer,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) receipt: Receipt,
    /// How the answer's text is divided into parts, for a tool that made the call.
    pub(crate) form: AnswerForm,
}

/// Converts the result of the jar. Text and JSON parts are joined by line feeds; an attachment becomes one
/// line with its name, because its content is for the person.
pub(crate) fn from_call_result(call_id: &str, result: CallResult) -> ExecutedCall {
    let mut attachments = Vec::new();
    let mut form = AnswerForm::default();
    let answer = match result.outcome {
        Ok(output) => {
            let mut texts = Vec::with_capacity(output.parts.len());
            for part in output.parts {
                let json = matches!(part, OutputPart::Json(_));
                texts.push(match part {
                    OutputPart::Text(text) | OutputPart::Json(text) => text,
                    OutputPart::Attachment { name, media_type, data } => {
                        let note = format!("[attached {name}, {media_type}, {} bytes]", data.len());
                        let size = u64::try_from(data.len()).unwrap_or(u64::MAX);
                        let call_id = call_id.to_owned();
                        let saved_to = None;
                        attachments.push(Attachment {
                            call_id,
                            name,
                            media_type,
                            size,
                            saved_to,
                            data,
                        });
                        note
                    }
                });
                let bytes = texts.last().map_or(0, String::len);
                form.pieces.push(AnswerPiece { json, bytes });
            }
            // A single part, the usual case, is not copied.
            let content =
                if texts.len() == 1 { texts.pop().unwrap_or_default() } else { texts.join("\n") };
            CallAnswer { content, is_error: false }
        }
        Err(error) => {
            form.kind = Some(error_kind(&error));
            CallAnswer { content: error.to_string(), is_error: true }
        }
    };
    ExecutedCall { answer, attachments, receipt: result.receipt, form }
}

/// The kind of error that a calling tool gets for a failed call.
fn error_kind(error: &CallError) -> ToolErrorKind {
    match error {
        CallError::Tool { kind, .. } => *kind,
        CallError::Refused(_) => ToolErrorKind::Denied,
        CallError::Trapped(_)
        | CallError::Exhausted(_)
        | CallError::TimedOut(_)
        | CallError::Cancelled
        | CallError::BadOutput(_)
        | CallError::NotLoaded(_)
        | CallError::HostFault => ToolErrorKind::Failed,
    }
}

/// The record of a refused call, with the reason in its receipt.
pub(crate) fn from_refusal(tool: &str, arguments: &str, refusal: CallRefusal) -> ExecutedCall {
    let mut receipt = Receipt::for_call(truncate_str(tool, MAX_NAME_BYTES), "", arguments);
    receipt.ending = match &refusal.reason {
        RefusalReason::Denied(denied) => {
            receipt.denials.push(Denial::new(denied.code, "call", denied.to_string()));
            CallEnding::Refused(denied.code.to_string())
        }
        RefusalReason::Malformed(why) => CallEnding::Refused(why.clone()),
    };
    let kind = match refusal.reason {
        RefusalReason::Denied(_) => ToolErrorKind::Denied,
        RefusalReason::Malformed(_) => ToolErrorKind::InvalidArguments,
    };
    let answer = CallAnswer { content: refusal.text, is_error: true };
    ExecutedCall {
        answer,
        attachments: Vec::new(),
        receipt,
        form: AnswerForm::from_error_kind(kind),
    }
}

/// The record of a built-in tool's call.
pub(crate) fn from_builtin(tool: &str, arguments: &str, answer: CallAnswer) -> ExecutedCall {
    let mut receipt = Receipt::for_call(truncate_str(tool, MAX_NAME_BYTES), "", arguments);
    receipt.ending = if answer.is_error {
        CallEnding::ToolError("failed".to_owned())
    } else {
        CallEnding::Completed
    };
    receipt.bytes.output = u64::try_from(answer.content.len()).unwrap_or(u64::MAX);
    let form = AnswerForm::default();
    ExecutedCall { answer, attachments: Vec::new(), receipt, form }
}

/// The record of a call that had not ended when its run ended.
pub(crate) fn from_abandoned(tool: &str, arguments: &str) -> ExecutedCall {
    let mut receipt = Receipt::for_call(truncate_str(tool, MAX_NAME_BYTES), "", arguments);
    receipt.ending = CallEnding::Cancelled;
    let answer = CallAnswer { content: "cancelled".to_owned(), is_error: true };
    let form = AnswerForm::default();
    ExecutedCall { answer, attachments: Vec::new(), receipt, form }
}

/// The record of a call that was running when the process died. Its effects are unknown, so it is not
/// repeated.
pub(crate) fn from_interrupted(tool: &str, arguments: &str) -> ExecutedCall {
    let mut receipt = Receipt::for_call(truncate_str(tool, MAX_NAME_BYTES), "", arguments);
    receipt.ending = CallEnding::HostFault("the program ended during this call".to_owned());
    let answer = CallAnswer { content: INTERRUPTED.to_owned(), is_error: true };
    let form = AnswerForm::default();
    ExecutedCall { answer, attachments: Vec::new(), receipt, form }
}

/// The record of a call that was ended because its nested calls differ from the journal. `how` names the
/// difference.
pub(crate) fn from_diverged(mut receipt: Receipt, how: String) -> ExecutedCall {
    receipt.ending = CallEnding::Refused("it went another way than recorded".to_owned());
    let answer = CallAnswer { content: how, is_error: true };
    let form = AnswerForm::default();
    ExecutedCall { answer, attachments: Vec::new(), receipt, form }
}

/// Why a call failed, for the person: the facts of a refusal, which the model does not see, otherwise the
/// model's text.
pub(crate) fn error_of(executed: &ExecutedCall) -> Option<String> {
    if !executed.answer.is_error {
        return None;
    }
    let denial = executed.receipt.denials.first().map(|denial| denial.facts.as_str());
    let why = denial.filter(|facts| !facts.is_empty()).unwrap_or(&executed.answer.content);
    Some(why.chars().take(MAX_SHOWN).collect())
}

/// How a call ended, in one or two words, for events.
pub fn ending_word(ending: &CallEnding) -> String {
    match ending {
        CallEnding::Completed => "completed".to_owned(),
        CallEnding::ToolError(kind) => kind.clone(),
        CallEnding::Trapped(trap) => format!("trapped: {trap}"),
        CallEnding::Exhausted(which) => format!("exhausted: {which}"),
        CallEnding::TimedOut => "timed out".to_owned(),
        CallEnding::Cancelled => "cancelled".to_owned(),
        CallEnding::BadOutput(why) => format!("bad output: {why}"),
        CallEnding::Refused(why) => format!("refused: {why}"),
        CallEnding::HostFault(why) => format!("host fault: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_sandbox::{CallError, ToolOutput};
    use bytes::Bytes;

    fn call(outcome: Result<ToolOutput, CallError>) -> ExecutedCall {
        from_call_result("c1", CallResult { outcome, receipt: Receipt::for_call("t", "", "{}") })
    }

    #[test]
    fn parts_are_joined_and_attachments_named() {
        let data = Bytes::from_static(b"abc");
        let executed = call(Ok(ToolOutput {
            parts: vec![
                OutputPart::Text("one".into()),
                OutputPart::Json("{\"a\":1}".into()),
                OutputPart::Attachment {
                    name: "x.png".into(),
                    media_type: "image/png".into(),
                    data,
                },
            ],
        }));
        assert_eq!(executed.answer.content, "one\n{\"a\":1}\n[attached x.png, image/png, 3 bytes]");
        let kept = &executed.attachments[0];
        assert_eq!((kept.call_id.as_str(), kept.size, &kept.data[..]), ("c1", 3, &b"abc"[..]));
    }

    #[test]
    fn an_error_is_one_that_the_model_can_read() {
        let executed = call(Err(CallError::TimedOut(60)));
        assert!(executed.answer.is_error && executed.answer.content.contains("60 seconds"));
        assert!(error_of(&executed).unwrap().contains("60 seconds"));
    }
}
