//! One turn of a session: a person's message and everything in answer, in any state.
//!
//! ```text
//! what a person says ──> Turn<OpenState> ──perform──> the two rows ──read──> Turn<RecordedState>
//!                            └── also of a process that died, with what is persisted of it
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use belljar_agent::frame::{self, LOST};
use belljar_agent::{
    Attachment, CallerInput, Outcome, ReplayLog, RunId, StepEntry, StepKind, SubagentControl, Usage,
};
use belljar_model::{ChatMessage, Image};
use belljar_policy::LimitsRequest;
use belljar_store::{
    MessageStatus, SessionKind, Store, StoreError, StoredMessage, StoredSession, SubagentRecord,
};
use bytes::Bytes;
use jiff::Timestamp;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::record::images;
use crate::record::rows::{
    self, AgentContent, AgentMetadata, ChildResult, PersonContent, PersonMetadata, ReceiptKey,
    parse_row,
};

/// The version of the form in which a recorded turn is serialized.
pub const RECORD_VERSION: u32 = 1;

/// One turn of a session. `S` is the state: [`OpenState`] or [`RecordedState`].
#[derive(Debug, Clone)]
pub struct Turn<S = RecordedState> {
    /// The person's message.
    pub asked: String,
    /// The agent's message, to which the turn's rows belong: a placeholder until the turn ends.
    pub message: String,
    /// The id of the run: one execution of the agent for this turn, with its subagents.
    pub run: RunId,
    /// [`OpenState`]: the turn can still run. [`RecordedState`]: read from the store with its outcome.
    pub state: S,
    pub(crate) said: PersonContent,
    pub(crate) begun: PersonMetadata,
}

/// The state of a stored, unfinished turn. Its holder may run the turn: from the beginning, or from the step
/// at which the process died.
#[derive(Debug, Default)]
pub struct OpenState {
    /// Cancels single subagents of the turn.
    pub control: Arc<SubagentControl>,
    /// The steps that were stored before an earlier process died; `None` = a new turn.
    pub(crate) replay: Option<ReplayLog>,
    /// The number of the turn's next event.
    pub(crate) first_event: u64,
    /// The records of the subagents that the dead process had started.
    pub(crate) before: Vec<SubagentRecord>,
    /// The keys of the receipts that are stored already.
    pub(crate) receipts: HashSet<ReceiptKey>,
}

/// The state of a stored turn.
#[derive(Debug, Clone)]
pub struct RecordedState {
    /// The session.
    pub session: Arc<StoredSession>,
    /// The status: `in_flight` while a process runs the turn, `interrupted` when the process has died;
    /// otherwise the turn's ending.
    pub status: MessageStatus,
    /// The outcome, with the messages added to the conversation. For an unfinished turn, the known part, with
    /// the status `cancelled`.
    pub outcome: Outcome,
    /// The position of the agent's message in the session's order.
    pub(crate) place: i64,
}

impl<S> Turn<S> {
    /// The person's text.
    pub fn text(&self) -> &str {
        &self.said.text
    }

    /// The caller's context for the model, beside the text.
    pub fn context(&self) -> Option<&str> {
        self.said.context.as_deref()
    }

    /// Returns whether a blocked agent runs with its remaining tools.
    pub fn is_partial(&self) -> bool {
        self.begun.partial.unwrap_or_default()
    }

    /// The caller's input besides text.
    pub fn brought_input(&self) -> CallerInput {
        self.begun.brought.clone().unwrap_or_default()
    }

    /// Returns whether the session is deleted when the turn has ended.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.begun.forget
    }

    /// The note that the turn's entrance stored for itself.
    pub fn entrance_note(&self) -> Option<&Value> {
        self.begun.entrance.as_ref()
    }

    /// The caller who began the turn, as in the audit log, for example `key:<id>`.
    pub fn actor(&self) -> Option<&str> {
        self.begun.actor.as_deref()
    }

    /// The caller's limits for the turn; the grants' limits hold as well.
    pub fn limits(&self) -> LimitsRequest {
        self.begun.limits.unwrap_or_default()
    }
}

impl Turn<OpenState> {
    /// A new turn. The run has the id of the agent's message.
    pub(crate) fn new(
        asked: String,
        message: String,
        said: PersonContent,
        begun: PersonMetadata,
    ) -> Self {
        let (run, state) = (message.clone().into(), OpenState::default());
        Self { asked, message, run, state, said, begun }
    }

    /// Finds the session's interrupted turn: the placeholder of an answer, with the journal stored so far. A
    /// session has at most one.
    pub(crate) async fn find_interrupted(
        store: &Store,
        session: &str,
        messages: &[StoredMessage],
        subagents: &[SubagentRecord],
        last_event: i64,
    ) -> Result<Option<Self>, StoreError> {
        let place = messages.iter().position(|one| one.status == MessageStatus::InFlight);
        let Some(place) = place else { return Ok(None) };
        let (Some(row), Some(asked)) =
            (messages.get(place), place.checked_sub(1).and_then(|before| messages.get(before)))
        else {
            return Ok(None);
        };
        let known = AgentMetadata::deserialize(&row.metadata);
        // Older versions of belljar stored a placeholder without the data to resume it.
        let (Ok(AgentMetadata { run: Some(run), .. }), Ok(said)) =
            (known, PersonContent::deserialize(&asked.content))
        else {
            return Ok(None);
        };
        let mut entries = Vec::new();
        for entry in store.journal_of(session, &row.id).await? {
            entries.push(rows::step_entry(store, &row.id, entry)?);
        }
        with_files(store, session, &row.id, &mut entries).await?;
        let mut begun = PersonMetadata::deserialize(&asked.metadata).unwrap_or_default();
        let brought = begun.brought.iter_mut().flat_map(CallerInput::all_images_mut);
        images::restore_images(store, session, brought).await?;
        let of_turn = subagents.iter().filter(|one| one.parent_message_id == row.id);
        Ok(Some(Self {
            asked: asked.id.clone(),
            message: row.id.clone(),
            run,
            said,
            begun,
            state: OpenState {
                before: of_turn.cloned().collect(),
                receipts: entries
                    .iter()
                    .filter_map(rows::receipt_of)
                    .map(rows::receipt_key)
                    .collect(),
                replay: Some(ReplayLog::from_entries(entries)),
                first_event: next_event(store, session, &row.id, last_event).await?,
                control: Arc::default(),
            },
        }))
    }
}

impl Turn {
    /// Makes a turn from its two rows; `known` is the metadata of the agent's row. Receipts and children are
    /// not read. If `known` has no total usage, the sum of `subagents` is used.
    pub(crate) fn from_rows(
        store: &Store,
        session: &Arc<StoredSession>,
        asked: Option<&StoredMessage>,
        answer: &StoredMessage,
        known: AgentMetadata,
        subagents: &[&SubagentRecord],
    ) -> Result<Self, StoreError> {
        let said: PersonContent = match asked {
            Some(asked) => parse_row(store, &asked.id, &asked.content)?,
            None => PersonContent::default(),
        };
        let begun = asked.map(|asked| PersonMetadata::deserialize(&asked.metadata));
        let content: AgentContent = parse_row(store, &answer.id, &answer.content)?;
        let run = known.run.unwrap_or_else(|| answer.id.clone().into());
        let rest = known.rest.unwrap_or_default();
        let time = |at| Timestamp::from_millisecond(at).unwrap_or_default();
        let outcome = Outcome {
            status: rows::outcome_status(answer.status),
            output: content.text,
            messages: content.messages.unwrap_or_else(|| lost_turn_messages(&said.text, subagents)),
            calls: content.calls,
            error: rest.error,
            attachments: rest.attachments,
            usage: known.usage.unwrap_or_default(),
            total: known.total.unwrap_or_else(|| subagents_usage(subagents)),
            merged: Vec::new(),
            findings: None,
            receipts: Vec::new(),
            children: Vec::new(),
            warnings: rest.warnings,
            unfinished: rest.unfinished,
            run: run.clone(),
            agent: known.agent.unwrap_or_else(|| match session.kind {
                SessionKind::Team => format!("team {}", session.agent),
                SessionKind::Chat | SessionKind::Run | SessionKind::Api => session.agent.clone(),
            }),
            model: known.model.unwrap_or_default(),
            started: rest.started.unwrap_or_else(|| time(answer.created)),
            ended: rest.ended.unwrap_or_else(|| time(answer.updated)),
        };
        Ok(Self {
            asked: asked.map(|asked| asked.id.clone()).unwrap_or_default(),
            message: answer.id.clone(),
            run,
            said,
            begun: begun.and_then(Result::ok).unwrap_or_default(),
            state: RecordedState {
                session: Arc::clone(session),
                status: answer.status,
                outcome,
                place: answer.sort_order,
            },
        })
    }

    /// The images of the turn, mutable so that their bytes can be restored.
    pub(crate) fn images_mut(&mut self) -> impl Iterator<Item = &mut Image> {
        let brought = self.begun.brought.iter_mut().flat_map(CallerInput::all_images_mut);
        brought.chain(self.state.outcome.messages.iter_mut().flat_map(ChatMessage::images_mut))
    }

    /// The messages that the turn added to the conversation.
    pub(crate) fn messages(&self) -> &[ChatMessage] {
        &self.state.outcome.messages
    }
}

/// The form of `belljar receipts --json`. Holds no secrets: the sandbox redacts outputs and receipts.
impl Serialize for Turn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RecordedState { session, status, outcome, .. } = &self.state;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", &RECORD_VERSION)?;
        map.serialize_entry("id", &self.run)?;
        map.serialize_entry("session", &session.id)?;
        map.serialize_entry("kind", &session.kind)?;
        map.serialize_entry("status", status)?;
        map.serialize_entry("task", self.text())?;
        if let Some(context) = self.context() {
            map.serialize_entry("context", context)?;
        }
        map.serialize_entry("workspace", &session.workspace)?;
        map.serialize_entry("outcome", outcome)?;
        map.end()
    }
}

/// The messages of an interrupted turn: a note that its answer was lost, and the conclusions of its
/// subagents.
fn lost_turn_messages(asked: &str, subagents: &[&SubagentRecord]) -> Vec<ChatMessage> {
    let mut text = LOST.to_owned();
    for subagent in rows::top_subagents(subagents) {
        let output = ChildResult::from_record(subagent).output.unwrap_or_default();
        let status = subagent.status.as_str();
        text.push('\n');
        text.push_str(&frame::kept_conclusion(&subagent.display_name, status, &output));
    }
    vec![ChatMessage::from_user(asked), ChatMessage::from_assistant(text)]
}

/// The total usage of the subagents of an interrupted turn.
fn subagents_usage(subagents: &[&SubagentRecord]) -> Usage {
    let mut used = Usage::default();
    for subagent in rows::top_subagents(subagents) {
        // A subagent that did not end has no total.
        used += ChildResult::from_record(subagent).total.unwrap_or_default();
    }
    used
}

/// Adds the contents of files, which are stored in separate rows, to the results in the journal.
async fn with_files(
    store: &Store,
    session: &str,
    message: &str,
    entries: &mut [StepEntry],
) -> Result<(), StoreError> {
    let files = entries.iter_mut().flat_map(|entry| match &mut entry.kind {
        StepKind::Result(result) => result.attachments.iter_mut(),
        StepKind::Said { .. }
        | StepKind::Begun { .. }
        | StepKind::Child { .. }
        | StepKind::Written(_)
        | StepKind::Muted { .. } => [].iter_mut(),
    });
    let mut files: Vec<_> = files.collect();
    if files.is_empty() {
        return Ok(());
    }
    let stored = store.latest_attachments(session).await?;
    for stored in stored.into_iter().filter(|stored| stored.message == message) {
        let is = |file: &&mut &mut Attachment| {
            file.data.is_empty()
                && Some(&file.call_id) == stored.call_id.as_ref()
                && file.name == stored.name
        };
        if let Some(file) = files.iter_mut().find(is) {
            let (_, data) = store.read_attachment(session, &stored.id).await?;
            file.data = Bytes::from(data);
        }
    }
    Ok(())
}

/// The number of the run's next event: one more than the last stored event's. `last` = the id of the
/// session's last event.
async fn next_event(
    store: &Store,
    session: &str,
    message: &str,
    last: i64,
) -> Result<u64, StoreError> {
    #[derive(Deserialize)]
    struct NumberedEvent {
        seq: u64,
    }
    let stored = store.events_after(session, last.saturating_sub(1), 1).await?;
    let of_turn = stored.iter().find(|event| *event.message == *message);
    let number = of_turn.and_then(|event| serde_json::from_str::<NumberedEvent>(&event.json).ok());
    Ok(number.map_or(0, |event| event.seq.saturating_add(1)))
}
