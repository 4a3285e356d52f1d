//! All printing of the command line: results to stdout, everything about them to stderr.
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

/// The output of this process, with its options. Clones share the state.
#[derive(Debug, Clone)]
pub(crate) struct TerminalOutput {
    quiet: bool,
    /// True if the result is JSON, for a program.
    json: bool,
    stdout_colour: bool,
    stderr_colour: bool,
    /// True if stderr is a log that programs read.
    log: Arc<AtomicBool>,
    /// The first error of writing to stdout.
    broken: Arc<OnceLock<io::ErrorKind>>,
    /// Keeps lines that a person typed before a question; `None` = such lines are dropped.
    ahead: Option<TypedAhead>,
}

/// The style of a piece of text.
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
    /// Finds out whether stdout and stderr show colours. `quiet` = only results and errors are printed.
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

    /// The same output; lines typed before a question are kept in `ahead`.
    pub(crate) fn with_typed_ahead(&self, ahead: TypedAhead) -> Self {
        Self { ahead: Some(ahead), ..self.clone() }
    }

    /// Turns stderr into a log from now on: unless on a terminal, each line is a JSON object, in the form of
    /// the libraries' log lines.
    pub(crate) fn keep_log(&self) {
        self.log.store(!io::stderr().is_terminal(), Ordering::Relaxed);
    }

    /// Returns whether stderr is a log that programs read.
    pub(crate) fn keeps_log(&self) -> bool {
        self.log.load(Ordering::Relaxed)
    }

    /// Returns whether only results and errors are printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns whether stderr shows colours.
    pub(crate) fn colours_errors(&self) -> bool {
        self.stderr_colour
    }

    /// Returns whether stdout shows colours.
    pub(crate) fn has_colours(&self) -> bool {
        self.stdout_colour
    }

    /// The number of columns of stdout's terminal; `None` = no terminal.
    pub(crate) fn terminal_columns(&self) -> Option<usize> {
        columns_of(&io::stdout())
    }

    /// Returns whether a person watches stderr, and progress may redraw lines there.
    pub(crate) fn is_live(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Returns whether a person waits at the terminal, and is told the reason for a wait.
    pub(crate) fn explains_waiting(&self) -> bool {
        self.is_live() && !self.json
    }

    /// Prints a line of the result, broken between words if the terminal is narrower.
    pub(crate) fn print_line(&self, text: impl Display) {
        let text = visible_text(&text.to_string(), self.stdout_colour).into_owned();
        self.write_stdout(&format!("{}\n", wrap_text(&text, self.terminal_columns())));
    }

    /// Prints a text of the result unchanged, with a line feed at the end if missing.
    pub(crate) fn print_text(&self, text: &str) {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        self.write_stdout(&format!("{text}{end}"));
    }

    /// Prints a piece of the result at once, without a line feed.
    pub(crate) fn print_piece(&self, text: &str) {
        self.write_stdout(text);
    }

    /// Prints the result as indented JSON.
    pub(crate) fn print_json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(not_json)?;
        self.print_text(&visible_json(&text));
        Ok(())
    }

    /// Prints the result as one line of JSON, at once.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).map_err(not_json)?;
        self.print_text(&visible_json(&text));
        Ok(())
    }

    /// Prints a stranger's JSON with its value unchanged; hidden characters are escaped.
    pub(crate) fn foreign_json(&self, text: &str) {
        self.print_text(&visible_json(text));
    }

    /// Prints a note about the work for a person; nothing with `--quiet`.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet && !self.write_log_line("INFO", &text) {
            self.write_stderr(text);
        }
    }

    /// Prints a warning; nothing with `--quiet`.
    pub(crate) fn print_warning(&self, text: impl Display) {
        if !self.quiet {
            self.print_alarm(text);
        }
    }

    /// Prints a message that a person must know, even with `--quiet`.
    pub(crate) fn print_alarm(&self, text: impl Display) {
        if self.write_log_line("WARN", &text) {
            return;
        }
        self.write_stderr(format_args!("{} {text}", self.paint_err(TextStyle::Yellow, "warning:")));
    }

    /// Prints a diagnostic of a file. With `--quiet`, only errors.
    pub(crate) fn print_diagnostic(&self, diagnostic: &Diagnostic) {
        self.diagnostic_with(diagnostic, None);
    }

    /// Prints diagnostics of files, each with the lines of the file.
    pub(crate) fn print_diagnostics(&self, diagnostics: &[Diagnostic]) {
        let mut snippets = SnippetMaker::new(self.stderr_colour);
        for diagnostic in diagnostics {
            let snippet = snippets.make_snippet(diagnostic);
            self.diagnostic_with(diagnostic, snippet.as_deref());
        }
    }

    /// Prints a diagnostic, with the lines of its file if given.
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

    /// Prints the reason why a command failed, with its hints.
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

    /// `text` in a style, if stdout shows colours.
    pub(crate) fn paint(&self, style: TextStyle, text: impl Display) -> String {
        paint_text(self.stdout_colour, style, text)
    }

    /// `text` in a style, if stderr shows colours.
    pub(crate) fn paint_err(&self, style: TextStyle, text: impl Display) -> String {
        paint_text(self.stderr_colour, style, text)
    }

    /// Returns whether there is a terminal at which a person can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks for a yes or no on the terminal; `None` = nobody can answer.
    pub(crate) fn ask(&self, question: &str) -> Option<bool> {
        let answer = self.ask_line(&format!("{question} [y/N]"), &AtomicBool::new(true))?;
        Some(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    /// Reads a line from the person at the terminal; `None` = no terminal, the end of the input, or `wanted`
    /// became false. Text typed before the question is not its answer.
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

    /// The final exit code: if the result could not be written, the command failed, unless the reader has
    /// closed its end of a pipe.
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

    /// Writes text to stdout at once, with hidden characters escaped; remembers the first error.
    fn write_stdout(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        let text = visible_text(text, self.stdout_colour);
        let done = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        if let Err(error) = done {
            // The first error is kept; later ones are ignored.
            let _ = self.broken.set(error.kind());
        }
    }

    /// Writes a line of the log if stderr is a log. Returns whether it did.
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

    /// `text` as a person reads it on stderr: hidden characters are escaped as by [`Self::visible_err`], and
    /// long lines are broken between words.
    pub(crate) fn prose_err(&self, text: &str) -> String {
        wrap_text(&self.visible_err(text), columns_of(&io::stderr())).into_owned()
    }

    fn write_stderr(&self, text: impl Display) {
        self.write_err(&self.prose_err(&text.to_string()));
    }

    fn write_err(&self, text: &str) {
        // An error is ignored, because a closed stderr must not end the work.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// The number of columns of a stream's terminal; `None` = no terminal.
fn columns_of(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let size = terminal_size::terminal_size_of(stream);
    // A terminal of unknown size reports 0 columns.
    let columns = size.map(|(terminal_size::Width(columns), _)| usize::from(columns));
    Some(columns.filter(|columns| *columns > 0).unwrap_or(USUAL_COLUMNS))
}

/// Breaks lines between words, if the number of columns is known.
fn wrap_text(text: &str, columns: Option<usize>) -> Cow<'_, str> {
    match columns {
        Some(columns) => wrap_lines(text, columns),
        None => Cow::Borrowed(text),
    }
}

/// The assumed columns of a terminal of unknown size.
const USUAL_COLUMNS: usize = 80;

/// The time between two checks whether an answer is still wanted.
#[cfg(unix)]
const LOOK: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

#[cfg(unix)]
fn forget_typed_ahead() {
    // This fails only without a terminal, when there are no typed lines to drop.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn forget_typed_ahead() {}

/// Waits until a line can be read. Returns false if `wanted` became false.
#[cfg(unix)]
fn wait_for_line(wanted: &AtomicBool) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdin = io::stdin();
    while wanted.load(Ordering::Relaxed) {
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // Ready, or broken: reading reports the error.
            Ok(_) | Err(_) => return wanted.load(Ordering::Relaxed),
        }
    }
    false
}

#[cfg(not(unix))]
fn wait_for_line(_wanted: &AtomicBool) -> bool {
    true
}

/// `text` in a style, if `colour` is set.
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

    /// The contrast of two luminances, by the formula of WCAG 2.
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
