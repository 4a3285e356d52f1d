//! `file_search`: lines that match a regular expression.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod report;

use belljar_guest::prelude::*;
use belljar_guest::walk::{self, Glob};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use report::{FileLines, Report};
use std::fs::File;

/// Matching lines shown when the model names no limit.
const DEFAULT_MATCHES: usize = 100;

/// The most matching lines of one answer, whatever the model asks for.
const MAX_MATCHES: usize = 2_000;

/// Context lines on each side: more than this is a job for `file_read`.
const MAX_CONTEXT: usize = 20;

/// Bytes of memory for one line: a longer one ends the search of its file.
const MAX_LINE_MEMORY: usize = 8 * 1024 * 1024;

/// Size of a compiled expression. Its own default is 10 MiB; a tenth is plenty for a
/// pattern that a model writes, and a bomb fails sooner.
const MAX_PATTERN: usize = 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// A regular expression in Rust's syntax (no look-around, no back-references), matched
    /// line by line. Escape `.`, `(`, `[`, `{`, `?`, `*`, `+`, `|` and `\` to find them as
    /// they are.
    pattern: String,
    /// The directory or file to search, relative to the workspace. Default: the workspace.
    path: Option<String>,
    /// Only search files that match this glob: `*.rs` by name, `src/**/*.rs` by path
    /// relative to `path`.
    glob: Option<String>,
    /// Lines to show before and after each match, 0 to 20. Default: 0.
    #[schemars(range(max = 20))]
    context: Option<usize>,
    /// Ignore upper and lower case. Default: false.
    case_insensitive: Option<bool>,
    /// Most matching lines to return, up to 2000. Default: 100.
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<usize>,
}

fn file_search(args: Args) -> ToolResult {
    let limit = args.limit.unwrap_or(DEFAULT_MATCHES).min(MAX_MATCHES);
    let context = args.context.unwrap_or(0);
    if limit == 0 || context > MAX_CONTEXT {
        return Err(ToolError::InvalidArguments(format!(
            "`limit` is at least 1 and `context` at most {MAX_CONTEXT}"
        )));
    }
    let matcher = matcher(&args.pattern, args.case_insensitive.unwrap_or(false))?;
    let glob = args.glob.as_deref().map(Glob::new).transpose()?;
    let mut searcher = searcher(context);
    let given = args.path.as_deref().unwrap_or(".");
    let start = WorkspacePath::parse(given)?;
    let mut report = Report::new(limit, context > 0);
    let unread = walk::files(&start, given, |found| {
        let wanted = glob.as_ref().is_none_or(|glob| glob.matches(&found.below));
        if found.regular && wanted {
            search(&mut searcher, &matcher, &found.path, &mut report);
        }
        Ok(!report.is_full())
    })?;
    Ok(Output::text(report.finish(unread.entries)))
}

fn search(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    path: &WorkspacePath,
    report: &mut Report,
) {
    let Ok(file) = File::open(path) else {
        report.unread();
        return;
    };
    let mut lines = FileLines::new(path.shown(), report);
    let done = searcher.search_file(matcher, &file, &mut lines);
    let binary = lines.is_binary();
    report.searched(done.is_ok(), binary);
}

fn matcher(pattern: &str, case_insensitive: bool) -> Result<RegexMatcher, ToolError> {
    if pattern.is_empty() {
        return Err(ToolError::InvalidArguments("`pattern` is empty".to_owned()));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(case_insensitive)
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN)
        .build(pattern)
        .map_err(|error| ToolError::InvalidArguments(format!("`pattern`: {error}")))
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .memory_map(MmapChoice::never())
        .heap_limit(Some(MAX_LINE_MEMORY))
        .build()
}

belljar_guest::tools! {
    file_search(Args): "Searches the text of files with a regular expression. Returns one line per match, \
        `path:line:text`; with `context` also the lines around it, `path-line-text`, and `--` between \
        groups. Files that `.gitignore` excludes and binary files are skipped. Prefer this to reading \
        files when you look for something.",
        hints: read_only | idempotent;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pattern: &str, context: usize, limit: usize, text: &str) -> String {
        let mut report = Report::new(limit, context > 0);
        let matcher = matcher(pattern, false).unwrap();
        let mut lines = FileLines::new("a.txt", &mut report);
        searcher(context).search_slice(&matcher, text.as_bytes(), &mut lines).unwrap();
        let binary = lines.is_binary();
        report.searched(true, binary);
        report.finish(0)
    }

    #[test]
    fn a_match_is_shown_with_path_and_line() {
        assert_eq!(run("b+", 0, 9, "a\nbb\nc\nxb\n"), "a.txt:2:bb\na.txt:4:xb\n");
    }

    #[test]
    fn context_lines_are_told_apart_and_groups_are_separated() {
        assert_eq!(
            run("X", 1, 9, "a\nX\nb\nc\nd\nX\n"),
            "a.txt-1-a\na.txt:2:X\na.txt-3-b\n--\na.txt-5-d\na.txt:6:X\n"
        );
    }

    #[test]
    fn a_full_answer_says_so() {
        assert_eq!(
            run("a", 0, 2, "a\na\na\n"),
            "a.txt:1:a\na.txt:2:a\n[belljar: cut after 2 matches; narrow the search or raise `limit`]\n"
        );
        assert_eq!(run("a", 0, 3, "a\na\na\n"), "a.txt:1:a\na.txt:2:a\na.txt:3:a\n");
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        let line = format!("needle {}", "ä".repeat(1000));
        let text = run("needle", 0, 9, &line);
        assert!(
            text.len() < 700 && text.contains("[belljar: line cut, 2007 bytes in all]"),
            "{text}"
        );
    }

    #[test]
    fn a_bad_or_oversized_pattern_is_a_bad_argument() {
        for pattern in ["", "(", "a{1000}{1000}"] {
            assert!(
                matches!(matcher(pattern, false), Err(ToolError::InvalidArguments(_))),
                "{pattern}"
            );
        }
    }
}
