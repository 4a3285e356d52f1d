//! Converts the events of a turn to updates of an editor's sessions. It only returns updates and questions;
//! the caller sends and asks them.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use agent_client_protocol::v1::schema::{
    CompactionStatus, CompactionUpdate, ContentChunk, MessageId, Notice, NoticeSeverity, Plan,
    PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate, ToolCall, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use belljar_agent::{BatchChild, Counts, EventKind, TodoItem, TodoStatus};
use belljar_policy::ShownText;

use crate::children;
use crate::client::EditorCapabilities;
use crate::limits::{MAX_RESULTS, MAX_TITLE};
use crate::results::{CallResult, PassedKind, PassedStep};
use crate::terminal::CallTerminal;
use crate::{places, tool_call};

/// An update to send, or a question to ask.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are updates")]
pub(crate) enum OutgoingItem {
    /// An update of the session with this id.
    Update(String, SessionUpdate),
    /// A call in this session waits for a person's decision.
    Permission { session: String, id: u64, call: Box<ToolCallUpdate> },
    /// An agent asks the person a question in this session.
    Clarify(String, ClarifyRequest),
}

/// An agent's question, as in its event.
#[derive(Debug)]
pub(crate) struct ClarifyRequest {
    pub(crate) id: u64,
    pub(crate) question: String,
    /// True if the event contains only the text that may be stored.
    pub(crate) private: bool,
    pub(crate) options: Vec<String>,
}

/// Converts the events of one turn.
pub(crate) struct UpdateMapper {
    client: EditorCapabilities,
    session: String,
    /// The id of the agent's message.
    message: String,
    workspace: PathBuf,
    /// The number of each agent's present step, by the agent's path.
    steps: HashMap<String, u64>,
    /// The calls that were shown, by the agent's path and the call's id.
    shown: HashMap<(String, String), ShownCall>,
    /// The whole arguments of calls that are not shown yet: the step if known, the call's id, and the text.
    asked: VecDeque<(Option<u64>, String, String)>,
    /// Results that arrived before their calls were shown.
    early: VecDeque<std::sync::Arc<PassedStep>>,
}

/// A tool call that the editor was shown, for its later updates.
struct ShownCall {
    id: String,
    tool: String,
    /// The content that every later update repeats: a difference, or a terminal.
    stays: Vec<ToolCallContent>,
    screen: Option<CallTerminal>,
}

impl UpdateMapper {
    /// Creates the converter for the turn of the given message.
    pub(crate) fn new(
        client: EditorCapabilities,
        session: &str,
        message: &str,
        workspace: PathBuf,
    ) -> Self {
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

    /// The session that shows an agent; `None` if this editor does not show it.
    fn session_of(&self, agent: &str) -> Option<String> {
        match children::is_child(agent) {
            false => Some(self.session.clone()),
            true => self.client.subagents.then(|| children::child_id(&self.message, agent)),
        }
    }

    /// The updates for an event of this agent.
    pub(crate) fn map_event(&mut self, agent: String, kind: EventKind) -> Vec<OutgoingItem> {
        let mut out = Vec::new();
        let asks =
            matches!(kind, EventKind::PermissionAsked { .. } | EventKind::QuestionAsked { .. });
        // The question of an agent that is not shown appears in the session of the top agent.
        let seen = self.session_of(&agent).or_else(|| asks.then(|| self.session.clone()));
        let Some(session) = seen else { return out };
        let mut update = |update| out.push(OutgoingItem::Update(session.clone(), update));
        match kind {
            EventKind::StepStarted { step, .. } => {
                self.steps.insert(agent, step);
            }
            EventKind::TextDelta { text } => update(self.text_chunk(&agent, &text)),
            EventKind::ThoughtDelta { text } => update(self.thought_chunk(&agent, &text)),
            EventKind::ToolCallStarted { step, call_id, tool, arguments, .. } => {
                update(self.call_started(agent, step, call_id, tool, arguments));
            }
            EventKind::ToolProgress { call_id, done, total, message, .. } => {
                out.extend(self.call_progress(&session, agent, call_id, done, total, &message));
            }
            EventKind::ToolCallFinished { step, call_id, tool, ok, error, .. } => {
                update(self.call_finished(agent, step, call_id, &tool, ok, error));
            }
            EventKind::SubagentBatchStart { batch, title, children, .. } => {
                self.add_batch(&session, &batch, title.as_deref(), &children, &mut out);
            }
            EventKind::SubagentBatchEnd { batch, summary, .. } => {
                update(self.batch_ended(&batch, &summary));
            }
            EventKind::SubagentUpdate { child, .. } => {
                if let Some(id) = self.session_of(&child) {
                    update(children::running_update(&id));
                }
            }
            EventKind::SubagentDone { batch, child, status, error, counts, .. } => {
                if self.client.subagents {
                    let id = children::child_id(&self.message, &child);
                    update(children::ended_update(&id, status, error.as_deref()));
                }
                update(self.batch_done(&batch, &counts));
            }
            EventKind::PermissionAsked { id, call_id, tool, arguments, .. } => {
                let call = self.waiting_call(agent, id, call_id, &tool, &arguments);
                out.push(OutgoingItem::Permission { session, id, call: Box::new(call) });
            }
            EventKind::QuestionAsked { id, question, options, private } => {
                out.push(OutgoingItem::Clarify(
                    session,
                    ClarifyRequest { id, question, private, options },
                ));
            }
            EventKind::Todos { items } => update(SessionUpdate::Plan(plan_from_todos(items))),
            EventKind::TeamStageStarted { stage, of, agents } => {
                let text = format!("Stage {stage} of {of}: {}\n\n", agents.join(", "));
                update(self.text_chunk(&agent, &text));
            }
            other => out.extend(self.remark_update(&session, &other)),
        }
        out
    }

    /// Handles a journal step of this turn; returns its updates.
    pub(crate) fn handle_step(&mut self, passed: std::sync::Arc<PassedStep>) -> Vec<OutgoingItem> {
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
            PassedKind::Result(result) => match self.result_update(result) {
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

    /// Notes the whole arguments of a call of this turn, whatever its step.
    pub(crate) fn note_arguments(&mut self, call_id: String, arguments: String) {
        if self.asked.len() < MAX_RESULTS {
            self.asked.push_back((None, call_id, arguments));
        }
    }

    /// The updates for results that had arrived before their calls were shown.
    pub(crate) fn late_results(&mut self) -> Vec<OutgoingItem> {
        let early = std::mem::take(&mut self.early);
        early.into_iter().flat_map(|passed| self.handle_step(passed)).collect()
    }

    /// The ends of the terminals whose output has not arrived.
    pub(crate) fn terminal_ends(&mut self) -> Vec<OutgoingItem> {
        let mut out = Vec::new();
        for ((agent, _), shown) in &mut self.shown {
            let Some(meta) = shown.screen.as_mut().and_then(CallTerminal::missing_end_meta) else {
                continue;
            };
            let session = match (children::is_child(agent), self.client.subagents) {
                (false, _) => self.session.clone(),
                (true, true) => children::child_id(&self.message, agent),
                (true, false) => continue,
            };
            let fields = ToolCallUpdateFields::new();
            let update = ToolCallUpdate::new(shown.id.clone(), fields).meta(meta);
            out.push(OutgoingItem::Update(session, SessionUpdate::ToolCallUpdate(update)));
        }
        out
    }

    /// The update with a call's result: its output or terminal, and the files that it read or wrote.
    fn result_update(&mut self, result: &CallResult) -> Option<OutgoingItem> {
        let session = self.session_of(&result.agent)?;
        let shown = self.shown.get_mut(&(result.agent.clone(), result.call_id.clone()))?;
        let mut content = shown.stays.clone();
        let meta =
            shown.screen.as_mut().map(|screen| screen.output_meta(&result.content, result.exit));
        if meta.is_none() && !result.content.trim().is_empty() {
            content.push(tool_call::text_content(&result.content));
        }
        let raw = serde_json::from_str(&result.content);
        let raw = raw.unwrap_or_else(|_| serde_json::Value::String(result.content.clone()));
        let mut fields = ToolCallUpdateFields::new().content(content).raw_output(raw);
        let places = result.paths.iter().filter_map(|path| {
            places::host_path(&self.workspace, path)
                .map(agent_client_protocol::v1::schema::ToolCallLocation::new)
        });
        let places: Vec<_> = places.collect();
        if !places.is_empty() {
            fields = fields.locations(places);
        }
        let update = ToolCallUpdate::new(shown.id.clone(), fields).meta(meta);
        Some(OutgoingItem::Update(session, SessionUpdate::ToolCallUpdate(update)))
    }

    fn text_chunk(&self, agent: &str, text: &str) -> SessionUpdate {
        let chunk = ContentChunk::new(tool_call::whole_block(text));
        SessionUpdate::AgentMessageChunk(chunk.message_id(self.message_id(agent, "")))
    }

    /// The update with a model's reasoning, which is separate from the answer.
    fn thought_chunk(&self, agent: &str, text: &str) -> SessionUpdate {
        let chunk = ContentChunk::new(tool_call::whole_block(text));
        SessionUpdate::AgentThoughtChunk(chunk.message_id(self.message_id(agent, ".thought")))
    }

    fn message_id(&self, agent: &str, ending: &str) -> MessageId {
        let step = self.steps.get(agent).copied().unwrap_or_default();
        MessageId::from(format!("{}.{step}{ending}", self.message))
    }

    /// The id of a call in the editor's session, which contains the turn and the step.
    fn call_id(&self, step: u64, call: &str) -> String {
        format!("{}.{step}.{call}", self.message)
    }

    /// The update that shows a call: with its whole arguments if they have arrived, and a terminal or the
    /// difference that it would make.
    fn call_started(
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
        let input = tool_call::parse_arguments(whole.as_deref().unwrap_or(&arguments));
        let screen = self.client.terminals.then(|| CallTerminal::for_call(&tool, &id)).flatten();
        let stays = match &screen {
            Some(screen) => vec![screen.terminal_content()],
            None => tool_call::call_diffs(&tool, &input, &self.workspace),
        };
        let call = ToolCall::new(id.clone(), tool_call::call_title(&tool, &input))
            .kind(tool_call::tool_kind(&tool))
            .status(ToolCallStatus::InProgress)
            .locations(tool_call::call_locations(&input, &self.workspace))
            .content(stays.clone())
            .raw_input(input)
            .meta(screen.as_ref().map(|screen| screen.begin_meta(&self.workspace)));
        self.shown.insert((agent, call_id), ShownCall { id, tool, stays, screen });
        SessionUpdate::ToolCall(call)
    }

    /// The update with a tool's progress report.
    fn call_progress(
        &self,
        session: &str,
        agent: String,
        call_id: String,
        done: u64,
        total: Option<u64>,
        message: &str,
    ) -> Option<OutgoingItem> {
        let shown = self.shown.get(&(agent, call_id))?;
        let of = total.map_or_else(String::new, |total| format!(" of {total}"));
        let mut content = shown.stays.clone();
        content.push(tool_call::text_content(&format!("{done}{of} {message}")));
        let fields = ToolCallUpdateFields::new().content(content);
        let update = ToolCallUpdate::new(shown.id.clone(), fields);
        Some(OutgoingItem::Update(session.to_owned(), SessionUpdate::ToolCallUpdate(update)))
    }

    /// The update that a call has ended, also for a call that was not shown before.
    fn call_finished(
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
        let title = known.is_none().then(|| ShownText::clip_line(tool, MAX_TITLE).to_string());
        let mut fields = ToolCallUpdateFields::new().status(status).title(title);
        if let Some(error) = error {
            let mut content = known.as_ref().map(|it| it.stays.clone()).unwrap_or_default();
            content.push(tool_call::text_content(&error));
            fields = fields.content(content);
        }
        let id = known.as_ref().map_or(id, |shown| shown.id.clone());
        let screen = known.and_then(|shown| shown.screen.as_mut());
        let meta = screen.and_then(|screen| screen.end_call(ok));
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields).meta(meta))
    }

    /// The call that waits for a person's decision, whether or not it was shown before.
    fn waiting_call(
        &self,
        agent: String,
        question: u64,
        call_id: String,
        tool: &str,
        arguments: &str,
    ) -> ToolCallUpdate {
        let whole =
            self.asked.iter().find(|(_, id, whole)| *id == call_id && whole.starts_with(arguments));
        let input =
            tool_call::parse_arguments(whole.map_or(arguments, |(.., whole)| whole.as_str()));
        let shown = self.shown.get(&(agent, call_id));
        let id = shown.map_or_else(
            || format!("{}.question.{question}", self.message),
            |shown| shown.id.clone(),
        );
        let name = shown.map_or(tool, |shown| shown.tool.as_str());
        let fields = ToolCallUpdateFields::new()
            .title(tool_call::call_title(name, &input))
            .kind(tool_call::tool_kind(tool))
            .status(ToolCallStatus::Pending)
            .locations(tool_call::call_locations(&input, &self.workspace))
            .content(tool_call::call_diffs(tool, &input, &self.workspace))
            .raw_input(input);
        ToolCallUpdate::new(id, fields)
    }

    /// The updates when subagents begin: a call of the parent, and a session for each if the editor supports
    /// that.
    fn add_batch(
        &self,
        session: &str,
        batch: &str,
        title: Option<&str>,
        children: &[BatchChild],
        out: &mut Vec<OutgoingItem>,
    ) {
        let names: Vec<&str> =
            children.iter().filter_map(|child| child.child.rsplit('/').next()).collect();
        let names = names.join(", ");
        let title =
            format!("subagents: {}", ShownText::clip_line(title.unwrap_or(&names), MAX_TITLE));
        let tasks = children.iter().map(|child| tool_call::text_content(&child.task)).collect();
        let call = ToolCall::new(self.batch_id(batch), title)
            .kind(ToolKind::Other)
            .status(ToolCallStatus::InProgress)
            .content(tasks);
        out.push(OutgoingItem::Update(session.to_owned(), SessionUpdate::ToolCall(call)));
        if !self.client.subagents {
            return;
        }
        for one in children {
            let id = children::child_id(&self.message, &one.child);
            let announced = children::announce_child(&id, &one.child, &one.task);
            out.push(OutgoingItem::Update(session.to_owned(), announced));
            out.push(OutgoingItem::Update(
                id.clone(),
                children::task_update(session, &id, &one.task),
            ));
        }
    }

    /// The update with the number of subagents of a batch that have ended.
    fn batch_done(&self, batch: &str, counts: &Counts) -> SessionUpdate {
        let left = counts.queued.saturating_add(counts.running);
        let status = if left == 0 { ToolCallStatus::Completed } else { ToolCallStatus::InProgress };
        let ended = counts.total.saturating_sub(left);
        let text = tool_call::text_content(&format!("{ended} of {} ended", counts.total));
        let fields = ToolCallUpdateFields::new().status(status).content(vec![text]);
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.batch_id(batch), fields))
    }

    /// The update when all subagents of a batch have ended: the parent's call is complete.
    fn batch_ended(&self, batch: &str, summary: &str) -> SessionUpdate {
        let text = tool_call::text_content(summary);
        let fields =
            ToolCallUpdateFields::new().status(ToolCallStatus::Completed).content(vec![text]);
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(self.batch_id(batch), fields))
    }

    fn batch_id(&self, batch: &str) -> String {
        format!("{}.{batch}", self.message)
    }

    /// The update with a remark beside the conversation; `None` if the editor shows no such remarks, or the
    /// event has none.
    fn remark_update(&self, session: &str, kind: &EventKind) -> Option<OutgoingItem> {
        let notice = |severity, title: String| {
            let title = ShownText::clip_line(&title, MAX_TITLE.saturating_mul(4)).to_string();
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
        update.map(|update| OutgoingItem::Update(session.to_owned(), update))
    }
}

/// An agent's to-do list as a plan. Cancelled items are left out, because a plan has no status for them.
fn plan_from_todos(items: Vec<TodoItem>) -> Plan {
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
