//! The reasons for a turn's end in ACP, and belljar's own remarks between an agent's texts.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{ContentChunk, SessionUpdate, StopReason};
use belljar_agent::{Outcome, RunError, RunStatus};
use belljar_policy::{Meter, ShownText};

use crate::errors::internal_failure;
use crate::tool_call;

/// The reason for a turn's end in ACP, or the error of a turn that failed.
pub(crate) fn stop_reason(outcome: &Outcome) -> Result<StopReason, Error> {
    let why = || outcome.error.as_ref().map_or_else(|| "it failed".to_owned(), ToString::to_string);
    match (outcome.status, &outcome.error) {
        (RunStatus::Completed, _) => Ok(StopReason::EndTurn),
        (RunStatus::Cancelled, _) => Ok(StopReason::Cancelled),
        (_, Some(RunError::Declined)) => Ok(StopReason::Refusal),
        (RunStatus::Partial, Some(RunError::Budget { exhausted })) => match exhausted.meter {
            Meter::Tokens => Ok(StopReason::MaxTokens),
            _ => Ok(StopReason::MaxTurnRequests),
        },
        (RunStatus::Partial, Some(RunError::OutputCut)) => Ok(StopReason::MaxTokens),
        (RunStatus::Partial, _) => Ok(StopReason::MaxTurnRequests),
        (RunStatus::Failed, error) => {
            let hint = match error {
                Some(
                    RunError::Setup { hint: Some(hint), .. }
                    | RunError::Model { hint: Some(hint), .. },
                ) => format!("; {hint}"),
                _ => String::new(),
            };
            let text = format!("{}{hint}", why());
            Err(internal_failure(ShownText::multiline(&text).to_string()))
        }
    }
}

/// An update with a remark of belljar itself, between the agent's texts.
pub(crate) fn remark_update(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(tool_call::clipped_block(text)))
}
