//! The two messages of a turn: what the person said, and what the agent answered.

use std::collections::HashMap;
use std::path::PathBuf;

use belljar_agent::events::Counts;
use belljar_agent::frame::{self, LOST};
use belljar_agent::{Outcome, RunId, RunStatus as Status, Usage};
use belljar_model::Message;
use belljar_policy::{LimitsRequest, Shown};
use belljar_store::{
    MessageStatus, Role, Store, StoreError, StoredMessage, SubagentRecord, SubagentStatus,
};
use serde::{Deserialize, Serialize};

use super::present;
use super::rest::Rest;
use super::subagent::{ChildResult, top};

/// The content of a person's message.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PersonContent {
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<String>,
}

/// The metadata of a person's message: what the turn began with. Empty where a run beside the
/// conversation was remembered.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PersonMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<LimitsRequest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) partial: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<History>,
}

/// How much of the past the model is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum History {
    /// A summary stands for the older turns where there is one; one is made when they grow too
    /// large for the model.
    #[default]
    Compacted,
    /// Every turn as it was; nothing is summarised.
    Whole,
}

/// The content of an agent's message. Who does not need the messages reads them as
/// [`serde::de::IgnoredAny`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AgentContent<M = Vec<Message>> {
    /// The conclusion; empty until the turn has ended.
    #[serde(default)]
    pub(crate) text: String,
    /// All that the turn added to the conversation, the person's message as it was sent included.
    /// Absent until it has ended.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<M>,
}

fn none<M>() -> Option<M> {
    None
}

/// The metadata of an agent's message. Until the turn has ended: `run`, `subagents`, `batches`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AgentMetadata {
    pub(crate) run: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// `Some(None)`: it ended without one.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub(crate) error: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rest: Option<Rest>,
    /// The counts of all subagents.
    pub(crate) subagents: Counts,
    /// Those of each call that started some, in the order of the calls.
    pub(crate) batches: Vec<Batch>,
    /// Where the command line put files of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<PutFile>,
}

/// The subagents of one call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// The call.
    batch: String,
    /// Who made it; `None` = the agent at the top.
    parent_subagent_id: Option<String>,
    counts: Counts,
    /// The ids of their records.
    children: Vec<String>,
}

/// Where an attachment was put.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PutFile {
    /// The path of the agent; empty for the one at the top.
    pub(crate) agent: String,
    pub(crate) call_id: String,
    pub(crate) name: String,
    pub(crate) saved_to: PathBuf,
}

impl AgentContent {
    /// The placeholder of an answer.
    pub(crate) fn awaited() -> Self {
        Self { text: String::new(), messages: None }
    }

    /// What an agent concluded, and all that the turn added.
    pub(crate) fn of(outcome: &Outcome, added: &[Message]) -> Self {
        Self { text: outcome.output.clone(), messages: Some(added.to_vec()) }
    }
}

impl AgentMetadata {
    /// Of a turn that runs.
    pub(crate) fn of_running(run: &RunId, records: &[SubagentRecord]) -> Self {
        Self {
            run: Some(run.clone()),
            subagents: counts(records),
            batches: batches(records),
            ..Self::default()
        }
    }

    /// Of a turn that has ended.
    pub(crate) fn of(outcome: &Outcome, records: &[SubagentRecord]) -> Self {
        Self {
            agent: Some(outcome.agent.clone()),
            model: Some(outcome.model.clone()),
            error: Some(outcome.error.as_ref().map(ToString::to_string)),
            usage: Some(outcome.usage),
            total: Some(outcome.total),
            rest: Some(Rest::of(outcome)),
            ..Self::of_running(&outcome.run, records)
        }
    }
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
fn batches(records: &[SubagentRecord]) -> Vec<Batch> {
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
    let batch = |(parent, call, children): (Option<&str>, &str, Vec<&SubagentRecord>)| Batch {
        batch: call.to_owned(),
        parent_subagent_id: parent.map(str::to_owned),
        counts: counts(children.iter().copied()),
        children: children.iter().map(|record| record.id.clone()).collect(),
    };
    calls.into_iter().map(batch).collect()
}

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

/// How a turn ended, in the store's words.
pub(crate) fn message_status(status: Status) -> MessageStatus {
    match status {
        Status::Completed => MessageStatus::Completed,
        Status::Partial => MessageStatus::Partial,
        Status::Failed => MessageStatus::Failed,
        Status::Cancelled => MessageStatus::Cancelled,
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
        match row.role {
            Role::User => {
                asked = serde_json::from_value::<PersonContent>(row.content).map_err(bad)?.text;
            }
            Role::Assistant if row.status == MessageStatus::InFlight => {}
            Role::Assistant => {
                let content: AgentContent = serde_json::from_value(row.content).map_err(bad)?;
                let known: AgentMetadata = serde_json::from_value(row.metadata).map_err(bad)?;
                let asked = std::mem::take(&mut asked);
                let of_turn = || subagents.iter().filter(|one| one.parent_message_id == row.id);
                let messages = content.messages.unwrap_or_else(|| lost(&asked, of_turn()));
                all_used += match known.total {
                    Some(total) => total,
                    None => used(of_turn()),
                };
                all.push(PastTurn {
                    place: row.sort_order,
                    asked,
                    answer: content.text,
                    status: row.status,
                    error: known.error.flatten(),
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
        let output = ChildResult::of_record(subagent).output.unwrap_or_default();
        let status = subagent.status.as_str();
        text.push('\n');
        text.push_str(&frame::kept_conclusion(&subagent.display_name, status, &output));
    }
    vec![Message::User { text: asked.to_owned() }, Message::Assistant { text, calls: Vec::new() }]
}

/// What the subagents of such a turn used.
fn used<'a>(subagents: impl Iterator<Item = &'a SubagentRecord>) -> Usage {
    let mut used = Usage::default();
    for subagent in top(subagents) {
        // A subagent that did not end has none.
        used += ChildResult::of_record(subagent).total.unwrap_or_default();
    }
    used
}
