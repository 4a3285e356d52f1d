//! Runs a prompt from its blocks to its end, and resumes turns that an earlier process left.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::SessionInfoUpdate;
use agent_client_protocol::v1::schema::{PromptRequest, PromptResponse, SessionUpdate, StopReason};
use belljar_agent::{Brought, Staying};
use belljar_policy::Shown;
use belljar_session::{Head, TurnRequest};

use crate::commands;
use crate::door::{ACTOR, Connection, Door};
use crate::errors::{not_now, of_service};
use crate::follow::{follow, show};
use crate::limits::{MAX_PROMPTS, MAX_TITLE};
use crate::open::{OpenSession, Prompting};
use crate::prompt::{self, Prompt};
use crate::updates::Updates;
use crate::{changes, words};

/// Answers a prompt.
pub(crate) async fn prompt(
    door: &Arc<Door>,
    to: &Connection,
    prompting: Prompting,
    request: PromptRequest,
) -> Result<PromptResponse, Error> {
    // INV-304.
    let _place = door.prompts.try_acquire().map_err(|_| {
        not_now(format!("{MAX_PROMPTS} prompts are being answered; wait for the end of one"))
    })?;
    let prompt = prompt::read(request.prompt, door.workspace())?;
    let cancelled = || Ok(PromptResponse::new(StopReason::Cancelled));
    // A turn that an earlier process left ends first.
    let floor = Arc::clone(&prompting.session.floor).lock_owned();
    let Some(_floor) = prompting.cancel.run_until_cancelled(floor).await else {
        return cancelled();
    };
    let reason = match commands::read(door, &prompt) {
        Some(command) => commands::perform(door, to, &prompting, command, prompt).await?,
        None => say(door, to, &prompting, prompt).await?,
    };
    Ok(PromptResponse::new(reason))
}

/// Begins a turn with a prompt, and shows its answer.
pub(crate) async fn say(
    door: &Arc<Door>,
    to: &Connection,
    prompting: &Prompting,
    prompt: Prompt,
) -> Result<StopReason, Error> {
    let session = &prompting.session;
    entitle(door, to, &session.id, &prompt.text).await?;
    let passing = door.results.listen();
    let request = TurnRequest {
        session: Some(session.id.clone()),
        text: prompt.text,
        context: prompt.context,
        brought: Brought { images: prompt.images, ..Brought::default() },
        actor: ACTOR.to_owned(),
        kept: Staying::All,
        door: "acp",
        ..TurnRequest::default()
    };
    let turn = door.service.begin(request).await.map_err(|error| of_service(&error))?;
    let outcome = show(door, to, prompting, &turn, passing).await?;
    changes::show_new(door, to, session).await;
    words::reason(&outcome)
}

/// Resumes a turn that an earlier process left in a session, if any, and shows it after an event, in a
/// separate task.
pub(crate) async fn go_on(
    door: Arc<Door>,
    to: Connection,
    session: Arc<OpenSession>,
    floor: tokio::sync::OwnedMutexGuard<()>,
    after: i64,
) {
    let passing = door.results.listen();
    let turn = match door.service.resumed(&session.id).await {
        Ok(Some(turn)) => turn,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(target: "belljar::acp", "a turn was not resumed: {error}");
            return;
        }
    };
    let Ok(watch) = door.service.watch(&session.id, Some(after)).await else { return };
    let client = door.client();
    let workspace = door.workspace().to_path_buf();
    let updates = Updates::new(client, &session.id, &turn.message, workspace);
    if follow(&door, &to, &turn, watch, passing, updates).await.is_some() {
        changes::show_new(&door, &to, &session).await;
    }
    drop(floor);
}

/// Sets the title of a session without one: the first line of the first message.
async fn entitle(door: &Door, to: &Connection, id: &str, text: &str) -> Result<(), Error> {
    let stored = door.stored(id).await?;
    if !stored.title.is_empty() {
        return Ok(());
    }
    let first = text.trim().lines().next().unwrap_or_default();
    let title: String = first.chars().take(MAX_TITLE).collect();
    let head = Head { title: Some(title.clone()), ..Head::default() };
    door.service.set_head(id, head).await.map_err(|error| of_service(&error))?;
    let shown = Shown::new(&title).to_string();
    let update = SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(shown));
    door.send(to, id, update).await;
    Ok(())
}
