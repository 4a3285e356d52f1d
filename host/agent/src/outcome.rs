//! The outcome of a run or a subagent: the ending, and all the work.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::AddAssign;

use belljar_model::{ChatMessage, ToolCall};
use belljar_policy::ExhaustedLimit;
use belljar_sandbox::Receipt;
use belljar_work::WorkError;
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::RunId;
use crate::prompt::findings::Findings;

/// The outcome of an agent, with the work until its end. Made after every ending.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The status at the end.
    pub status: RunStatus,
    /// The conclusion: the model's last text that is not blank. Foreign text: escape it before showing it to
    /// a person.
    pub output: String,
    /// The whole conversation: history, task, and everything after. Each tool call has a result. Not part of
    /// a saved run.
    #[serde(skip)]
    pub messages: Vec<ChatMessage>,
    /// The calls of the caller's tools at the end: the caller's next turn brings results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// The reason why the run did not complete; absent if completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Files that tools handed over, in the order of the calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The host's lines about merged changes, for a subagent with separate overlays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// The usage of the agent, without its children.
    pub usage: Usage,
    /// The usage of the agent and its children.
    pub total: Usage,
    /// The findings, if the definition sets `emitStructuredFindings`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<Findings>,
    /// A receipt for each begun or refused tool call of the agent, in the order asked. A call that started a
    /// subagent is in `children` instead.
    pub receipts: Vec<CallReceipt>,
    /// The subagents, in the order asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildSummary>,
    /// Warnings for a person: granted less than asked, a truncated answer, a
    /// tool that could not be offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Operations that had not ended when the run ended, after the limits in [`crate::limits`]. Empty in
    /// every ordinary run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<String>,
    /// The run; a subagent's is its parent's.
    pub run: RunId,
    /// The agent's identity: scope and slug, for example `library/NAME/scout`.
    pub agent: String,
    /// The model, as provider and name, for example `openai:gpt-x`; empty if none was chosen.
    pub model: String,
    /// The start of the run.
    pub started: Timestamp,
    /// The end of the run.
    pub ended: Timestamp,
}

/// How an agent ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RunStatus {
    /// Ended by itself.
    Completed,
    /// A budget ran out; the output is what there was.
    Partial,
    /// Failed by a fault, for example of the model, the setup or the host.
    Failed,
    /// Stopped by somebody.
    Cancelled,
}

/// The reason why an agent did not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum RunError {
    /// A budget is used up: steps, tokens or fuel, of the agent or of an ancestor.
    #[error("{exhausted}")]
    Budget {
        /// The meter, the budget's owner, and the limit.
        #[serde(flatten)]
        exhausted: ExhaustedLimit,
    },
    /// The wall time is used up.
    #[error("the time limit of {seconds} s is used up")]
    WallTime {
        /// The limit, in seconds.
        seconds: u64,
    },
    /// The model's last answer was cut at its own output limit.
    #[error("the model's answer was cut at its output limit")]
    OutputCut,
    /// The model ended without any text.
    #[error("the model ended without an answer")]
    NoAnswer,
    /// The model, or a filter before the model, declined.
    #[error("the model declined to answer")]
    Declined,
    /// The provider ended the answer before its end, for example because of a filter.
    #[error("the model stopped before its answer ended: {reason}")]
    Stopped {
        /// The provider's name for the reason; escaped.
        reason: String,
    },
    /// A model call failed, and further retries are useless.
    #[error("{message}")]
    Model {
        /// The problem; safe to show.
        message: String,
        /// True if the request does not fit into the model's context.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        too_long: bool,
        /// The remedy for the operator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// The agent could not be started: blocked, no model, no workspace.
    #[error("{message}")]
    Setup {
        /// The missing part; safe to show.
        message: String,
        /// The remedy for the operator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// A hook of the operator refused the start, or ended the run.
    #[error("a hook stopped it: {reason}")]
    Hook {
        /// The hook's reason; escaped.
        reason: String,
    },
    /// An input of the caller does not fit the agent.
    #[error("{message}")]
    Caller {
        /// The failed part and the reason; safe to show.
        message: String,
        /// True if the images are at fault.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        images: bool,
    },
    /// No answer had the form that the caller requires.
    #[error("no answer of the model had the form that was asked for: {message}")]
    Form {
        /// The place of the fault in the last answer; escaped.
        message: String,
    },
    /// The host lacked room or time for some work: a retry may succeed.
    #[error("{message}; try again later")]
    Busy {
        /// The work; safe to show.
        message: String,
    },
    /// The run was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// A bug in belljar.
    #[error("belljar itself failed: {message}; please report it")]
    Internal {
        /// The known details.
        message: String,
    },
}

/// Amounts that were used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RunUsage)]
pub struct Usage {
    /// Steps: answers of the model, each with its calls.
    pub steps: u64,
    /// Input tokens, cached ones included.
    pub input_tokens: u64,
    /// Input tokens from the provider's cache.
    pub cached_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Tool calls, refused ones included.
    pub tool_calls: u64,
    /// Fuel of all tool calls.
    pub fuel: u64,
}

/// A file that a tool handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The id of the call.
    pub call_id: String,
    /// The file name without any path, for example `report.pdf`. Foreign text.
    pub name: String,
    /// The media type, as the tool states it, for example `text/csv`. Foreign text.
    pub media_type: String,
    /// The size in bytes.
    pub size: u64,
    /// The file in which the command line saved the attachment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_to: Option<std::path::PathBuf>,
    /// The content; not part of a saved run.
    #[serde(skip)]
    pub data: Bytes,
}

/// The effects of one tool call, with its place in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallReceipt {
    /// The call's id in the conversation. For a tool's call, the id begins with the outer call's id.
    pub call_id: String,
    /// The id of the outer call, if a tool made the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The step of the call, from 1.
    pub step: u64,
    /// The name that the model called, cut at a bound. Foreign text.
    pub tool: String,
    /// The calling agent's name; for a subagent, after the parent's, for example `main/scout#0`.
    pub agent: String,
    /// The reason of a failed call, cut at a bound. Foreign text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The effects and costs of the call.
    pub receipt: Receipt,
}

/// Sorts records so that nested calls follow their outer call, and keeps the order otherwise. A nested call
/// whose outer call is missing is treated as a model's call.
pub fn in_tree_order<T>(calls: &mut Vec<T>, receipt: impl Fn(&T) -> &CallReceipt) {
    if calls.iter().all(|call| receipt(call).parent.is_none()) {
        return;
    }
    let ids: HashSet<String> = calls.iter().map(|call| receipt(call).call_id.clone()).collect();
    let mut below: HashMap<String, Vec<T>> = HashMap::new();
    let mut open: Vec<T> = Vec::new();
    for call in calls.drain(..) {
        let of = &receipt(&call).parent;
        match of.clone().filter(|parent| ids.contains(parent) && *parent != receipt(&call).call_id)
        {
            Some(parent) => below.entry(parent).or_default().push(call),
            None => open.push(call),
        }
    }
    open.reverse();
    while let Some(call) = open.pop() {
        if let Some(made) = below.remove(&receipt(&call).call_id) {
            open.extend(made.into_iter().rev());
        }
        calls.push(call);
    }
    // Calls that name each other as outer call, possible only in a damaged store, are kept at the end.
    calls.extend(below.into_values().flatten());
}

/// One subagent of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChildSummary {
    /// The starting call.
    pub call_id: String,
    /// The parent's step, from 1.
    pub step: u64,
    /// The number of earlier agents of the same name in the run.
    pub spawn_index: u32,
    /// The name after the parent's path, for example `main/scout#0`; unique in the run.
    #[serde(default)]
    pub path: String,
    /// The origin of the subagent.
    #[serde(default)]
    pub origin: ChildOrigin,
    /// The task, as the parent wrote it.
    pub task: String,
    /// The context, as the parent wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The outcome, with its own receipts.
    pub outcome: Outcome,
}

impl Outcome {
    /// The receipts of the agent and of its subagents, each agent's in order.
    pub fn all_receipts(&self) -> Vec<&CallReceipt> {
        let mut all: Vec<&CallReceipt> = self.receipts.iter().collect();
        for child in &self.children {
            all.extend(child.outcome.all_receipts());
        }
        all
    }

    /// Guest paths read by the agent and its subagents, sorted, each once.
    pub fn paths_read(&self) -> Vec<&str> {
        self.collect_paths(|receipt| &receipt.paths_read)
    }

    /// Guest paths that the agent and its subagents created, changed or removed.
    pub fn paths_written(&self) -> Vec<&str> {
        self.collect_paths(|receipt| &receipt.paths_written)
    }

    /// Collects the paths that `of` selects from all receipts, sorted, each once.
    fn collect_paths(&self, of: impl Fn(&Receipt) -> &Vec<String>) -> Vec<&str> {
        let receipts = self.all_receipts();
        let paths: BTreeSet<&str> =
            receipts.iter().flat_map(|call| of(&call.receipt)).map(String::as_str).collect();
        paths.into_iter().collect()
    }
}

impl RunError {
    /// The error as text for a model: without host paths, and without the hints that only an operator can
    /// follow.
    pub fn to_model_text(&self) -> String {
        match self {
            Self::Setup { .. } => "it could not be started".to_owned(),
            Self::Model { .. } => "its model call failed".to_owned(),
            Self::Internal { .. } => "the host failed".to_owned(),
            Self::Busy { .. } => "the host had no time for it".to_owned(),
            Self::Budget { .. }
            | Self::WallTime { .. }
            | Self::OutputCut
            | Self::NoAnswer
            | Self::Declined
            | Self::Stopped { .. }
            | Self::Hook { .. }
            | Self::Caller { .. }
            | Self::Form { .. }
            | Self::Cancelled => self.to_string(),
        }
    }
}

/// Converts the error of host work that was not done, for lack of room or time.
impl From<&WorkError> for RunError {
    fn from(error: &WorkError) -> Self {
        let message = error.to_string();
        match error {
            WorkError::Busy { .. } | WorkError::TimedOut { .. } => Self::Busy { message },
            WorkError::Panicked { .. } => Self::Internal { message },
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        let add = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        add(&mut self.steps, other.steps);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.cached_tokens, other.cached_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.tool_calls, other.tool_calls);
        add(&mut self.fuel, other.fuel);
    }
}

impl Usage {
    /// Subtracts another usage from each count; a count does not fall below 0.
    #[must_use]
    pub fn saturating_sub(self, part: Self) -> Self {
        Self {
            steps: self.steps.saturating_sub(part.steps),
            input_tokens: self.input_tokens.saturating_sub(part.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(part.cached_tokens),
            output_tokens: self.output_tokens.saturating_sub(part.output_tokens),
            tool_calls: self.tool_calls.saturating_sub(part.tool_calls),
            fuel: self.fuel.saturating_sub(part.fuel),
        }
    }
}

/// The origin of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChildOrigin {
    /// The subagent has its own definition, and an empty history.
    #[default]
    Preset,
    /// The subagent is a copy of its parent's conversation.
    Fork,
    /// The stage of a team.
    Team,
}
