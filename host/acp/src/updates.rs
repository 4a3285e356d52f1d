//! Converts events of a turn to updates of an editor's sessions. Has no effect of its own: updates and
//! questions are returned.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use agent_client_protocol::v1::schema::{
    CompactionStatus, CompactionUpdate, ContentChunk, MessageId, Notice, NoticeSeverity, Plan,
    PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate, ToolCall, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use belljar_agent::{BatchChild, Counts, EventKind, TodoItem, TodoStatus};
use belljar_policy::Shown;

use crate::children;
use crate::client::Client;
use crate::limits::{MAX_RESULTS, MAX_TITLE};
use crate::results::{CallResult, Passed, PassedKind};
use crate::terminal::Screen;
use crate::{places, tool_call};

/// An update to send, or a question to ask.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are updates")]
pub(crate) enum Out {
    /// An update of this session.
    Update(String, SessionUpdate),
    /// A call of this session waits for a person's decision.
    Permission { session: String, id: u64, call: Box<ToolCallUpdate> },
    /// An agent asks the person a question.
    Clarify(String, Clarify),
}

/// A question of an agent, from its event.
#[derive(Debug)]
pub(crate) struct Clarify {
    pub(crate) id: u64,
    pub(crate) question: String,
    /// True if the event has only the text that may be stored.
    pub(crate) private: bool,
    pub(crate) options: Vec<String>,
}

/// Maps the events of one turn.
pub(crate) struct Updates {
    client: Client,
    session: String,
    /// The agent's message.
    message: String,
    workspace: PathBuf,
    /// The present step of each agent.
    steps: HashMap<String, u64>,
    /// The shown calls, by the calling agent and the call's id.
    shown: HashMap<(String, String), ShownCall>,
    /// Whole arguments of coming calls: the step, if known, the call, the text.
    asked: VecDeque<(Option<u64>, String, String)>,
    /// Results of calls that were not shown yet.
    early: VecDeque<std::sync::Arc<Passed>>,
}

/// A call that was shown.
struct ShownCall {
    id: String,
    tool: String,
    /// Content that stays in every later update: the change, or a terminal.
    stays: Vec<ToolCallContent>,
    screen: Option<Screen>,
}

impl Updates {
    /// Creates the converter for the turn of this message.
    pub(crate) fn new(client: Client, session: &str, message: &str, workspace: PathBuf) -> Self {
        Self {
            client,
            session: session.to_owned(),
            message: message.to_owned(),
            workspace,
            steps: HashMap::new(),
            shown: HashMap::new(),
            asked: VecDeque::new(),
            early: VecDeque::new(),
        }
    }

    /// The session of an agent; `None` = invisible to this editor.
    fn session_of(&self, agent: &str) -> Option<String> {
        match children::is_child(agent) {
            false => Some(self.session.clone()),
            true => self.client.subagents.then(|| children::id(&self.message, agent)),
        }
    }

    /// The updates of an event about this agent.
    pub(crate) fn of(&mut self, agent: String, kind: EventKind) -> Vec<Out> {
        let mut out = Vec::new();
        let asks =
            matches!(kind, EventKind::PermissionAsked { .. } | EventKind::QuestionAsked { .. });
        // A question of an agent that is not shown appears in the session of its parent at the top.
        let seen = self.session_of(&agent).or_else(|| asks.then(|| self.session.clone()));
        let Some(session) = seen else { return out };
        let mut update = |update| out.push(Out::Update(session.clone(), update));
        match kind {
            EventKind::StepStarted { step, .. } => {
                self.steps.insert(agent, step);
            }
            EventKind::TextDelta { text } => update(self.chunk(&agent, &text)),
            EventKind::ThoughtDelta { text } => update(self.thought(&agent, &text)),
            EventKind::ToolCallStarted { step, call_id, tool, arguments, .. } => {
                update(self.started(agent, step, call_id, tool, arguments));
            }
            EventKind::ToolProgress { call_id, done, total, message, .. } => {
                out.extend(self.progress(&session, agent, call_id, done, total, &message));
            }
            EventKind::ToolCallFinished { step, call_id, tool, ok, error, .. } => {
                update(self.finished(agent, step, call_id, &tool, ok, error));
            }
            EventKind::SubagentBatchStart { batch, title, children, .. } => {
                self.batch(&session, &batch, title.as_deref(), &children, &mut out);
            }
            EventKind::SubagentBatchEnd { batch, summary, .. } => {
                update(self.batch_ended(&batch, &summary));
            }
            EventKind::SubagentUpdate { child, .. } => {
                if let Some(id) = self.session_of(&child) {
                    update(children::runs(&id));
                }
            }
            EventKind::SubagentDone { batch, child, status, error, counts, .. } => {
                if self.client.subagents {
                    let id = children::id(&self.message, &child);
                    update(children::ended(&id, status, error.as_deref()));
                }
                update(self.batch_done(&batch, &counts));
            }
            EventKind::PermissionAsked { id, call_id, tool, arguments, .. } => {
                let call = self.waits(agent, id, call_id, &tool, &arguments);
                out.push(Out::Permission { session, id, call: Box::new(call) });
            }
            EventKind::QuestionAsked { id, question, options, private } => {
                out.push(Out::Clarify(session, Clarify { id, question, private, options }));
            }
            EventKind::Todos { items } => update(SessionUpdate::Plan(plan(items))),
            EventKind::TeamStageStarted { stage, of, agents } => {
                let text = format!("Stage {stage} of {of}: {}\n\n", agents.join(", "));
                update(self.chunk(&agent, &text));
            }
            other => out.extend(self.remark(&session, &other)),
        }
        out
    }

    /// Handles a passing step of this turn; returns its updates.
    pub(crate) fn passed(&mut self, passed: std::sync::Arc<Passed>) -> Vec<Out> {
        if passed.run != self.message {
            return Vec::new();
        }
        match &passed.kind {
            PassedKind::Asked(calls) => {
                for (id, arguments) in calls {
                    self.asked.push_back((Some(passed.step), id.clone(), arguments.clone()));
                }
                while self.asked.len() > MAX_RESULTS {
                    self.asked.pop_front();
                }
                Vec::new()
            }
            PassedKind::Result(result) => match self.result(result) {
                Some(out) => vec![out],
                None => {
                    self.early.push_back(passed);
                    while self.early.len() > MAX_RESULTS {
                        self.early.pop_front();
                    }
                    Vec::new()
                }
            },
        }
    }

    /// Notes the arguments of a call of this turn, from any step.
    pub(crate) fn knows(&mut self, call_id: String, arguments: String) {
        if self.asked.len() < MAX_RESULTS {
            self.asked.push_back((None, call_id, arguments));
        }
    }

    /// The results of calls that have been shown by now.
    pub(crate) fn late(&mut self) -> Vec<Out> {
        let early = std::mem::take(&mut self.early);
        early.into_iter().flat_map(|passed| self.passed(passed)).collect()
    }

    /// The ends of terminals whose output was not received.
    pub(crate) fn ends(&mut self) -> Vec<Out> {
        let mut out = Vec::new();
        for ((agent, _), shown) in &mut self.shown {
            let Some(meta) = shown.screen.as_mut().and_then(Screen::ends) else { continue };
            let session = match (children::is_child(agent), self.client.subagents) {
                (false, _) => self.session.clone(),
                (true, true) => children::id(&self.message, agent),
                (true, false) => continue,
            };
            let fields = ToolCallUpdateFields::new();
            let update = ToolCallUpdate::new(shown.id.clone(), fields).meta(meta);
            out.push(Out::Update(session, SessionUpdate::ToolCallUpdate(update)));
        }
        out
    }

    fn result(&mut self, result: &CallResult) -> Option<Out> {
        let session = self.session_of(&result.agent)?;
        let shown = self.shown.get_mut(&(result.agent.clone(), result.call_id.clone()))?;
        let mut content = shown.stays.clone();
        let meta = shown.screen.as_mut().map(|screen| screen.shows(&result.content, result.exit));
        if meta.is_none() && !result.content.trim().is_empty() {
            content.push(tool_call::text(&result.content));
        }
        let raw = serde_json::from_str(&result.content);
        let raw = raw.unwrap_or_else(|_| serde_json::Value::String(result.content.clone()));
        let mut fields = ToolCallUpdateFields::new().content(content).raw_output(raw);
        let places = result.paths.iter().filter_map(|path| {
            places::of_guest(&self.workspace, path)
                .map(agent_client_protocol::v1::schema::ToolCallLocation::new)
        });
        let places: Vec<_> = places.collect();
        if !places.is_empty() {
            fields = fields.locations(places);
        }
        let update = ToolCallUpdate::new(shown.id.clone(), fields).meta(meta);
        Some(Out::Update(session, SessionUpdate::ToolCallUpdate(update)))
    }

    fn chunk(&self, agent: &str, text: &str) -> SessionUpdate {
        let chunk = ContentChunk::new(tool_call::whole(text));
        SessionUpdate::AgentMessageChunk(chunk.message_id(self.message_id(agent, "")))
    }

    /// The reasoning of a model, apart from the answer.
    fn thought(&self, agent: &str, text: &str) -> SessionUpdate {
        let chunk = ContentChunk::new(tool_call::whole(text));
        SessionUpdate::AgentThoughtChunk(chunk.message_id(self.message_id(agent, ".thought")))
    }

    fn message_id(&self, agent: &str, ending: &str) -> MessageId {
        let step = self.steps.get(agent).copied().unwrap_or_default();
        MessageId::from(format!("{}.{step}{ending}", self.message))
    }

    /// The id of a call in its session.
    fn call_id(&self, step: u64, call: &str) -> String {
        format!("{}.{step}.{call}", self.message)
    }

    fn started(
        &mut self,
        agent: String,
        step: u64,
        call_id: String,
        tool: String,
        arguments: String,
    ) -> SessionUpdate {
        let whole = self.asked.iter().position(|(at, id, whole)| {
            at.is_none_or(|at| at == step)
                && *id == call_id
                && whole.starts_with(arguments.as_str())
        });
        let whole = whole.and_then(|at| self.asked.remove(at)).map(|(.., whole)| whole);
        let id = self.call_id(step, &call_id);
        let input = tool_call::arguments(whole.as_deref().unwrap_or(&arguments));
        let screen = self.client.terminals.then(|| Screen::of(&tool, &id)).flatten();
        let stays = match &screen {
            Some(screen) => vec![screen.content()],
            None => tool_call::diffs(&tool, &input, &self.workspace),
        };
        let call = ToolCall::new(id.clone(), tool_call::title(&tool, &input))
            .kind(tool_call::kind(&tool))
            .status(ToolCallStatus::InProgress)
            .locations(tool_call::locations(&input, &self.workspace))
            .content(stays.clone())
            .raw_input(input)
            .meta(screen.as_ref().map(|screen| screen.begins(&self.workspace)));
        self.shown.insert((agent, call_id), ShownCall { id, tool, stays, screen });
        SessionUpdate::ToolCall(call)
    }

    fn progress(
        &self,
        session: &str,
        agent: String,
        call_id: String,
        done: u64,
        total: Option<u64>,
        message: &str,
    ) -> Option<Out> {
        let shown = self.shown.get(&(agent, call_id))?;
        let of = total.map_or_else(String::new, |total| format!(" of {total}"));
        let mut content = shown.stays.clone();
        content.push(tool_call::text(&format!("{done}{of} {message}")));
        let fields = ToolCallUpdateFields::new().content(content);
        let update = ToolCallUpdate::new(shown.id.clone(), fields);
        Some(Out::Update(session.to_owned(), SessionUpdate::ToolCallUpdate(update)))
    }

    fn finished(
        &mut self,
        agent: String,
        step: u64,
        call_id: String,
        tool: &str,
        ok: bool,
        error: Option<String>,
    ) -> SessionUpdate {
        let status = if ok { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        let id = self.call_id(step, &call_id);
        let key = (agent, call_id);
        let known = self.shown.get_mut(&key);
        let title = known.is_none().then(|| Shown::clipped(tool, MAX_TITLE).to_string());
        let mut fields = ToolCallUpdateFields::new().status(status).title(title);
        if let Some(error) = error {
            let mut content = known.as_ref().map(|it| it.stays.clone()).unwrap_or_default();
            content.push(tool_call::text(&error));
            fields = fields.content(content);
        }
        let id = known.as_ref().map_or(id, |shown| shown.id.clone());
        let screen = known.and_then(|shown| shown.screen.as_mut());
        let meta = screen.and_then(|screen| screen.over(ok));
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields).meta(meta))
    }

    /// The call that waits for a person, shown before or not.
    fn waits(
        &self,
        agent: String,
        question: u64,
        call_id: String,
        tool: &str,
        arguments: &str,
    ) -> ToolCallUpdate {
        let whole =
            self.asked.iter().find(|(_, id, whole)| *id == call_id && whole.starts_with(arguments));
        let input = tool_call::arguments(whole.map_or(arguments, |(.., whole)| whole.as_str()));
        let shown = self.shown.get(&(agent, call_id));
        let id = shown.map_or_else(
            || format!("{}.question.{question}", self.message),
            |shown| shown.id.clone(),
        );
        let name = shown.map_or(tool, |shown| shown.tool.as_str());
        let fields = ToolCallUpdateFields::new()
            .title(tool_call::title(name, &input))
            .kind(tool_call::kind(tool))
            .status(ToolCallStatus::Pending)
            .locations(tool_call::locations(&input, &self.workspace))
            .content(tool_call::diffs(tool, &input, &self.workspace))
            .raw_input(input);
        ToolCallUpdate::new(id, fields)
    }

    /// The beginning of subagents: a call of the parent, and a session each for an editor that supports
    /// subagents.
    fn batch(
        &self,
        session: &str,
        batch: &str,
        title: Option<&str>,
        children: &[BatchChild],
        out: &mut Vec<Out>,
    ) {
        let names: Vec<&str> =
            children.iter().filter_map(|child| child.child.rsplit('/').next()).collect();
        let names = names.join(", ");
        let title = format!("subagents: {}", Shown::clipped(title.unwrap_or(&names), MAX_TITLE));
        let tasks = children.iter().map(|child| tool_call::text(&child.task)).collect();
        let call = ToolCall::new(self.batch_id(batch), title)
            .kind(ToolKind::Other)
            .status(ToolCallStatus::InProgress)
            .content(tasks);
        out.push(Out::Update(session.to_owned(), SessionUpdate::ToolCall(call)));
        if !self.client.subagents {
            return;
        }
        for one in children {
            let id = children::id(&self.message, &one.child);
            let announced = children::announce(&id, &one.child, &one.task);
            out.push(Out::Update(session.to_owned(), announced));
            out.push(Out::Update(id.clone(), children::task(session, &id, &one.task)));
        }
    }

    fn batch_done(&self, batch: &str, counts: &Counts) -> SessionUpdate {
        let left = counts.queued.saturating_add(counts.running);
        let status = if left == 0 { ToolCallStatus::Completed } else { ToolCallStatus::InProgress };
        let ended = counts.total.saturating_sub(left);
        let text = tool_call::text(&format!("{ended} of {} ended", counts.total));
        let fields = ToolCallUpdateFields::new().status(status).content(vec![text]);
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.batch_id(batch), fields))
    }

    fn batch_ended(&self, batch: &str, summary: &str) -> SessionUpdate {
        let text = tool_call::text(summary);
        let fields =
            ToolCallUpdateFields::new().status(ToolCallStatus::Completed).content(vec![text]);
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.batch_id(batch), fields))
    }

    fn batch_id(&self, batch: &str) -> String {
        format!("{}.{batch}", self.message)
    }

    /// Remarks beside the conversation, to an editor that shows such.
    fn remark(&self, session: &str, kind: &EventKind) -> Option<Out> {
        let notice = |severity, title: String| {
            let title = Shown::clipped(&title, MAX_TITLE.saturating_mul(4)).to_string();
            let notice = SessionUpdate::Notice(Notice::new(severity, title));
            self.client.notices.then_some(notice)
        };
        let compaction = |status| {
            let id = format!("{}.compaction", self.message);
            let update = SessionUpdate::CompactionUpdate(CompactionUpdate::new(id, status));
            self.client.compaction.then_some(update)
        };
        let update = match kind {
            EventKind::Warning { message } => notice(NoticeSeverity::Warning, message.clone()),
            EventKind::Retry { attempt, reason, .. } => {
                notice(NoticeSeverity::Info, format!("attempt {attempt} failed: {reason}"))
            }
            EventKind::BudgetWarning { meter, used, limit } => {
                let meter = serde_json::to_value(meter).unwrap_or_default();
                let meter = meter.as_str().unwrap_or_default();
                notice(NoticeSeverity::Warning, format!("{used} of {limit} {meter} are used"))
            }
            EventKind::HistoryCompacting { .. } => compaction(CompactionStatus::InProgress),
            EventKind::HistoryCompacted { .. } => compaction(CompactionStatus::Completed),
            _ => None,
        };
        update.map(|update| Out::Update(session.to_owned(), update))
    }
}

/// An agent's list as a plan. Cancelled items are left out, because a plan has no status for them.
fn plan(items: Vec<TodoItem>) -> Plan {
    let entry = |item: TodoItem| {
        let status = match item.status {
            TodoStatus::InProgress => PlanEntryStatus::InProgress,
            TodoStatus::Completed => PlanEntryStatus::Completed,
            TodoStatus::Cancelled => return None,
            TodoStatus::Pending => PlanEntryStatus::Pending,
        };
        Some(PlanEntry::new(item.content, PlanEntryPriority::Medium, status))
    };
    Plan::new(items.into_iter().filter_map(entry).collect())
}
