//! Findings about a file: the fault, the place, and the remedy.

use std::fmt;
use std::path::{Path, PathBuf};

use belljar_policy::ShownText;

use crate::snippet::SourceSnippet;

/// The most diagnostics of one file, because a hostile file must not cause a flood. The last one mentions
/// further ones.
pub const MAX_DIAGNOSTICS: usize = 50;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// Information; nothing is wrong.
    Note,
    /// The file is used, but perhaps not as its author intended.
    Warning,
    /// The file is unused.
    Error,
}

/// A finding about a file. Foreign text in it is already escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file.
    pub path: PathBuf,
    /// The line in the file, from 1; 0 = the file as a whole.
    pub line: u32,
    /// The column in characters, from 1; 0 = the line as a whole.
    pub column: u32,
    /// The severity.
    pub severity: Severity,
    /// A stable code for programs, for example `unknown-field`.
    pub code: &'static str,
    /// The fault: lower case, no final period.
    pub message: String,
    /// Advice for the reader.
    pub hint: Option<String>,
}

/// A position in a file: line and column from 1, 0 = none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FilePosition {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Collects the findings about one file.
#[derive(Debug)]
pub(crate) struct FileFindings<'a> {
    path: &'a Path,
    list: Vec<Diagnostic>,
    dropped: usize,
    worst: Option<Severity>,
}

impl Diagnostic {
    /// An error about the file as a whole.
    pub fn for_file(path: &Path, code: &'static str, message: String) -> Self {
        let (line, column, severity) = (0, 0, Severity::Error);
        Self { path: path.to_path_buf(), line, column, severity, code, message, hint: None }
    }

    /// The affected lines of `source`, the file's text, for a person; `None` = the finding has no line, or
    /// `source` does not have it.
    pub fn snippet(&self, source: &str) -> Option<SourceSnippet> {
        SourceSnippet::new(source, self.severity, self.line, self.column)
    }

    /// The first line for a person: place, severity and message, without the hint.
    pub fn headline(&self) -> String {
        let path = ShownText::new(&self.path.to_string_lossy()).to_string();
        let place = match (self.line, self.column) {
            (0, _) => String::new(),
            (line, 0) => format!(":{line}"),
            (line, column) => format!(":{line}:{column}"),
        };
        format!("{path}{place}: {}: {}", self.severity, self.message)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diagnostic {}

impl<'a> FileFindings<'a> {
    pub(crate) fn new(path: &'a Path) -> Self {
        Self { path, list: Vec::new(), dropped: 0, worst: None }
    }

    /// Adds an error.
    pub(crate) fn error(
        &mut self,
        at: FilePosition,
        code: &'static str,
        message: impl Into<String>,
    ) {
        self.add_finding(Severity::Error, at, code, message.into(), None);
    }

    /// Adds an error with a hint.
    pub(crate) fn error_hint(
        &mut self,
        at: FilePosition,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add_finding(Severity::Error, at, code, message.into(), Some(hint.into()));
    }

    /// Adds a warning.
    pub(crate) fn warning(
        &mut self,
        at: FilePosition,
        code: &'static str,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.add_finding(Severity::Warning, at, code, message.into(), hint);
    }

    /// Adds a note.
    pub(crate) fn note(
        &mut self,
        at: FilePosition,
        code: &'static str,
        message: impl Into<String>,
    ) {
        self.add_finding(Severity::Note, at, code, message.into(), None);
    }

    /// Adds a finding, or only counts the finding if there are too many.
    pub(crate) fn add_finding(
        &mut self,
        severity: Severity,
        at: FilePosition,
        code: &'static str,
        message: String,
        hint: Option<String>,
    ) {
        if self.is_full() {
            return self.drop_one(severity);
        }
        self.worst = self.worst.max(Some(severity));
        let path = self.path.to_path_buf();
        let FilePosition { line, column } = at;
        self.list.push(Diagnostic { path, line, column, severity, code, message, hint });
    }

    /// Whether a further finding would only be counted, so that no costly hint is needed for it.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= MAX_DIAGNOSTICS
    }

    /// Counts a finding that is dropped because [`FileFindings::is_full`].
    pub(crate) fn drop_one(&mut self, severity: Severity) {
        self.worst = self.worst.max(Some(severity));
        self.dropped += 1;
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.worst == Some(Severity::Error)
    }

    /// The findings, ordered by position.
    pub(crate) fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|found| (found.line, found.column));
        if self.dropped > 0 {
            self.list.push(Diagnostic {
                path: self.path.to_path_buf(),
                line: 0,
                column: 0,
                severity: self.worst.unwrap_or(Severity::Note),
                code: "more-findings",
                message: format!("{} more findings in this file are not listed", self.dropped),
                hint: None,
            });
        }
        self.list
    }
}

/// The position of a byte offset in a text.
pub(crate) fn place_of(text: &str, offset: usize) -> FilePosition {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.bytes().filter(|b| *b == b'\n').count();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before.get(start..).unwrap_or("").chars().count();
    FilePosition { line: clamp_count(line + 1), column: clamp_count(column + 1) }
}

/// A count in the type that diagnostics use.
pub(crate) fn clamp_count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
