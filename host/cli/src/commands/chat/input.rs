//! Reads the lines that a person types, with editing and a history on a terminal and without on other input;
//! and receives interrupts.

use std::io::{self, BufRead, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor, ExternalPrinter};
use tokio::sync::mpsc;

use super::complete::CompletionWords;
use crate::commands::run::task::MAX_TASK_BYTES;
use crate::term::ahead::TypedAhead;

/// The most lines in the history.
const MAX_HISTORY: usize = 1_000;

/// The text before the line that is edited.
const PROMPT: &str = "> ";

/// The most lines that wait to be handled: one, because each line is requested.
const WAITING: usize = 1;

/// One event of the input.
#[derive(Debug)]
pub(super) enum InputEvent {
    /// A line, without its line end.
    Line(String),
    /// A line typed before the prompt, while a question was on the terminal.
    Ahead(String),
    /// Ctrl-C while the prompt was shown.
    Interrupted,
    /// Ctrl-D at the prompt, or no more input.
    End,
    /// A line that cannot be used; the next line may be.
    Unfit(String),
    /// The input cannot be read any more.
    Failed(String),
}

/// The lines of a person or a script. A thread reads one line for each request, so that the terminal is not
/// read between requests.
pub(super) struct InputLines {
    ask: std::sync::mpsc::SyncSender<()>,
    heard: mpsc::Receiver<InputEvent>,
    /// True if a line was requested and has not arrived.
    asked: bool,
    edited: bool,
    ahead: TypedAhead,
    redraw: Redraw,
    _terminal: TerminalRestorer,
}

/// Draws the editor's prompt again; `None` until there is an editor.
type Redraw = Arc<Mutex<Option<Box<dyn FnMut() + Send>>>>;

/// Restores the terminal's mode, whatever the editor has set.
pub(super) struct TerminalRestorer {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

/// Receives Ctrl-C while a turn runs, and requests to terminate at any time.
pub(super) struct InterruptSignals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl InputLines {
    /// Reads lines from stdin. On a terminal a person edits them, with completion by Tab. Lines typed before
    /// a question come first.
    pub(super) fn from_stdin(
        history: PathBuf,
        words: CompletionWords,
        ahead: TypedAhead,
    ) -> io::Result<Self> {
        let edited = io::stdin().is_terminal() && io::stdout().is_terminal();
        let terminal = TerminalRestorer::save_state();
        let (ask, asked) = std::sync::mpsc::sync_channel(WAITING);
        let (tell, heard) = mpsc::channel(WAITING);
        let redraw = Redraw::default();
        let own = Arc::clone(&redraw);
        #[expect(
            clippy::disallowed_methods,
            reason = "a person at a terminal, for as long as the program lives"
        )]
        std::thread::Builder::new().name("input".to_owned()).spawn(move || {
            let mut read: Box<dyn FnMut() -> InputEvent> =
                if edited { edited_reader(history, words, &own) } else { Box::new(plain_reader()) };
            while asked.recv().is_ok() {
                if tell.blocking_send(read()).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { ask, heard, asked: false, edited, ahead, redraw, _terminal: terminal })
    }

    /// Returns whether a person edits the lines on a terminal.
    pub(super) fn is_edited(&self) -> bool {
        self.edited
    }

    /// The next line. Dropping the future loses nothing, because the next call returns the same line.
    pub(super) async fn next_line(&mut self) -> InputEvent {
        if !self.asked {
            if let Some(line) = self.ahead.take_line() {
                return InputEvent::Ahead(line);
            }
            if self.ask.send(()).is_err() {
                return InputEvent::End;
            }
            self.asked = true;
        }
        let heard = self.heard.recv().await.unwrap_or(InputEvent::End);
        self.asked = false;
        heard
    }

    /// Returns whether a prompt is shown. If so, output must begin on a new line, and
    /// [`InputLines::redraw_prompt`] restores the prompt afterwards.
    pub(super) fn is_prompt_shown(&self) -> bool {
        self.edited && self.asked
    }

    /// Draws the prompt again, with the text typed so far.
    pub(super) fn redraw_prompt(&self) {
        let mut redraw = self.redraw.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(redraw) = redraw.as_mut().filter(|_| self.is_prompt_shown()) {
            redraw();
        }
    }
}

/// A function that reads lines of any input, each of limited length.
fn plain_reader() -> impl FnMut() -> InputEvent {
    let mut number = 0_u64;
    move || {
        number += 1;
        plain_line(number)
    }
}

/// Reads the line `number` of stdin, of at most `MAX_TASK_BYTES`.
fn plain_line(number: u64) -> InputEvent {
    let mut line = Vec::new();
    let mut bounded = io::stdin().lock().take(MAX_TASK_BYTES + 1);
    match bounded.read_until(b'\n', &mut line) {
        Ok(0) => return InputEvent::End,
        Ok(_) if line.len() as u64 > MAX_TASK_BYTES => {
            return InputEvent::Failed(format!("a line has more than {MAX_TASK_BYTES} bytes"));
        }
        Ok(_) => {}
        Err(error) => return InputEvent::Failed(format!("failed to read stdin: {error}")),
    }
    match String::from_utf8(line) {
        Ok(text) => InputEvent::Line(text.trim_end_matches(['\n', '\r']).to_owned()),
        Err(_) => InputEvent::Unfit(format!("line {number} of stdin is not valid UTF-8")),
    }
}

/// A function that reads edited lines. If no editor can be made, plain ones.
fn edited_reader(
    history: PathBuf,
    words: CompletionWords,
    redraw: &Redraw,
) -> Box<dyn FnMut() -> InputEvent> {
    let Some(mut editor) = make_editor(&history) else { return Box::new(plain_reader()) };
    editor.set_helper(Some(words));
    if let Ok(mut printer) = editor.create_external_printer() {
        // If drawing fails, the next key draws the prompt.
        let draw: Box<dyn FnMut() + Send> = Box::new(move || {
            let _ = printer.print(String::new());
        });
        *redraw.lock().unwrap_or_else(PoisonError::into_inner) = Some(draw);
    }
    Box::new(move || match editor.readline(PROMPT) {
        Ok(line) => {
            // An error is ignored, because the chat works without the history.
            if !line.trim().is_empty() && editor.add_history_entry(line.as_str()).is_ok() {
                let _ = editor.append_history(&history);
            }
            InputEvent::Line(line)
        }
        Err(ReadlineError::Interrupted) => InputEvent::Interrupted,
        Err(ReadlineError::Eof) => InputEvent::End,
        Err(error) => InputEvent::Failed(format!("failed to read from the terminal: {error}")),
    })
}

/// Makes an editor with a history and completion; `None` = the terminal supports none.
fn make_editor(history: &Path) -> Option<Editor<CompletionWords, FileHistory>> {
    let config = Config::builder()
        .max_history_size(MAX_HISTORY)
        .and_then(|config| config.history_ignore_dups(true))
        .ok()?
        .completion_type(rustyline::CompletionType::List)
        .build();
    let mut editor =
        Editor::with_history(config.clone(), FileHistory::with_config(&config)).ok()?;
    // If the history is missing or unreadable, it begins empty.
    let _ = editor.load_history(history);
    Some(editor)
}

impl TerminalRestorer {
    #[cfg(unix)]
    fn save_state() -> Self {
        Self { before: rustix::termios::tcgetattr(io::stdin()).ok() }
    }

    #[cfg(not(unix))]
    fn save_state() -> Self {
        Self {}
    }
}

impl Drop for TerminalRestorer {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(before) = &self.before {
            use rustix::termios::{OptionalActions, tcsetattr};
            // This happens when the process ends, so nothing is left to do if it fails.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

#[cfg(unix)]
impl InterruptSignals {
    /// Receives signals from here on; they no longer end the process.
    pub(super) fn listen_signals() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for Ctrl-C or a request to terminate.
    pub(super) async fn next_interrupt(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl InterruptSignals {
    pub(super) fn listen_signals() -> io::Result<Self> {
        Ok(Self {})
    }

    pub(super) async fn next_interrupt(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
