//! `file_edit`: replaces an exact piece of text.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod edit;

use belljar_guest::prelude::*;
use std::fs::File;
use std::io::Read;

/// Bytes of a file that can be edited: it is held in memory twice.
const MAX_FILE: u64 = 8 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file, relative to the workspace.
    path: String,
    /// The text to replace, exactly as it stands in the file, white space included. Must
    /// occur once, unless `replace_all` is set: include a line or two around the change to
    /// make it unique.
    old_text: String,
    /// What takes its place. Empty to delete.
    new_text: String,
    /// Replace every occurrence. Default: false.
    replace_all: Option<bool>,
}

fn file_edit(args: Args) -> ToolResult {
    let path = WorkspacePath::parse(&args.path)?;
    let old = read(&path, &args.path)?;
    let edit = edit::Edit {
        path: &args.path,
        old_text: &args.old_text,
        new_text: &args.new_text,
        replace_all: args.replace_all.unwrap_or(false),
    };
    let done = edit.apply(&old)?;
    belljar_guest::replace_file(&path, done.text.as_bytes()).at(&args.path)?;
    Ok(Output::text(format!("edited {path}: {}", done.summary)))
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
    file_edit(Args): "Replaces an exact piece of text in a file of the workspace. Fails without changing \
        anything when `old_text` is not in the file, or is there more than once and `replace_all` is not \
        set. Read the file first, and copy `old_text` from it character by character. Line endings (CRLF) \
        are kept.";
}
