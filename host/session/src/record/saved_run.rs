//! Runs as sessions of one turn: the task is stored before the run begins, and the outcome replaces a
//! placeholder, as in a conversation.

use std::sync::Arc;

use belljar_model::ChatMessage;
use belljar_store::{SessionKind, Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::conversation::talk::Conversation;
use crate::record::layers::remove_stale_layers;
use crate::record::lock::SessionLock;
use crate::record::lock::locks_directory;
use crate::record::rows::{HistoryMode, PersonContent, PersonMetadata};
use crate::record::saved_session::{
    SavedOutcome, SavedSession, SessionError, SessionOrigin, TurnInput,
};
use crate::record::turn::{OpenState, Turn};
use belljar_agent::CallerInput;
use belljar_agent::Host;
use belljar_agent::RunSpec;
use belljar_agent::events::EventSink;
use belljar_agent::frame;
use belljar_agent::{TeamOutcome, TeamSpec, run_team_as};

/// The number of stored runs unless `keep_runs` is set: weeks of work of one person.
pub const KEEP_RUNS: u64 = 200;

/// Runs an agent as the only turn of a new session with the run's id. An error means that nothing ran,
/// because the task could not be stored; a started run always has an outcome. The fields `history`, `run` and
/// `replay` of the spec are ignored.
///
/// `cancel` ends the run, as in [`belljar_agent::run()`].
pub async fn run_saved(
    store: &Store,
    host: &Host,
    spec: RunSpec,
    events: EventSink,
    cancel: CancellationToken,
) -> Result<SavedOutcome, SessionError> {
    let mut conversation = Conversation::for_run(&spec);
    let mut session = new_session(store, host, SessionKind::Run);
    let said = PersonContent { text: spec.task, context: spec.context };
    let of = SessionOrigin::from_conversation(&conversation);
    let brought = Some(spec.brought).filter(|brought| !brought.is_nothing());
    let begun = PersonMetadata { brought, ..conversation.turn_metadata() };
    let mut turn = session.begin_turn(&of, said, begun).await?;
    turn.state.control = spec.control;
    Ok(session.perform_turn(turn, &mut conversation, host, events, cancel).await)
}

/// Runs a team as the only turn of a new session with the run's id. Each agent is stored from the beginning
/// of its stage on, so that no ended agent is lost when the process dies. An error means that nothing ran.
///
/// `cancel` ends the run, as in [`belljar_agent::run_team`].
pub async fn run_team_saved(
    store: &Store,
    host: &Host,
    spec: TeamSpec,
    events: EventSink,
    cancel: CancellationToken,
) -> Result<SavedOutcome<TeamOutcome>, SessionError> {
    let mut session = new_session(store, host, SessionKind::Team);
    let turn = session.say_team(&spec).await?;
    Ok(session.perform_team(turn, spec, host, events, cancel).await)
}

impl SavedSession {
    /// Like [`SavedSession::run_turn`], with the caller's input besides text, for example a called command.
    pub async fn run_turn_with(
        &mut self,
        conversation: &mut Conversation,
        host: &Host,
        (text, brought): (&str, CallerInput),
        events: EventSink,
        cancel: CancellationToken,
    ) -> Result<SavedOutcome, SessionError> {
        let words = TurnInput { text: text.to_owned(), brought, ..TurnInput::default() };
        let turn = self.say_with(conversation, words).await?;
        Ok(self.perform_turn(turn, conversation, host, events, cancel).await)
    }

    /// Saves the task of a team, and the placeholder of the answer, as [`SavedSession::store_message`] does.
    pub(crate) async fn say_team(
        &mut self,
        spec: &TeamSpec,
    ) -> Result<Turn<OpenState>, SessionError> {
        let of = SessionOrigin {
            agent: spec.team.id.to_string(),
            workspace: &spec.workspace,
            model: spec.model.as_deref(),
        };
        let said = PersonContent { text: spec.task.clone(), context: None };
        let begun = PersonMetadata {
            actor: None,
            limits: Some(spec.limits),
            partial: Some(false),
            history: Some(HistoryMode::default()),
            ..PersonMetadata::default()
        };
        self.begin_turn(&of, said, begun).await
    }

    /// Runs the stored turn of a team. The result replaces the placeholder.
    pub(crate) async fn perform_team(
        &mut self,
        mut turn: Turn<OpenState>,
        spec: TeamSpec,
        host: &Host,
        events: EventSink,
        cancel: CancellationToken,
    ) -> SavedOutcome<TeamOutcome> {
        let journal = self.record_turn(&mut turn, host);
        let (name, layers) = (spec.team.id.slug.to_string(), self.session_layers(host));
        let spec = TeamSpec { layers: layers.clone(), ..spec };
        let (run, events) = (turn.run.clone(), journal.joined_sink(events));
        let outcome = run_team_as(&journal.journaled_host(host), spec, run, events, cancel).await;
        if let Some(layers) = layers {
            layers.close_for(&host.owner_of_overlays()).await;
        }
        let whole = outcome.to_outcome();
        // The message for an agent that continues this session later.
        let noted = ChatMessage::from_assistant(frame::NOTED);
        let added =
            [ChatMessage::from_user(frame::side_run_message(&name, turn.text(), &whole)), noted];
        let unsaved = self.conclude_turn(&journal, &whole, &added).await;
        SavedOutcome { outcome, unsaved }
    }
}

/// Deletes the oldest ended runs until `keep` are left, and returns the number of deleted runs. Conversations
/// are never deleted, nor runs that are open, running or were resumed. Files that agents handed over stay,
/// because a person owns the copies.
pub async fn prune_runs(store: &Store, keep: u64) -> Result<u64, StoreError> {
    let locks = locks_directory(store);
    let mut deleted = 0;
    for id in store.runs_past(keep).await? {
        // The lock keeps other processes from resuming the run meanwhile. A run that cannot be locked is not
        // deleted.
        let Ok(Some(_lock)) = SessionLock::try_lock(&locks, &id) else { continue };
        deleted += u64::from(store.delete_run(&id).await?);
    }
    if deleted > 0 {
        remove_stale_layers(store).await?;
    }
    Ok(deleted)
}

fn new_session(store: &Store, host: &Host, kind: SessionKind) -> SavedSession {
    SavedSession::new(store.clone(), Arc::clone(&host.clock)).with_kind(kind)
}
