//! Runs as sessions of one turn: the task is on disk before it is acted on, and the outcome
//! replaces a placeholder, as in a conversation.

use std::sync::Arc;

use belljar_model::Message;
use belljar_store::{SessionKind, Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::conversation::talk::Conversation;
use crate::record::layers::remove_stale_layers;
use crate::record::lock::SessionLock;
use crate::record::lock::locks;
use crate::record::rows::{History, PersonContent, PersonMetadata};
use crate::record::saved_session::{Saved, SavedSession, SessionError, SessionOf};
use belljar_agent::Host;
use belljar_agent::RunSpec;
use belljar_agent::events::EventSink;
use belljar_agent::frame;
use belljar_agent::{TeamOutcome, TeamSpec, run_team_as};

/// How many runs are kept unless the settings say otherwise (`keep_runs`): weeks of work.
pub const KEEP_RUNS: u64 = 200;

/// Runs an agent as the one turn of a session of its own, which has the id of the run. An error
/// means that nothing was run, because it could not be saved first; once it runs there is always
/// an outcome. Of the spec, `history`, `run` and `replay` are not used.
///
/// `cancel` ends the run, as in [`belljar_agent::run()`].
pub async fn run_saved(
    store: &Store,
    host: &Host,
    spec: RunSpec,
    events: EventSink,
    cancel: CancellationToken,
) -> Result<Saved, SessionError> {
    let mut conversation = Conversation::of_run(&spec);
    let mut session = new_session(store, host, SessionKind::Run);
    let said = PersonContent { text: spec.task, context: spec.context };
    let of = SessionOf::of(&conversation);
    let mut turn = session.begin_turn(&of, said, conversation.begins()).await?;
    turn.state.control = spec.control;
    Ok(session.perform(turn, &mut conversation, host, events, cancel).await)
}

/// Runs a team as the one turn of a session of its own, which has the id of the run. Its agents
/// belong to the placeholder from their stage's beginning on, so that a process that dies loses
/// none that has ended. An error means that nothing was run.
///
/// `cancel` ends the run, as in [`belljar_agent::run_team`].
pub async fn run_team_saved(
    store: &Store,
    host: &Host,
    spec: TeamSpec,
    events: EventSink,
    cancel: CancellationToken,
) -> Result<Saved<TeamOutcome>, SessionError> {
    let mut session = new_session(store, host, SessionKind::Team);
    let name = spec.team.id.slug.to_string();
    let of = SessionOf {
        agent: spec.team.id.to_string(),
        workspace: &spec.workspace,
        model: spec.model.as_deref(),
    };
    let said = PersonContent { text: spec.task.clone(), context: None };
    let begun = PersonMetadata {
        actor: None,
        limits: Some(spec.limits),
        partial: Some(false),
        history: Some(History::default()),
        ..PersonMetadata::default()
    };
    let mut turn = session.begin_turn(&of, said, begun).await?;
    let journal = session.record(&mut turn, host);
    let layers = session.layers(host);
    let spec = TeamSpec { layers: layers.clone(), ..spec };
    let events = journal.events(events);
    let run = turn.run.clone();
    let outcome = run_team_as(&journal.host(host), spec, run, events, cancel).await;
    if let Some(layers) = layers {
        layers.close();
    }
    let whole = outcome.to_outcome();
    // For an agent that resumes this session.
    let noted = Message::said(frame::NOTED);
    let added = [Message::user(frame::beside(&name, turn.text(), &whole)), noted];
    let unsaved = session.conclude(&journal, &whole, &added).await;
    Ok(Saved { outcome, unsaved })
}

/// Deletes the oldest runs until `keep` of those that have ended are left, and gives how many were
/// deleted. Conversations are none of them, nor is a run that somebody has resumed, has open,
/// or that is in flight. Files that agents handed over stay: they are the person's.
pub async fn prune_runs(store: &Store, keep: u64) -> Result<u64, StoreError> {
    let locks = locks(store);
    let mut deleted = 0;
    for id in store.runs_past(keep).await? {
        // Nobody may resume it in the meantime; where it cannot be locked, it stays.
        let Ok(Some(_lock)) = SessionLock::take(&locks, &id) else { continue };
        deleted += u64::from(store.delete_run(&id).await?);
    }
    if deleted > 0 {
        remove_stale_layers(store).await?;
    }
    Ok(deleted)
}

fn new_session(store: &Store, host: &Host, kind: SessionKind) -> SavedSession {
    SavedSession::new(store.clone(), Arc::clone(&host.clock)).of_kind(kind)
}
