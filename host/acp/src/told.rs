//! The part of an event that an editor is shown.

use serde::Deserialize;

/// An event: the agent, and the happening.
#[derive(Debug, Deserialize)]
pub(crate) struct Told {
    pub(crate) agent: String,
    #[serde(flatten)]
    pub(crate) kind: Kind,
}

/// The kinds that matter here; `belljar_agent::events` defines the fields.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Kind {
    RunResumed {},
    StepStarted {
        step: u64,
    },
    TextDelta {
        text: String,
    },
    ThoughtDelta {
        text: String,
    },
    ToolCallStarted {
        step: u64,
        call_id: String,
        tool: String,
        arguments: String,
    },
    ToolProgress {
        call_id: String,
        done: u64,
        total: Option<u64>,
        /// Older programs say it elsewhere.
        #[serde(rename = "text", default)]
        message: String,
    },
    ToolCallFinished {
        step: u64,
        call_id: String,
        tool: String,
        ok: bool,
        error: Option<String>,
    },
    SubagentBatchStart {
        batch: String,
        #[serde(default)]
        title: Option<String>,
        children: Vec<Child>,
    },
    SubagentBatchEnd {
        batch: String,
        summary: String,
    },
    SubagentUpdate {
        child: String,
    },
    SubagentDone {
        batch: String,
        child: String,
        status: String,
        error: Option<String>,
        counts: Counts,
    },
    PermissionAsked {
        id: u64,
        call_id: String,
        tool: String,
        arguments: String,
    },
    QuestionAsked {
        id: u64,
        question: String,
        options: Vec<String>,
        #[serde(default)]
        private: bool,
    },
    Todos {
        items: Vec<Todo>,
    },
    TeamStageStarted {
        stage: usize,
        of: usize,
        agents: Vec<String>,
    },
    HistoryCompacting {},
    HistoryCompacted {},
    Retry {
        attempt: u32,
        reason: String,
        /// Whether the text of the step until now is void: the next attempt says it anew.
        #[serde(default)]
        replaces: bool,
    },
    Warning {
        /// Older programs say it elsewhere.
        #[serde(rename = "text", default)]
        message: String,
    },
    BudgetWarning {
        meter: String,
        used: u64,
        limit: u64,
    },
    #[serde(other)]
    Other,
}

/// A subagent that starts.
#[derive(Debug, Deserialize)]
pub(crate) struct Child {
    pub(crate) child: String,
    pub(crate) task: String,
}

/// How many subagents of a call there are, and are left.
#[derive(Debug, Deserialize)]
pub(crate) struct Counts {
    pub(crate) total: usize,
    #[serde(default)]
    pub(crate) queued: usize,
    #[serde(default)]
    pub(crate) running: usize,
}

/// One thing on an agent's list.
#[derive(Debug, Deserialize)]
pub(crate) struct Todo {
    pub(crate) content: String,
    pub(crate) status: String,
}
