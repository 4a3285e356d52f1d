//! `file_find`: files whose path matches a glob.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

use belljar_guest::prelude::*;
use belljar_guest::walk::{self, Glob};
use std::fmt::Write as _;

/// Paths shown when the model names no limit.
const DEFAULT_PATHS: usize = 200;

/// The most paths of one answer, whatever the model asks for.
const MAX_PATHS: usize = 5_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// A glob. Without `/` it is matched against file names at any depth (`*.rs`); with `/`
    /// against paths relative to `path` (`src/**/*.rs`). `*` stays within a directory, `**`
    /// crosses directories, `{a,b}` and `[a-z]` work.
    pattern: String,
    /// The directory to look in, relative to the workspace. Default: the workspace itself.
    path: Option<String>,
    /// Most paths to return, up to 5000. Default: 200.
    #[schemars(range(min = 1, max = 5000))]
    limit: Option<usize>,
}

fn file_find(args: Args) -> ToolResult {
    let limit = args.limit.unwrap_or(DEFAULT_PATHS).min(MAX_PATHS);
    if limit == 0 {
        return Err(ToolError::InvalidArguments("`limit` is at least 1".to_owned()));
    }
    if args.pattern.is_empty() {
        return Err(ToolError::InvalidArguments(
            "`pattern` is empty; `**` matches every file".to_owned(),
        ));
    }
    let glob = Glob::new(&args.pattern)?;
    let given = args.path.as_deref().unwrap_or(".");
    let start = WorkspacePath::parse(given)?;
    let mut text = String::new();
    let (mut shown, mut seen, mut cut) = (0_usize, 0_u64, false);
    let unread = walk::files(&start, given, |found| {
        seen += 1;
        if !glob.finds(&found) {
            return Ok(true);
        }
        if shown == limit {
            cut = true;
            return Ok(false);
        }
        shown += 1;
        let _ = writeln!(text, "{}", found.path);
        Ok(true)
    })?;
    if shown == 0 {
        let _ = writeln!(text, "[belljar: none of {seen} files matches]");
        if let Some(hint) = glob.hint(&args.pattern, given) {
            let _ = writeln!(text, "[belljar: {hint}]");
        }
    }
    if cut {
        let _ =
            writeln!(text, "[belljar: cut after {limit} paths; narrow `pattern` or raise `limit`]");
    }
    if unread.entries > 0 {
        let _ = writeln!(text, "[belljar: {} entries could not be read]", unread.entries);
    }
    Ok(Output::text(text))
}

belljar_guest::tools! {
    file_find(Args): "Finds files by name or path with a glob and returns their paths, one per line, \
        sorted. Files that `.gitignore` excludes are left out. To look at the content of files use \
        `file_search`.",
        hints: read_only | idempotent;
}
