//! The answer of a search, collected while files are searched.

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
    limit: usize,
    /// Matches come with context, in groups.
    groups: bool,
    matches: usize,
    /// There was a match that did not fit.
    cut: bool,
    files: u64,
    binary: u64,
    unread: u64,
}

impl Report {
    pub(crate) fn new(limit: usize, groups: bool) -> Report {
        Report {
            text: String::new(),
            limit,
            groups,
            matches: 0,
            cut: false,
            files: 0,
            binary: 0,
            unread: 0,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.cut
    }

    pub(crate) fn unread(&mut self) {
        self.unread += 1;
    }

    pub(crate) fn searched(&mut self, whole: bool, binary: bool) {
        self.files += 1;
        self.binary += u64::from(binary);
        self.unread += u64::from(!whole);
    }

    fn line(&mut self, path: &str, number: Option<u64>, mark: char, bytes: &[u8]) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let number = number.unwrap_or_default();
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

    pub(crate) fn finish(mut self, unread: u64) -> String {
        let unread = self.unread.saturating_add(unread);
        if self.matches == 0 {
            let _ = writeln!(self.text, "[belljar: no match in {} files]", self.files);
        }
        if self.cut {
            let _ = writeln!(
                self.text,
                "[belljar: cut after {} matches; narrow the search or raise `limit`]",
                self.matches
            );
        }
        if self.matches == 0 && self.binary > 0 {
            let _ = writeln!(self.text, "[belljar: {} binary files were skipped]", self.binary);
        }
        if unread > 0 {
            let _ = writeln!(self.text, "[belljar: {unread} files could not be read to the end]");
        }
        self.text
    }
}

/// Takes the lines of one file.
pub(crate) struct FileLines<'a> {
    path: &'a str,
    report: &'a mut Report,
    /// Where this file's lines begin in the report, to be taken back if it is binary.
    start: usize,
    matches: usize,
    binary: bool,
}

impl<'a> FileLines<'a> {
    pub(crate) fn new(path: &'a str, report: &'a mut Report) -> FileLines<'a> {
        let (start, matches) = (report.text.len(), report.matches);
        FileLines { path, report, start, matches, binary: false }
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
}

impl Sink for FileLines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.report.matches == self.report.limit || self.report.text.len() > MAX_TEXT {
            self.report.cut = true;
            return Ok(false);
        }
        self.separate();
        self.report.matches += 1;
        self.report.line(self.path, found.line_number(), ':', found.bytes());
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        // Context before a match that will not be shown would only mislead.
        let follows = matches!(context.kind(), SinkContextKind::After);
        if follows || self.report.matches < self.report.limit {
            self.separate();
            self.report.line(self.path, context.line_number(), '-', context.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.report.matches < self.report.limit {
            self.report.text.push_str("--\n");
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        if finish.binary_byte_offset().is_some() {
            self.binary = true;
            self.report.text.truncate(self.start);
            self.report.matches = self.matches;
            self.report.cut = false;
        }
        Ok(())
    }
}
