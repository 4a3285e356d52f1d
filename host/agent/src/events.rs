//! The events of a run, as they happen: a typed stream for the terminal, `--output-format stream-json` and
//! the server.
//!
//! # The schema, version 3
//!
//! Each event is one JSON object; for example,
//! `{"v":3,"run":"...","seq":4,"agent":"main","type":"text_delta","text":"Hi"}`. Every event has
//!
//! | field | meaning |
//! | --- | --- |
//! | `v` | the version of this schema: 3. New events and new fields may be added within a version; a reader must skip unknown ones |
//! | `run` | id of the run |
//! | `seq` | number of the event in the run, from 0, without gaps |
//! | `agent` | the path of the agent: its name, for example `main`; a subagent's path has the parent's path in front and its spawn index: `main/scout#0` |
//! | `type` | the kind of the event, on which the other fields depend |
//!
//! and, by `type`,
//!
//! | type | fields |
//! | --- | --- |
//! | `run_started` | `id`, `model`, `tools` (names advertised), `workspace` |
//! | `run_resumed` | `kept`: the number of stored entries of the run whose process died. Events of a step without a result are sent again |
//! | `history_compacting` | `turns`, `model`; precedes `run_started`. A model summarises this number of the session's turns, because the history is too large to be sent |
//! | `history_compacted` | `turns`, `tokens_before`, `tokens_after` (of the history, estimated), `used`; the summary replaces the turns from now on. If there is no summary, a `warning` with the reason is sent instead |
//! | `step_started` | `step` (from 1), `last` (true: the model gets no tools) |
//! | `text_delta` | `text` |
//! | `thought_delta` | `text`: reasoning that the model shows; no part of the answer, and not kept in the conversation |
//! | `tool_call_started` | `step`, `call_id`, `parent` (the id of the outer call, if a tool made the call), `tool`, `arguments` (cut at 2,000 characters) |
//! | `tool_progress` | `call_id`, `tool`, `done`, `total` (absent: unknown), `text`: a progress report of the tool, between the call's start and end; at most `log_lines` for one call |
//! | `tool_call_finished` | `step`, `call_id`, `parent`, `tool`, `ok`, `ending`, `error` (the reason of a failed call, cut; absent if `ok`), `fuel`, `micros`, `denials`, `bytes` |
//! | `team_started` | `id`, `stages` (their number), `workspace`; first event of a team's run. The team's agents follow as `team/scout#0`, each with its own `run_started` |
//! | `team_stage_started` | `stage` (from 1), `of`, `agents` (names); they follow as a `subagent_batch_start` with `batch` = `stage-N` |
//! | `team_stage_finished` | `stage`, `status`, `error` |
//! | `subagent_batch_start` | `batch` (the id of the starting call), `title` (for several subagents started together, cut; absent without a title), `children` (`child`: its path, and `task`, cut), `background`, `max_concurrent` |
//! | `subagent_batch_end` | `batch`, `summary` (the subagents' endings and usage, in a line), `counts`; follows the last `subagent_done` |
//! | `subagent_background` | `batch`, `id`: the subagent continues in the background under this id, and the agent does not wait any more |
//! | `subagent_update` | `batch`, `child` (a subagent that runs now), `counts` |
//! | `subagent_done` | `batch`, `child`, `status`, `steps`, `tokens`, `error`, `counts` |
//! | `permission_asked` | `id`, `call_id`, `tool`, `arguments` (cut), and all that the call could touch: `mounts` (`path`, `access`), `hosts` (rules), `secrets` (names) |
//! | `permission_answered` | `id`, `call_id`, `tool`, `answer` (`yes`, `for_run`, `no`, `nobody`, `cancelled`) |
//! | `question_asked` | `id`, `question`, `options`; from `clarify`, or for an MCP server. `private`: `true` = `question` is a shortened text, and the whole text is in the list of open questions as long as the question is open; absent otherwise |
//! | `question_answered` | `id`, `answered` |
//! | `todos` | `items` (`content`, `status`) |
//! | `hook_ran` | `event` (`PreToolUse`, ...), `tool` (absent for an event without a tool), `hook` (the command or path, cut), `decision` (`pass`, `allow`, `ask`, `deny`, `narrow`, `halt`, `error`), `micros` |
//! | `retry` | `attempt`, `after_ms`, `reason`, `replaces`: `true` = the `text_delta`s of this agent's step so far are void, and the answer is sent again from its start; absent otherwise |
//! | `warning` | `text` |
//! | `budget_warning` | `meter`, `used`, `limit` |
//! | `run_finished` | `status`, `error`, `usage`, `total`; the outcome itself follows from the run |
//!
//! `counts` are those of the batch: `total`, `queued`, `running`, `completed`, `partial`, `failed`,
//! `cancelled`. Within a batch each child is started at most once, and is done once.
//!
//! Texts of models, tools and agent files are unchanged in events. Code that shows them to a person escapes
//! them (`belljar_policy::ShownText`). Events contain no secrets, because the sandbox redacts secrets first.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use belljar_policy::{METERS, Meter};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::{Object, ObjectBuilder, Type};

use crate::clock::RunId;
use crate::outcome::{RunStatus, Usage};
use crate::tools::approval::asker::{Approval, ReachedMount};

/// The version of the event schema, the `v` of each event.
pub const EVENT_VERSION: u32 = 3;

/// Characters of arguments and tasks in an event: enough to follow the run.
pub(crate) const MAX_SHOWN: usize = 2_000;

/// One event with its place in the run. An event is parsed back from its JSON, also when a session added
/// fields; an unknown `type` is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// [`EVENT_VERSION`].
    pub v: u32,
    /// The run.
    pub run: RunId,
    /// The event's number in the run, from 0.
    pub seq: u64,
    /// The path of the agent that the event is about, for example `main/scout#0`.
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    pub agent: Arc<str>,
    /// The kind of the event, with its fields, for example [`EventKind::TextDelta`].
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The kinds of events. The module's documentation is the schema.
#[derive(
    Debug,
    Clone,
    PartialEq,
    Serialize,
    Deserialize,
    ToSchema,
    strum::IntoStaticStr,
    strum::VariantNames,
)]
#[serde(tag = "type", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "the table in the module's documentation says it once")]
pub enum EventKind {
    RunStarted {
        id: String,
        model: String,
        tools: Vec<String>,
        workspace: String,
    },
    RunResumed {
        kept: usize,
    },
    HistoryCompacting {
        turns: usize,
        model: String,
    },
    HistoryCompacted {
        turns: usize,
        tokens_before: u64,
        tokens_after: u64,
        used: Usage,
    },
    StepStarted {
        step: u64,
        last: bool,
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
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
        tool: String,
        arguments: String,
    },
    ToolProgress {
        call_id: String,
        tool: String,
        done: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<u64>,
        /// Not `message`: of a session's events, that is the turn. Older programs wrote it there.
        #[serde(rename = "text", default)]
        #[schema(required = true)]
        message: String,
    },
    ToolCallFinished {
        step: u64,
        call_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
        tool: String,
        ok: bool,
        ending: String,
        /// The problem, for the person; foreign text, cut at 2,000 characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        fuel: u64,
        micros: u64,
        denials: usize,
        bytes: u64,
    },
    SubagentBatchStart {
        batch: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        children: Vec<BatchChild>,
        background: bool,
        max_concurrent: usize,
    },
    SubagentBatchEnd {
        batch: String,
        summary: String,
        counts: Counts,
    },
    SubagentBackground {
        batch: String,
        id: String,
    },
    SubagentUpdate {
        batch: String,
        child: String,
        counts: Counts,
    },
    SubagentDone {
        batch: String,
        child: String,
        status: RunStatus,
        steps: u64,
        tokens: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        counts: Counts,
    },
    PermissionAsked {
        id: u64,
        call_id: String,
        tool: String,
        arguments: String,
        /// Older programs do not say it, nor the next two.
        #[serde(default)]
        #[schema(required = true)]
        mounts: Vec<ReachedMount>,
        #[serde(default)]
        #[schema(required = true)]
        hosts: Vec<String>,
        #[serde(default)]
        #[schema(required = true)]
        secrets: Vec<String>,
    },
    PermissionAnswered {
        id: u64,
        call_id: String,
        tool: String,
        answer: Approval,
    },
    QuestionAsked {
        id: u64,
        /// For a private question, the storable part.
        question: String,
        options: Vec<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        private: bool,
    },
    QuestionAnswered {
        id: u64,
        answered: bool,
    },
    Todos {
        items: Vec<TodoItem>,
    },
    HookRan {
        event: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        hook: String,
        decision: String,
        micros: u64,
    },
    TeamStarted {
        id: String,
        stages: usize,
        workspace: String,
    },
    TeamStageStarted {
        stage: usize,
        of: usize,
        agents: Vec<String>,
    },
    TeamStageFinished {
        stage: usize,
        status: RunStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    Retry {
        attempt: u32,
        after_ms: u64,
        reason: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replaces: bool,
    },
    Warning {
        /// As that of [`EventKind::ToolProgress`].
        #[serde(rename = "text", default)]
        #[schema(required = true)]
        message: String,
    },
    BudgetWarning {
        #[schema(schema_with = meters)]
        meter: Meter,
        used: u64,
        limit: u64,
    },
    RunFinished {
        status: RunStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        usage: Usage,
        total: Usage,
    },
}

impl EventKind {
    /// The `type` of the event.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// A subagent of a batch that starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchChild {
    /// The path of the subagent, for example `main/scout#0`.
    pub child: String,
    /// Its task, cut.
    pub task: String,
}

/// How the subagents of a batch are doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[allow(missing_docs, reason = "the words of the statuses")]
pub struct Counts {
    pub total: usize,
    pub queued: usize,
    pub running: usize,
    pub completed: usize,
    pub partial: usize,
    pub failed: usize,
    pub cancelled: usize,
}

/// One thing on an agent's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TodoItem {
    /// The task.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far a thing to be done is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

impl TodoStatus {
    /// The word in calls and events.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

type Listener = dyn Fn(&Event) + Send + Sync;

/// The receiver of events: a function, or none. The function runs in the run's own task, possibly on several
/// threads, so it must return soon and must not wait.
#[derive(Clone, Default)]
pub struct EventSink(Option<Arc<Listener>>, TextRetention);

/// The agents whose text, once shown, the listener cannot take back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextRetention {
    /// No agent's: the listener can take back every text.
    #[default]
    Nothing,
    /// Only the top agent's.
    Top,
    /// Every agent's.
    All,
}

/// Numbers the events of a run and sends them to the sink. Without a listener no event is made.
#[derive(Clone)]
pub struct EventEmitter {
    sink: EventSink,
    run: RunId,
    seq: Arc<AtomicU64>,
    questions: Arc<AtomicU64>,
}

fn as_text<S: serde::Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

fn from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(deserializer).map(Into::into)
}

/// The OpenAPI schema of a [`Meter`]: one of its names.
fn meters() -> Object {
    let words = METERS.map(|meter| serde_json::to_value(meter).unwrap_or_default());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

impl EventSink {
    /// A sink without a listener: events are not even made.
    pub fn none() -> Self {
        Self(None, TextRetention::Nothing)
    }

    /// A sink that passes each event to `listener`.
    pub fn with_listener(listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)), TextRetention::Nothing)
    }

    /// States which texts the listener cannot take back. If a model's answer breaks off after such a text,
    /// the request is not repeated.
    #[must_use]
    pub fn with_retention(self, kept: TextRetention) -> Self {
        Self(self.0, self.1.max(kept))
    }
}

impl EventSink {
    /// A sink that passes each event to `listener` first, then to the present one.
    pub fn add_listener(self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        match self.0 {
            None => Self::with_listener(listener),
            Some(other) => Self::with_listener(move |event| {
                listener(event);
                other(event);
            })
            .with_retention(self.1),
        }
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "EventSink(listened to)" } else { "EventSink(none)" })
    }
}

impl EventEmitter {
    /// Creates the emitter of a run. `first` is the number of its first event, above 0 if the run resumes.
    pub fn new(sink: EventSink, run: RunId, first: u64) -> Self {
        // Question numbers also start here, so a resumed run does not use a number again.
        let questions = Arc::new(AtomicU64::new(first));
        Self { sink, run, seq: Arc::new(AtomicU64::new(first)), questions }
    }

    /// The number of the next event.
    pub fn next_number(&self) -> u64 {
        self.seq.load(Ordering::Relaxed)
    }

    /// The number of the next question to a person, from 1.
    pub(crate) fn next_question(&self) -> u64 {
        self.questions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns whether there is a listener.
    pub(crate) fn has_listener(&self) -> bool {
        self.sink.0.is_some()
    }

    /// Returns whether a shown text of the agent at `path` cannot be taken back.
    pub(crate) fn retains_text(&self, path: &str) -> bool {
        match self.sink.1 {
            TextRetention::Nothing => false,
            TextRetention::Top => !path.contains('/'),
            TextRetention::All => true,
        }
    }

    /// Sends an event about `agent`. `make` is called only if there is a listener.
    pub fn emit(&self, agent: &Arc<str>, make: impl FnOnce() -> EventKind) {
        let Some(listener) = &self.sink.0 else { return };
        listener(&Event {
            v: EVENT_VERSION,
            run: self.run.clone(),
            seq: self.seq.fetch_add(1, Ordering::Relaxed),
            agent: Arc::clone(agent),
            kind: make(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    use crate::clock::FixedClock;

    #[test]
    fn an_event_is_one_flat_object_tagged_by_type() {
        let clock = FixedClock::new("2026-11-20T10:00:00Z".parse().unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let sink = EventSink::with_listener(move |event| {
            kept.lock().unwrap().push(serde_json::to_string(event).unwrap());
        });
        let events = EventEmitter::new(sink, RunId::new(&clock), 0);
        let agent: Arc<str> = "main".into();
        events.emit(&agent, || EventKind::StepStarted { step: 1, last: false });
        events.emit(&agent, || EventKind::TextDelta { text: "hi".into() });
        let run = "20261120T100000000Z-0000000000000";
        assert_eq!(
            *lines.lock().unwrap(),
            [
                format!(
                    r#"{{"v":3,"run":"{run}","seq":0,"agent":"main","type":"step_started","step":1,"last":false}}"#
                ),
                format!(
                    r#"{{"v":3,"run":"{run}","seq":1,"agent":"main","type":"text_delta","text":"hi"}}"#
                ),
            ]
        );
        let kind = EventKind::RunResumed { kept: 3 };
        let json = serde_json::to_value(&kind).unwrap();
        assert_eq!(json["type"], kind.name());
    }

    #[test]
    fn nothing_is_made_when_nobody_listens() {
        let clock = FixedClock::new("2026-11-20T10:00:00Z".parse().unwrap());
        let events = EventEmitter::new(EventSink::none(), RunId::new(&clock), 0);
        events.emit(&"main".into(), || unreachable!("made for nobody"));
    }
}
