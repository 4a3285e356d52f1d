//! Subagents as sessions of an editor: ids, and the updates for beginnings and states.
//!
//! The id of a child is the agent's message, and the path in that turn. The id is the same while the turn
//! runs and whenever the session is loaded later.

use agent_client_protocol::v1::schema::{
    Error, ErrorStopReason, IdleStateUpdate, IdleStopReason, RunningStateUpdate,
    SessionCancelCapabilities, SessionMessage, SessionUpdate, StateUpdate,
    SubagentSessionCapabilities, SubagentUpdate,
};
use belljar_agent::RunStatus;
use belljar_policy::ShownText;

use crate::limits::MAX_TITLE;
use crate::tool_call::clipped_block;

/// The session of a subagent.
pub(crate) fn child_id(message: &str, path: &str) -> String {
    format!("{message}/{path}")
}

/// Parses an id into message and path; `None` = not a child's id.
pub(crate) fn parse_child_id(id: &str) -> Option<(&str, &str)> {
    id.split_once('/').filter(|(message, path)| !message.is_empty() && path.contains('/'))
}

/// Returns whether a path is a subagent's.
pub(crate) fn is_child(path: &str) -> bool {
    path.contains('/')
}

/// The update on the parent that announces a child, before any update of the child. The child may be
/// cancelled.
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

/// The update on the child with the task from its parent.
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

/// The update on the parent about a running child.
pub(crate) fn running_update(id: &str) -> SessionUpdate {
    let state = StateUpdate::Running(RunningStateUpdate::new());
    SessionUpdate::SubagentUpdate(SubagentUpdate::new(id.to_owned()).state(state))
}

/// The update on the parent for an ended child, which can no longer be cancelled.
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
