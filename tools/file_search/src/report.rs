//! The answer of a search, collected while files are searched.

use crate::OutputMode;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};
use std::fmt::Write as _;
use std::io;

/// Bytes of text in one answer; see the same bound in `file_read`.
const MAX_TEXT: usize = 256 * 1024;

/// Bytes shown of one line: enough for code, not for minified files.
const MAX_LINE: usize = 500;

/// Everything found so far.
pub(crate) struct Report {
    text: String,
    mode: OutputMode,
    limit: usize,
    /// Matches come with context, in groups.
    groups: bool,
    /// What `limit` counts: matching lines shown, or files named.
    shown: usize,
    /// There was more that did not fit.
    cut: bool,
    files: u64,
    binary: u64,
    unread: u64,
    too_large: u64,
}

impl Report {
    pub(crate) fn new(mode: OutputMode, limit: usize, groups: bool) -> Report {
        Report {
            text: String::new(),
            mode,
            limit,
            groups,
            shown: 0,
            cut: false,
            files: 0,
            binary: 0,
            unread: 0,
            too_large: 0,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.cut
    }

    pub(crate) fn unread(&mut self) {
        self.unread += 1;
    }

    /// A file that is not searched because it would have to be held in memory.
    pub(crate) fn too_large(&mut self) {
        self.too_large += 1;
    }

    pub(crate) fn searched(&mut self, whole: bool, binary: bool) {
        self.files += 1;
        self.binary += u64::from(binary);
        self.unread += u64::from(!whole);
    }

    /// Whether one line or file more may be shown; when not, the answer says that it was cut.
    fn takes_one_more(&mut self) -> bool {
        self.cut |= self.shown == self.limit || self.text.len() > MAX_TEXT;
        self.shown += usize::from(!self.cut);
        !self.cut
    }

    /// Names a file that has matches, in the modes that name files.
    fn file(&mut self, path: &str, lines: u64) {
        if !self.takes_one_more() {
            return;
        }
        let _ = match self.mode {
            OutputMode::Content | OutputMode::FilesWithMatches => writeln!(self.text, "{path}"),
            OutputMode::Count => writeln!(self.text, "{path}:{lines}"),
        };
    }

    fn line(&mut self, path: &str, number: u64, mark: char, bytes: &[u8]) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let _ = write!(self.text, "{path}{mark}{number}{mark}");
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_LINE)]);
        if bytes.len() > MAX_LINE {
            self.text.push_str(shown.trim_end_matches(char::REPLACEMENT_CHARACTER));
            let _ = write!(self.text, " [belljar: line cut, {} bytes in all]", bytes.len());
        } else {
            self.text.push_str(&shown);
        }
        self.text.push('\n');
    }

    pub(crate) fn finish(mut self, unread: u64, hint: Option<&str>) -> String {
        let unread = self.unread.saturating_add(unread);
        if self.shown == 0 {
            let _ = writeln!(self.text, "[belljar: no match in {} files]", self.files);
            // Files that were searched show that the glob is no wrong one.
            if let Some(hint) = hint.filter(|_| self.files == 0) {
                let _ = writeln!(self.text, "[belljar: `glob`: {hint}]");
            }
        }
        if self.cut {
            let counted = match self.mode {
                OutputMode::Content => "matches",
                OutputMode::FilesWithMatches | OutputMode::Count => "files",
            };
            let _ = writeln!(
                self.text,
                "[belljar: cut after {} {counted}; narrow the search or raise `limit`]",
                self.shown
            );
        }
        if self.shown == 0 && self.binary > 0 {
            let _ = writeln!(self.text, "[belljar: {} binary files were skipped]", self.binary);
        }
        if self.too_large > 0 {
            let _ = writeln!(
                self.text,
                "[belljar: {} files of more than {} MiB were skipped; search them without `multiline`]",
                self.too_large,
                crate::MAX_MEMORY / (1024 * 1024)
            );
        }
        if unread > 0 {
            let _ = writeln!(self.text, "[belljar: {unread} files could not be read to the end]");
        }
        self.text
    }
}

/// Takes the matches of one file.
pub(crate) struct FileMatches<'a> {
    path: &'a str,
    report: &'a mut Report,
    /// Where this file's lines begin in the report, to be taken back if it is binary.
    start: usize,
    shown: usize,
    /// Matching lines, where the answer names files.
    lines: u64,
    binary: bool,
}

impl<'a> FileMatches<'a> {
    pub(crate) fn new(path: &'a str, report: &'a mut Report) -> FileMatches<'a> {
        let (start, shown) = (report.text.len(), report.shown);
        FileMatches { path, report, start, shown, lines: 0, binary: false }
    }

    pub(crate) fn is_binary(&self) -> bool {
        self.binary
    }

    /// Sets the first group of a file apart from the file before, where groups are shown.
    fn separate(&mut self) {
        if self.report.groups && self.report.text.len() == self.start && self.start > 0 {
            self.report.text.push_str("--\n");
        }
    }

    /// Shows the lines of a match: one, unless the pattern may span lines.
    fn show(&mut self, found: &SinkMatch<'_>) -> bool {
        let first = found.line_number().unwrap_or_default();
        for (number, line) in (first..).zip(found.lines()) {
            if !self.report.takes_one_more() {
                return false;
            }
            self.separate();
            self.report.line(self.path, number, ':', line);
        }
        true
    }
}

impl Sink for FileMatches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        Ok(match self.report.mode {
            OutputMode::Content => self.show(found),
            OutputMode::FilesWithMatches => {
                self.lines = 1;
                false
            }
            OutputMode::Count => {
                self.lines = self.lines.saturating_add(found.lines().count() as u64);
                true
            }
        })
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        // Context before a match that will not be shown would only mislead.
        let follows = matches!(context.kind(), SinkContextKind::After);
        if follows || self.report.shown < self.report.limit {
            self.separate();
            let number = context.line_number().unwrap_or_default();
            self.report.line(self.path, number, '-', context.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.report.shown < self.report.limit {
            self.report.text.push_str("--\n");
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        if finish.binary_byte_offset().is_some() {
            self.binary = true;
            self.report.text.truncate(self.start);
            self.report.shown = self.shown;
            self.report.cut = false;
        } else if self.lines > 0 {
            self.report.file(self.path, self.lines);
        }
        Ok(())
    }
}
