//! Conversion of outcomes to the rows of a session and back: each row has one type, written and read here.
//!
//! | row | types |
//! | --- | --- |
//! | a person's message | [`PersonContent`] is its content, [`PersonMetadata`] its metadata |
//! | the agent's turn | [`AgentContent`] is its content, [`AgentMetadata`] its metadata; what else belongs to an outcome is a `OutcomeRest` in there |
//! | a subagent | [`ChildResult`] in its `result` |
//! | a step, a receipt, what a turn used | below |

#[cfg(test)]
mod golden;
mod message;
mod rest;
mod subagent;

use std::collections::BTreeMap;
use std::io;

use belljar_agent::{Attachment, CallReceipt, Clock, Outcome, StepEntry, StepKind, Usage};
use belljar_policy::ShownText;
use belljar_store::{
    JournalEntry, JournalKind, JsonText, NewAttachment, NewReceipt, Store, StoreError, StoreWrite,
    UsagePart, UsageRow,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use self::message::HistoryMode;
pub(crate) use self::message::{
    AgentContent, AgentMetadata, PersonContent, PersonMetadata, PutFile, message_status,
    outcome_status,
};
pub(crate) use self::subagent::{
    ChildResult, child_status, end_record, new_records, path_of, queued_record, top_subagents,
};

/// The key of a receipt's call: the agent's path, the step, the call's id.
pub(crate) type ReceiptKey = (String, u64, String);

/// Makes a row of the journal from a step.
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
            StepKind::Written(_) => JournalKind::Written,
            StepKind::Muted { .. } => JournalKind::Muted,
        },
        body: serde_json::to_value(&entry.kind).map_err(io::Error::other)?,
    })
}

/// Makes a step of the turn of `message` from a row of the journal.
pub(crate) fn step_entry(
    store: &Store,
    message: &str,
    entry: JournalEntry,
) -> Result<StepEntry, StoreError> {
    Ok(StepEntry {
        agent: entry.agent.into(),
        step: u64::try_from(entry.step).unwrap_or_default(),
        position: usize::try_from(entry.position).unwrap_or_default(),
        kind: parse_row(store, message, &entry.body)?,
    })
}

/// Parses a value of type `T` from the row `id`.
pub(crate) fn parse_row<'a, T: Deserialize<'a>>(
    store: &Store,
    id: &str,
    value: &'a Value,
) -> Result<T, StoreError> {
    T::deserialize(value).map_err(|error| StoreError::Row {
        what: format!("row `{}`", ShownText::clip_line(id, 64)),
        path: store.path().to_owned(),
        why: error.to_string(),
    })
}

/// The writes for a call's receipt and files, beside its step.
pub(crate) fn result_writes(
    session: &str,
    message: &str,
    entry: &StepEntry,
    now: i64,
    new_id: impl Fn() -> String,
) -> Vec<StoreWrite> {
    let StepKind::Result(result) = &entry.kind else { return Vec::new() };
    let (session, message) = (session.to_owned(), message.to_owned());
    let mut writes = Vec::new();
    if let Some(receipt) = &result.receipt {
        let row = receipt_row(receipt, Some(entry.position), new_id(), now);
        let (session, message) = (session.clone(), message.clone());
        writes.push(StoreWrite::Receipts { session, message, receipts: vec![row] });
    }
    let attachment = |file: &Attachment| NewAttachment {
        id: new_id(),
        call_id: Some(file.call_id.clone()),
        name: file.name.clone(),
        media_type: file.media_type.clone(),
        data: file.data.to_vec(),
        created: now,
    };
    let attachments: Vec<_> = result.attachments.iter().map(attachment).collect();
    if !attachments.is_empty() {
        writes.push(StoreWrite::Attachments { session, message, attachments });
    }
    writes
}

/// The receipt in a step, if the step is a call's result.
pub(crate) fn receipt_of(entry: &StepEntry) -> Option<&CallReceipt> {
    match &entry.kind {
        StepKind::Result(result) => result.receipt.as_ref(),
        StepKind::Said { .. }
        | StepKind::Begun { .. }
        | StepKind::Child { .. }
        | StepKind::Written(_)
        | StepKind::Muted { .. } => None,
    }
}

pub(crate) fn receipt_key(receipt: &CallReceipt) -> ReceiptKey {
    (receipt.agent.clone(), receipt.step, receipt.call_id.clone())
}

/// Makes a row from a receipt. `position` = the index of the call in its step, if known.
pub(crate) fn receipt_row(
    receipt: &CallReceipt,
    position: Option<usize>,
    id: String,
    now: i64,
) -> NewReceipt {
    /// A receipt with the position of its call.
    #[derive(Serialize)]
    struct PlacedReceipt<'a> {
        #[serde(flatten)]
        receipt: &'a CallReceipt,
        position: usize,
    }
    let body = match position {
        None => JsonText::from_value(receipt),
        Some(position) => JsonText::from_value(&PlacedReceipt { receipt, position }),
    };
    NewReceipt {
        id,
        agent: receipt.agent.clone(),
        step: to_column(receipt.step),
        call_id: receipt.call_id.clone(),
        tool: receipt.tool.clone(),
        ok: receipt.error.is_none(),
        ending: belljar_agent::ending_word(&receipt.receipt.ending),
        fuel: to_column(receipt.receipt.fuel),
        micros: to_column(receipt.receipt.times.total),
        body,
        created: now,
    }
}

/// Serializes a value for a row.
pub(crate) fn to_row_value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

/// Deserializes a field that is present into `Some`, even if its value is `null`.
fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

fn to_column(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// The usage of a turn, one part for each agent and model, for the day on which the turn ended. All parts sum
/// to the turn's total.
pub(crate) fn usage_parts(outcome: &Outcome, clock: &dyn Clock) -> Vec<UsagePart> {
    let mut parts = BTreeMap::new();
    add_own(outcome, clock, &mut parts);
    let turn = UsageRow { turns: 1, ..UsageRow::default() };
    if let Some(root) = parts.get_mut(&(outcome.agent.as_str(), outcome.model.as_str())) {
        root.add_amounts(&turn);
    }
    let part = |((agent, model), row): ((&str, &str), _)| UsagePart {
        agent: agent.to_owned(),
        model: model.to_owned(),
        row,
    };
    parts.into_iter().map(part).collect()
}

/// Adds the usage of an agent without its subagents, and then of each subagent, to the parts.
fn add_own<'a>(
    outcome: &'a Outcome,
    clock: &dyn Clock,
    parts: &mut BTreeMap<(&'a str, &'a str), UsageRow>,
) {
    // The total minus the children's totals, because `outcome.usage` lacks the bill of a summary made before
    // the turn.
    let children = outcome.children.iter().map(|child| child.outcome.total);
    let own = children.fold(outcome.total, Usage::saturating_sub);
    let more = usage_beside(own, clock);
    let empty = || UsageRow { day: more.day.clone(), ..UsageRow::default() };
    parts
        .entry((outcome.agent.as_str(), outcome.model.as_str()))
        .or_insert_with(empty)
        .add_amounts(&more);
    for child in &outcome.children {
        add_own(&child.outcome, clock, parts);
    }
}

/// The usage of work outside of turns, for example of a summary, for the present day.
pub(crate) fn usage_beside(total: Usage, clock: &dyn Clock) -> UsageRow {
    UsageRow {
        day: clock.now().strftime("%Y-%m-%d").to_string(),
        turns: 0,
        steps: to_column(total.steps),
        input_tokens: to_column(total.input_tokens),
        cached_tokens: to_column(total.cached_tokens),
        output_tokens: to_column(total.output_tokens),
        tool_calls: to_column(total.tool_calls),
        fuel: to_column(total.fuel),
    }
}
