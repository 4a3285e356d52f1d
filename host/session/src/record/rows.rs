//! From outcomes to the rows of a session, and back.
//!
//! | row | content | metadata |
//! | --- | --- | --- |
//! | a person's message | `text`, `context` | `actor`, `limits`, `partial` |
//! | the agent's turn | `text` (the conclusion), `messages` (all that the turn added to the conversation, the person's message as it was sent included) | `run`, `agent`, `model`, `error`, `usage`, `total`, `rest`, `subagents`, `batches`; while it runs `run`, `subagents`, `batches` |
//!
//! `rest` is what else belongs to an outcome ([`Rest`]). `subagents` are the counts of all of them; `batches` those of each call that started some, with
//! the ids of their records.

use std::collections::HashMap;
use std::io;

use belljar_model::Message;
use belljar_policy::Shown;
use belljar_store::{
    JournalEntry, JournalKind, MessageStatus, NewAttachment, ReceiptRow, Role, Source, Store,
    StoreError, StoredMessage, SubagentRecord, SubagentStatus, UsageRow, Write,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::record::rest::Rest;
use belljar_agent::events::Counts;
use belljar_agent::frame::{self, LOST};
use belljar_agent::{Attachment, CallReceipt, ChildSummary, Outcome, RunStatus as Status, Usage};
use belljar_agent::{ChildOrigin, QueuedChild};
use belljar_agent::{Clock, RunId};
use belljar_agent::{StepEntry, StepKind};

/// Characters of a subagent's conclusion in its summary.
const MAX_SUMMARY: usize = 400;

/// Which call a receipt is of: the path of the agent, its step, the call's id.
pub(crate) type ReceiptKey = (String, u64, String);

/// One turn of the past.
#[derive(Debug, Clone, PartialEq)]
pub struct PastTurn {
    /// The place of the agent's message in the session.
    pub place: i64,
    /// What the person said.
    pub asked: String,
    /// What the agent concluded. Foreign text.
    pub answer: String,
    /// How it ended.
    pub status: MessageStatus,
    /// Why it did not complete.
    pub error: Option<String>,
    /// All that it added to the conversation.
    pub messages: Vec<Message>,
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
    /// Absent until the turn has ended.
    #[serde(default)]
    total: Option<Usage>,
    #[serde(default)]
    error: Option<String>,
}

/// What is known of a turn beside what was said.
pub(crate) fn metadata(outcome: &Outcome, records: &[SubagentRecord]) -> Value {
    json!({
        "run": outcome.run,
        "agent": outcome.agent,
        "model": outcome.model,
        "error": outcome.error.as_ref().map(ToString::to_string),
        "usage": outcome.usage,
        "total": outcome.total,
        "rest": Rest::of(outcome),
        "subagents": counts(records),
        "batches": batches(records),
    })
}

/// What is known of a turn while it runs.
pub(crate) fn live_metadata(run: &RunId, records: &[SubagentRecord]) -> Value {
    json!({"run": run, "subagents": counts(records), "batches": batches(records)})
}

fn counts<'a>(records: impl IntoIterator<Item = &'a SubagentRecord>) -> Counts {
    let mut counts = Counts::default();
    for record in records {
        counts.total += 1;
        *match record.status {
            SubagentStatus::Queued => &mut counts.queued,
            SubagentStatus::Running => &mut counts.running,
            SubagentStatus::Completed => &mut counts.completed,
            SubagentStatus::Partial => &mut counts.partial,
            SubagentStatus::Failed => &mut counts.failed,
            SubagentStatus::Cancelled => &mut counts.cancelled,
        } += 1;
    }
    counts
}

/// The subagents by the call that started them, in the order of the calls.
fn batches(records: &[SubagentRecord]) -> Vec<Value> {
    let mut calls: Vec<(Option<&str>, &str, Vec<&SubagentRecord>)> = Vec::new();
    let mut known = HashMap::new();
    for record in records {
        let call = (record.parent_subagent_id.as_deref(), record.parent_tool_call_id.as_str());
        let at = *known.entry(call).or_insert_with(|| {
            calls.push((call.0, call.1, Vec::new()));
            calls.len() - 1
        });
        if let Some((.., children)) = calls.get_mut(at) {
            children.push(record);
        }
    }
    let shown = |(parent, call, children): (Option<&str>, &str, Vec<&SubagentRecord>)| {
        let ids: Vec<&str> = children.iter().map(|record| record.id.as_str()).collect();
        json!({
            "batch": call,
            "parent_subagent_id": parent,
            "counts": counts(children),
            "children": ids,
        })
    };
    calls.into_iter().map(shown).collect()
}

/// A step as a row.
pub(crate) fn journal_entry(entry: StepEntry) -> io::Result<JournalEntry> {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Ok(JournalEntry {
        agent: entry.agent.to_string(),
        step: number(entry.step),
        position: i64::try_from(entry.position).unwrap_or(i64::MAX),
        kind: match entry.kind {
            StepKind::Said { .. } => JournalKind::Said,
            StepKind::Begun { .. } => JournalKind::Begun,
            StepKind::Result(_) => JournalKind::Result,
            StepKind::Child { .. } => JournalKind::Child,
        },
        body: serde_json::to_value(&entry.kind).map_err(io::Error::other)?,
    })
}

/// A row as a step.
pub(crate) fn step_entry(entry: JournalEntry) -> Result<StepEntry, serde_json::Error> {
    Ok(StepEntry {
        agent: entry.agent.into(),
        step: u64::try_from(entry.step).unwrap_or_default(),
        position: usize::try_from(entry.position).unwrap_or_default(),
        kind: serde_json::from_value(entry.body)?,
    })
}

/// What is written of a call's result besides the step: its receipt and its files.
pub(crate) fn of_result(
    session: &str,
    message: &str,
    entry: &StepEntry,
    now: i64,
    new_id: impl Fn() -> String,
) -> Vec<Write> {
    let StepKind::Result(kept) = &entry.kind else { return Vec::new() };
    let (session, message) = (session.to_owned(), message.to_owned());
    let mut writes = Vec::new();
    if let Some(receipt) = &kept.receipt {
        let row = receipt_row(receipt, Some(entry.position), new_id(), now);
        let (session, message) = (session.clone(), message.clone());
        writes.push(Write::Receipts { session, message, receipts: vec![row] });
    }
    let attachment = |file: &Attachment| NewAttachment {
        id: new_id(),
        call_id: Some(file.call_id.clone()),
        name: file.name.clone(),
        media_type: file.media_type.clone(),
        data: file.data.to_vec(),
        created: now,
    };
    let attachments: Vec<_> = kept.attachments.iter().map(attachment).collect();
    if !attachments.is_empty() {
        writes.push(Write::Attachments { session, message, attachments });
    }
    writes
}

/// The receipt that a step brings.
pub(crate) fn receipt_of(entry: &StepEntry) -> Option<&CallReceipt> {
    match &entry.kind {
        StepKind::Result(kept) => kept.receipt.as_ref(),
        StepKind::Said { .. } | StepKind::Begun { .. } | StepKind::Child { .. } => None,
    }
}

/// Which call a receipt is of.
pub(crate) fn receipt_key(receipt: &CallReceipt) -> ReceiptKey {
    (receipt.agent.clone(), receipt.step, receipt.call_id.clone())
}

/// A receipt as a row; `position`: the place of its call in the step, where that is known.
pub(crate) fn receipt_row(
    receipt: &CallReceipt,
    position: Option<usize>,
    id: String,
    now: i64,
) -> ReceiptRow {
    let mut body = serde_json::to_value(receipt).unwrap_or_default();
    if let Some(position) = position {
        body["position"] = position.into();
    }
    ReceiptRow {
        id,
        agent: receipt.agent.clone(),
        step: column(receipt.step),
        call_id: receipt.call_id.clone(),
        tool: receipt.tool.clone(),
        ok: receipt.error.is_none(),
        ending: belljar_agent::ending_word(&receipt.receipt.ending),
        fuel: column(receipt.receipt.fuel),
        micros: column(receipt.receipt.times.total),
        body,
        created: now,
    }
}

/// The path of a subagent in its run.
pub(crate) fn path_of(record: &SubagentRecord) -> Option<&str> {
    record.result["path"].as_str()
}

/// Every subagent of a turn that was run before it had a message, parents before their
/// children.
pub(crate) fn subagents(
    message: &str,
    outcome: &Outcome,
    now: i64,
    new_id: impl Fn() -> String,
) -> Vec<SubagentRecord> {
    let mut records = Vec::new();
    // Outcome of the parent, its record's id, its depth.
    let mut parents: Vec<(&Outcome, Option<String>, u32)> = vec![(outcome, None, 0)];
    while let Some((parent, parent_id, depth)) = parents.pop() {
        for child in &parent.children {
            let queued = QueuedChild {
                path: child.path.as_str().into(),
                parent: "".into(),
                parent_agent: parent.agent.clone(),
                depth: depth + 1,
                agent: child.outcome.agent.clone(),
                origin: child.origin,
                spawn_index: child.spawn_index,
                call_id: child.call_id.clone(),
                task: child.task.clone(),
                context: child.context.clone(),
            };
            let run = outcome.run.to_string();
            let place = records.len();
            let mut record = queued_record(&queued, new_id(), message, run, place, now);
            record.parent_subagent_id.clone_from(&parent_id);
            end(&mut record, child);
            parents.push((&child.outcome, Some(record.id.clone()), depth + 1));
            records.push(record);
        }
    }
    records
}

/// The record of a subagent that waits; `place`: how many the message has started before.
pub(crate) fn queued_record(
    child: &QueuedChild,
    id: String,
    message: &str,
    run: String,
    place: usize,
    now: i64,
) -> SubagentRecord {
    let name = child.agent.rsplit('/').next().unwrap_or_default();
    SubagentRecord {
        id,
        parent_message_id: message.to_owned(),
        parent_tool_call_id: child.call_id.clone(),
        parent_agent: child.parent_agent.clone(),
        parent_subagent_id: None,
        depth: i64::from(child.depth),
        chain_id: run,
        source: match child.origin {
            ChildOrigin::Preset => Source::Preset,
            ChildOrigin::Fork => Source::Fork,
            ChildOrigin::Team => Source::Team,
        },
        agent: child.agent.clone(),
        display_name: format!("{name}#{}", child.spawn_index),
        goal: child.task.clone(),
        context: child.context.clone(),
        status: SubagentStatus::Queued,
        model: String::new(),
        tool_names: Vec::new(),
        summary: String::new(),
        result: json!({"path": &*child.path, "spawn_index": child.spawn_index}),
        error: None,
        input_tokens: 0,
        cached_tokens: 0,
        output_tokens: 0,
        fuel: 0,
        sort_order: i64::try_from(place).unwrap_or(i64::MAX),
        created: now,
        started: None,
        ended: None,
    }
}

/// Puts the outcome of a subagent into its record.
pub(crate) fn end(record: &mut SubagentRecord, child: &ChildSummary) {
    let outcome = &child.outcome;
    record.tool_names = outcome.receipts.iter().map(|receipt| receipt.tool.clone()).collect();
    record.tool_names.sort_unstable();
    record.tool_names.dedup();
    record.status = subagent_status(outcome.status);
    record.model.clone_from(&outcome.model);
    record.summary = outcome.output.chars().take(MAX_SUMMARY).collect();
    record.result = json!({
        "path": child.path,
        "spawn_index": child.spawn_index,
        "output": outcome.output,
        "step": child.step,
        "usage": outcome.usage,
        "total": outcome.total,
        "findings": outcome.findings,
        "paths_read": outcome.paths_read(),
        "paths_written": outcome.paths_written(),
        "warnings": outcome.warnings,
        "rest": Rest::of(outcome),
    });
    record.error = outcome.error.as_ref().map(ToString::to_string);
    record.input_tokens = column(outcome.total.input_tokens);
    record.cached_tokens = column(outcome.total.cached_tokens);
    record.output_tokens = column(outcome.total.output_tokens);
    record.fuel = column(outcome.total.fuel);
    record.started = Some(outcome.started.as_millisecond());
    record.ended = Some(outcome.ended.as_millisecond());
}

fn column(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// What a turn used, for the day on which it ended.
pub(crate) fn usage(outcome: &Outcome, clock: &dyn Clock) -> UsageRow {
    UsageRow { turns: 1, ..usage_beside(outcome.total, clock) }
}

/// What was used beside the turns, for this day.
pub(crate) fn usage_beside(total: Usage, clock: &dyn Clock) -> UsageRow {
    UsageRow {
        day: clock.now().strftime("%Y-%m-%d").to_string(),
        turns: 0,
        steps: column(total.steps),
        input_tokens: column(total.input_tokens),
        cached_tokens: column(total.cached_tokens),
        output_tokens: column(total.output_tokens),
        tool_calls: column(total.tool_calls),
        fuel: column(total.fuel),
    }
}

/// How a turn ended, in the store's words.
pub(crate) fn message_status(status: Status) -> MessageStatus {
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

/// The turns of a session that have ended, and what they used.
pub(crate) fn turns(
    store: &Store,
    rows: Vec<StoredMessage>,
    subagents: &[SubagentRecord],
) -> Result<(Vec<PastTurn>, Usage), StoreError> {
    let mut all = Vec::new();
    let mut all_used = Usage::default();
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
            Role::Assistant if row.status == MessageStatus::InFlight => {}
            Role::Assistant => {
                let metadata: Metadata = serde_json::from_value(row.metadata).map_err(bad)?;
                let asked = std::mem::take(&mut asked);
                let of_turn = || subagents.iter().filter(|one| one.parent_message_id == row.id);
                let messages = content.messages.unwrap_or_else(|| lost(&asked, of_turn()));
                all_used += match metadata.total {
                    Some(total) => total,
                    None => used(of_turn()),
                };
                all.push(PastTurn {
                    place: row.sort_order,
                    asked,
                    answer: content.text,
                    status: row.status,
                    error: metadata.error,
                    messages,
                });
            }
        }
    }
    Ok((all, all_used))
}

/// What the model is told of a turn whose result was never saved: that, and what its
/// subagents had concluded.
fn lost<'a>(asked: &str, subagents: impl Iterator<Item = &'a SubagentRecord>) -> Vec<Message> {
    let mut text = LOST.to_owned();
    for subagent in top(subagents) {
        let output = subagent.result["output"].as_str().unwrap_or_default();
        let status = subagent.status.as_str();
        text.push('\n');
        text.push_str(&frame::kept_conclusion(&subagent.display_name, status, output));
    }
    vec![Message::User { text: asked.to_owned() }, Message::Assistant { text, calls: Vec::new() }]
}

/// What the subagents of such a turn used.
fn used<'a>(subagents: impl Iterator<Item = &'a SubagentRecord>) -> Usage {
    let mut used = Usage::default();
    for subagent in top(subagents) {
        // A subagent that did not end has none.
        used += Usage::deserialize(&subagent.result["total"]).unwrap_or_default();
    }
    used
}

/// Those that the agent at the top started: their totals hold those below them.
fn top<'a>(
    subagents: impl Iterator<Item = &'a SubagentRecord>,
) -> impl Iterator<Item = &'a SubagentRecord> {
    subagents.filter(|subagent| subagent.parent_subagent_id.is_none())
}
