//! Another agent, which answers from now on or runs one task beside the conversation.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CurrentModeUpdate, SessionModeId, SessionUpdate, StopReason,
};
use belljar_policy::Shown;
use belljar_session::TurnKind;

use crate::door::{Connection, Door};
use crate::errors::invalid;
use crate::open::Prompting;
use crate::{beside, modes, words};

/// Handles `/agent NAME`: alone, the agent answers from now on; with a task after the name, the agent runs
/// the task on the side.
pub(crate) async fn run(
    door: &Arc<Door>,
    to: &Connection,
    prompting: &Prompting,
    rest: &str,
) -> Result<StopReason, Error> {
    let (name, task) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if name.is_empty() {
        return Err(invalid("name an agent: `/agent NAME`, or `/agent NAME TASK` on the side"));
    }
    match task.trim() {
        "" => switch(door, to, prompting, name).await,
        task => beside::run(door, to, prompting, TurnKind::Run, name, task.to_owned()).await,
    }
}

async fn switch(
    door: &Arc<Door>,
    to: &Connection,
    prompting: &Prompting,
    name: &str,
) -> Result<StopReason, Error> {
    let session = &prompting.session.id;
    modes::set_agent(door, session, &SessionModeId::new(name.to_owned())).await?;
    let now = SessionModeId::new(door.stored(session).await?.agent);
    let text = format!("You talk with `{}` now.", Shown::new(&now.0));
    let update = SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(now));
    door.send(to, session, update).await;
    door.send(to, session, words::remark(&text)).await;
    Ok(StopReason::EndTurn)
}
