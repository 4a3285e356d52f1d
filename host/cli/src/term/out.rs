//! All printing: results to stdout, everything about them to stderr.
//!
//! Colour only on a terminal, and never with `NO_COLOR` set or `TERM=dumb`. `--quiet` leaves
//! results, errors and nothing else. Foreign text has to arrive escaped (`ShownText`); forgotten text is escaped
//! here all the same, so that nothing hidden passes this module.
#![expect(
    clippy::print_stderr,
    reason = "the one module that prints; the others hand it what to print"
)]

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use belljar_definition::{Diagnostic, Severity};
use serde::Serialize;

use crate::setup::exit::{CommandExit, Failure};
use crate::term::ahead::TypedAhead;
use crate::term::snippets::SnippetMaker;
use crate::term::visible::{visible_json, visible_text};
use crate::term::wrap::wrap_lines;

/// Where the process prints, and how. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct TerminalOutput {
    quiet: bool,
    /// Whether the result is JSON: a program reads it.
    json: bool,
    stdout_colour: bool,
    stderr_colour: bool,
    /// Whether stderr is a log that programs read.
    log: Arc<AtomicBool>,
    /// Why stdout could not be written, the first time.
    broken: Arc<OnceLock<io::ErrorKind>>,
    /// The buffer for lines typed before a question; `None` = dropped.
    ahead: Option<TypedAhead>,
}

/// A style of a few characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextStyle {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl TextStyle {
    /// The terminal code of the style. The colours are fixed ones of middling brightness, from the table of
    /// 256: the yellow and cyan of many palettes cannot be read on white, nor their red on black. A style
    /// never carries information that is not in the text too.
    fn terminal_code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "38;5;160",
            Self::Green => "38;5;28",
            Self::Yellow => "38;5;130",
            Self::Cyan => "38;5;31",
        }
    }
}

impl TerminalOutput {
    pub(crate) fn new(quiet: bool, json: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            quiet,
            json,
            stdout_colour: !plain && io::stdout().is_terminal(),
            stderr_colour: !plain && io::stderr().is_terminal(),
            log: Arc::default(),
            broken: Arc::default(),
            ahead: None,
        }
    }

    /// The same, with the lines that are typed before a question kept there.
    pub(crate) fn with_typed_ahead(&self, ahead: TypedAhead) -> Self {
        Self { ahead: Some(ahead), ..self.clone() }
    }

    /// Turns stderr into a log from now on: unless on a terminal, each line is a JSON object, in the form of
    /// the libraries' log lines.
    pub(crate) fn keep_log(&self) {
        self.log.store(!io::stderr().is_terminal(), Ordering::Relaxed);
    }

    /// Whether stderr is a log that programs read.
    pub(crate) fn keeps_log(&self) -> bool {
        self.log.load(Ordering::Relaxed)
    }

    /// Whether only results and errors are printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether stderr takes colour.
    pub(crate) fn colours_errors(&self) -> bool {
        self.stderr_colour
    }

    /// Whether stdout takes colour.
    pub(crate) fn has_colours(&self) -> bool {
        self.stdout_colour
    }

    /// The columns of stdout's terminal; `None` = not a terminal.
    pub(crate) fn terminal_columns(&self) -> Option<usize> {
        columns_of(&io::stdout())
    }

    /// Whether a person watches stderr and wants to: progress may redraw lines.
    pub(crate) fn is_live(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Whether a person waits at the terminal and wants to know what for.
    pub(crate) fn explains_waiting(&self) -> bool {
        self.is_live() && !self.json
    }

    /// A line of the result, which is broken between words where the terminal is narrower.
    pub(crate) fn print_line(&self, text: impl Display) {
        let text = visible_text(&text.to_string(), self.stdout_colour).into_owned();
        self.write_stdout(&format!("{}\n", wrap_text(&text, self.terminal_columns())));
    }

    /// Text of the result, unchanged, with a line feed at the end if missing.
    pub(crate) fn print_text(&self, text: &str) {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        self.write_stdout(&format!("{text}{end}"));
    }

    /// A piece of the result, written out at once and without a line feed.
    pub(crate) fn print_piece(&self, text: &str) {
        self.write_stdout(text);
    }

    /// The result as indented JSON.
    pub(crate) fn print_json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(not_json)?;
        self.print_text(&visible_json(&text));
        Ok(())
    }

    /// The result as one line of JSON, written out at once.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).map_err(not_json)?;
        self.print_text(&visible_json(&text));
        Ok(())
    }

    /// Foreign JSON, with its value unchanged.
    pub(crate) fn foreign_json(&self, text: &str) {
        self.print_text(&visible_json(text));
    }

    /// Something about the work, for a person; nothing with `--quiet`.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet && !self.write_log_line("INFO", &text) {
            self.write_stderr(text);
        }
    }

    /// Something that should be looked at; nothing with `--quiet`.
    pub(crate) fn print_warning(&self, text: impl Display) {
        if !self.quiet {
            self.print_alarm(text);
        }
    }

    /// Something that must be known, also with `--quiet`.
    pub(crate) fn print_alarm(&self, text: impl Display) {
        if self.write_log_line("WARN", &text) {
            return;
        }
        self.write_stderr(format_args!("{} {text}", self.paint_err(TextStyle::Yellow, "warning:")));
    }

    /// A diagnostic of a file: errors always, the rest not with `--quiet`.
    pub(crate) fn print_diagnostic(&self, diagnostic: &Diagnostic) {
        self.diagnostic_with(diagnostic, None);
    }

    /// Diagnostics of files with the affected lines.
    pub(crate) fn print_diagnostics(&self, diagnostics: &[Diagnostic]) {
        let mut snippets = SnippetMaker::new(self.stderr_colour);
        for diagnostic in diagnostics {
            let snippet = snippets.make_snippet(diagnostic);
            self.diagnostic_with(diagnostic, snippet.as_deref());
        }
    }

    fn diagnostic_with(&self, diagnostic: &Diagnostic, snippet: Option<&str>) {
        let (style, word) = match diagnostic.severity {
            Severity::Error => (TextStyle::Red, "error:"),
            Severity::Warning => (TextStyle::Yellow, "warning:"),
            Severity::Note => (TextStyle::Cyan, "note:"),
        };
        if self.quiet && diagnostic.severity != Severity::Error {
            return;
        }
        let level = match diagnostic.severity {
            Severity::Error => "ERROR",
            Severity::Warning => "WARN",
            Severity::Note => "INFO",
        };
        if self.write_log_line(level, diagnostic) {
            return;
        }
        self.write_stderr(diagnostic.headline().replacen(word, &self.paint_err(style, word), 1));
        if let Some(part) = snippet {
            self.write_err(&self.visible_err(part));
        }
        if let Some(hint) = &diagnostic.hint {
            self.write_stderr(format_args!(
                "  {} {hint}",
                self.paint_err(TextStyle::Cyan, "hint:")
            ));
        }
    }

    /// Why the command failed, with its hints.
    pub(crate) fn print_failure(&self, failure: &Failure) {
        self.print_diagnostics(&failure.diagnostics);
        if self.keeps_log() {
            let text = failure.with_hints();
            if !text.is_empty() {
                self.write_log_line("ERROR", text.trim_start());
            }
            return;
        }
        if !failure.message.is_empty() {
            self.write_stderr(format_args!(
                "{} {}",
                self.paint_err(TextStyle::Red, "error:"),
                failure.message
            ));
        }
        for hint in &failure.hints {
            let hint = hint.replace('\n', "\n    ");
            self.write_stderr(format_args!(
                "  {} {hint}",
                self.paint_err(TextStyle::Cyan, "hint:")
            ));
        }
    }

    /// `text` in a style, where stdout takes colour.
    pub(crate) fn paint(&self, style: TextStyle, text: impl Display) -> String {
        paint_text(self.stdout_colour, style, text)
    }

    /// `text` in a style, where stderr takes colour.
    pub(crate) fn paint_err(&self, style: TextStyle, text: impl Display) -> String {
        paint_text(self.stderr_colour, style, text)
    }

    /// Whether there is a terminal at which a person can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks for a yes or no on the terminal; `None` where nobody can answer.
    pub(crate) fn ask(&self, question: &str) -> Option<bool> {
        let answer = self.ask_line(&format!("{question} [y/N]"), &AtomicBool::new(true))?;
        Some(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    /// A line from the person at the terminal; `None` without a terminal, at the end of input, or once no
    /// longer wanted. Text typed before the question is not an answer.
    pub(crate) fn ask_line(&self, question: &str, wanted: &AtomicBool) -> Option<String> {
        if !self.can_ask() {
            return None;
        }
        if let Some(ahead) = &self.ahead {
            ahead.keep_waiting_lines();
        }
        forget_typed_ahead();
        eprint!("{} ", self.prose_err(question));
        if !wait_for_line(wanted) {
            return None;
        }
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer).ok()?;
        (read > 0).then_some(answer)
    }

    /// The exit of the process: a result that could not be written is a failure, except where the
    /// reader simply stopped reading.
    pub(crate) fn finish_exit(&self, exit: CommandExit) -> CommandExit {
        match self.broken.get().copied() {
            None | Some(io::ErrorKind::BrokenPipe) => exit,
            Some(kind) => {
                self.write_stderr(format_args!("error: the result could not be written: {kind}"));
                exit.worse_of(CommandExit::Failed)
            }
        }
    }

    /// `text` for stderr, with hidden characters escaped.
    pub(crate) fn visible_err<'a>(&self, text: &'a str) -> Cow<'a, str> {
        visible_text(text, self.stderr_colour)
    }

    fn write_stdout(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        let text = visible_text(text, self.stdout_colour);
        let done = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        if let Err(error) = done {
            // Only the first reason counts.
            let _ = self.broken.set(error.kind());
        }
    }

    /// Writes a line of the log, where stderr is one.
    fn write_log_line(&self, level: &str, text: impl Display) -> bool {
        if !self.keeps_log() {
            return false;
        }
        let line = serde_json::json!({
            "timestamp": format!("{:.6}", jiff::Timestamp::now()),
            "level": level,
            "fields": { "message": text.to_string() },
            "target": "belljar",
        });
        self.write_err(&visible_json(&line.to_string()));
        true
    }

    /// `text` as a person reads it on stderr: as [`Self::visible_err`], and broken between words
    /// where the terminal is narrower.
    pub(crate) fn prose_err(&self, text: &str) -> String {
        wrap_text(&self.visible_err(text), columns_of(&io::stderr())).into_owned()
    }

    fn write_stderr(&self, text: impl Display) {
        self.write_err(&self.prose_err(&text.to_string()));
    }

    fn write_err(&self, text: &str) {
        // A closed stderr must not end the work.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// How many columns a stream's terminal has; `None` where it is no terminal.
fn columns_of(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = terminal_size::terminal_size_of(stream);
    // A terminal of unknown size reports 0.
    let columns = size.map(|(terminal_size::Width(columns), _)| usize::from(columns));
    Some(columns.filter(|columns| *columns > 0).unwrap_or(USUAL_COLUMNS))
}

fn wrap_text(text: &str, columns: Option<usize>) -> Cow<'_, str> {
    match columns {
        Some(columns) => wrap_lines(text, columns),
        None => Cow::Borrowed(text),
    }
}

/// Columns of a terminal of unknown size.
const USUAL_COLUMNS: usize = 80;

/// How often a question looks whether its answer is still wanted.
#[cfg(unix)]
const LOOK: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

#[cfg(unix)]
fn forget_typed_ahead() {
    // Where it fails there is no terminal to forget anything.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn forget_typed_ahead() {}

/// Waits until a line can be read. `false` = it is not wanted any more.
#[cfg(unix)]
fn wait_for_line(wanted: &AtomicBool) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdin = io::stdin();
    while wanted.load(Ordering::Relaxed) {
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // Ready, or broken in a way that reading will tell.
            Ok(_) | Err(_) => return wanted.load(Ordering::Relaxed),
        }
    }
    false
}

#[cfg(not(unix))]
fn wait_for_line(_wanted: &AtomicBool) -> bool {
    true
}

/// `text` in a style, if there is colour.
pub(crate) fn paint_text(colour: bool, style: TextStyle, text: impl Display) -> String {
    if colour {
        format!("\u{1b}[{}m{text}\u{1b}[0m", style.terminal_code())
    } else {
        text.to_string()
    }
}

fn not_json(error: serde_json::Error) -> Failure {
    Failure::new(format!("failed to write the result as JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much brighter one is than the other, as WCAG 2 counts it.
    fn contrast(a: f64, b: f64) -> f64 {
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// The luminance of a colour of the 6 x 6 x 6 cube in the table of 256.
    fn luminance(index: u8) -> f64 {
        let levels = [0.0, 95.0, 135.0, 175.0, 215.0, 255.0];
        let index = usize::from(index - 16);
        let linear = |step: usize| {
            let value: f64 = levels[step] / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(index / 36) + 0.7152 * linear(index / 6 % 6) + 0.0722 * linear(index % 6)
    }

    #[test]
    fn every_colour_is_read_on_black_and_on_white() {
        for style in [TextStyle::Red, TextStyle::Green, TextStyle::Yellow, TextStyle::Cyan] {
            let index: u8 = style.terminal_code().strip_prefix("38;5;").unwrap().parse().unwrap();
            let on_black = contrast(luminance(index), 0.0);
            let on_white = contrast(luminance(index), 1.0);
            assert!(on_black >= 3.5 && on_white >= 3.5, "{style:?}: {on_black:.1}, {on_white:.1}");
        }
    }
}
