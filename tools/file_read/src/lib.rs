//! `file_read`: a text file, whole or by lines.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod window;

use belljar_guest::prelude::*;
use std::fs::File;
use std::io::{self, Read};
use window::{Reading, Window};

/// Lines shown when the model names no limit: enough for nearly every source file, small
/// enough not to fill a context with one call.
const DEFAULT_LINES: u64 = 2_000;

/// Bytes taken from the file at a time. A file below this costs one read and the empty
/// read that ends it.
const CHUNK: u64 = 16 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file, relative to the workspace.
    path: String,
    /// First line to return, counted from 1. Default: 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Most lines to return. Default: 2000.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Put the line's number before each line: `tab` as `cat -n` does, `arrow` with `→` instead
    /// of the tab, `bar` as `00001| `. Default: no numbers.
    #[serde(default)]
    #[schemars(with = "LineNumbers")]
    line_numbers: Option<LineNumbers>,
}

/// How a line's number stands before it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LineNumbers {
    Tab,
    Arrow,
    Bar,
}

impl LineNumbers {
    /// What stands before the text of this line.
    pub(crate) fn before(self, line: u64) -> String {
        match self {
            LineNumbers::Tab => format!("{line:>6}\t"),
            LineNumbers::Arrow => format!("{line:>6}→"),
            LineNumbers::Bar => format!("{line:05}| "),
        }
    }
}

fn file_read(args: Args) -> ToolResult {
    let offset = args.offset.unwrap_or(1);
    let limit = args.limit.unwrap_or(DEFAULT_LINES);
    if offset == 0 || limit == 0 {
        return Err(ToolError::InvalidArguments("`offset` and `limit` count from 1".to_owned()));
    }
    let path = WorkspacePath::parse(&args.path)?;
    let mut file = File::open(&path).at(&args.path)?;
    match read(&mut file, Window::new(offset, limit, args.line_numbers)) {
        Ok(window) => match window.binary() {
            Some(kind) => Err(not_text(&file, kind, &args.path)),
            None => window.finish(&args.path).map(Output::text),
        },
        Err(error) => Err(explain(&file, &error, &args.path)),
    }
}

/// Feeds the window until it wants no more or the file ends.
fn read(file: &mut File, mut window: Window) -> io::Result<Window> {
    let mut chunk = Vec::with_capacity(CHUNK as usize);
    loop {
        chunk.clear();
        let got = file.by_ref().take(CHUNK).read_to_end(&mut chunk)?;
        if window.feed(&chunk) == Reading::Enough {
            return Ok(window);
        }
        if (got as u64) < CHUNK {
            window.end();
            return Ok(window);
        }
    }
}

fn not_text(file: &File, kind: &str, path: &str) -> ToolError {
    let size = file
        .metadata()
        .map_or_else(|_| "unknown size".to_owned(), |metadata| format!("{} bytes", metadata.len()));
    ToolError::Failed(format!(
        "`{path}` is not text: {kind} ({size}); `attach_file` can hand it over as it is"
    ))
}

/// A directory opens like a file and fails only when read, each time with another error.
fn explain(file: &File, error: &io::Error, path: &str) -> ToolError {
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            ToolError::Failed(format!("`{path}` is a directory; list it with `file_list`"))
        }
        _ => belljar_guest::from_io(error, path),
    }
}

belljar_guest::tools! {
    file_read(Args): "Reads a text file of the workspace and returns its text as it is, without line \
        numbers unless `line_numbers` is set. Returns the first 2000 lines unless `offset` and `limit` say otherwise; a result that \
        was cut ends with a `[belljar: ...]` line that says where to continue. To look for something in \
        many files use `file_search` instead of reading them one by one.",
        hints: read_only | idempotent;
}
