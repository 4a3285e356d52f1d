//! Joins a [`Conversation`] with a [`Store`]: a person's message is stored before the turn begins, and the
//! outcome replaces a placeholder stored before the run.
//!
//! `rows` defines the content of each row. The id of the agent's row is made before the run; subagents refer
//! to that id, and `turn_journal` writes their rows during the turn.

mod error;

use std::path::Path;
use std::sync::Arc;

use belljar_agent::CallerInput;
use belljar_agent::Host;
use belljar_agent::ReplayLog;
use belljar_agent::RunSpec;
use belljar_agent::events::{EventEmitter, EventSink};
use belljar_agent::{Clock, RunId};
use belljar_agent::{Outcome, Usage};
use belljar_model::{ChatMessage, ModelRole};
use belljar_overlay::SessionLayers;
use belljar_store::{
    AuditEntry, MessageStatus, NewMessage, Role, SessionKind, Store, StoreError, StoreWrite,
    StoredSession, UsagePart,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::conversation::compaction::{self, CompactProblem, CompactionInput};
use crate::conversation::fitting::{self, EndedTurn, FittingContext};
use crate::conversation::talk::Conversation;
use crate::record::event_log::EventLog;
use crate::record::hub::WatchHub;
use crate::record::images;
use crate::record::layers::TenantLayers;
use crate::record::lock::SessionLock;
use crate::record::lock::locks_directory;
use crate::record::past::SessionPast;
use crate::record::past::past_of;
use crate::record::place::TurnPlace;
use crate::record::rows::{
    self, AgentContent, AgentMetadata, PersonContent, PersonMetadata, to_row_value,
};
use crate::record::turn::{OpenState, Turn};
use crate::record::turn_journal::TurnJournal;
pub use error::SessionError;

/// The sender of messages on the command line.
const LOCAL: &str = "local";

/// Characters of a session's title, which is the beginning of the first message.
const MAX_TITLE: usize = 80;

/// A session on disk that turns are added to.
pub struct SavedSession {
    store: Store,
    clock: Arc<dyn Clock>,
    /// The watchers of the session's events.
    hub: Arc<WatchHub>,
    /// The id that the next new session gets; `None` = a generated id.
    name: Option<String>,
    /// The kind of a new session, and of a run that is resumed.
    kind: SessionKind,
    /// The sender of the messages.
    actor: String,
    /// The entrance that the audit log names for each turn, for example `http`; `None` = no audit line.
    door: Option<&'static str>,
    /// The overlays of the tenant; `None` until a turn needs them.
    layers: Option<TenantLayers>,
    open: Option<OpenSession>,
}

/// An existing session, locked by this process.
struct OpenSession {
    session: String,
    kind: SessionKind,
    /// The id of its last event.
    last_event: i64,
    /// True if the session is in the store.
    saved: bool,
    _lock: SessionLock,
}

/// The agent, workspace and model with which a session begins.
pub(crate) struct SessionOrigin<'a> {
    /// The id of the agent or the team.
    pub(crate) agent: String,
    pub(crate) workspace: &'a Path,
    /// The model that was chosen instead of the agent's own.
    pub(crate) model: Option<&'a str>,
}

/// The input of a turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct TurnInput {
    pub(crate) text: String,
    /// The context beside the text, for example facts from the caller.
    pub(crate) context: Option<String>,
    /// Input of the caller besides text: earlier messages, tools, images or results of its own tools.
    pub(crate) brought: CallerInput,
    /// A note that an entrance stores with the turn, to look the turn up later.
    pub(crate) entrance: Option<Value>,
    /// True if the session is deleted when the turn has ended.
    pub(crate) forget: bool,
}

/// A turn that was run.
#[derive(Debug)]
pub struct SavedOutcome<T = Outcome> {
    /// The outcome; for a team, a [`belljar_agent::TeamOutcome`].
    pub outcome: T,
    /// The reason why the outcome is not on disk; `None` = the outcome is stored.
    pub unsaved: Option<StoreError>,
}

impl SavedSession {
    /// Creates a session. Nothing is stored before its first turn.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            hub: Arc::default(),
            name: None,
            kind: SessionKind::Chat,
            actor: LOCAL.to_owned(),
            door: None,
            layers: None,
            open: None,
        }
    }

    /// Sets the kind of a new session. Default: a conversation. A run's first turn has the session's id.
    pub(crate) fn with_kind(mut self, kind: SessionKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the id of the session that begins with the first turn. Default: a new one.
    pub(crate) fn with_id(mut self, id: String) -> Self {
        self.name = Some(id);
        self
    }

    /// Sets the sender of later messages, for example `key:<id>`, and the entrance that their turns have in
    /// the audit log. Default: `local`, and no line there.
    pub(crate) fn set_actor(&mut self, actor: &str, door: Option<&'static str>) -> &mut Self {
        actor.clone_into(&mut self.actor);
        self.door = door;
        self
    }

    /// The id of the session's last event.
    pub(crate) fn last_event(&self) -> i64 {
        self.open.as_ref().map_or(0, |open| open.last_event)
    }

    /// Shows later events of this session's turns to the watchers of `hub`.
    pub(crate) fn watched_by(mut self, hub: Arc<WatchHub>) -> Self {
        self.hub = hub;
        self
    }

    /// Resumes a session: `which` = an id or its beginning; without `which`, the latest conversation of this
    /// workspace. An interrupted turn is returned as the past's `unfinished`, for [`SavedSession::perform_turn`]
    /// to resume.
    pub async fn find_and_resume(
        store: Store,
        clock: Arc<dyn Clock>,
        which: Option<&str>,
        workspace: &Path,
    ) -> Result<(Self, SessionPast), SessionError> {
        let session = match which {
            Some(prefix) => store.find_session(prefix).await?,
            None => {
                let latest = store.latest_session(&workspace.to_string_lossy()).await?;
                latest.ok_or(SessionError::Nothing)?
            }
        };
        Self::new(store, clock).resume_session(session).await
    }

    /// Resumes this session, as [`SavedSession::find_and_resume`] does.
    pub(crate) async fn resume_session(
        mut self,
        session: StoredSession,
    ) -> Result<(Self, SessionPast), SessionError> {
        self.lock_session(session.id.clone())?;
        let past = self.load_past(session).await?;
        Ok((self, past))
    }

    /// Marks a turn that cannot be resumed as interrupted, with a note to the model.
    pub async fn give_up(&mut self, past: SessionPast) -> Result<SessionPast, SessionError> {
        self.store.interrupt_in_flight(&past.session.id, self.now_millis()).await?;
        self.load_past(Arc::unwrap_or_clone(past.session)).await
    }

    async fn load_past(&mut self, session: StoredSession) -> Result<SessionPast, SessionError> {
        let mut messages = self.store.list_messages(&session.id).await?;
        let subagents = self.store.list_subagents(&session.id).await?;
        let last_event = self.store.last_event(&session.id).await?;
        if let Some(open) = &mut self.open {
            open.last_event = last_event;
            open.kind = session.kind;
            open.saved = true;
        }
        let unfinished =
            Turn::find_interrupted(&self.store, &session.id, &messages, &subagents, last_event)
                .await?;
        if unfinished.is_none() && messages.iter().any(|one| one.status == MessageStatus::InFlight)
        {
            // A belljar without a journal stored this turn.
            self.store.interrupt_in_flight(&session.id, self.now_millis()).await?;
            messages = self.store.list_messages(&session.id).await?;
        }
        let mut past = past_of(&self.store, session, messages, &subagents).await?;
        past.unfinished = unfinished;
        Ok(past)
    }

    /// The session's id; `None` before the first turn.
    pub fn session_id(&self) -> Option<&str> {
        self.open.as_ref().map(|open| open.session.as_str())
    }

    /// The store that holds the session.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Runs one turn of the conversation with `text`. An error means that nothing ran, because the message
    /// could not be stored; a started turn always has an outcome.
    pub async fn run_turn(
        &mut self,
        conversation: &mut Conversation,
        host: &Host,
        text: &str,
        events: EventSink,
        cancel: CancellationToken,
    ) -> Result<SavedOutcome, SessionError> {
        let turn = self.store_message(conversation, text).await?;
        Ok(self.perform_turn(turn, conversation, host, events, cancel).await)
    }

    /// Saves a person's message, and the placeholder of the answer. When this returns, both
    /// outlive the process.
    pub async fn store_message(
        &mut self,
        conversation: &Conversation,
        text: &str,
    ) -> Result<Turn<OpenState>, SessionError> {
        self.say_with(conversation, TurnInput { text: text.to_owned(), ..TurnInput::default() })
            .await
    }

    /// Like [`SavedSession::store_message`], with the caller's other input, for example images.
    pub(crate) async fn say_with(
        &mut self,
        conversation: &Conversation,
        words: TurnInput,
    ) -> Result<Turn<OpenState>, SessionError> {
        let TurnInput { text, context, brought, entrance, forget } = words;
        let said = PersonContent { text, context };
        let brought = Some(brought).filter(|brought| !brought.is_nothing());
        let begun = PersonMetadata { brought, entrance, forget, ..conversation.turn_metadata() };
        self.begin_turn(&SessionOrigin::from_conversation(conversation), said, begun).await
    }

    /// Stores a turn's messages, audit line and images. The run has the id of the agent's message.
    pub(crate) async fn begin_turn(
        &mut self,
        of: &SessionOrigin<'_>,
        said: PersonContent,
        begun: PersonMetadata,
    ) -> Result<Turn<OpenState>, SessionError> {
        let mut writes = Vec::with_capacity(3);
        let (asked, mut message) = (self.new_id(), self.new_id());
        if self.kind.is_run() && self.open.is_none() {
            message.clone_from(self.name.get_or_insert(message.clone()));
        }
        let session = self.begin_session(of, &said.text, &mut writes)?;
        let begun = PersonMetadata { actor: Some(self.actor.clone()), ..begun };
        let turn = Turn::new(asked, message, said, begun);
        let row = |id: &str, role, status, content, metadata| NewMessage {
            id: id.to_owned(),
            role,
            status,
            content,
            metadata,
            created: self.now_millis(),
        };
        let (said, begun) = (to_row_value(&turn.said), to_row_value(&turn.begun));
        let awaited = to_row_value(&AgentContent::default());
        let known = to_row_value(&AgentMetadata::for_running(&turn.run, &[]));
        let messages = vec![
            row(&turn.asked, Role::User, MessageStatus::Completed, said, begun),
            row(&turn.message, Role::Assistant, MessageStatus::InFlight, awaited, known),
        ];
        writes.push(StoreWrite::AppendMessages { session: session.clone(), messages });
        if let Some(door) = self.door {
            writes.push(StoreWrite::Audit(AuditEntry {
                id: self.new_id(),
                at: self.now_millis(),
                actor: self.actor.clone(),
                action: "chat".to_owned(),
                object: format!("session {session} message {}", turn.message),
                detail: json!({"by": door}),
            }));
        }
        if let Some(brought) = &turn.begun.brought {
            let (now, new_id) = (self.now_millis(), || self.new_id());
            let attachments =
                images::new_image_files(&self.store, &session, brought, now, new_id).await?;
            if !attachments.is_empty() {
                let message = turn.asked.clone();
                writes.push(StoreWrite::Attachments { session, message, attachments });
            }
        }
        self.commit_beginning(writes).await?;
        Ok(turn)
    }

    /// Runs a stored turn, from the beginning or from the step at which its process died. The outcome
    /// replaces the placeholder.
    pub async fn perform_turn(
        &mut self,
        mut turn: Turn<OpenState>,
        conversation: &mut Conversation,
        host: &Host,
        events: EventSink,
        cancel: CancellationToken,
    ) -> SavedOutcome {
        let journal = self.record_turn(&mut turn, host);
        let events = journal.joined_sink(events);
        let (limits, partial, mut brought) =
            (turn.limits(), turn.is_partial(), turn.brought_input());
        let Turn { run, said, state: OpenState { control, replay, mut first_event, .. }, .. } =
            turn;
        let mut used = Usage::default();
        let layers = self.session_layers(host);
        // A resumed turn has its summary and the caller's input already.
        if replay.as_ref().is_none_or(ReplayLog::is_empty) {
            if let Some(layers) = &layers {
                layers.forget_copies_for(&host.owner_of_overlays()).await;
            }
            let events = EventEmitter::new(events.clone(), run.clone(), first_event);
            let TurnPlace { store, session, .. } = &journal.place;
            let work = CompactionInput {
                host,
                store,
                session,
                conversation,
                events: &events,
                cancel: &cancel,
            };
            // The caller's results belong to the last turn's calls, which a summary would remove.
            if brought.results.is_empty() {
                let done = compaction::compact_if_due(&work).await;
                used = done.used;
                conversation.take_over(done);
            }
            first_event = events.next_number();
        }
        let before = conversation.messages().len();
        let has_brought = !brought.results.is_empty() || !brought.history.is_empty();
        conversation.append_caller_input(&brought);
        brought.history = Vec::new();
        let spec = conversation.run_spec(said.text);
        let spec = RunSpec {
            brought,
            layers: layers.clone(),
            run: Some(run),
            replay: replay.map(Arc::new),
            first_event,
            control,
            context: said.context,
            limits,
            partial: spec.partial || partial,
            ..spec
        };
        let TurnPlace { store, session, .. } = &journal.place;
        let host_of_turn = journal.journaled_host(host);
        let place = FittingContext { host: &host_of_turn, store, session, before, has_brought };
        let EndedTurn { mut outcome, used: more, before } =
            fitting::run_fitted(place, conversation, spec, events, cancel).await;
        used += more;
        outcome.total += used;
        if let Some(layers) = layers {
            layers.close_for(&host.owner_of_overlays()).await;
        }
        let added = conversation.messages().get(before..).unwrap_or_default();
        let unsaved = self.conclude_turn(&journal, &outcome, added).await;
        SavedOutcome { outcome, unsaved }
    }

    /// The overlays of the open session. The caller must close an opened overlay before the next turn.
    pub fn session_layers(&mut self, host: &Host) -> Option<SessionLayers> {
        let session = self.open.as_ref()?.session.clone();
        let (store, setting) = (&self.store, &host.settings.overlays);
        let layers = self.layers.get_or_insert_with(|| TenantLayers::find_layers(store, setting));
        Some(layers.for_session(&session))
    }

    /// Sets the overlays of a tenant with other running sessions, which share the tenant's quota.
    pub(crate) fn with_layers(mut self, layers: TenantLayers) -> Self {
        self.layers = Some(layers);
        self
    }

    /// Attaches a new journal to a turn of the open session; the journal stores the turn's events and steps.
    pub(crate) fn record_turn(&self, turn: &mut Turn<OpenState>, host: &Host) -> Arc<TurnJournal> {
        let (session, last_event) = match &self.open {
            Some(open) => (open.session.clone(), open.last_event),
            None => (String::new(), 0),
        };
        let place = TurnPlace {
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            session,
            message: turn.message.clone(),
            run: turn.run.clone(),
            actor: self.actor.clone(),
        };
        let log = EventLog::new(&place, Arc::clone(&self.hub), last_event);
        TurnJournal::new(place, log, Arc::clone(&host.journal), &mut turn.state)
    }

    /// Replaces the placeholder of a turn by the outcome; `added` are the turn's messages. Returns the error
    /// if storing failed.
    pub(crate) async fn conclude_turn(
        &mut self,
        journal: &TurnJournal,
        outcome: &Outcome,
        added: &[ChatMessage],
    ) -> Option<StoreError> {
        // Stored before the last events are shown, so that a watcher who then reads the message finds the
        // outcome.
        let finished = journal.finish_turn(outcome, added);
        let last_event = journal.log.close().await;
        if let Some(open) = &mut self.open {
            open.last_event = last_event;
        }
        finished.await.err()
    }

    /// Summarises all turns so far, whatever their size, and returns their number. Later requests contain the
    /// summary instead of the turns; the store keeps the turns.
    pub async fn compact_history(
        &mut self,
        conversation: &mut Conversation,
        host: &Host,
        events: EventSink,
        cancel: CancellationToken,
    ) -> Result<usize, CompactProblem> {
        let session = self.session_id().ok_or(CompactProblem::Nothing)?.to_owned();
        let events = EventEmitter::new(events, RunId::new(&*self.clock), 0);
        let (store, session) = (&self.store, &*session);
        let work = CompactionInput {
            host,
            store,
            session,
            conversation,
            events: &events,
            cancel: &cancel,
        };
        let mut done = compaction::compact_now(&work).await;
        let (turns, problem) = (done.turns, done.problem.take());
        let model = host.models.resolve_model(ModelRole::Compaction.name(), None);
        let used = UsagePart {
            agent: conversation.agent().id.to_string(),
            model: model.map_or_else(|_| String::new(), |model| model.model.id().to_owned()),
            row: rows::usage_beside(done.used, &*self.clock),
        };
        conversation.take_over(done);
        self.store.enqueue_writes(vec![StoreWrite::Usage(used)]).await?;
        problem.map_or(Ok(turns), Err)
    }

    /// Adds a separate run to the conversation, without a request to the model, and stores both. The usage
    /// counts in the run itself.
    pub async fn store_run(
        &mut self,
        conversation: &mut Conversation,
        spec: &RunSpec,
        outcome: &Outcome,
    ) -> Result<(), SessionError> {
        let asked = format!("`{}`: {}", spec.agent.id.slug, spec.task);
        let mut writes = Vec::with_capacity(3);
        let session = self.begin_session(
            &SessionOrigin::from_conversation(conversation),
            &asked,
            &mut writes,
        )?;
        let message = self.new_id();
        let now = self.now_millis();
        let records = rows::new_records(&message, outcome, now, || self.new_id());
        let added = conversation.add_run(spec, outcome);
        let row = |id, role, content, metadata| NewMessage {
            id,
            role,
            status: MessageStatus::Completed,
            content,
            metadata,
            created: now,
        };
        let answer = to_row_value(&AgentContent::from_outcome(outcome, &added));
        let known = to_row_value(&AgentMetadata::from_outcome(outcome, &records));
        let begun = to_row_value(&PersonMetadata::default());
        let asked = to_row_value(&PersonContent { text: asked, context: None });
        let messages = vec![
            row(self.new_id(), Role::User, asked, begun),
            row(message, Role::Assistant, answer, known),
        ];
        writes.push(StoreWrite::AppendMessages { session: session.clone(), messages });
        writes.push(StoreWrite::Subagents { session, records });
        self.commit_beginning(writes).await
    }

    /// Returns the session's id. The first turn also makes the session, and a second turn makes a run into a
    /// conversation.
    fn begin_session(
        &mut self,
        of: &SessionOrigin<'_>,
        text: &str,
        writes: &mut Vec<StoreWrite>,
    ) -> Result<String, SessionError> {
        if let Some(open) = &mut self.open {
            let session = open.session.clone();
            if open.kind.is_run() && !self.kind.is_run() {
                open.kind = self.kind;
                writes.push(StoreWrite::SessionKind { session: session.clone(), kind: self.kind });
            }
            return Ok(session);
        }
        let id = self.name.clone().unwrap_or_else(|| self.new_id());
        let first = text.trim().lines().next().unwrap_or_default();
        let session = StoredSession {
            id: id.clone(),
            title: first.chars().take(MAX_TITLE).collect(),
            agent: of.agent.clone(),
            workspace: of.workspace.to_string_lossy().into_owned(),
            model: of.model.unwrap_or_default().to_owned(),
            kind: self.kind,
            created: self.now_millis(),
            updated: self.now_millis(),
        };
        self.lock_session(id.clone())?;
        writes.push(StoreWrite::CreateSession(session));
        Ok(id)
    }

    /// Stores the beginning of a turn. If storing a new session fails, the session is closed.
    async fn commit_beginning(&mut self, writes: Vec<StoreWrite>) -> Result<(), SessionError> {
        let done = self.store.enqueue_writes(writes).await;
        match &mut self.open {
            Some(open) if done.is_ok() => open.saved = true,
            Some(open) if !open.saved => self.open = None,
            Some(_) | None => {}
        }
        Ok(done?)
    }

    fn lock_session(&mut self, session: String) -> Result<(), SessionError> {
        let dir = locks_directory(&self.store);
        match SessionLock::try_lock(&dir, &session) {
            Ok(Some(lock)) => {
                let kind = self.kind;
                self.open =
                    Some(OpenSession { session, kind, last_event: 0, saved: false, _lock: lock });
                Ok(())
            }
            Ok(None) => Err(SessionError::Locked(session)),
            Err(source) => Err(SessionError::Lock { session, dir, source }),
        }
    }

    fn new_id(&self) -> String {
        RunId::new(&*self.clock).into()
    }

    fn now_millis(&self) -> i64 {
        self.clock.now().as_millisecond()
    }
}

impl<'a> SessionOrigin<'a> {
    pub(crate) fn from_conversation(conversation: &'a Conversation) -> Self {
        Self {
            agent: conversation.agent().id.to_string(),
            workspace: conversation.workspace(),
            model: conversation.model(),
        }
    }
}

impl std::fmt::Debug for SavedSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SavedSession").field("session", &self.session_id()).finish_non_exhaustive()
    }
}
