//! The message of a command: the author's parts with the arguments in their places.

use std::collections::BTreeSet;

use super::CommandStyle;
use super::scan::{BodyPart, BodyScanner, find_argument};
use super::words::{quote_word, split_arguments};

/// The longest arguments, in bytes.
const MAX_ARGUMENTS: usize = 64 << 10;

/// The longest message, in bytes, because a text may repeat its arguments.
const MAX_MESSAGE: usize = 1 << 20;

/// The longest path of a file, in bytes.
const MAX_FILE_PATH: usize = 4 << 10;

/// The most files and shell commands of one message.
const MAX_ACTS: usize = 32;

/// The beginning of the names of shell variables with arguments.
const VARIABLE: &str = "COMMAND_";

/// The arguments of a call, and the words for folders.
#[derive(Debug, Clone, Copy, Default)]
pub struct CommandArguments<'a> {
    /// The arguments as a person typed them.
    pub text: &'a str,
    /// Words such as `${CLAUDE_PLUGIN_ROOT}`, each with the path for agents.
    pub folders: &'a [(&'a str, &'a str)],
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandPiece {
    /// Text for the model.
    Text(String),
    /// A file, read by the agent's own tool. `written` stands for a file that cannot be read.
    File {
        /// The path.
        path: String,
        /// The path as text, for example `@src/main.rs`.
        written: String,
    },
    /// A shell command, run by the agent's own tool. Arguments are variables in it, never its text.
    Shell {
        /// The command.
        command: String,
        /// The words of the author.
        written: String,
    },
}

/// The reason why a command makes no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// The arguments are too long.
    #[error("the arguments have {0} bytes; a command takes at most {MAX_ARGUMENTS}")]
    Arguments(usize),
    /// The message is too long.
    #[error("the message of the command has more than {MAX_MESSAGE} bytes")]
    Message,
    /// The text names too many files and shell commands.
    #[error("the command names more than {MAX_ACTS} files and shell commands")]
    Acts,
    /// A file's path is too long.
    #[error("the path of a file in the command has more than {MAX_FILE_PATH} bytes")]
    Path,
}

/// The values of one call.
struct CallValues<'a> {
    text: &'a str,
    words: Vec<String>,
    names: &'a [String],
    folders: &'a [(&'a str, &'a str)],
    /// The number of the first argument in `$N`.
    first: usize,
}

/// The message of a text with these arguments.
pub(super) fn expand_body(
    body: &str,
    style: CommandStyle,
    names: &[String],
    arguments: &CommandArguments<'_>,
) -> Result<Vec<CommandPiece>, ExpandError> {
    let CommandArguments { text, folders } = *arguments;
    let text = text.trim();
    if text.len() > MAX_ARGUMENTS {
        return Err(ExpandError::Arguments(text.len()));
    }
    let parts = BodyScanner::scan_body(body.trim(), style, names);
    let from_zero = !names.is_empty() || parts.iter().any(|part| has_number(part, 0));
    let first = usize::from(!from_zero);
    let values = CallValues { text, words: split_arguments(text), names, folders, first };
    let mut message = MessageBuilder::default();
    let mut is_used = false;
    for part in &parts {
        match part {
            BodyPart::Text(text) => message.push_text(&values.with_folders(text))?,
            BodyPart::File(path, _) => {
                is_used |= path.iter().any(is_argument);
                let path = values.path_of(path)?;
                let written = match style {
                    CommandStyle::Dollar => format!("@{path}"),
                    CommandStyle::Braces => format!("@{{{path}}}"),
                };
                message.push_act(CommandPiece::File { path, written })?;
            }
            BodyPart::Shell(written) => {
                let (command, uses) = values.shell_command(written, style);
                is_used |= uses;
                let written = (*written).to_owned();
                message.push_act(CommandPiece::Shell { command, written })?;
            }
            other => {
                is_used |= is_argument(other);
                message.push_text(&values.text_of(other))?;
            }
        }
    }
    if !is_used && !text.is_empty() {
        message.push_text(&format!("\n\nARGUMENTS: {text}"))?;
    }
    Ok(message.pieces)
}

/// The text of a skill that a person called with these arguments: only arguments are replaced. No file is read and no
/// shell command run.
///
/// # Errors
///
/// When the arguments or the text exceed their bounds.
pub fn expand_skill(body: &str, names: &[String], text: &str) -> Result<String, ExpandError> {
    let text = text.trim();
    if text.len() > MAX_ARGUMENTS {
        return Err(ExpandError::Arguments(text.len()));
    }
    let parts = BodyScanner::scan_body(body, CommandStyle::Dollar, names);
    let from_zero = !names.is_empty() || parts.iter().any(|part| has_number(part, 0));
    let first = usize::from(!from_zero);
    let values = CallValues { text, words: split_arguments(text), names, folders: &[], first };
    let mut message = MessageBuilder::default();
    for part in &parts {
        match part {
            BodyPart::File(_, written) => message.push_text(written)?,
            BodyPart::Shell(written) => message.push_text(&format!("`{written}`"))?,
            other => message.push_text(&values.text_of(other))?,
        }
    }
    let text = message.pieces.into_iter().map(|piece| match piece {
        CommandPiece::Text(text) => text,
        CommandPiece::File { written, .. } | CommandPiece::Shell { written, .. } => written,
    });
    Ok(text.collect())
}

/// The pieces so far, within the bounds.
#[derive(Default)]
struct MessageBuilder {
    pieces: Vec<CommandPiece>,
    bytes: usize,
    acts: usize,
}

impl MessageBuilder {
    fn push_text(&mut self, more: &str) -> Result<(), ExpandError> {
        self.count_bytes(more.len())?;
        match self.pieces.last_mut() {
            Some(CommandPiece::Text(text)) => text.push_str(more),
            Some(CommandPiece::File { .. } | CommandPiece::Shell { .. }) | None => {
                self.pieces.push(CommandPiece::Text(more.to_owned()));
            }
        }
        Ok(())
    }

    fn push_act(&mut self, piece: CommandPiece) -> Result<(), ExpandError> {
        self.acts += 1;
        if self.acts > MAX_ACTS {
            return Err(ExpandError::Acts);
        }
        // INV-655: a path and a shell command repeat arguments too.
        self.count_bytes(match &piece {
            CommandPiece::Text(text) => text.len(),
            CommandPiece::File { path, written } => path.len().saturating_add(written.len()),
            CommandPiece::Shell { command, written } => command.len().saturating_add(written.len()),
        })?;
        self.pieces.push(piece);
        Ok(())
    }

    fn count_bytes(&mut self, more: usize) -> Result<(), ExpandError> {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > MAX_MESSAGE { Err(ExpandError::Message) } else { Ok(()) }
    }
}

impl CallValues<'_> {
    /// The text that replaces a part.
    fn text_of(&self, part: &BodyPart<'_>) -> String {
        match part {
            BodyPart::Text(text) => self.with_folders(text),
            BodyPart::Dollar => "$".to_owned(),
            BodyPart::All => self.text.to_owned(),
            BodyPart::At(place) => self.word_at(Some(*place)),
            BodyPart::Number(number) => self.word_at(number.checked_sub(self.first)),
            BodyPart::Named(name) => self.word_at(self.names.iter().position(|own| own == name)),
            BodyPart::File(_, written) | BodyPart::Shell(written) => (*written).to_owned(),
        }
    }

    /// A file's path. INV-655: its length is checked before each part is added.
    fn path_of(&self, parts: &[BodyPart<'_>]) -> Result<String, ExpandError> {
        let mut path = String::new();
        for part in parts {
            let more = self.text_of(part);
            if path.len().saturating_add(more.len()) > MAX_FILE_PATH {
                return Err(ExpandError::Path);
            }
            path.push_str(&more);
        }
        Ok(path.trim().to_owned())
    }

    fn word_at(&self, place: Option<usize>) -> String {
        place.and_then(|place| self.words.get(place)).cloned().unwrap_or_default()
    }

    fn with_folders(&self, text: &str) -> String {
        let replace = |text: String, (word, path): &(&str, &str)| text.replace(word, path);
        self.folders.iter().fold(text.to_owned(), replace)
    }

    /// The command for a POSIX shell. INV-656: each placeholder outside single quotes becomes a variable, whose value
    /// is set in front, so no argument is read as syntax.
    fn shell_command(&self, written: &str, style: CommandStyle) -> (String, bool) {
        let (mut command, mut set) = (String::new(), String::new());
        let (mut rest, mut quoted) = (written, false);
        let mut known = BTreeSet::new();
        while let Some(c) = rest.chars().next() {
            let found = match style {
                CommandStyle::Dollar if !quoted => find_argument(rest, self.names),
                CommandStyle::Dollar => None,
                CommandStyle::Braces => rest.starts_with("{{args}}").then_some((BodyPart::All, 8)),
            };
            if let Some((part, length)) = found {
                let name = format!("{VARIABLE}{}", self.variable_of(&part));
                if !known.contains(&name) {
                    let value = quote_word(&self.text_of(&part));
                    set.push_str(&format!("{name}={value}; "));
                    known.insert(name.clone());
                }
                command.push_str(&format!("${{{name}}}"));
                rest = rest.get(length..).unwrap_or_default();
                continue;
            }
            quoted ^= c == '\'' && style == CommandStyle::Dollar;
            command.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
        let uses = !set.is_empty();
        (format!("{set}{}", self.with_folders(command.trim())), uses)
    }

    /// The end of a variable's name, which has no character of the author's.
    fn variable_of(&self, part: &BodyPart<'_>) -> String {
        match part {
            BodyPart::At(place) => format!("AT_{place}"),
            BodyPart::Number(number) => format!("N_{number}"),
            BodyPart::Named(name) => {
                let place = self.names.iter().position(|own| own == name);
                format!("NAMED_{}", place.unwrap_or_default())
            }
            BodyPart::All
            | BodyPart::Text(_)
            | BodyPart::Dollar
            | BodyPart::File(..)
            | BodyPart::Shell(_) => "ARGUMENTS".to_owned(),
        }
    }
}

fn is_argument(part: &BodyPart<'_>) -> bool {
    match part {
        BodyPart::All | BodyPart::At(_) | BodyPart::Number(_) | BodyPart::Named(_) => true,
        BodyPart::File(parts, _) => parts.iter().any(is_argument),
        BodyPart::Text(_) | BodyPart::Dollar | BodyPart::Shell(_) => false,
    }
}

/// Whether a part has `$N` with this number.
fn has_number(part: &BodyPart<'_>, number: usize) -> bool {
    match part {
        BodyPart::Number(own) => *own == number,
        BodyPart::File(parts, _) => parts.iter().any(|part| has_number(part, number)),
        BodyPart::Shell(text) => shell_has_number(text, number),
        BodyPart::Text(_)
        | BodyPart::Dollar
        | BodyPart::All
        | BodyPart::At(_)
        | BodyPart::Named(_) => false,
    }
}

/// Whether a shell command has `$N` with this number as an argument: within single quotes, `$0` is the program's own.
fn shell_has_number(text: &str, number: usize) -> bool {
    let mut quoted = false;
    text.char_indices().any(|(at, c)| {
        quoted ^= c == '\'';
        let rest = text.get(at..).filter(|_| c == '$' && !quoted);
        let found = rest.and_then(|rest| find_argument(rest, &[]));
        found.is_some_and(|(part, _)| part == BodyPart::Number(number))
    })
}
