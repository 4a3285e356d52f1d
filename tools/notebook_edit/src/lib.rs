//! `notebook_edit`: replaces, inserts or deletes a cell of a Jupyter notebook.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod cell;
mod layout;
mod notebook;

use belljar_guest::prelude::*;
use cell::Kind;
use notebook::{Edited, Notebook};
use std::fs::File;
use std::io::Read;

/// Bytes of a notebook that can be edited, before and after. More than `file_edit` takes,
/// because outputs hold pictures.
const MAX_FILE: usize = 16 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The notebook (`.ipynb`), relative to the workspace.
    path: String,
    /// The cell, by its id. For `insert`: the cell after which the new one goes; with neither
    /// `cell_id` nor `cell_number` it goes to the start.
    cell_id: Option<String>,
    /// The cell, by its position counted from 0, instead of `cell_id`.
    cell_number: Option<usize>,
    /// The cell's new source. Required, except to delete.
    new_source: Option<String>,
    /// The type of the cell. Default: the type it has, `code` for a new cell.
    #[serde(default)]
    #[schemars(with = "Kind")]
    cell_type: Option<Kind>,
    /// `replace` the cell's source, `insert` a new cell, or `delete` the cell. Default:
    /// `replace`.
    #[serde(default)]
    #[schemars(with = "EditMode")]
    edit_mode: Option<EditMode>,
}

/// What to do.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum EditMode {
    Replace,
    Insert,
    Delete,
}

fn notebook_edit(args: Args) -> ToolResult {
    let path = WorkspacePath::parse(&args.path)?;
    let text = read(&path, &args.path)?;
    let done = edit(&args, &text)?;
    if done.text.len() > MAX_FILE {
        let text = format!("`{}` would have more than {MAX_FILE} bytes", args.path);
        return Err(ToolError::TooLarge(text));
    }
    belljar_guest::replace_file(&path, done.text.as_bytes()).at(&args.path)?;
    Ok(Output::text(format!("edited {path}: {}", done.summary)))
}

fn edit(args: &Args, text: &str) -> Result<Edited, ToolError> {
    let notebook = Notebook::parse(text).map_err(|why| {
        ToolError::Failed(format!("`{}` is not a notebook that can be edited: {why}", args.path))
    })?;
    let cell = notebook.find(args.cell_id.as_deref(), args.cell_number)?;
    match (args.edit_mode.unwrap_or(EditMode::Replace), cell) {
        (EditMode::Replace, Some(cell)) => notebook.replace(cell, source(args)?, args.cell_type),
        (EditMode::Delete, Some(cell)) => notebook.delete(cell),
        (EditMode::Insert, cell) => {
            notebook.insert(cell, source(args)?, args.cell_type.unwrap_or(Kind::Code))
        }
        (EditMode::Replace | EditMode::Delete, None) => Err(ToolError::InvalidArguments(format!(
            "name the cell by `cell_id` or `cell_number`; {}",
            notebook.listed()
        ))),
    }
}

fn source(args: &Args) -> Result<&str, ToolError> {
    args.new_source.as_deref().ok_or_else(|| {
        ToolError::InvalidArguments("missing field `new_source`; only `delete` needs none".into())
    })
}

fn read(path: &WorkspacePath, given: &str) -> Result<String, ToolError> {
    let file = File::open(path).at(given)?;
    if file.metadata().at(given)?.is_dir() {
        return Err(ToolError::Failed(format!("`{given}` is a directory")));
    }
    let mut bytes = Vec::new();
    // Not by the size that the metadata claims: files grow.
    file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes).at(given)?;
    if bytes.len() > MAX_FILE {
        return Err(ToolError::TooLarge(format!("`{given}` has more than {MAX_FILE} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|_| ToolError::Failed(format!("`{given}` is not UTF-8 text and not a notebook")))
}

belljar_guest::tools! {
    notebook_edit(Args): "Edits a Jupyter notebook (`.ipynb`) in the workspace: replaces the source of one \
        cell, inserts a cell after another one, or deletes a cell. Name the cell by `cell_id` or \
        `cell_number`. Replacing a code cell removes its outputs, which belong to the old source. All else \
        in the file stays as it is. Says the number and the id of the cell that was edited.";
}

#[cfg(test)]
mod tests;
