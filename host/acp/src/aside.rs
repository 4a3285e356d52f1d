//! An agent that a prompt runs beside the conversation: a session of its own, shown in this one.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CurrentModeUpdate, SessionModeId, SessionUpdate, StopReason,
};
use belljar_agent::{Event, EventSink, Host, RunSpec, resolve_known};
use belljar_policy::Shown;
use belljar_session::run_saved;
use tokio::sync::mpsc;

use crate::door::{Connection, Door};
use crate::errors::{failed, invalid};
use crate::limits::MAX_RESULTS;
use crate::open::Prompting;
use crate::team::{Person, show};
use crate::{modes, words};

/// `/agent NAME` talks with that agent from now on; with a task behind it, the agent does that on the
/// side. INV-306: it has its own grants, and is one that could be run.
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
    let session = &prompting.session.id;
    let mut host = Host::clone(&door.service.host());
    host.asker = Arc::new(Person::new(to, door, session));
    let (looked, workspace, named) =
        (host.clone(), door.workspace().to_path_buf(), name.to_owned());
    // It reads files.
    let found =
        tokio::task::spawn_blocking(move || resolve_known(&looked, &named, &workspace)).await;
    let found = found.map_err(|error| failed(error.to_string()))?;
    let agent = found.map_err(|error| invalid(Shown::multiline(&error.to_string()).to_string()))?;
    let spec = RunSpec::new(Arc::new(agent), task, door.workspace().to_path_buf());
    let (sender, receiver) = mpsc::channel(MAX_RESULTS);
    let sink = EventSink::to(move |event: &Event| {
        // An error: the editor reads too slowly, or no more. The store has the event all the same.
        let _ = sender.try_send(serde_json::to_string(event).unwrap_or_default());
    });
    let showing = show(door, to, session, receiver);
    let store = door.service.store();
    let running = run_saved(store, &host, spec, sink, prompting.cancel.clone());
    let (saved, ()) = tokio::join!(running, showing);
    let saved = saved.map_err(|error| failed(Shown::new(&error.to_string()).to_string()))?;
    let run = &saved.outcome.run;
    let note = format!(
        "\n\n`belljar receipts {run}` has what it did, `belljar changes {run}` what it changed."
    );
    door.send(to, session, words::remark(&note)).await;
    words::reason(&saved.outcome)
}
