//! From outcomes to the rows of a session, and back.
//!
//! | row | content | metadata |
//! | --- | --- | --- |
//! | a person's message | `text` | |
//! | the agent's turn | `text` (the conclusion), `messages` (all that the turn added to the conversation, the person's message as it was sent included) | `run`, `agent`, `model`, `error`, `usage`, `total`, `subagents` |

use belljar_model::Message;
use belljar_policy::Shown;
use belljar_store::{
    MessageStatus, Role, Source, Store, StoreError, StoredMessage, StoredSession, SubagentRecord,
    SubagentStatus,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::frame::LOST;
use crate::outcome::{ChildSummary, Outcome, Status, Usage};

/// Characters of a subagent's conclusion in its summary.
const MAX_SUMMARY: usize = 400;

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

/// What is known of a turn beside what was said.
pub(crate) fn metadata(outcome: &Outcome, records: &[SubagentRecord]) -> Value {
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

/// Every subagent of a turn, parents before their children.
pub(crate) fn subagents(
    message: &str,
    outcome: &Outcome,
    now: i64,
    new_id: impl Fn() -> String,
) -> Vec<SubagentRecord> {
    let mut records = Vec::new();
    // Outcome of the parent, its record's id, its depth.
    let mut parents: Vec<(&Outcome, Option<String>, i64)> = vec![(outcome, None, 0)];
    while let Some((parent, parent_id, depth)) = parents.pop() {
        for child in &parent.children {
            let id = new_id();
            let place = i64::try_from(records.len()).unwrap_or(i64::MAX);
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

/// The turns of a session, and what the model is sent of them.
pub(crate) fn past(
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
