//! A run as it stands in the store, put together again: the outcome with its subagents and
//! receipts, of one that has ended as well as of one whose process died.

use std::collections::HashMap;
use std::path::PathBuf;

use belljar_policy::Shown;
use belljar_store::{
    MessageStatus, SessionKind, Source, Store, StoreError, StoredReceipt, StoredTurn,
    SubagentRecord, SubagentStatus, Write,
};
use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::record::lock;
use crate::record::lock::locks;
use crate::record::rows::{self, AgentContent, AgentMetadata, ChildResult, PersonContent, PutFile};
use belljar_agent::ChildOrigin;
use belljar_agent::RunId;
use belljar_agent::StepKind;
use belljar_agent::{
    Attachment, CallReceipt, ChildSummary, Outcome, RunError, RunStatus as Status, Usage,
};

/// The version of the form of [`RunRecord`].
pub const RECORD_VERSION: u32 = 1;

/// Turns that are read at once.
const PAGE: u32 = 100;

/// A run as it is stored: one turn of a session. Holds no secrets: the sandbox keeps their values
/// out of outputs and receipts.
#[derive(Debug, Clone, Serialize)]
pub struct RunRecord {
    /// [`RECORD_VERSION`].
    pub version: u32,
    /// The run.
    pub id: RunId,
    /// Its session: of the same id, unless it is a turn of a conversation.
    pub session: String,
    /// What the session is.
    pub kind: SessionKind,
    /// How far it is: `in_flight` while a process works on it, `interrupted` when that has died;
    /// else how it ended.
    pub status: MessageStatus,
    /// The task, as it was given.
    pub task: String,
    /// The context, as it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The workspace.
    pub workspace: PathBuf,
    /// All that came of it: agent, model, output, receipts, subagents. Of one that has not ended
    /// it is what is known so far, with the status `cancelled`.
    pub outcome: Outcome,
}

impl RunRecord {
    /// The newest runs, at most `most`, the newest first, without their receipts and subagents;
    /// and whether there are more.
    pub async fn newest(store: &Store, most: usize) -> Result<(Vec<Self>, bool), StoreError> {
        let mut runs = Vec::new();
        let mut before: Option<String> = None;
        loop {
            let page = store.turns(before.as_deref(), PAGE).await?;
            let Some(last) = page.last() else { return Ok((runs, false)) };
            before = Some(last.answer.id.clone());
            for turn in page {
                // A run beside a conversation that the person wanted remembered has a message
                // there too.
                let known: AgentMetadata = read(store, "a message", &turn.answer.metadata)?;
                if known.run.is_none_or(|run| run.as_str() != turn.answer.id) {
                    continue;
                }
                if runs.len() == most {
                    return Ok((runs, true));
                }
                runs.push(Self::of(store, turn, false).await?);
            }
        }
    }

    /// A run by its id or the beginning of it; a session stands for its last turn. `latest` = the
    /// newest run.
    pub async fn find(store: &Store, which: &str) -> Result<Self, StoreError> {
        let turn = match store.find_turn(which).await {
            Err(StoreError::NotFound { .. }) if which == "latest" => {
                let (newest, _) = Self::newest(store, 1).await?;
                let none = || StoreError::NotFound { what: "run", id: which.to_owned() };
                let newest = newest.into_iter().next().ok_or_else(none)?;
                store.turn(&newest.session, newest.id.as_str()).await
            }
            Err(StoreError::NotFound { what, id }) => match store.find_session(which).await {
                Ok(session) => {
                    let turn = store.latest_turn(&session.id).await?;
                    turn.ok_or(StoreError::NotFound { what, id })
                }
                Err(StoreError::NotFound { .. }) => Err(StoreError::NotFound { what, id }),
                Err(error) => Err(error),
            },
            Err(error @ StoreError::Ambiguous { .. }) => match store.latest_turn(which).await? {
                Some(turn) => Ok(turn),
                None => Err(error),
            },
            found => found,
        };
        Self::of(store, turn?, true).await
    }

    /// A turn as a run; `whole` = with receipts and subagents.
    async fn of(store: &Store, turn: StoredTurn, whole: bool) -> Result<Self, StoreError> {
        let StoredTurn { session, asked, answer } = turn;
        let said: PersonContent = match &asked {
            Some(asked) => read(store, "a message", &asked.content)?,
            None => PersonContent::default(),
        };
        let text: AgentContent<IgnoredAny> = read(store, "a message", &answer.content)?;
        let known: AgentMetadata = read(store, "a message", &answer.metadata)?;
        let status = shown_status(store, &session.id, answer.status);
        // Of one that has not ended, what it used stands in what belongs to it.
        let whole = whole || known.total.is_none();
        let (mut receipts, mut records) = (HashMap::new(), Vec::new());
        if whole {
            receipts = calls(store, store.receipts_of_turn(&session.id, &answer.id).await?)?;
            records = store.subagents(&session.id).await?;
            records.retain(|record| record.parent_message_id == answer.id);
        }
        let run = known.run.unwrap_or_else(|| answer.id.clone().into());
        let mut tree = Tree { store, run: &run, by_parent: by_parent(records), receipts };
        let children = tree.below(None)?;
        // What no subagent has made is the agent's own.
        let receipts: Vec<CallReceipt> = tree.receipts.into_values().flatten().collect();
        let agent = known.agent.unwrap_or_else(|| match session.kind {
            SessionKind::Team => format!("team {}", session.agent),
            SessionKind::Chat | SessionKind::Run | SessionKind::Api => session.agent.clone(),
        });
        let (usage, total) = match known.total {
            Some(total) => (known.usage.unwrap_or_default(), total),
            None => so_far(store, &session.id, &answer.id, &receipts, &children).await?,
        };
        let rest = known.rest.unwrap_or_default();
        let time = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap_or_default();
        let mut outcome = Outcome {
            status: outcome_status(answer.status),
            output: text.text,
            messages: Vec::new(),
            error: rest.error,
            attachments: rest.attachments,
            usage,
            total,
            findings: None,
            receipts,
            children,
            warnings: rest.warnings,
            unfinished: rest.unfinished,
            run: run.clone(),
            agent,
            model: known.model.unwrap_or_default(),
            started: rest.started.unwrap_or_else(|| time(answer.created)),
            ended: rest.ended.unwrap_or_else(|| time(answer.updated)),
        };
        for file in known.files {
            put(&mut outcome, file);
        }
        Ok(Self {
            version: RECORD_VERSION,
            id: run,
            session: session.id,
            kind: session.kind,
            status,
            task: said.text,
            context: said.context,
            workspace: session.workspace.into(),
            outcome,
        })
    }
}

/// How far a message is, for a person: a placeholder that no process works on is one whose turn
/// was interrupted.
pub fn shown_status(store: &Store, session: &str, status: MessageStatus) -> MessageStatus {
    match status {
        MessageStatus::InFlight if !lock::is_held(&locks(store), session) => {
            MessageStatus::Interrupted
        }
        status => status,
    }
}

/// Notes where the files of a run that has ended were put. `session`: its session.
pub async fn note_files(store: &Store, session: &str, outcome: &Outcome) -> Result<(), StoreError> {
    let mut files = Vec::new();
    files_of(outcome, "", &mut files);
    if files.is_empty() {
        return Ok(());
    }
    let answer = store.message(session, outcome.run.as_str()).await?;
    let mut metadata = answer.metadata;
    metadata["files"] = json!(files);
    let (session, message) = (session.to_owned(), answer.id);
    let updated = answer.updated;
    store.enqueue(vec![Write::Metadata { session, message, metadata, updated }]).await
}

fn files_of(outcome: &Outcome, agent: &str, files: &mut Vec<PutFile>) {
    for file in &outcome.attachments {
        let Some(saved_to) = file.saved_to.clone() else { continue };
        let (call_id, name) = (file.call_id.clone(), file.name.clone());
        files.push(PutFile { agent: agent.to_owned(), call_id, name, saved_to });
    }
    for child in &outcome.children {
        files_of(&child.outcome, &child.path, files);
    }
}

fn put(outcome: &mut Outcome, file: PutFile) {
    let is = |found: &&mut Attachment| {
        found.saved_to.is_none() && found.call_id == file.call_id && found.name == file.name
    };
    let of = match file.agent.as_str() {
        "" => Some(outcome),
        path => child_at(outcome, path),
    };
    let found = of.and_then(|outcome| outcome.attachments.iter_mut().find(is));
    if let Some(found) = found {
        found.saved_to = Some(file.saved_to);
    }
}

fn child_at<'a>(outcome: &'a mut Outcome, path: &str) -> Option<&'a mut Outcome> {
    outcome.children.iter_mut().find_map(|child| match child.path == path {
        true => Some(&mut child.outcome),
        false => child_at(&mut child.outcome, path),
    })
}

/// The subagents of a run, and the receipts that no agent has taken yet.
struct Tree<'a> {
    store: &'a Store,
    run: &'a RunId,
    by_parent: HashMap<Option<String>, Vec<SubagentRecord>>,
    receipts: HashMap<String, Vec<CallReceipt>>,
}

impl Tree<'_> {
    /// The subagents that the record of this id has started; `None` = the agent at the top.
    fn below(&mut self, parent: Option<String>) -> Result<Vec<ChildSummary>, StoreError> {
        let records = self.by_parent.remove(&parent).unwrap_or_default();
        records.into_iter().map(|record| self.child(record)).collect()
    }

    fn child(&mut self, record: SubagentRecord) -> Result<ChildSummary, StoreError> {
        let result: ChildResult = read(self.store, "a subagent", &record.result)?;
        let receipts = self.receipts.remove(&result.path).unwrap_or_default();
        let children = self.below(Some(record.id))?;
        let time = |at: i64| Timestamp::from_millisecond(at).unwrap_or_default();
        let started = record.started.unwrap_or(record.created);
        let rest = result.rest.unwrap_or_default();
        let error = rest.error.or_else(|| {
            let message = record.error?;
            Some(RunError::Setup { message, hint: None })
        });
        let outcome = Outcome {
            status: child_status(record.status),
            output: result.output.unwrap_or_default(),
            messages: Vec::new(),
            error,
            attachments: rest.attachments,
            usage: result.usage.unwrap_or_default(),
            total: result.total.unwrap_or_default(),
            findings: result.findings.flatten(),
            receipts,
            children,
            warnings: rest.warnings,
            unfinished: rest.unfinished,
            run: self.run.clone(),
            agent: record.agent,
            model: record.model,
            started: rest.started.unwrap_or_else(|| time(started)),
            ended: rest.ended.unwrap_or_else(|| time(record.ended.unwrap_or(started))),
        };
        Ok(ChildSummary {
            call_id: record.parent_tool_call_id,
            step: result.step.unwrap_or_default(),
            spawn_index: result.spawn_index,
            path: result.path,
            origin: match record.source {
                Source::Preset => ChildOrigin::Preset,
                Source::Fork => ChildOrigin::Fork,
                Source::Team => ChildOrigin::Team,
            },
            task: record.goal,
            context: record.context,
            outcome,
        })
    }
}

fn by_parent(mut records: Vec<SubagentRecord>) -> HashMap<Option<String>, Vec<SubagentRecord>> {
    records.sort_by_key(|record| record.sort_order);
    let mut by_parent: HashMap<_, Vec<_>> = HashMap::new();
    for record in records {
        by_parent.entry(record.parent_subagent_id.clone()).or_default().push(record);
    }
    by_parent
}

/// The receipts by the path of the agent that called, each agent's in the order asked.
fn calls(
    store: &Store,
    rows: Vec<StoredReceipt>,
) -> Result<HashMap<String, Vec<CallReceipt>>, StoreError> {
    let mut calls = Vec::with_capacity(rows.len());
    for row in rows {
        let position = row.receipt.body["position"].as_u64().unwrap_or(u64::MAX);
        let call: CallReceipt = read(store, "a receipt", &row.receipt.body)?;
        calls.push((position, call));
    }
    calls.sort_by_key(|(position, call)| (call.step, *position));
    let mut by_agent: HashMap<String, Vec<CallReceipt>> = HashMap::new();
    for (_, call) in calls {
        by_agent.entry(call.agent.clone()).or_default().push(call);
    }
    Ok(by_agent)
}

/// What a run has used that has not ended: by the agent at the top, and by all.
async fn so_far(
    store: &Store,
    session: &str,
    message: &str,
    receipts: &[CallReceipt],
    children: &[ChildSummary],
) -> Result<(Usage, Usage), StoreError> {
    let mut own = Usage::default();
    for entry in store.journal_of(session, message).await? {
        let entry = rows::step_entry(entry)
            .map_err(|error| bad_row(store, "the journal of a message", &error))?;
        // The address of a subagent begins with its parent's.
        if let StepKind::Said { reply, .. } = entry.kind
            && !entry.agent.contains('/')
        {
            own += Usage {
                steps: 1,
                input_tokens: reply.usage.input_tokens,
                cached_tokens: reply.usage.cached_tokens,
                output_tokens: reply.usage.output_tokens,
                ..Usage::default()
            };
        }
    }
    for call in receipts {
        own += Usage { tool_calls: 1, fuel: call.receipt.fuel, ..Usage::default() };
    }
    let mut total = own;
    for child in children {
        total += child.outcome.total;
    }
    Ok((own, total))
}

fn outcome_status(status: MessageStatus) -> Status {
    match status {
        MessageStatus::Completed => Status::Completed,
        MessageStatus::Partial => Status::Partial,
        MessageStatus::Failed => Status::Failed,
        MessageStatus::Cancelled | MessageStatus::InFlight | MessageStatus::Interrupted => {
            Status::Cancelled
        }
    }
}

fn child_status(status: SubagentStatus) -> Status {
    match status {
        SubagentStatus::Completed => Status::Completed,
        SubagentStatus::Partial => Status::Partial,
        SubagentStatus::Failed => Status::Failed,
        SubagentStatus::Cancelled | SubagentStatus::Queued | SubagentStatus::Running => {
            Status::Cancelled
        }
    }
}

fn read<'a, T: Deserialize<'a>>(
    store: &Store,
    what: &str,
    value: &'a Value,
) -> Result<T, StoreError> {
    T::deserialize(value).map_err(|error| bad_row(store, what, &error))
}

fn bad_row(store: &Store, what: &str, error: &serde_json::Error) -> StoreError {
    StoreError::Row {
        what: Shown::clipped(what, 64).to_string(),
        path: store.path().to_owned(),
        why: error.to_string(),
    }
}
