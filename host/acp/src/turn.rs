//! Runs a prompt from its blocks to its end, and resumes turns that an earlier process left.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::SessionInfoUpdate;
use agent_client_protocol::v1::schema::{PromptRequest, PromptResponse, SessionUpdate, StopReason};
use belljar_agent::{Brought, Outcome, Staying};
use belljar_policy::Shown;
use belljar_session::{Head, RunningTurn, TurnRequest};

use crate::commands;
use crate::door::{ACTOR, Connection, Door};
use crate::errors::{failed, not_now, of_service};
use crate::follow::{Passing, follow};
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
    let watching = prompting.cancel.clone();
    let (service, id) = (door.service.clone(), session.id.clone());
    // Also if cancelled before the beginning.
    let cancelling = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
        watching.cancelled().await;
        service.cancel(&id, ACTOR);
    }));
    let outcome = show(door, to, session, &turn, passing).await;
    drop(cancelling);
    match outcome {
        Some(outcome) => words::reason(&outcome),
        None => Err(failed(
            "this turn was stopped before its end; it is stored, and goes on when the session is loaded",
        )),
    }
}

/// Shows a turn from its first event, and the changes at the end.
async fn show(
    door: &Arc<Door>,
    to: &Connection,
    session: &OpenSession,
    turn: &RunningTurn,
    passing: Passing,
) -> Option<Arc<Outcome>> {
    let updates =
        Updates::new(door.client(), &session.id, &turn.message, door.workspace().to_path_buf());
    let outcome = follow(door, to, turn, turn.watch(), passing, updates).await?;
    changes::show_new(door, to, session).await;
    Some(outcome)
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
