//! A subagent's record: made when the subagent is queued, and completed with its outcome.

use belljar_agent::{ChildOrigin, ChildSummary, Findings, Outcome, QueuedChild, RunStatus, Usage};
use belljar_store::{SubagentRecord, SubagentSource, SubagentStatus};
use serde::{Deserialize, Serialize};

use super::rest::OutcomeRest;
use super::{present, to_column, to_row_value};

/// The most characters of a conclusion that a record's summary has.
const MAX_SUMMARY: usize = 400;

/// The field `result` of a subagent's record. Until the subagent has ended, only the first two fields are
/// present.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ChildResult {
    /// The subagent's path in the run, for example `main/scout#0`.
    pub(crate) path: String,
    /// The number of earlier agents of the same name in the run.
    pub(crate) spawn_index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<Usage>,
    /// The findings of the conclusion. `None` = not ended yet; `Some(None)` = concluded without findings.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub(crate) findings: Option<Option<Findings>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths_read: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths_written: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rest: Option<OutcomeRest>,
    /// The name of the caller who cancelled the subagent, or a word of `record::cause`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_by: Option<String>,
}

impl ChildResult {
    fn new_queued(path: &str, spawn_index: u32) -> Self {
        Self { path: path.to_owned(), spawn_index, ..Self::default() }
    }

    /// Makes the result of a subagent that has ended.
    fn from_child(child: &ChildSummary) -> Self {
        let outcome = &child.outcome;
        Self {
            output: Some(outcome.output.clone()),
            step: Some(child.step),
            usage: Some(outcome.usage),
            total: Some(outcome.total),
            findings: Some(outcome.findings.clone()),
            paths_read: Some(owned_paths(outcome.paths_read())),
            paths_written: Some(owned_paths(outcome.paths_written())),
            warnings: Some(outcome.warnings.clone()),
            rest: Some(OutcomeRest::from_outcome(outcome)),
            ..Self::new_queued(&child.path, child.spawn_index)
        }
    }

    /// Parses the result in a record; fields that older versions of belljar did not write are empty.
    pub(crate) fn from_record(record: &SubagentRecord) -> Self {
        Self::deserialize(&record.result).unwrap_or_default()
    }
}

fn owned_paths(paths: Vec<&str>) -> Vec<String> {
    paths.into_iter().map(str::to_owned).collect()
}

/// The path of a subagent in its run, for example `main/scout#0`.
pub(crate) fn path_of(record: &SubagentRecord) -> Option<&str> {
    record.result["path"].as_str()
}

/// Makes the records of all subagents of an ended turn, before the turn's message is stored; parents come
/// before children.
pub(crate) fn new_records(
    message: &str,
    outcome: &Outcome,
    now: i64,
    new_id: impl Fn() -> String,
) -> Vec<SubagentRecord> {
    let mut records = Vec::new();
    // For each outcome to visit: the outcome, the id of its record, and the depth.
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
            end_record(&mut record, child);
            parents.push((&child.outcome, Some(record.id.clone()), depth + 1));
            records.push(record);
        }
    }
    records
}

/// Makes the record of a waiting subagent. `place` = the number of subagents that the message started before.
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
            ChildOrigin::Preset => SubagentSource::Preset,
            ChildOrigin::Fork => SubagentSource::Fork,
            ChildOrigin::Team => SubagentSource::Team,
        },
        agent: child.agent.clone(),
        display_name: format!("{name}#{}", child.spawn_index),
        goal: child.task.clone(),
        context: child.context.clone(),
        status: SubagentStatus::Queued,
        model: String::new(),
        tool_names: Vec::new(),
        summary: String::new(),
        result: to_row_value(&ChildResult::new_queued(&child.path, child.spawn_index)),
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

/// Writes the outcome of a subagent into the subagent's record.
pub(crate) fn end_record(record: &mut SubagentRecord, child: &ChildSummary) {
    let outcome = &child.outcome;
    record.tool_names = outcome.receipts.iter().map(|receipt| receipt.tool.clone()).collect();
    record.tool_names.sort_unstable();
    record.tool_names.dedup();
    record.status = subagent_status(outcome.status);
    record.model.clone_from(&outcome.model);
    record.summary = outcome.output.chars().take(MAX_SUMMARY).collect();
    record.result = to_row_value(&ChildResult::from_child(child));
    record.error = outcome.error.as_ref().map(ToString::to_string);
    record.input_tokens = to_column(outcome.total.input_tokens);
    record.cached_tokens = to_column(outcome.total.cached_tokens);
    record.output_tokens = to_column(outcome.total.output_tokens);
    record.fuel = to_column(outcome.total.fuel);
    record.started = Some(outcome.started.as_millisecond());
    record.ended = Some(outcome.ended.as_millisecond());
}

/// The status of an ended subagent as the store has it.
fn subagent_status(status: RunStatus) -> SubagentStatus {
    match status {
        RunStatus::Completed => SubagentStatus::Completed,
        RunStatus::Partial => SubagentStatus::Partial,
        RunStatus::Failed => SubagentStatus::Failed,
        RunStatus::Cancelled => SubagentStatus::Cancelled,
    }
}

/// The status of an outcome for a stored one; an unfinished subagent counts as cancelled.
pub(crate) fn child_status(status: SubagentStatus) -> RunStatus {
    match status {
        SubagentStatus::Completed => RunStatus::Completed,
        SubagentStatus::Partial => RunStatus::Partial,
        SubagentStatus::Failed => RunStatus::Failed,
        SubagentStatus::Cancelled | SubagentStatus::Queued | SubagentStatus::Running => {
            RunStatus::Cancelled
        }
    }
}

/// The subagents that the agent at the top started. Their totals include those of their descendants.
pub(crate) fn top_subagents<'a>(
    subagents: &'a [&SubagentRecord],
) -> impl Iterator<Item = &'a SubagentRecord> {
    subagents.iter().copied().filter(|subagent| subagent.parent_subagent_id.is_none())
}
