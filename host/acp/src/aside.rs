//! An agent that a prompt runs beside the conversation: a separate session, shown in the prompt's session.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CurrentModeUpdate, SessionModeId, SessionUpdate, StopReason,
};
use belljar_agent::{RunSpec, resolve_known};
use belljar_policy::Shown;
use belljar_session::run_saved;

use crate::beside::Beside;
use crate::door::{Connection, Door};
use crate::errors::invalid;
use crate::open::Prompting;
use crate::{modes, words};

/// Handles `/agent NAME`: alone, the agent answers from now on; with a task after the name, the agent runs
/// the task on the side. INV-306: the agent has its own grants, and must be runnable.
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
        task => aside(door, to, prompting, name, task.to_owned()).await,
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

async fn aside(
    door: &Arc<Door>,
    to: &Connection,
    prompting: &Prompting,
    name: &str,
    task: String,
) -> Result<StopReason, Error> {
    let beside = Beside { door, to, session: &prompting.session.id };
    let host = beside.host();
    let agent = beside.find(&host, name, resolve_known).await?;
    let spec = RunSpec::new(Arc::new(agent), task, door.workspace().to_path_buf());
    let (store, cancel) = (door.service.store(), prompting.cancel.clone());
    let running = async |sink| run_saved(store, &host, spec, sink, cancel).await;
    let saved = beside.shown(running).await?;
    beside.says_where(&saved.outcome.run, "it").await;
    words::reason(&saved.outcome)
}
