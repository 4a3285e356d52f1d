//! `file_edit`: replaces an exact piece of text.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod edit;

use belljar_guest::prelude::*;
use edit::Edit;
use std::fs::File;
use std::io::Read;

/// Bytes of a file that can be edited, before and after: it is held in memory twice.
pub(crate) const MAX_FILE: u64 = 8 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file, relative to the workspace.
    path: String,
    /// For one edit: the text to replace, exactly as it stands in the file, white space
    /// included. Must occur once, unless `replace_all` is set: include a line or two around
    /// the change to make it unique.
    old_text: Option<String>,
    /// For one edit: what takes its place. Empty to delete.
    new_text: Option<String>,
    /// For one edit: replace every occurrence. Default: false.
    replace_all: Option<bool>,
    /// For several edits, instead of `old_text` and `new_text`: up to 200, applied in order,
    /// each to the result of the one before, all or none.
    #[schemars(length(min = 1, max = 200))]
    edits: Option<Vec<OneOfSeveral>>,
}

/// One of several edits.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneOfSeveral {
    /// The text to replace, exactly as it stands after the edits before.
    old_text: String,
    /// What takes its place. Empty to delete.
    new_text: String,
    /// Replace every occurrence. Default: false.
    replace_all: Option<bool>,
}

fn file_edit(args: Args) -> ToolResult {
    let wanted = Wanted::of(&args)?;
    let path = WorkspacePath::parse(&args.path)?;
    let old = read(&path, &args.path)?;
    let done = match wanted {
        Wanted::One(edit) => edit::one(&edit, &old)?,
        Wanted::Several(edits) => edit::all(&edits, &old)?,
    };
    belljar_guest::replace_file(&path, done.text.as_bytes()).at(&args.path)?;
    Ok(Output::text(format!("edited {path}: {}", done.summary)))
}

/// Which of its two forms a call has.
enum Wanted<'a> {
    One(Edit<'a>),
    Several(Vec<Edit<'a>>),
}

impl<'a> Wanted<'a> {
    fn of(args: &'a Args) -> Result<Wanted<'a>, ToolError> {
        let path = args.path.as_str();
        let edit = |old_text: &'a str, new_text: &'a str, replace_all: Option<bool>| Edit {
            path,
            old_text,
            new_text,
            replace_all: replace_all.unwrap_or(false),
        };
        let wrong = |text: &str| Err(ToolError::InvalidArguments(text.to_owned()));
        match (args.old_text.as_deref(), args.new_text.as_deref(), &args.edits) {
            (Some(old), Some(new), None) => Ok(Wanted::One(edit(old, new, args.replace_all))),
            (None, None, Some(_)) if args.replace_all == Some(true) => {
                wrong("`replace_all` goes into each of `edits` that is to replace every occurrence")
            }
            (None, None, Some(edits)) => {
                let edits = edits.iter().map(|e| edit(&e.old_text, &e.new_text, e.replace_all));
                Ok(Wanted::Several(edits.collect()))
            }
            (Some(_), None, None) => wrong("missing field `new_text`; it is empty to delete"),
            (None, Some(_), None) => wrong("missing field `old_text`"),
            (None, None, None) => {
                wrong("nothing to edit: give `old_text` and `new_text`, or `edits` for several")
            }
            (Some(_), _, Some(_)) | (None, Some(_), Some(_)) => {
                wrong("give either `old_text` and `new_text`, or `edits`, not both")
            }
        }
    }
}

fn read(path: &WorkspacePath, given: &str) -> Result<String, ToolError> {
    let file = File::open(path).at(given)?;
    if file.metadata().at(given)?.is_dir() {
        return Err(ToolError::Failed(format!("`{given}` is a directory")));
    }
    let mut bytes = Vec::new();
    // Not by the size that the metadata claims: files grow.
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).at(given)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(ToolError::TooLarge(format!("`{given}` has more than {MAX_FILE} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|_| ToolError::Failed(format!("`{given}` is not UTF-8 text and cannot be edited")))
}

belljar_guest::tools! {
    file_edit(Args): "Replaces an exact piece of text in a file of the workspace, or several pieces with \
        `edits`. Fails without changing anything when `old_text` is not in the file, or is there more \
        than once and `replace_all` is not set. Read the file first, and copy `old_text` from it \
        character by character, without line numbers. Line endings (CRLF) are kept.";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(json: &str) -> Result<usize, String> {
        let args: Args = serde_json::from_str(json).unwrap();
        match Wanted::of(&args) {
            Ok(Wanted::One(_)) => Ok(1),
            Ok(Wanted::Several(edits)) => Ok(edits.len()),
            Err(ToolError::InvalidArguments(text)) => Err(text),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_call_has_one_of_two_forms() {
        assert_eq!(wanted(r#"{"path":"a","old_text":"x","new_text":"y","edits":null}"#), Ok(1));
        let two = r#"[{"old_text":"x","new_text":"y"},{"old_text":"y","new_text":"z"}]"#;
        assert_eq!(wanted(&format!(r#"{{"path":"a","edits":{two}}}"#)), Ok(2));
        assert_eq!(wanted(&format!(r#"{{"path":"a","replace_all":false,"edits":{two}}}"#)), Ok(2));
    }

    #[test]
    fn both_forms_or_neither_or_half_of_one_is_refused_with_what_to_do() {
        for (json, piece) in [
            (r#"{"path":"a"}"#, "give `old_text` and `new_text`, or `edits`"),
            (r#"{"path":"a","old_text":"x"}"#, "missing field `new_text`"),
            (r#"{"path":"a","new_text":"x"}"#, "missing field `old_text`"),
            (r#"{"path":"a","old_text":"x","new_text":"y","edits":[]}"#, "not both"),
            (r#"{"path":"a","new_text":"y","edits":[]}"#, "not both"),
            (r#"{"path":"a","replace_all":true,"edits":[]}"#, "into each of `edits`"),
        ] {
            assert!(wanted(json).is_err_and(|text| text.contains(piece)), "{json}");
        }
    }
}
