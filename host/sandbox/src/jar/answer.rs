//! Checks a tool's answer, before any other code uses it.

use belljar_policy::spelling::parse_spelled;
use belljar_policy::{Budget, BudgetLevel, Meter, ShownText};
use belljar_received::json::mend_owned;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::component::bindings::exports::belljar::tool::tools as wit;
use crate::jar::output::{CallError, OutputPart, ToolErrorKind, ToolOutput};
use crate::json::check_json;

/// The most parts of a output: models read only a few.
const MAX_PARTS: usize = 256;

/// The most bytes of a tool error's text, because the text goes to the model. The rest is cut.
const MAX_MESSAGE: usize = 16 << 10;

/// The most bytes of an attachment's name, and of its media type.
const MAX_NAME: usize = 255;
const MAX_MEDIA_TYPE: usize = 127;

/// The most bytes of a call's arguments: more than a model can output.
pub(crate) const MAX_ARGUMENTS: usize = 4 << 20;

/// The name for an attachment if cleaning left nothing of its own name.
const NAMELESS: &str = "attachment";

/// Whether the text is a JSON object of bounded depth.
pub(crate) fn is_object(text: &str) -> bool {
    text.len() <= MAX_ARGUMENTS
        && text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{')
        && check_json(text).is_ok()
}

/// Checks an output and bills its size. Fails if the output has too many parts, is larger than the budget
/// allows, or has a part that is not valid.
pub(crate) fn accept_output(output: wit::Output, budget: &Budget) -> Result<ToolOutput, CallError> {
    if output.parts.len() > MAX_PARTS {
        let why = format!("{} parts, and at most {MAX_PARTS} are accepted", output.parts.len());
        return Err(CallError::BadOutput(why));
    }
    let size = output.parts.iter().map(part_size).fold(0, u64::saturating_add);
    if let Err(over) = budget.reserve(Meter::Output, size) {
        return Err(if over.level == BudgetLevel::Call {
            let limit = over.limit;
            CallError::BadOutput(format!("{size} bytes, and at most {limit} are accepted"))
        } else {
            CallError::Exhausted(over)
        });
    }
    let parts = output.parts.into_iter().map(check_part).collect::<Result<_, _>>()?;
    Ok(ToolOutput { parts })
}

/// Converts the error a tool returned, and cuts its text to [`MAX_MESSAGE`].
pub(crate) fn tool_error(error: wit::ToolError) -> CallError {
    let (kind, mut message) = match error {
        wit::ToolError::InvalidArguments(text) => (ToolErrorKind::InvalidArguments, text),
        wit::ToolError::NotFound(text) => (ToolErrorKind::NotFound, text),
        wit::ToolError::Denied(text) => (ToolErrorKind::Denied, text),
        wit::ToolError::TooLarge(text) => (ToolErrorKind::TooLarge, text),
        wit::ToolError::Failed(text) => (ToolErrorKind::Failed, text),
    };
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE));
        message.push('…');
    }
    CallError::Tool { kind, message }
}

/// The digest of an output. Of a single text, it is the SHA-256 of that text, so it equals the digest of a
/// file with that content. Otherwise it covers the kind and the content of each part.
pub(crate) fn output_digest(output: &ToolOutput) -> [u8; 32] {
    if let [OutputPart::Text(text)] = output.parts.as_slice() {
        return Sha256::digest(text.as_bytes()).into();
    }
    let mut hasher = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for part in &output.parts {
        match part {
            OutputPart::Text(text) => {
                add(b"text");
                add(text.as_bytes());
            }
            OutputPart::Json(text) => {
                add(b"json");
                add(text.as_bytes());
            }
            OutputPart::Attachment { name, media_type, data } => {
                add(b"attachment");
                add(name.as_bytes());
                add(media_type.as_bytes());
                add(data);
            }
        }
    }
    hasher.finalize().into()
}

fn part_size(part: &wit::Part) -> u64 {
    let bytes = match part {
        wit::Part::Text(text) | wit::Part::Json(text) => text.len(),
        wit::Part::Attachment(file) => file.name.len() + file.media_type.len() + file.data.len(),
    };
    bytes as u64
}

fn check_part(part: wit::Part) -> Result<OutputPart, CallError> {
    match part {
        wit::Part::Text(text) => Ok(OutputPart::Text(text)),
        wit::Part::Json(text) => {
            // INV-471: broken escapes in the text are replaced, so that every JSON parser accepts it.
            let text = mend_owned(text);
            match check_json(&text) {
                Ok(()) => Ok(OutputPart::Json(text)),
                Err(why) => Err(CallError::BadOutput(format!("a json part is not usable: {why}"))),
            }
        }
        wit::Part::Attachment(file) => Ok(OutputPart::Attachment {
            name: clean_name(&file.name),
            media_type: media_type(&file.media_type)?,
            data: Bytes::from(file.data),
        }),
    }
}

/// Makes a file name from an attachment's name: its last path component, without characters that can harm a
/// file system or a terminal. For example `../../etc/passwd` becomes `passwd`.
fn clean_name(name: &str) -> String {
    // Keep the escape of a byte that is not text: `caf\xE9.txt` is not the file `xE9.txt` in a directory
    // `caf`.
    let spelt = parse_spelled(name).to_str().is_none().then(|| name.replace("\\x", "_x"));
    let name = spelt.as_deref().unwrap_or(name);
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept: String = last
        .chars()
        .filter(|c| ShownText::new(c.encode_utf8(&mut [0; 4])).to_string().chars().eq([*c]))
        .map(|c| if matches!(c, ':' | '*' | '?' | '"' | '<' | '>' | '|') { '_' } else { c })
        .collect();
    // A leading dot hides a file, and `..` names a directory. Windows drops dots and blanks at the end.
    let trimmed = kept.trim_start_matches(['.', ' ']).trim_end_matches(['.', ' ']);
    let end = trimmed.floor_char_boundary(MAX_NAME);
    match trimmed.get(..end) {
        None | Some("") => NAMELESS.to_owned(),
        Some(name) => name.to_owned(),
    }
}

/// Returns a media type unchanged, for example `text/html; charset=utf-8`, if it has printable ASCII only
/// and is short.
fn media_type(text: &str) -> Result<String, CallError> {
    let fits = text.len() <= MAX_MEDIA_TYPE
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && text.split_once('/').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty());
    if fits {
        return Ok(text.to_owned());
    }
    let shown = ShownText::clip_line(text, 64);
    Err(CallError::BadOutput(format!("`{shown}` is not a media type such as `text/plain`")))
}

#[cfg(test)]
mod tests {
    use belljar_policy::BudgetCaps;

    use super::*;

    fn budget(call: u64, above: u64) -> Budget {
        let top = Budget::new_root(
            BudgetLevel::Subagent,
            BudgetCaps::unlimited().with_cap(Meter::Output, above),
        );
        top.new_child(BudgetLevel::Call, BudgetCaps::unlimited().with_cap(Meter::Output, call))
    }

    fn output(parts: Vec<wit::Part>) -> wit::Output {
        wit::Output { parts }
    }

    #[test]
    fn names_of_attachments_cannot_leave_a_directory_or_hide() {
        for (name, clean) in [
            ("../../etc/passwd", "passwd"),
            ("C:\\temp\\a.txt", "a.txt"),
            ("d\\xFF/caf\\xE9.txt", "caf_xE9.txt"),
            ("caf\\xe9.txt", "xe9.txt"),
            ("..", NAMELESS),
            ("", NAMELESS),
            (".bashrc", "bashrc"),
            ("a\u{202e}b\n.txt", "ab.txt"),
            ("a:b?.png", "a_b_.png"),
            ("größe.txt", "größe.txt"),
        ] {
            assert_eq!(clean_name(name), clean, "{name:?}");
        }
        assert!(clean_name(&"ä".repeat(1_000)).len() <= MAX_NAME);
    }

    #[test]
    fn an_output_is_bounded_by_the_call_and_by_what_is_above() {
        let text = || output(vec![wit::Part::Text("12345".to_owned())]);
        assert!(accept_output(text(), &budget(5, 5)).is_ok());
        assert!(matches!(accept_output(text(), &budget(4, 9)), Err(CallError::BadOutput(_))));
        assert!(matches!(accept_output(text(), &budget(9, 4)), Err(CallError::Exhausted(_))));
    }

    #[test]
    fn json_must_parse_and_not_be_deep() {
        let json = |text: &str| output(vec![wit::Part::Json(text.to_owned())]);
        assert!(accept_output(json("{\"a\": [1]}"), &budget(999, 999)).is_ok());
        for bad in ["{", "", "{} {}", &"[".repeat(100_000)] {
            assert!(accept_output(json(bad), &budget(1 << 20, 1 << 20)).is_err(), "{:.9}", bad);
        }
    }

    #[test]
    fn half_a_surrogate_pair_of_a_tool_is_replaced() {
        let given = output(vec![wit::Part::Json(r#"{"a": "cut \ud83d"}"#.to_owned())]);
        let taken = accept_output(given, &budget(999, 999)).unwrap();
        assert_eq!(taken.parts, [OutputPart::Json(r#"{"a": "cut \ufffd"}"#.to_owned())]);
    }

    #[test]
    fn arguments_are_objects() {
        assert!(is_object(" {\"a\":1}"));
        for bad in ["", "[]", "{", "1", "{}x", &format!("{{\"a\":{}", "[".repeat(9_999))] {
            assert!(!is_object(bad), "{bad:.9}");
        }
    }

    #[test]
    fn media_types_with_control_characters_are_refused() {
        assert!(media_type("text/plain; charset=utf-8").is_ok());
        for bad in ["", "text", "/", "a/", "text/plain\r\nx: y", "text/\u{e9}"] {
            assert!(media_type(bad).is_err(), "{bad:?}");
        }
    }
}
