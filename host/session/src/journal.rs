//! Joins a [`Conversation`] with a [`Store`]: what a person says is on disk before it is
//! acted on, and what came of it replaces a placeholder that was there before the run.
//!
//! | row | content | metadata |
//! | --- | --- | --- |
//! | a person's message | `text` | |
//! | the agent's turn | `text` (the conclusion), `messages` (all that the turn added to the conversation, the person's message as it was sent included) | `run`, `agent`, `model`, `error`, `usage`, `total`, `subagents` |
//!
//! The id of the agent's row is made before the run; subagents hang off it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_model::Message;
use belljar_policy::Shown;
use belljar_store::{
    Finished, MessageStatus, NewMessage, NewSession, Role, Source, Store, StoreError,
    StoredMessage, StoredSession, SubagentRecord, SubagentStatus,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, RunId};
use crate::conversation::{Conversation, Turn};
use crate::events::EventSink;
use crate::frame::LOST;
use crate::held::Held;
use crate::host::Host;
use crate::outcome::{ChildSummary, Outcome, Status, Usage};
use crate::run::RunSpec;

/// Characters of a session's title: the beginning of what was said first.
const MAX_TITLE: usize = 80;

/// Characters of a subagent's conclusion in its summary.
const MAX_SUMMARY: usize = 400;

/// A session on disk that turns are added to.
pub struct Journal {
    store: Store,
    clock: Arc<dyn Clock>,
    open: Option<Open>,
}

/// A session that exists and that this process has to itself.
struct Open {
    session: String,
    _held: Held,
}

/// What is known of a session that is gone on with.
#[derive(Debug)]
pub struct Past {
    /// The session.
    pub session: StoredSession,
    /// Its turns, the oldest first.
    pub turns: Vec<PastTurn>,
    /// What the model is sent of them.
    pub messages: Vec<Message>,
    /// What they used.
    pub used: Usage,
}

/// One turn of the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastTurn {
    /// What the person said.
    pub asked: String,
    /// What the agent concluded. Foreign text.
    pub answer: String,
    /// How it ended.
    pub status: MessageStatus,
    /// Why it did not complete.
    pub error: Option<String>,
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

/// The content of an agent's row.
#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    text: String,
    #[serde(default)]
    messages: Option<Vec<Message>>,
}

/// The metadata of an agent's row, as far as they are read again.
#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    total: Usage,
    #[serde(default)]
    error: Option<String>,
}

impl Journal {
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
        let rows = journal.store.messages(&session.id).await?;
        let past = past(&journal.store, session, rows)?;
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
        let rows = [
            row(self.new_id(), Role::User, MessageStatus::Completed, json!({"text": text})),
            row(message.clone(), Role::Assistant, MessageStatus::InFlight, json!({"text": ""})),
        ];
        self.store.append_messages(&session, &rows).await?;
        let turn = conversation.turn(host, text, events, cancel).await;
        let unsaved = self.finish(&session, &message, &turn).await.err();
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
        let records = self.subagents(&message, outcome, now);
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
        let rows = [
            row(self.new_id(), Role::User, json!({"text": asked}), json!({})),
            row(message, Role::Assistant, answer, metadata(outcome, &records)),
        ];
        self.store.append_messages(&session, &rows).await?;
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
    async fn finish(&self, session: &str, message: &str, turn: &Turn) -> Result<(), StoreError> {
        let outcome = &turn.outcome;
        let now = self.now();
        let records = self.subagents(message, outcome, now);
        let finished = Finished {
            status: message_status(outcome.status),
            content: json!({"text": outcome.output, "messages": turn.added}),
            metadata: metadata(outcome, &records),
            updated: now,
        };
        self.store.finish_message(session, message, &finished).await?;
        self.store.record_subagents(session, &records).await
    }

    /// Every subagent of a turn, parents before their children.
    fn subagents(&self, message: &str, outcome: &Outcome, now: i64) -> Vec<SubagentRecord> {
        let mut records = Vec::new();
        // Outcome of the parent, its record's id, its depth.
        let mut parents: Vec<(&Outcome, Option<String>, i64)> = vec![(outcome, None, 0)];
        while let Some((parent, parent_id, depth)) = parents.pop() {
            for child in &parent.children {
                let id = self.new_id();
                let place = records.len() as i64;
                let mut record = record(child, &id, message, place, now);
                record.parent_agent.clone_from(&parent.agent);
                record.parent_subagent_id.clone_from(&parent_id);
                record.depth = depth + 1;
                records.push(record);
                parents.push((&child.outcome, Some(id), depth + 1));
            }
        }
        records
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

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("session", &self.session()).finish_non_exhaustive()
    }
}

fn metadata(outcome: &Outcome, records: &[SubagentRecord]) -> Value {
    let ended = |status| records.iter().filter(|record| record.status == status).count();
    json!({
        "run": outcome.run,
        "agent": outcome.agent,
        "model": outcome.model,
        "error": outcome.error.as_ref().map(ToString::to_string),
        "usage": outcome.usage,
        "total": outcome.total,
        "subagents": {
            "total": records.len(),
            "queued": 0,
            "running": 0,
            "completed": ended(SubagentStatus::Completed),
            "partial": ended(SubagentStatus::Partial),
            "failed": ended(SubagentStatus::Failed),
            "cancelled": ended(SubagentStatus::Cancelled),
        },
    })
}

fn record(child: &ChildSummary, id: &str, message: &str, place: i64, now: i64) -> SubagentRecord {
    let outcome = &child.outcome;
    let mut tool_names: Vec<String> =
        outcome.receipts.iter().map(|receipt| receipt.tool.clone()).collect();
    tool_names.sort_unstable();
    tool_names.dedup();
    let name = outcome.agent.rsplit('/').next().unwrap_or_default();
    SubagentRecord {
        id: id.to_owned(),
        parent_message_id: message.to_owned(),
        parent_tool_call_id: child.call_id.clone(),
        parent_agent: String::new(),
        parent_subagent_id: None,
        depth: 1,
        chain_id: outcome.run.to_string(),
        source: Source::Preset,
        agent: outcome.agent.clone(),
        display_name: format!("{name}#{}", child.spawn_index),
        goal: child.task.clone(),
        context: child.context.clone(),
        status: subagent_status(outcome.status),
        model: outcome.model.clone(),
        tool_names,
        summary: outcome.output.chars().take(MAX_SUMMARY).collect(),
        result: json!({
            "output": outcome.output,
            "step": child.step,
            "usage": outcome.usage,
            "paths_read": outcome.paths_read(),
            "paths_written": outcome.paths_written(),
            "warnings": outcome.warnings,
        }),
        error: outcome.error.as_ref().map(ToString::to_string),
        input_tokens: column(outcome.total.input_tokens),
        cached_tokens: column(outcome.total.cached_tokens),
        output_tokens: column(outcome.total.output_tokens),
        fuel: column(outcome.total.fuel),
        sort_order: place,
        created: now,
        started: Some(outcome.started.as_millisecond()),
        ended: Some(outcome.ended.as_millisecond()),
    }
}

fn column(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

fn message_status(status: Status) -> MessageStatus {
    match status {
        Status::Completed => MessageStatus::Completed,
        Status::Partial => MessageStatus::Partial,
        Status::Failed => MessageStatus::Failed,
        Status::Cancelled => MessageStatus::Cancelled,
    }
}

fn subagent_status(status: Status) -> SubagentStatus {
    match status {
        Status::Completed => SubagentStatus::Completed,
        Status::Partial => SubagentStatus::Partial,
        Status::Failed => SubagentStatus::Failed,
        Status::Cancelled => SubagentStatus::Cancelled,
    }
}

/// The turns of a session, and what the model is sent of them.
fn past(
    store: &Store,
    session: StoredSession,
    rows: Vec<StoredMessage>,
) -> Result<Past, StoreError> {
    let mut past =
        Past { session, turns: Vec::new(), messages: Vec::new(), used: Usage::default() };
    let mut asked = String::new();
    for row in rows {
        let bad = |error: serde_json::Error| StoreError::Row {
            what: format!("message `{}`", Shown::clipped(&row.id, 64)),
            path: store.path().to_owned(),
            why: error.to_string(),
        };
        let content: Content = serde_json::from_value(row.content).map_err(bad)?;
        match row.role {
            Role::User => asked = content.text,
            Role::Assistant => {
                let metadata: Metadata = serde_json::from_value(row.metadata).map_err(bad)?;
                let asked = std::mem::take(&mut asked);
                past.messages.extend(content.messages.unwrap_or_else(|| lost(&asked)));
                past.used += metadata.total;
                past.turns.push(PastTurn {
                    asked,
                    answer: content.text,
                    status: row.status,
                    error: metadata.error,
                });
            }
        }
    }
    Ok(past)
}

/// What the model is told of a turn whose result was never saved.
fn lost(asked: &str) -> Vec<Message> {
    vec![
        Message::User { text: asked.to_owned() },
        Message::Assistant { text: LOST.to_owned(), calls: Vec::new() },
    ]
}
