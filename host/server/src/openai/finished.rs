//! A turn in the terms of OpenAI's API: the agent's texts, the calls at the end, and how it ended. Made from
//! the stored turn, so an answer, a stream's end and a later read agree.

use belljar_agent::{ChatMessage, RunError, ToolCall, Usage, frame};
use belljar_session::StoredTurnOf;
use belljar_store::MessageStatus;

use crate::http::problem::{Problem, ProblemKind};

/// The stored state of a turn, running or ended, for an answer.
#[derive(Debug, Clone)]
pub(crate) struct FinishedTurn {
    /// The id of the agent's message, which is also the run's id.
    pub(crate) message: String,
    pub(crate) status: MessageStatus,
    /// The texts of the agent's steps, without blank ones.
    pub(crate) texts: Vec<String>,
    /// The calls of the caller's tools with which the turn ended.
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) error: Option<RunError>,
    pub(crate) usage: Usage,
    /// When the turn began and ended, in seconds since 1970.
    pub(crate) began: i64,
    pub(crate) ended: i64,
}

impl FinishedTurn {
    /// Reads the parts of a stored turn that an answer needs.
    pub(crate) fn from_stored(stored: &StoredTurnOf) -> Self {
        let turn = &stored.turn;
        let outcome = &turn.state.outcome;
        let status = turn.state.status;
        let brought = turn.brought_input();
        let texts = match brought.form {
            // If the caller required a form, only the last text that has it counts; unfinished and failed
            // turns have none.
            _ if matches!(status, MessageStatus::InFlight | MessageStatus::Interrupted) => {
                Vec::new()
            }
            Some(_) if status == MessageStatus::Failed => Vec::new(),
            Some(_) if !outcome.calls.is_empty() => Vec::new(),
            Some(_) => last_text(vec![outcome.output.clone()]),
            None if brought.choice.is_some() && status != MessageStatus::Partial => Vec::new(),
            None => agent_texts(&outcome.messages, brought.history.len()),
        };
        Self {
            message: turn.message.clone(),
            status,
            texts,
            calls: outcome.calls.clone(),
            error: outcome.error.clone(),
            usage: outcome.total,
            began: outcome.started.as_second(),
            ended: outcome.ended.as_second(),
        }
    }

    /// All texts of the turn, joined by blank lines.
    pub(crate) fn joined_text(&self) -> String {
        self.texts.join("\n\n")
    }

    /// The problem of a turn that ended without an answer; `None` if it has an answer.
    pub(crate) fn to_problem(&self) -> Option<Problem> {
        let why = || self.error.as_ref().map(ToString::to_string);
        match self.status {
            MessageStatus::Completed | MessageStatus::Partial => None,
            MessageStatus::Failed | MessageStatus::Interrupted => Some(self.failure_problem()),
            MessageStatus::Cancelled => {
                let why = why().unwrap_or_else(|| "the run was cancelled".to_owned());
                Some(Problem::new(ProblemKind::Taken, why).with_code("cancelled"))
            }
            MessageStatus::InFlight => {
                let detail = "the server stopped before this turn had ended; it is stored, and \
                              resumed when the server starts again: do not send it twice";
                let problem = Problem::unavailable(detail, std::time::Duration::from_secs(5));
                Some(problem.with_code("in_progress"))
            }
        }
    }

    /// The problem of a failed turn, by the kind of its error.
    fn failure_problem(&self) -> Problem {
        match &self.error {
            Some(
                error @ (RunError::Form { .. }
                | RunError::Declined
                | RunError::Stopped { .. }
                | RunError::NoAnswer),
            ) => Problem::new(ProblemKind::Agent, error.to_string()).with_code(self.failure_code()),
            Some(
                error @ (RunError::Setup { .. } | RunError::Hook { .. } | RunError::Caller { .. }),
            ) => Problem::new(ProblemKind::Agent, error.to_string()).with_code(self.failure_code()),
            // The caller can solve this, so the answer must not state that the server is unavailable.
            Some(error @ RunError::Model { too_long: true, .. }) => {
                Problem::new(ProblemKind::Invalid, error.to_string()).with_code(self.failure_code())
            }
            Some(error @ RunError::Busy { .. }) => {
                let after = std::time::Duration::from_secs(1);
                Problem::unavailable(error.to_string(), after).with_code(self.failure_code())
            }
            Some(error) => Problem::new(ProblemKind::Unavailable, error.to_string())
                .with_code(self.failure_code()),
            None => Problem::new(ProblemKind::Unavailable, "the turn was interrupted")
                .with_code(self.failure_code()),
        }
    }

    /// OpenAI's code for the failure of the turn.
    pub(crate) fn failure_code(&self) -> &'static str {
        match &self.error {
            Some(RunError::Form { .. }) => "format_not_met",
            Some(RunError::Model { too_long: true, .. }) => "context_length_exceeded",
            Some(RunError::Model { .. }) => "model_error",
            Some(RunError::Stopped { .. }) => "model_stopped",
            Some(RunError::Declined) => "declined",
            Some(RunError::NoAnswer) => "no_answer",
            Some(RunError::Setup { .. } | RunError::Hook { .. } | RunError::Caller { .. }) => {
                "agent_unusable"
            }
            Some(RunError::Cancelled) => "cancelled",
            Some(RunError::Budget { .. } | RunError::WallTime { .. } | RunError::OutputCut) => {
                "limit_reached"
            }
            Some(RunError::Busy { .. }) => "unavailable",
            Some(RunError::Internal { .. }) => "server_error",
            None => "interrupted",
        }
    }
}

/// The agent's texts among `messages`, from the index `from` on. A placeholder for a missing answer is left
/// out.
fn agent_texts(messages: &[ChatMessage], from: usize) -> Vec<String> {
    let stands_for = [frame::STOPPED, frame::LIMITED, frame::BROKEN, frame::NOTED];
    let texts = messages.iter().skip(from).filter_map(|message| match message {
        ChatMessage::Assistant { text, .. } if !text.trim().is_empty() => Some(text.clone()),
        ChatMessage::Assistant { .. } | ChatMessage::User { .. } | ChatMessage::Tool { .. } => None,
    });
    texts.filter(|text| !stands_for.contains(&text.as_str())).collect()
}

fn last_text(texts: Vec<String>) -> Vec<String> {
    texts.into_iter().rfind(|text| !text.trim().is_empty()).into_iter().collect()
}
