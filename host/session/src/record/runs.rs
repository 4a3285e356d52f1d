//! Runs read from the store, each the turn of a session, with subagents and receipts, whether ended or
//! interrupted.

use std::collections::HashMap;
use std::sync::Arc;

use belljar_store::{
    MessageStatus, Store, StoreError, StoreWrite, StoredReceipt, StoredTurn, SubagentRecord,
    SubagentSource,
};
use jiff::Timestamp;
use serde_json::json;

use crate::record::lock;
use crate::record::lock::locks_directory;
use crate::record::rows::{self, AgentMetadata, ChildResult, PutFile, parse_row};
use crate::record::turn::Turn;
use belljar_agent::{
    Attachment, CallReceipt, ChildOrigin, ChildSummary, Outcome, RunError, RunId, StepKind, Usage,
    in_tree_order,
};

/// The number of turns that are read from the store at a time.
const PAGE: u32 = 100;

/// The newest runs, at most `most`, the newest first, without receipts and subagents; `true` = there are more
/// runs.
pub async fn newest_runs(store: &Store, most: usize) -> Result<(Vec<Turn>, bool), StoreError> {
    let mut runs = Vec::new();
    let mut before: Option<String> = None;
    loop {
        let page = store.list_turns(before.as_deref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok((runs, false)) };
        before = Some(last.answer.id.clone());
        for turn in page {
            // A run that was noted in a conversation has a second message there, which is not a separate run.
            let known = read_metadata(store, &turn)?;
            if known.run.is_none_or(|run| run.as_str() != turn.answer.id) {
                continue;
            }
            if runs.len() == most {
                return Ok((runs, true));
            }
            runs.push(run_of(store, turn, false).await?);
        }
    }
}

/// A run by its id or the beginning of the id; a session's id means the last turn. `latest` = the newest run.
pub async fn find_run(store: &Store, which: &str) -> Result<Turn, StoreError> {
    let turn = match store.find_turn(which).await {
        Err(StoreError::NotFound { .. }) if which == "latest" => {
            let (newest, _) = newest_runs(store, 1).await?;
            let none = || StoreError::NotFound { what: "run", id: which.to_owned() };
            let newest = newest.into_iter().next().ok_or_else(none)?;
            store.read_turn(&newest.state.session.id, &newest.message).await
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
    run_of(store, turn?, true).await
}

/// Makes a run of a stored turn; `whole` = with its receipts and subagents.
async fn run_of(store: &Store, row: StoredTurn, whole: bool) -> Result<Turn, StoreError> {
    let mut known = read_metadata(store, &row)?;
    let files = std::mem::take(&mut known.files);
    let is_counted = known.total.is_some();
    let StoredTurn { session, asked, answer } = row;
    let session = Arc::new(session);
    let mut turn = Turn::from_rows(store, &session, asked.as_ref(), &answer, known, &[])?;
    turn.state.status = shown_status(store, &session.id, answer.status);
    let outcome = &mut turn.state.outcome;
    // An unfinished run has no total yet: its usage is the sum of its subagents and steps.
    if whole || !is_counted {
        let receipts =
            receipts_by_path(store, store.receipts_of_turn(&session.id, &answer.id).await?)?;
        let mut records = store.list_subagents(&session.id).await?;
        records.retain(|record| record.parent_message_id == answer.id);
        let mut tree =
            SubagentTree { store, run: &turn.run, by_parent: by_parent(records), receipts };
        outcome.children = tree.children_of_record(None)?;
        // The receipts that belong to no subagent are the agent's own.
        outcome.receipts = tree.receipts.into_values().flatten().collect();
    }
    if !is_counted {
        (outcome.usage, outcome.total) = so_far(store, &session.id, &answer.id, outcome).await?;
    }
    for file in files {
        set_saved_path(outcome, file);
    }
    Ok(turn)
}

fn read_metadata(store: &Store, turn: &StoredTurn) -> Result<AgentMetadata, StoreError> {
    parse_row(store, &turn.answer.id, &turn.answer.metadata)
}

/// The status of a message, for a person: a placeholder without a working process belongs to an interrupted
/// turn.
pub fn shown_status(store: &Store, session: &str, status: MessageStatus) -> MessageStatus {
    match status {
        MessageStatus::InFlight if !lock::is_locked(&locks_directory(store), session) => {
            MessageStatus::Interrupted
        }
        status => status,
    }
}

/// Stores the paths under which the files of an ended run were saved. `session`: the run's session.
pub async fn note_files(store: &Store, session: &str, outcome: &Outcome) -> Result<(), StoreError> {
    let mut files = Vec::new();
    files_of(outcome, "", &mut files);
    if files.is_empty() {
        return Ok(());
    }
    let answer = store.read_message(session, outcome.run.as_str()).await?;
    let mut metadata = answer.metadata;
    metadata["files"] = json!(files);
    let (session, message) = (session.to_owned(), answer.id);
    let updated = answer.updated;
    store.enqueue_writes(vec![StoreWrite::Metadata { session, message, metadata, updated }]).await
}

/// Collects the saved files of an outcome and of its subagents. `agent` = the path of the outcome's agent.
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

/// Sets the path of one saved file in the outcome, found by agent, call and name.
fn set_saved_path(outcome: &mut Outcome, file: PutFile) {
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

/// The outcome of the subagent with this path, at any depth.
fn child_at<'a>(outcome: &'a mut Outcome, path: &str) -> Option<&'a mut Outcome> {
    outcome.children.iter_mut().find_map(|child| match child.path == path {
        true => Some(&mut child.outcome),
        false => child_at(&mut child.outcome, path),
    })
}

/// The records of a run's subagents by parent, and the receipts by agent; both shrink as the tree is built.
struct SubagentTree<'a> {
    store: &'a Store,
    run: &'a RunId,
    by_parent: HashMap<Option<String>, Vec<SubagentRecord>>,
    receipts: HashMap<String, Vec<CallReceipt>>,
}

impl SubagentTree<'_> {
    /// Builds the summaries of the subagents that `parent` started; `None` = those of the agent at the top.
    fn children_of_record(
        &mut self,
        parent: Option<String>,
    ) -> Result<Vec<ChildSummary>, StoreError> {
        let records = self.by_parent.remove(&parent).unwrap_or_default();
        records.into_iter().map(|record| self.child_summary(record)).collect()
    }

    /// Builds a subagent's summary from its record, with its receipts and its own subagents.
    fn child_summary(&mut self, record: SubagentRecord) -> Result<ChildSummary, StoreError> {
        let result: ChildResult = parse_row(self.store, &record.id, &record.result)?;
        let receipts = self.receipts.remove(&result.path).unwrap_or_default();
        let children = self.children_of_record(Some(record.id))?;
        let time = |at: i64| Timestamp::from_millisecond(at).unwrap_or_default();
        let started = record.started.unwrap_or(record.created);
        let rest = result.rest.unwrap_or_default();
        let error = rest.error.or_else(|| {
            let message = record.error?;
            Some(RunError::Setup { message, hint: None })
        });
        let outcome = Outcome {
            status: rows::child_status(record.status),
            output: result.output.unwrap_or_default(),
            messages: Vec::new(),
            calls: Vec::new(),
            error,
            attachments: rest.attachments,
            usage: result.usage.unwrap_or_default(),
            total: result.total.unwrap_or_default(),
            merged: Vec::new(),
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
                SubagentSource::Preset => ChildOrigin::Preset,
                SubagentSource::Fork => ChildOrigin::Fork,
                SubagentSource::Team => ChildOrigin::Team,
            },
            task: record.goal,
            context: record.context,
            outcome,
        })
    }
}

/// Groups records by their parent, in the order of the starts; the key `None` = started by the agent at the
/// top.
fn by_parent(mut records: Vec<SubagentRecord>) -> HashMap<Option<String>, Vec<SubagentRecord>> {
    records.sort_by_key(|record| record.sort_order);
    let mut by_parent: HashMap<_, Vec<_>> = HashMap::new();
    for record in records {
        by_parent.entry(record.parent_subagent_id.clone()).or_default().push(record);
    }
    by_parent
}

/// Groups receipts by the path of the calling agent, in the order of the model's calls.
fn receipts_by_path(
    store: &Store,
    rows: Vec<StoredReceipt>,
) -> Result<HashMap<String, Vec<CallReceipt>>, StoreError> {
    let mut calls = Vec::with_capacity(rows.len());
    for row in rows {
        let position = row.receipt.body["position"].as_u64().unwrap_or(u64::MAX);
        let call: CallReceipt = parse_row(store, &row.receipt.id, &row.receipt.body)?;
        calls.push((position, call));
    }
    calls.sort_by_key(|(position, call)| (call.step, *position));
    let mut by_agent: HashMap<String, Vec<CallReceipt>> = HashMap::new();
    for (_, call) in calls {
        by_agent.entry(call.agent.clone()).or_default().push(call);
    }
    by_agent.values_mut().for_each(|calls| in_tree_order(calls, |call| call));
    Ok(by_agent)
}

/// The usage so far of an unfinished run: that of the agent at the top, and that of all agents. The second
/// includes the first.
async fn so_far(
    store: &Store,
    session: &str,
    message: &str,
    known: &Outcome,
) -> Result<(Usage, Usage), StoreError> {
    let mut own = Usage::default();
    for entry in store.journal_of(session, message).await? {
        let entry = rows::step_entry(store, message, entry)?;
        // A subagent's address begins with its parent's and a slash.
        if entry.agent.contains('/') {
            continue;
        }
        own += match entry.kind {
            StepKind::Said { reply, .. } => Usage {
                steps: 1,
                input_tokens: reply.usage.input_tokens,
                cached_tokens: reply.usage.cached_tokens,
                output_tokens: reply.usage.output_tokens,
                ..Usage::default()
            },
            StepKind::Written(text) => text.used.unwrap_or_default(),
            StepKind::Begun { .. }
            | StepKind::Result(_)
            | StepKind::Child { .. }
            | StepKind::Muted { .. } => continue,
        };
    }
    for call in &known.receipts {
        own += Usage { tool_calls: 1, fuel: call.receipt.fuel, ..Usage::default() };
    }
    let mut total = own;
    for child in &known.children {
        total += child.outcome.total;
    }
    Ok((own, total))
}
