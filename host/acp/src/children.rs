//! Subagents as sessions of an editor: their ids, and the updates about their beginnings and states.
//!
//! The id of a subagent's session consists of the id of the agent's message and the subagent's path in that
//! turn. It is the same while the turn runs and whenever the session is loaded later.

use agent_client_protocol::v1::schema::{
    Error, ErrorStopReason, IdleStateUpdate, IdleStopReason, RunningStateUpdate,
    SessionCancelCapabilities, SessionMessage, SessionUpdate, StateUpdate,
    SubagentSessionCapabilities, SubagentUpdate,
};
use belljar_agent::RunStatus;
use belljar_policy::ShownText;

use crate::limits::MAX_TITLE;
use crate::tool_call::clipped_block;

/// The id of a subagent's session.
pub(crate) fn child_id(message: &str, path: &str) -> String {
    format!("{message}/{path}")
}

/// Splits such an id into message and path; `None` if it is not a subagent's.
pub(crate) fn parse_child_id(id: &str) -> Option<(&str, &str)> {
    id.split_once('/').filter(|(message, path)| !message.is_empty() && path.contains('/'))
}

/// Returns whether a path belongs to a subagent.
pub(crate) fn is_child(path: &str) -> bool {
    path.contains('/')
}

/// The update of the parent session that announces a subagent, before any update of the subagent's own
/// session. The editor may cancel the subagent.
pub(crate) fn announce_child(id: &str, path: &str, task: &str) -> SessionUpdate {
    let title = path.rsplit('/').next().unwrap_or(path);
    let line = task.trim().lines().next().unwrap_or_default();
    let capabilities = SubagentSessionCapabilities::new().cancel(SessionCancelCapabilities::new());
    SessionUpdate::SubagentUpdate(
        SubagentUpdate::new(id.to_owned())
            .title(ShownText::clip_line(title, MAX_TITLE).to_string())
            .description(ShownText::clip_line(line, MAX_TITLE).to_string())
            .capabilities(capabilities),
    )
}

/// The update of the subagent's session with the task from its parent.
pub(crate) fn task_update(parent: &str, id: &str, task: &str) -> SessionUpdate {
    SessionUpdate::SessionMessage(
        SessionMessage::new(format!("{id}.task"))
            .sender_session_id(agent_client_protocol::v1::schema::SessionId::from(
                parent.to_owned(),
            ))
            .recipient_session_id(agent_client_protocol::v1::schema::SessionId::from(id.to_owned()))
            .content(vec![clipped_block(task)]),
    )
}

/// The update of the parent session that a subagent is running.
pub(crate) fn running_update(id: &str) -> SessionUpdate {
    let state = StateUpdate::Running(RunningStateUpdate::new());
    SessionUpdate::SubagentUpdate(SubagentUpdate::new(id.to_owned()).state(state))
}

/// The update of the parent session that a subagent has ended and can no longer be cancelled.
pub(crate) fn ended_update(id: &str, status: RunStatus, error: Option<&str>) -> SessionUpdate {
    let reason = match status {
        RunStatus::Completed => IdleStopReason::EndTurn,
        RunStatus::Cancelled => IdleStopReason::Cancelled,
        RunStatus::Partial => IdleStopReason::MaxTurnRequests,
        RunStatus::Failed => {
            let why = error.unwrap_or("it failed");
            let error = Error::new(-32603, ShownText::multiline(why).to_string());
            IdleStopReason::Error(ErrorStopReason::new().error(error))
        }
    };
    let state = StateUpdate::Idle(IdleStateUpdate::new().stop_reason(reason));
    let update = SubagentUpdate::new(id.to_owned()).state(state);
    SessionUpdate::SubagentUpdate(update.capabilities(None::<SubagentSessionCapabilities>))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_child_names_its_message_and_its_path() {
        let id = child_id("2026-x", "main/scout#0/x#1");
        assert_eq!(parse_child_id(&id), Some(("2026-x", "main/scout#0/x#1")));
        for not in ["2026-x", "2026-x/main", "/a/b"] {
            assert_eq!(parse_child_id(not), None, "{not}");
        }
    }
}
