//! Parses a transcript's text into checked scripts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::check::RequestExpectation;
use super::file;
use crate::limits::{MAX_TOOL_CALLS, MAX_TRANSCRIPT_BYTES};
use crate::text::{list_names, quote_text};
use crate::{ModelError, Reasoning, StopReason, TokenUsage, ToolCall};

/// The version of the transcript format that this crate reads and writes.
pub(crate) const VERSION: u32 = 1;

/// A checked transcript. It never changes, and any number of [`super::ScriptedModel`]s can play it.
#[derive(Debug)]
pub struct Transcript {
    pub(super) origin: PathBuf,
    pub(super) id: String,
    /// True if each run plays the scripts from the start.
    pub(super) each_run: bool,
    pub(super) text_only: bool,
    pub(super) scripts: Vec<AgentScript>,
    by_agent: HashMap<String, BySpawn>,
}

/// The scripts of one agent, by spawn index.
#[derive(Debug, Default)]
struct BySpawn {
    exact: HashMap<u32, usize>,
    any: Option<usize>,
}

/// The turns of one agent with one spawn index.
#[derive(Debug)]
pub(super) struct AgentScript {
    pub(super) agent: String,
    /// The spawn index; `None` = any.
    pub(super) spawn: Option<u32>,
    pub(super) turns: Vec<ScriptedTurn>,
}

/// A checked turn of a script.
#[derive(Debug)]
pub(super) struct ScriptedTurn {
    pub(super) expect: RequestExpectation,
    pub(super) think: String,
    pub(super) say: String,
    pub(super) calls: Vec<ScriptedCall>,
    /// The bytes of all names and arguments in `calls`.
    pub(super) call_bytes: usize,
    pub(super) reasoning: Option<Reasoning>,
    pub(super) usage: Option<TokenUsage>,
    pub(super) ending: TurnEnding,
}

/// A tool call in a turn's answer.
#[derive(Debug)]
pub(super) struct ScriptedCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// How a turn ends.
#[derive(Debug)]
pub(super) enum TurnEnding {
    Reply(StopReason),
    Fail(ModelError),
    Hang,
}

/// The reason why a text is no transcript.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The text is longer than [`crate::limits::MAX_TRANSCRIPT_BYTES`].
    #[error("transcript `{}` has {bytes} bytes; the limit is {MAX_TRANSCRIPT_BYTES}", origin.display())]
    TooLarge {
        /// The file of the text.
        origin: PathBuf,
        /// The size.
        bytes: usize,
    },
    /// The text is not YAML, or has an unknown or missing field.
    #[error("transcript `{}` cannot be read: {message}", origin.display())]
    Syntax {
        /// The file of the text.
        origin: PathBuf,
        /// The line, from 1, if known.
        line: Option<u64>,
        /// The column, from 1, if known.
        column: Option<u64>,
        /// The fault as a text, with line and column.
        message: String,
    },
    /// The file states an unknown version.
    #[error("transcript `{}` has format {found}; this program reads format {VERSION}", origin.display())]
    Version {
        /// The file of the text.
        origin: PathBuf,
        /// The stated version.
        found: u32,
    },
    /// The file is well-formed, but its content is invalid.
    #[error("transcript `{}`, {place}: {message}", origin.display())]
    Invalid {
        /// The file of the text.
        origin: PathBuf,
        /// The invalid entry: its agent, its spawn index or `any`, and the number of the turn from 1 if one
        /// turn is invalid.
        place: String,
        /// The fault.
        message: String,
    },
}

impl Transcript {
    /// Parses and checks a transcript; `origin` is its file, for error messages.
    ///
    /// # Errors
    /// [`ScriptError`], with line and column for a fault in the text itself.
    pub fn parse(text: &str, origin: &Path) -> Result<Self, ScriptError> {
        if text.len() > MAX_TRANSCRIPT_BYTES {
            return Err(ScriptError::TooLarge { origin: origin.to_owned(), bytes: text.len() });
        }
        let options = serde_yaml::options! {
            // An unquoted `no` or `on` is a text in a transcript, not a boolean.
            strict_booleans: true,
            // Parser messages become one-line errors, so they must not contain a snippet.
            with_snippet: false,
        };
        let file: file::TranscriptDocument = serde_yaml::from_str_with_options(text, options)
            .map_err(|error| syntax_error(origin, &error))?;
        if file.transcript != VERSION {
            return Err(ScriptError::Version { origin: origin.to_owned(), found: file.transcript });
        }
        Self::from_file(file, origin)
    }

    /// Checks all entries of a parsed file; an error names the entry and the turn.
    fn from_file(file: file::TranscriptDocument, origin: &Path) -> Result<Self, ScriptError> {
        let name = origin.file_name().unwrap_or(origin.as_os_str());
        let mut transcript = Self {
            id: format!("scripted:{}", quote_text(&name.to_string_lossy())),
            origin: origin.to_owned(),
            each_run: file.each_run,
            text_only: file.text_only,
            scripts: Vec::with_capacity(file.agents.len()),
            by_agent: HashMap::new(),
        };
        for entry in file.agents {
            let place = format!("agent `{}`, spawn {}", quote_text(&entry.agent), entry.spawn);
            transcript.add_entry(entry).map_err(|(turn, message)| ScriptError::Invalid {
                origin: origin.to_owned(),
                place: turn.map_or(place.clone(), |turn| format!("{place}, turn {turn}")),
                message,
            })?;
        }
        Ok(transcript)
    }

    /// Adds the script of one agent and spawn index. If one turn is invalid, the error has its number, from
    /// 1.
    fn add_entry(&mut self, entry: file::AgentEntry) -> Result<(), (Option<usize>, String)> {
        let spawn = match entry.spawn {
            file::SpawnSelector::Index(index) => Some(index),
            file::SpawnSelector::Any => None,
        };
        if entry.turns.is_empty() {
            return Err((None, "it has no turns".to_owned()));
        }
        let mut turns = Vec::with_capacity(entry.turns.len());
        for (index, turn) in entry.turns.into_iter().enumerate() {
            turns.push(ScriptedTurn::new(turn).map_err(|message| (Some(index + 1), message))?);
        }
        let by_spawn = self.by_agent.entry(entry.agent.clone()).or_default();
        let index = self.scripts.len();
        let taken = match spawn {
            Some(spawn) => by_spawn.exact.insert(spawn, index).is_some(),
            None => by_spawn.any.replace(index).is_some(),
        };
        if taken {
            return Err((None, "there is another entry for it above".to_owned()));
        }
        self.scripts.push(AgentScript { agent: entry.agent, spawn, turns });
        Ok(())
    }

    /// Finds the script for a subagent, by its agent's name and spawn index; also returns the script's
    /// number.
    pub(super) fn find_script(&self, agent: &str, spawn: u32) -> Option<(usize, &AgentScript)> {
        let by_spawn = self.by_agent.get(agent)?;
        let index = by_spawn.exact.get(&spawn).copied().or(by_spawn.any)?;
        Some((index, self.scripts.get(index)?))
    }

    /// The entries of the transcript as a text, for an error message.
    pub(super) fn known_agents(&self) -> String {
        let names: Vec<String> = self
            .scripts
            .iter()
            .map(|script| match script.spawn {
                Some(spawn) => format!("{} (spawn {spawn})", script.agent),
                None => format!("{} (spawn any)", script.agent),
            })
            .collect();
        list_names(names.iter().map(String::as_str))
    }
}

impl ScriptedTurn {
    /// Checks that a turn has one ending, that calls belong to an answer, and that something happens at all.
    fn new(turn: file::TurnEntry) -> Result<Self, String> {
        if turn.calls.len() > MAX_TOOL_CALLS {
            return Err(format!("more than {MAX_TOOL_CALLS} calls"));
        }
        let has_calls = !turn.calls.is_empty();
        let calls = turn.calls.into_iter().map(ScriptedCall::new).collect::<Result<Vec<_>, _>>()?;
        let ending = match (turn.fail, turn.hang) {
            (Some(_), true) => return Err("`fail` and `hang` exclude each other".to_owned()),
            (Some(fail), false) => TurnEnding::Fail(fail.into_error()?),
            (None, true) => TurnEnding::Hang,
            (None, false) if turn.say.is_none() && !has_calls => {
                return Err("nothing happens: give `say`, `calls`, `fail` or `hang`".to_owned());
            }
            (None, false) => TurnEnding::Reply(turn.stop.map_or_else(
                || if has_calls { StopReason::ToolUse } else { StopReason::EndTurn },
                StopReason::from,
            )),
        };
        if has_calls && !matches!(ending, TurnEnding::Reply(_)) {
            return Err("`calls` need a turn that succeeds".to_owned());
        }
        Ok(Self {
            expect: turn.expect.unwrap_or_default(),
            think: turn.think.unwrap_or_default(),
            say: turn.say.unwrap_or_default(),
            call_bytes: calls.iter().map(|call| call.name.len() + call.arguments.len()).sum(),
            calls,
            reasoning: turn.reasoning,
            usage: turn.usage.map(TokenUsage::from),
            ending,
        })
    }

    /// The calls of this turn. Calls without an id get one that contains the turn's number, from 0.
    pub(super) fn calls_of(&self, number: usize) -> Vec<ToolCall> {
        let calls = self.calls.iter().enumerate().map(|(index, call)| ToolCall {
            id: call.id.clone().unwrap_or_else(|| format!("call_{}_{}", number + 1, index + 1)),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        calls.collect()
    }
}

impl ScriptedCall {
    /// Checks that a call has at most one form of arguments.
    fn new(call: file::CallEntry) -> Result<Self, String> {
        let arguments = match (call.arguments, call.raw_arguments) {
            (Some(_), Some(_)) => {
                return Err("`arguments` and `raw_arguments` exclude each other".to_owned());
            }
            (Some(value), None) => value.to_string(),
            (None, Some(raw)) => raw,
            (None, None) => "{}".to_owned(),
        };
        Ok(Self { id: call.id, name: call.name, arguments })
    }
}

impl file::FailEntry {
    /// Converts `fail` to the error that the model returns.
    fn into_error(self) -> Result<ModelError, String> {
        let message = self.message.unwrap_or_else(|| "scripted failure".to_owned());
        let retry_after = self.retry_after.map(Duration::from_secs);
        match (self.status, self.kind) {
            (Some(429), None) => Ok(ModelError::RateLimited { retry_after, message }),
            (Some(status @ (401 | 403)), None) => Ok(ModelError::Auth { status, message }),
            (Some(status), None) => Ok(ModelError::Http { status, retry_after, message }),
            (None, Some(file::FailKind::Context)) => Ok(ModelError::ContextLength { message }),
            (None, Some(file::FailKind::Cut)) => Ok(ModelError::Cut),
            (None, Some(file::FailKind::Network)) => Ok(ModelError::Network { message }),
            (None, Some(file::FailKind::Protocol)) => Ok(ModelError::Protocol { message }),
            (Some(_), Some(_)) | (None, None) => {
                Err("`fail` needs either `status` or `kind`".to_owned())
            }
        }
    }
}

/// The error for a text that is no YAML or has a wrong field, with its line and column.
fn syntax_error(origin: &Path, error: &serde_yaml::Error) -> ScriptError {
    let location = error.location();
    ScriptError::Syntax {
        origin: origin.to_owned(),
        line: location.map(|at| at.line()),
        column: location.map(|at| at.column()),
        message: quote_text(&error.to_string()),
    }
}
