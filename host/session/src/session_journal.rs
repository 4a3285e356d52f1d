//! Joins a [`Conversation`] with a [`Store`]: what a person says is on disk before it is
//! acted on, and what came of it replaces a placeholder that was there before the run.
//!
//! `rows` says what stands in each row. The id of the agent's row is made before the run;
//! subagents hang off it, and `recorder` writes them while the turn runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_store::{Finished, MessageStatus, NewMessage, NewSession, Role, Store, StoreError};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, RunId};
use crate::conversation::{Conversation, Turn};
use crate::events::EventSink;
use crate::held::Held;
use crate::host::Host;
use crate::journal::Journal;
use crate::outcome::Outcome;
use crate::recorder::Recorder;
use crate::rows::{self, Past};
use crate::run::RunSpec;

/// Characters of a session's title: the beginning of what was said first.
const MAX_TITLE: usize = 80;

/// A session on disk that turns are added to.
pub struct SessionJournal {
    store: Store,
    clock: Arc<dyn Clock>,
    open: Option<Open>,
}

/// A session that exists and that this process has to itself.
struct Open {
    session: String,
    _held: Held,
}

/// A turn that was run.
#[derive(Debug)]
pub struct SavedTurn {
    /// The turn.
    pub turn: Turn,
    /// Why its result is not on disk, should it not be.
    pub unsaved: Option<StoreError>,
}

/// Why a session cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process has it open.
    #[error("session `{0}` is open in another process")]
    Held(String),
    /// The session's lock cannot be used.
    #[error("failed to lock session `{session}` in `{}`: {source}", dir.display())]
    Lock {
        /// The session.
        session: String,
        /// Where the lock would be.
        dir: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// No session was begun in this workspace.
    #[error("there is no session of this workspace yet")]
    Nothing,
}

impl SessionJournal {
    /// A journal whose session begins with its first turn: one that is left before that
    /// leaves nothing behind.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, open: None }
    }

    /// Goes on with a session: the one that `which` names by its id or the beginning of it,
    /// else the latest of this workspace. A turn that a process died in is marked as
    /// interrupted.
    pub async fn resume(
        store: Store,
        clock: Arc<dyn Clock>,
        which: Option<&str>,
        workspace: &Path,
    ) -> Result<(Self, Past), JournalError> {
        let session = match which {
            Some(prefix) => store.find_session(prefix).await?,
            None => {
                let latest = store.latest_session(&workspace.to_string_lossy()).await?;
                latest.ok_or(JournalError::Nothing)?
            }
        };
        let mut journal = Self { store, clock, open: None };
        journal.hold(session.id.clone())?;
        // Nobody else has the session, so nobody works on these any more.
        journal.store.interrupt_in_flight(&session.id, journal.now()).await?;
        let messages = journal.store.messages(&session.id).await?;
        let subagents = journal.store.subagents(&session.id).await?;
        let past = rows::past(&journal.store, session, messages, &subagents)?;
        Ok((journal, past))
    }

    /// The session, once it has begun.
    pub fn session(&self) -> Option<&str> {
        self.open.as_ref().map(|open| open.session.as_str())
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Says `text` in the conversation. An error means that nothing was run, because it could
    /// not be saved first; once it runs there is always an outcome.
    pub async fn turn(
        &mut self,
        conversation: &mut Conversation,
        host: &Host,
        text: &str,
        events: EventSink,
        cancel: CancellationToken,
    ) -> Result<SavedTurn, JournalError> {
        let session = self.begin(conversation, text).await?;
        let message = self.new_id();
        let now = self.now();
        let row = |id: String, role, status, content: Value| NewMessage {
            id,
            role,
            status,
            content,
            metadata: json!({}),
            created: now,
        };
        let pair = [
            row(self.new_id(), Role::User, MessageStatus::Completed, json!({"text": text})),
            row(message.clone(), Role::Assistant, MessageStatus::InFlight, json!({"text": ""})),
        ];
        self.store.append_messages(&session, &pair).await?;
        let recorder = Recorder::new(
            self.store.clone(),
            Arc::clone(&self.clock),
            session.clone(),
            message.clone(),
            Arc::clone(&host.journal),
        );
        let mut host = host.clone();
        host.journal = Arc::clone(&recorder) as Arc<dyn Journal>;
        let turn = conversation.turn(&host, text, events, cancel).await;
        let unsaved = self.finish(&session, &message, &turn, &recorder).await.err();
        Ok(SavedTurn { turn, unsaved })
    }

    /// Tells the conversation of a run beside it, as [`Conversation::remember`] does, and saves
    /// that. What the run used counts with it.
    pub async fn remember(
        &mut self,
        conversation: &mut Conversation,
        spec: &RunSpec,
        outcome: &Outcome,
    ) -> Result<(), JournalError> {
        let asked = format!("`{}`: {}", spec.agent.id.slug, spec.task);
        let session = self.begin(conversation, &asked).await?;
        let message = self.new_id();
        let now = self.now();
        let records = rows::subagents(&message, outcome, now, || self.new_id());
        let added = conversation.remember(spec, outcome);
        let row = |id, role, content, metadata| NewMessage {
            id,
            role,
            status: MessageStatus::Completed,
            content,
            metadata,
            created: now,
        };
        let answer = json!({"text": outcome.output, "messages": added});
        let pair = [
            row(self.new_id(), Role::User, json!({"text": asked}), json!({})),
            row(message, Role::Assistant, answer, rows::metadata(outcome, &records)),
        ];
        self.store.append_messages(&session, &pair).await?;
        Ok(self.store.record_subagents(&session, &records).await?)
    }

    /// The session's id; makes the session with its first turn.
    async fn begin(
        &mut self,
        conversation: &Conversation,
        text: &str,
    ) -> Result<String, JournalError> {
        if let Some(open) = &self.open {
            return Ok(open.session.clone());
        }
        let id = self.new_id();
        let first = text.trim().lines().next().unwrap_or_default();
        let session = NewSession {
            id: id.clone(),
            title: first.chars().take(MAX_TITLE).collect(),
            agent: conversation.agent().id.to_string(),
            workspace: conversation.workspace().to_string_lossy().into_owned(),
            model: conversation.model().unwrap_or_default().to_owned(),
            created: self.now(),
        };
        self.hold(id.clone())?;
        if let Err(error) = self.store.create_session(&session).await {
            self.open = None;
            return Err(error.into());
        }
        Ok(id)
    }

    /// Puts what came of the turn in the place of its placeholder.
    async fn finish(
        &self,
        session: &str,
        message: &str,
        turn: &Turn,
        recorder: &Recorder,
    ) -> Result<(), StoreError> {
        let outcome = &turn.outcome;
        let records = recorder.finish();
        let finished = Finished {
            status: rows::message_status(outcome.status),
            content: json!({"text": outcome.output, "messages": turn.added}),
            metadata: rows::metadata(outcome, &records),
            updated: self.now(),
        };
        // Once more, for those whose own write failed.
        self.store.record_subagents(session, &records).await?;
        self.store.finish_message(session, message, &finished).await
    }

    fn hold(&mut self, session: String) -> Result<(), JournalError> {
        let dir = self.store.path().with_extension("locks");
        match Held::take(&dir, &session) {
            Ok(Some(held)) => {
                self.open = Some(Open { session, _held: held });
                Ok(())
            }
            Ok(None) => Err(JournalError::Held(session)),
            Err(source) => Err(JournalError::Lock { session, dir, source }),
        }
    }

    fn new_id(&self) -> String {
        RunId::new(&*self.clock).into()
    }

    fn now(&self) -> i64 {
        self.clock.now().as_millisecond()
    }
}

impl std::fmt::Debug for SessionJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionJournal").field("session", &self.session()).finish_non_exhaustive()
    }
}
