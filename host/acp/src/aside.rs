//! The command `/agent`: another agent answers from now on, or runs one task beside the conversation.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CurrentModeUpdate, SessionModeId, SessionUpdate, StopReason,
};
use belljar_policy::ShownText;
use belljar_session::TurnKind;

use crate::door::{AcpDoor, Connection};
use crate::errors::invalid_parameter;
use crate::open::ActivePrompt;
use crate::{beside, modes, words};

/// Handles `/agent NAME`: without a task, the agent NAME answers from now on; with a task after the name,
/// NAME runs the task beside the conversation.
pub(crate) async fn run_agent_command(
    door: &Arc<AcpDoor>,
    to: &Connection,
    prompting: &ActivePrompt,
    rest: &str,
) -> Result<StopReason, Error> {
    let (name, task) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if name.is_empty() {
        return Err(invalid_parameter(
            "name an agent: `/agent NAME`, or `/agent NAME TASK` on the side",
        ));
    }
    match task.trim() {
        "" => switch_agent(door, to, prompting, name).await,
        task => beside::run_beside(door, to, prompting, TurnKind::Run, name, task.to_owned()).await,
    }
}

/// Makes another agent answer from now on, and tells the editor and the person.
async fn switch_agent(
    door: &Arc<AcpDoor>,
    to: &Connection,
    prompting: &ActivePrompt,
    name: &str,
) -> Result<StopReason, Error> {
    let session = &prompting.session.id;
    modes::set_agent(door, session, &SessionModeId::new(name.to_owned())).await?;
    let now = SessionModeId::new(door.find_session(session).await?.agent);
    let text = format!("You talk with `{}` now.", ShownText::new(&now.0));
    let update = SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(now));
    door.send_update(to, session, update).await;
    door.send_update(to, session, words::remark_update(&text)).await;
    Ok(StopReason::EndTurn)
}
