//! Answers a prompt from its blocks to its end, and resumes turns that an earlier process left unfinished.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::SessionInfoUpdate;
use agent_client_protocol::v1::schema::{PromptRequest, PromptResponse, SessionUpdate, StopReason};
use belljar_agent::{CallerInput, TextRetention};
use belljar_policy::ShownText;
use belljar_session::{HeadEdit, TurnRequest};

use crate::commands;
use crate::door::{ACTOR, AcpDoor, Connection};
use crate::errors::{error_from_service, not_now};
use crate::follow::{follow_turn, show_turn};
use crate::limits::{MAX_PROMPTS, MAX_TITLE};
use crate::open::{ActivePrompt, OpenSession};
use crate::prompt::{self, PromptWords};
use crate::updates::UpdateMapper;
use crate::{changes, words};

/// Answers a prompt: performs a command, or runs a turn.
pub(crate) async fn answer_prompt(
    door: &Arc<AcpDoor>,
    to: &Connection,
    prompting: ActivePrompt,
    request: PromptRequest,
) -> Result<PromptResponse, Error> {
    // INV-304: the number of prompts that are answered at a time is bounded.
    let _place = door.prompts.try_acquire().map_err(|_| {
        not_now(format!("{MAX_PROMPTS} prompts are being answered; wait for the end of one"))
    })?;
    let prompt = prompt::parse_prompt(request.prompt, door.workspace())?;
    let cancelled = || Ok(PromptResponse::new(StopReason::Cancelled));
    // A turn that an earlier process left unfinished ends first.
    let floor = Arc::clone(&prompting.session.floor).lock_owned();
    let Some(_floor) = prompting.cancel.run_until_cancelled(floor).await else {
        return cancelled();
    };
    let reason = match commands::parse_command(door, &prompt) {
        Some(command) => commands::perform_command(door, to, &prompting, command, prompt).await?,
        None => run_prompt(door, to, &prompting, prompt).await?,
    };
    Ok(PromptResponse::new(reason))
}

/// Begins a turn with a prompt, and shows its answer.
pub(crate) async fn run_prompt(
    door: &Arc<AcpDoor>,
    to: &Connection,
    prompting: &ActivePrompt,
    prompt: PromptWords,
) -> Result<StopReason, Error> {
    let session = &prompting.session;
    set_title(door, to, &session.id, &prompt.text).await?;
    let passing = door.results.subscribe_steps();
    let request = TurnRequest {
        session: Some(session.id.clone()),
        text: prompt.text,
        context: prompt.context,
        brought: CallerInput {
            command: prompt.command,
            skills: prompt.skills,
            images: prompt.images,
            ..CallerInput::default()
        },
        actor: ACTOR.to_owned(),
        kept: TextRetention::All,
        door: "acp",
        ..TurnRequest::default()
    };
    let turn =
        door.service.begin_turn(request).await.map_err(|error| error_from_service(&error))?;
    let outcome = show_turn(door, to, prompting, &turn, passing).await?;
    changes::show_new(door, to, session).await;
    words::stop_reason(&outcome)
}

/// Resumes the turn of a session that an earlier process left unfinished, if there is one, and shows its
/// events after the number `told`.
pub(crate) async fn go_on(
    door: Arc<AcpDoor>,
    to: Connection,
    session: Arc<OpenSession>,
    floor: tokio::sync::OwnedMutexGuard<()>,
    after: i64,
) {
    let passing = door.results.subscribe_steps();
    let turn = match door.service.resume_turn(&session.id).await {
        Ok(Some(turn)) => turn,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(target: "belljar::acp", "a turn was not resumed: {error}");
            return;
        }
    };
    let Ok(watch) = door.service.watch_session(&session.id, Some(after)).await else { return };
    let client = door.editor_capabilities();
    let workspace = door.workspace().to_path_buf();
    let updates = UpdateMapper::new(client, &session.id, &turn.message, workspace);
    if follow_turn(&door, &to, &turn, watch, passing, updates).await.is_some() {
        changes::show_new(&door, &to, &session).await;
    }
    drop(floor);
}

/// Sets the title of a session that has none: the first line of its first message.
async fn set_title(door: &AcpDoor, to: &Connection, id: &str, text: &str) -> Result<(), Error> {
    let stored = door.find_session(id).await?;
    if !stored.title.is_empty() {
        return Ok(());
    }
    let first = text.trim().lines().next().unwrap_or_default();
    let title: String = first.chars().take(MAX_TITLE).collect();
    let head = HeadEdit { title: Some(title.clone()), ..HeadEdit::default() };
    door.service.set_head(id, head).await.map_err(|error| error_from_service(&error))?;
    let shown = ShownText::new(&title).to_string();
    let update = SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(shown));
    door.send_update(to, id, update).await;
    Ok(())
}
