//! The two messages of a turn: the person's text, and the agent's answer.

use std::collections::HashMap;
use std::path::PathBuf;

use belljar_agent::events::Counts;
use belljar_agent::{CallerInput, Outcome, RunId, RunStatus, Usage};
use belljar_model::{ChatMessage, ToolCall};
use belljar_policy::LimitsRequest;
use belljar_store::{MessageStatus, SubagentRecord, SubagentStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::present;
use super::rest::OutcomeRest;

/// The content of the row for a person's message.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PersonContent {
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<String>,
}

/// The metadata of the row for a person's message: the caller's parameters of the turn. Empty for a message
/// about a run beside the conversation.
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
    pub(crate) history: Option<HistoryMode>,
    /// Input of the caller besides text: earlier messages, tools, images or results of its own tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) brought: Option<CallerInput>,
    /// True if the session is deleted when the turn has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) forget: bool,
    /// A note that the turn's entrance stores for itself; no other code reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) entrance: Option<Value>,
}

/// The part of the past that is sent to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HistoryMode {
    /// A summary replaces the older turns once these grow too large for the model.
    #[default]
    Compacted,
    /// Every turn, without a summary.
    Whole,
}

/// The content of the row for an agent's message.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AgentContent {
    /// The conclusion; empty until the turn has ended.
    pub(crate) text: String,
    /// The messages that the turn added to the conversation, beginning with the person's message as sent to
    /// the model. Absent until the turn has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<Vec<ChatMessage>>,
    /// The calls of the caller's own tools with which the turn ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<ToolCall>,
}

/// The metadata of the row for an agent's message. Until the turn has ended, only `run`, `subagents` and
/// `batches` are present.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AgentMetadata {
    pub(crate) run: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The error of the turn. `None` = not ended yet; `Some(None)` = ended without an error.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub(crate) error: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rest: Option<OutcomeRest>,
    /// The name of the caller who cancelled the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cancelled_by: Option<String>,
    pub(crate) subagents: Counts,
    /// The subagents, grouped by the call that started them, in the order of the calls.
    pub(crate) batches: Vec<SubagentBatch>,
    /// The paths under which the command line saved files of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<PutFile>,
}

/// The subagents that one call started.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SubagentBatch {
    /// The id of the call.
    batch: String,
    /// The calling subagent; `None` = the top agent.
    parent_subagent_id: Option<String>,
    counts: Counts,
    /// The ids of the subagents' records.
    children: Vec<String>,
}

/// An attachment of an outcome, with the path under which the command line saved it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PutFile {
    /// The path of the agent in the run; empty = the agent at the top.
    pub(crate) agent: String,
    pub(crate) call_id: String,
    pub(crate) name: String,
    pub(crate) saved_to: PathBuf,
}

impl AgentContent {
    /// Makes the content of an ended turn's row. `added` = the messages that the turn added.
    pub(crate) fn from_outcome(outcome: &Outcome, added: &[ChatMessage]) -> Self {
        let (text, calls) = (outcome.output.clone(), outcome.calls.clone());
        Self { text, messages: Some(added.to_vec()), calls }
    }
}

impl AgentMetadata {
    /// The metadata of a running turn.
    pub(crate) fn for_running(run: &RunId, records: &[SubagentRecord]) -> Self {
        Self {
            run: Some(run.clone()),
            subagents: count_records(records),
            batches: group_batches(records),
            ..Self::default()
        }
    }

    /// The metadata of an ended turn.
    pub(crate) fn from_outcome(outcome: &Outcome, records: &[SubagentRecord]) -> Self {
        Self {
            agent: Some(outcome.agent.clone()),
            model: Some(outcome.model.clone()),
            error: Some(outcome.error.as_ref().map(ToString::to_string)),
            usage: Some(outcome.usage),
            total: Some(outcome.total),
            rest: Some(OutcomeRest::from_outcome(outcome)),
            ..Self::for_running(&outcome.run, records)
        }
    }
}

/// Counts records by their status.
fn count_records<'a>(records: impl IntoIterator<Item = &'a SubagentRecord>) -> Counts {
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

/// Groups the subagents by the call that started them, in the order of the calls.
fn group_batches(records: &[SubagentRecord]) -> Vec<SubagentBatch> {
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
    let batch =
        |(parent, call, children): (Option<&str>, &str, Vec<&SubagentRecord>)| SubagentBatch {
            batch: call.to_owned(),
            parent_subagent_id: parent.map(str::to_owned),
            counts: count_records(children.iter().copied()),
            children: children.iter().map(|record| record.id.clone()).collect(),
        };
    calls.into_iter().map(batch).collect()
}

/// The status of an ended turn as the store has it.
pub(crate) fn message_status(status: RunStatus) -> MessageStatus {
    match status {
        RunStatus::Completed => MessageStatus::Completed,
        RunStatus::Partial => MessageStatus::Partial,
        RunStatus::Failed => MessageStatus::Failed,
        RunStatus::Cancelled => MessageStatus::Cancelled,
    }
}

/// The status of an outcome for a stored one; an unfinished turn counts as cancelled.
pub(crate) fn outcome_status(status: MessageStatus) -> RunStatus {
    match status {
        MessageStatus::Completed => RunStatus::Completed,
        MessageStatus::Partial => RunStatus::Partial,
        MessageStatus::Failed => RunStatus::Failed,
        MessageStatus::Cancelled | MessageStatus::InFlight | MessageStatus::Interrupted => {
            RunStatus::Cancelled
        }
    }
}
