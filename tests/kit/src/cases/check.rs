//! A case's expectations of the answer.

use belljar_sandbox::{CallError, CallResult, OutputPart};

use super::{Expect, ExpectedAttachment};

/// The faults of the answer. `server` stands for `{{server}}`.
pub(super) fn faults(expect: &Expect, result: &CallResult, server: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let (text, kind) = match &result.outcome {
        Ok(output) => (joined(&output.parts), None),
        Err(CallError::Tool { kind, message }) => (message.clone(), Some(kind.as_str().to_owned())),
        Err(error) => (error.to_string(), Some(format!("not a tool error: {error:?}"))),
    };
    if let Some(code) = &expect.refused
        && !result.receipt.denials.iter().any(|denial| denial.code == *code)
    {
        faults.push(format!("nothing was refused as `{code}`: {:?}", result.receipt.denials));
    }
    if kind != expect.error && (expect.error.is_some() || expect.refused.is_none()) {
        faults.push(format!("ended with error {kind:?} instead of {:?}: {text}", expect.error));
    }
    let fill = |text: &String| text.replace("{{server}}", server);
    if let Some(wanted) = expect.text.as_ref().map(fill)
        && wanted != text
    {
        faults.push(format!("the text is\n{text:?}\ninstead of\n{wanted:?}"));
    }
    for piece in expect.contains.iter().map(fill).filter(|piece| !text.contains(piece)) {
        faults.push(format!("{piece:?} is not in the text: {}", clipped(&text)));
    }
    for piece in expect.lacks.iter().map(fill).filter(|piece| text.contains(piece)) {
        faults.push(format!("{piece:?} is in the text: {}", clipped(&text)));
    }
    if let Some(wanted) = &expect.attachment {
        let parts = result.outcome.as_ref().map(|output| output.parts.as_slice());
        faults.extend(attachment_fault(wanted, parts.unwrap_or_default()));
    }
    faults
}

fn joined(parts: &[OutputPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        OutputPart::Text(text) | OutputPart::Json(text) => Some(text.as_str()),
        OutputPart::Attachment { .. } => None,
    });
    texts.collect()
}

fn attachment_fault(wanted: &ExpectedAttachment, parts: &[OutputPart]) -> Option<String> {
    let found = parts.iter().find_map(|part| match part {
        OutputPart::Attachment { name, media_type, data } => Some((name, media_type, data)),
        OutputPart::Text(_) | OutputPart::Json(_) => None,
    });
    let Some((name, media_type, data)) = found else {
        return Some("there is no attachment".into());
    };
    let same = *name == wanted.name
        && *media_type == wanted.media_type
        && wanted.text.as_ref().is_none_or(|text| text.as_bytes() == &data[..])
        && wanted.bytes.is_none_or(|bytes| bytes == data.len());
    (!same).then(|| format!("the attachment is {name:?} {media_type:?} with {} bytes", data.len()))
}

fn clipped(text: &str) -> String {
    belljar_policy::ShownText::clip_line(text, 400).to_string()
}
