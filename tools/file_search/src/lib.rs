//! `file_search`: lines that match a regular expression.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod kinds;
mod report;

use belljar_guest::prelude::*;
use belljar_guest::walk::{self, Found, Glob};
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use kinds::FileType;
use report::{FileMatches, Report};
use std::fs::File;

/// Matching lines, or files, shown when the model names no limit.
const DEFAULT_LIMIT: usize = 100;

/// The most matching lines, or files, of one answer, whatever the model asks for.
const MAX_LIMIT: usize = 2_000;

/// Context lines on each side: more than this is a job for `file_read`.
const MAX_CONTEXT: usize = 20;

/// Bytes of memory for one line, or for one file when a match may span lines: the search of a
/// file with a longer line ends there, and a larger file is skipped.
pub(crate) const MAX_MEMORY: usize = 8 * 1024 * 1024;

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
    /// Only search files of this type, by ripgrep's name: `rust`, `py`, `js`, `ts`, `go`,
    /// `java`, `md`, ...
    file_type: Option<String>,
    /// What to return: `content` the matching lines, `files_with_matches` one path per line,
    /// `count` the number of matching lines of each file as `path:count`. Default: `content`.
    #[serde(default)]
    #[schemars(with = "OutputMode")]
    output_mode: Option<OutputMode>,
    /// Lines to show before and after each match, 0 to 20. Default: 0.
    #[schemars(range(max = 20))]
    context: Option<usize>,
    /// Lines to show before each match, 0 to 20. Default: as `context`.
    #[schemars(range(max = 20))]
    before: Option<usize>,
    /// Lines to show after each match, 0 to 20. Default: as `context`.
    #[schemars(range(max = 20))]
    after: Option<usize>,
    /// Ignore upper and lower case. Default: false.
    case_insensitive: Option<bool>,
    /// Let a match span lines: `\n` is allowed in the pattern, and `.` matches line breaks
    /// too. Default: false.
    multiline: Option<bool>,
    /// Most matching lines to return, or most files in the other output modes, up to 2000.
    /// Default: 100.
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<usize>,
}

/// What an answer consists of.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputMode {
    Content,
    FilesWithMatches,
    Count,
}

fn file_search(args: Args) -> ToolResult {
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
    let context = Context::of(&args)?;
    if limit == 0 {
        return Err(ToolError::InvalidArguments("`limit` is at least 1".to_owned()));
    }
    let multiline = args.multiline.unwrap_or(false);
    let matcher = matcher(&args.pattern, args.case_insensitive.unwrap_or(false), multiline)?;
    let files = Files {
        glob: args.glob.as_deref().map(Glob::new).transpose()?,
        kind: args.file_type.as_deref().map(FileType::named).transpose()?,
    };
    let mut searcher = searcher(context, multiline);
    let given = args.path.as_deref().unwrap_or(".");
    let start = WorkspacePath::parse(given)?;
    let mode = args.output_mode.unwrap_or(OutputMode::Content);
    let mut report = Report::new(mode, limit, context.is_some());
    let unread = walk::files(&start, given, |found| {
        if files.wants(&found) {
            search(&mut searcher, &matcher, &found.path, &mut report);
        }
        Ok(!report.is_full())
    })?;
    let hint = files.glob.zip(args.glob.as_deref()).and_then(|(glob, text)| glob.hint(text, given));
    Ok(Output::text(report.finish(unread.entries, hint.as_deref())))
}

/// Lines around a match.
#[derive(Clone, Copy)]
struct Context {
    before: usize,
    after: usize,
}

impl Context {
    /// Only lines of content have others around them.
    fn of(args: &Args) -> Result<Context, ToolError> {
        let both = args.context.unwrap_or(0);
        let (before, after) = (args.before.unwrap_or(both), args.after.unwrap_or(both));
        if both.max(before).max(after) > MAX_CONTEXT {
            return Err(ToolError::InvalidArguments(format!(
                "`context`, `before` and `after` are at most {MAX_CONTEXT}"
            )));
        }
        Ok(match args.output_mode {
            None | Some(OutputMode::Content) => Context { before, after },
            Some(OutputMode::FilesWithMatches | OutputMode::Count) => {
                Context { before: 0, after: 0 }
            }
        })
    }

    fn is_some(self) -> bool {
        self.before > 0 || self.after > 0
    }
}

/// Which files are searched.
struct Files {
    glob: Option<Glob>,
    kind: Option<FileType>,
}

impl Files {
    fn wants(&self, found: &Found) -> bool {
        found.regular
            && self.glob.as_ref().is_none_or(|glob| glob.finds(found))
            && self.kind.as_ref().is_none_or(|kind| kind.matches(&found.below))
    }
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
    // The searcher holds the file in memory then, and fails on one that is larger.
    let held = searcher.multi_line_with_matcher(matcher);
    if held && file.metadata().is_ok_and(|metadata| metadata.len() > MAX_MEMORY as u64) {
        report.too_large();
        return;
    }
    let mut matches = FileMatches::new(path.shown(), report);
    let done = searcher.search_file(matcher, &file, &mut matches);
    let binary = matches.is_binary();
    report.searched(done.is_ok(), binary);
}

fn matcher(
    pattern: &str,
    case_insensitive: bool,
    multiline: bool,
) -> Result<RegexMatcher, ToolError> {
    if pattern.is_empty() {
        return Err(ToolError::InvalidArguments("`pattern` is empty".to_owned()));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(case_insensitive)
        // `^` and `$` are about lines in both ways of searching.
        .multi_line(true)
        .dot_matches_new_line(multiline)
        .line_terminator((!multiline).then_some(b'\n'))
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN)
        .build(pattern)
        .map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::NotAllowed(_) => "; set `multiline` to match across lines",
                _ => "",
            };
            ToolError::InvalidArguments(format!("`pattern`: {error}{hint}"))
        })
}

fn searcher(context: Context, multiline: bool) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .multi_line(multiline)
        .before_context(context.before)
        .after_context(context.after)
        .binary_detection(BinaryDetection::quit(0))
        .memory_map(MmapChoice::never())
        .heap_limit(Some(MAX_MEMORY))
        .build()
}

belljar_guest::tools! {
    file_search(Args): "Searches the text of files with a regular expression. Returns one line per match, \
        `path:line:text`; with `context`, `before` or `after` also the lines around it, `path-line-text`, \
        and `--` between groups. `output_mode` returns only the files, or a count for each, instead. Files \
        that `.gitignore` excludes and binary files are skipped. Prefer this to reading files when you look \
        for something.",
        hints: read_only | idempotent;
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Search {
        mode: OutputMode,
        context: Context,
        limit: usize,
        multiline: bool,
    }

    const PLAIN: Search = Search {
        mode: OutputMode::Content,
        context: Context { before: 0, after: 0 },
        limit: 9,
        multiline: false,
    };

    impl Search {
        /// Searches texts that stand in for the files `a.txt`, `b.txt` and so on.
        fn run(&self, pattern: &str, texts: &[&str]) -> String {
            let mut report = Report::new(self.mode, self.limit, self.context.is_some());
            let matcher = matcher(pattern, false, self.multiline).unwrap();
            for (name, text) in ["a.txt", "b.txt", "c.txt"].into_iter().zip(texts) {
                let mut matches = FileMatches::new(name, &mut report);
                searcher(self.context, self.multiline)
                    .search_slice(&matcher, text.as_bytes(), &mut matches)
                    .unwrap();
                let binary = matches.is_binary();
                report.searched(true, binary);
            }
            report.finish(0, None)
        }
    }

    fn run(pattern: &str, context: usize, limit: usize, text: &str) -> String {
        let context = Context { before: context, after: context };
        Search { context, limit, ..PLAIN }.run(pattern, &[text])
    }

    #[test]
    fn a_match_is_shown_with_path_and_line() {
        assert_eq!(run("b+", 0, 9, "a\nbb\nc\nxb\n"), "a.txt:2:bb\na.txt:4:xb\n");
    }

    #[test]
    fn anchors_are_about_lines() {
        for multiline in [false, true] {
            let search = Search { multiline, ..PLAIN };
            assert_eq!(search.run("^b$", &["a\nb\nbb\nb"]), "a.txt:2:b\na.txt:4:b\n");
        }
    }

    #[test]
    fn context_lines_are_told_apart_and_groups_are_separated() {
        assert_eq!(
            run("X", 1, 9, "a\nX\nb\nc\nd\nX\n"),
            "a.txt-1-a\na.txt:2:X\na.txt-3-b\n--\na.txt-5-d\na.txt:6:X\n"
        );
    }

    #[test]
    fn one_side_of_the_context_can_be_had_alone() {
        let context = Context { before: 0, after: 1 };
        assert_eq!(
            Search { context, ..PLAIN }.run("X", &["a\nX\nb\nc\n", "X"]),
            "a.txt:2:X\na.txt-3-b\n--\nb.txt:1:X\n"
        );
    }

    #[test]
    fn before_and_after_override_context_and_are_bounded_like_it() {
        let of = |json: &str| {
            let args: Args = serde_json::from_str(json).unwrap();
            Context::of(&args).map(|context| (context.before, context.after)).ok()
        };
        assert_eq!(of(r#"{"pattern":"x","context":3,"before":0}"#), Some((0, 3)));
        assert_eq!(of(r#"{"pattern":"x","context":3,"after":20}"#), Some((3, 20)));
        assert_eq!(of(r#"{"pattern":"x","after":21}"#), None);
        assert_eq!(of(r#"{"pattern":"x","context":3,"output_mode":"count"}"#), Some((0, 0)));
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
    fn files_are_named_once_or_counted_and_the_limit_is_about_files() {
        let files = Search { mode: OutputMode::FilesWithMatches, limit: 2, ..PLAIN };
        let counts = Search { mode: OutputMode::Count, ..PLAIN };
        assert_eq!(files.run("a", &["a\na\na\n", "b", "a"]), "a.txt\nc.txt\n");
        assert_eq!(counts.run("a", &["a\naa\nb\na\n", "b", "a"]), "a.txt:3\nc.txt:1\n");
        assert_eq!(counts.run("x", &["a"]), "[belljar: no match in 1 files]\n");
        assert_eq!(
            files.run("a", &["a", "a", "a"]),
            "a.txt\nb.txt\n[belljar: cut after 2 files; narrow the search or raise `limit`]\n"
        );
    }

    #[test]
    fn a_binary_file_is_neither_named_nor_counted() {
        for mode in [OutputMode::Content, OutputMode::FilesWithMatches, OutputMode::Count] {
            let text = Search { mode, ..PLAIN }.run("a", &["a\n\0"]);
            assert!(text.contains("no match") && text.contains("1 binary files"), "{text}");
        }
    }

    #[test]
    fn a_match_may_span_lines_on_request_and_each_of_them_counts() {
        let search = Search { multiline: true, ..PLAIN };
        let text = "x\nfn a(\n  b,\n)\ny\n";
        let shown = "a.txt:2:fn a(\na.txt:3:  b,\na.txt:4:)\n";
        assert_eq!(search.run(r"fn a\(.*?\)", &[text]), shown);
        assert_eq!(search.run(r"\(\n\s+b,\n", &[text]), "a.txt:2:fn a(\na.txt:3:  b,\n");
        let count = Search { mode: OutputMode::Count, multiline: true, ..PLAIN };
        assert_eq!(count.run(r"fn a\(.*?\)", &[text]), "a.txt:3\n");
        assert_eq!(
            Search { limit: 2, multiline: true, ..PLAIN }.run(r"fn a\(.*?\)", &[text]),
            "a.txt:2:fn a(\na.txt:3:  b,\n\
             [belljar: cut after 2 matches; narrow the search or raise `limit`]\n"
        );
    }

    #[test]
    fn a_line_break_in_the_pattern_needs_multiline() {
        assert!(matches!(matcher(r"a\nb", false, false),
            Err(ToolError::InvalidArguments(text)) if text.contains("set `multiline`")));
        assert!(matcher(r"a\nb", false, true).is_ok());
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
                matches!(matcher(pattern, false, false), Err(ToolError::InvalidArguments(_))),
                "{pattern}"
            );
        }
    }
}
