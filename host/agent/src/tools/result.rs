//! Converts a tool's output to the text for the model and the parts for the outcome.

use belljar_sandbox::{CallError, CallResult, Denial, Ending, Part, Receipt, ToolErrorKind};

use crate::events::MAX_SHOWN;
use crate::limits::{MAX_NAME_BYTES, cut};
use crate::outcome::Attachment;
use crate::prompt::frame::INTERRUPTED;
use crate::tools::answer::Answer;
use crate::tools::dispatch::{Reason, Refusal};
use crate::tools::nested::reply::{AnswerForm, Piece};

/// The result of one call.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) answer: Answer,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) receipt: Receipt,
    /// The form of the answer for a tool that made the call.
    pub(crate) form: AnswerForm,
}

/// Joins text and JSON parts by line feeds. An attachment becomes one line with its name; its content is for
/// the person, not for the model.
pub(crate) fn of_call(call_id: &str, result: CallResult) -> Executed {
    let mut attachments = Vec::new();
    let mut form = AnswerForm::default();
    let answer = match result.outcome {
        Ok(output) => {
            let mut texts = Vec::with_capacity(output.parts.len());
            for part in output.parts {
                let json = matches!(part, Part::Json(_));
                texts.push(match part {
                    Part::Text(text) | Part::Json(text) => text,
                    Part::Attachment { name, media_type, data } => {
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
                form.pieces.push(Piece { json, bytes });
            }
            // A single part, the usual case, is passed on without a copy.
            let content =
                if texts.len() == 1 { texts.pop().unwrap_or_default() } else { texts.join("\n") };
            Answer { content, is_error: false }
        }
        Err(error) => {
            form.kind = Some(kind(&error));
            Answer { content: error.to_string(), is_error: true }
        }
    };
    Executed { answer, attachments, receipt: result.receipt, form }
}

/// The contract's variant for the error of a failed call.
fn kind(error: &CallError) -> ToolErrorKind {
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

/// A call refused without a sandbox, with the reason in its receipt.
pub(crate) fn of_refusal(tool: &str, arguments: &str, refusal: Refusal) -> Executed {
    let mut receipt = Receipt::empty(cut(tool, MAX_NAME_BYTES), "", arguments);
    receipt.ending = match &refusal.reason {
        Reason::Denied(denied) => {
            receipt.denials.push(Denial::new(denied.code, "call", denied.to_string()));
            Ending::Refused(denied.code.to_string())
        }
        Reason::Malformed(why) => Ending::Refused(why.clone()),
    };
    let kind = match refusal.reason {
        Reason::Denied(_) => ToolErrorKind::Denied,
        Reason::Malformed(_) => ToolErrorKind::InvalidArguments,
    };
    let answer = Answer { content: refusal.text, is_error: true };
    Executed { answer, attachments: Vec::new(), receipt, form: AnswerForm::failed(kind) }
}

/// The receipt and answer of a built-in tool's call.
pub(crate) fn of_builtin(tool: &str, arguments: &str, answer: Answer) -> Executed {
    let mut receipt = Receipt::empty(cut(tool, MAX_NAME_BYTES), "", arguments);
    receipt.ending =
        if answer.is_error { Ending::ToolError("failed".to_owned()) } else { Ending::Completed };
    receipt.bytes.output = u64::try_from(answer.content.len()).unwrap_or(u64::MAX);
    let form = AnswerForm::default();
    Executed { answer, attachments: Vec::new(), receipt, form }
}

/// The result of a call that had not ended when its run ended.
pub(crate) fn of_abandoned(tool: &str, arguments: &str) -> Executed {
    let mut receipt = Receipt::empty(cut(tool, MAX_NAME_BYTES), "", arguments);
    receipt.ending = Ending::Cancelled;
    let answer = Answer { content: "cancelled".to_owned(), is_error: true };
    let form = AnswerForm::default();
    Executed { answer, attachments: Vec::new(), receipt, form }
}

/// The result of a call that was running when the process died: its effects are unknown, so the call is not
/// repeated.
pub(crate) fn of_interrupted(tool: &str, arguments: &str) -> Executed {
    let mut receipt = Receipt::empty(cut(tool, MAX_NAME_BYTES), "", arguments);
    receipt.ending = Ending::HostFault("the program ended during this call".to_owned());
    let answer = Answer { content: INTERRUPTED.to_owned(), is_error: true };
    let form = AnswerForm::default();
    Executed { answer, attachments: Vec::new(), receipt, form }
}

/// The result of a call whose nested calls differ from those recorded before the process died.
pub(crate) fn of_diverged(mut receipt: Receipt, how: String) -> Executed {
    receipt.ending = Ending::Refused("it went another way than recorded".to_owned());
    let answer = Answer { content: how, is_error: true };
    let form = AnswerForm::default();
    Executed { answer, attachments: Vec::new(), receipt, form }
}

/// The reason of a failed call, for the person: the refusal's facts, which the model does not see; otherwise
/// the model's text.
pub(crate) fn error_of(executed: &Executed) -> Option<String> {
    if !executed.answer.is_error {
        return None;
    }
    let denial = executed.receipt.denials.first().map(|denial| denial.facts.as_str());
    let why = denial.filter(|facts| !facts.is_empty()).unwrap_or(&executed.answer.content);
    Some(why.chars().take(MAX_SHOWN).collect())
}

/// The ending of a call in one word or two, for events.
pub fn ending_word(ending: &Ending) -> String {
    match ending {
        Ending::Completed => "completed".to_owned(),
        Ending::ToolError(kind) => kind.clone(),
        Ending::Trapped(trap) => format!("trapped: {trap}"),
        Ending::Exhausted(which) => format!("exhausted: {which}"),
        Ending::TimedOut => "timed out".to_owned(),
        Ending::Cancelled => "cancelled".to_owned(),
        Ending::BadOutput(why) => format!("bad output: {why}"),
        Ending::Refused(why) => format!("refused: {why}"),
        Ending::HostFault(why) => format!("host fault: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_sandbox::{CallError, Output};
    use bytes::Bytes;

    fn call(outcome: Result<Output, CallError>) -> Executed {
        of_call("c1", CallResult { outcome, receipt: Receipt::empty("t", "", "{}") })
    }

    #[test]
    fn parts_are_joined_and_attachments_named() {
        let data = Bytes::from_static(b"abc");
        let executed = call(Ok(Output {
            parts: vec![
                Part::Text("one".into()),
                Part::Json("{\"a\":1}".into()),
                Part::Attachment { name: "x.png".into(), media_type: "image/png".into(), data },
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
