//! Shows a run while it happens: a line for each finished tool call and subagent, and on a terminal one
//! moving line.

mod words;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belljar_agent::{
    Approval, BatchChild, Event, EventKind, EventSink, TextRetention, TodoItem, TodoStatus,
};
use belljar_definition::Diagnostic;
use belljar_policy::ShownText;
use indicatif::{ProgressBar, ProgressStyle};

use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table;
use words::{
    MAX_ARGUMENTS, agent_indent, format_counts, format_reason, name_of, shorten_arguments,
};
pub(crate) use words::{message_style, status_style};

/// Characters of a task or an agent's words, on one line.
const MAX_SAID: usize = 160;

/// Most bytes of an agent's text kept until its step ends.
const MAX_BUFFERED: usize = 4 << 10;

/// Lines that wait while a person is asked: more than a screen.
const MAX_HELD: usize = 200;

/// Warnings that are remembered; further ones may be shown twice.
const MAX_WARNED: usize = 200;

/// How often the moving line is redrawn.
const TICK: Duration = Duration::from_millis(120);

/// Where the lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineTarget {
    /// stdout: the run itself is what the command shows.
    Result,
    /// stderr, with a moving line on a terminal; nothing with `--quiet`.
    Notes,
    /// Like [`LineTarget::Notes`], and the root agent's words go to stdout as they arrive, even with `--quiet`.
    /// Between turns nothing moves.
    Chat,
}

/// Shows the events of one run.
#[derive(Clone)]
pub(crate) struct RunProgress(Arc<ProgressInner>);

struct ProgressInner {
    out: TerminalOutput,
    to: LineTarget,
    bar: Option<ProgressBar>,
    state: Mutex<ProgressState>,
    /// Whether stdout ends within a line of the agent's text.
    open: AtomicBool,
    /// Whether the agent at the root has said anything in this turn.
    spoke: AtomicBool,
    /// Lines held back until a person's answer; `None` = no question is open.
    held: Mutex<Option<WaitingLines>>,
    /// Whether the line may move.
    live: AtomicBool,
}

/// Lines held back while a person answers a question.
#[derive(Default)]
struct WaitingLines {
    lines: Vec<String>,
    /// The number of further lines, which are not kept, beyond [`MAX_HELD`].
    more: usize,
}

#[derive(Default)]
struct ProgressState {
    /// Arguments of running calls, by agent and call id.
    calls: HashMap<(Arc<str>, String), String>,
    /// The text of each agent since its last step.
    said: HashMap<Arc<str>, String>,
    /// The agent at the root, whose last words are the result.
    root: Option<Arc<str>>,
    /// Shown warnings: each once, for all agents and turns.
    warned: Vec<String>,
}

impl ProgressState {
    fn has_warned(&self, warning: &str) -> bool {
        self.warned.iter().any(|known| warning.contains(known))
    }
}

impl RunProgress {
    pub(crate) fn new(out: &TerminalOutput, to: LineTarget) -> Self {
        let bar = (to != LineTarget::Result && out.is_live()).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
                bar.set_style(style);
            }
            if to == LineTarget::Notes {
                bar.enable_steady_tick(TICK);
            } else {
                bar.finish_and_clear();
            }
            bar
        });
        let state = Mutex::default();
        let (open, spoke) = (AtomicBool::new(false), AtomicBool::new(false));
        let (held, live) = (Mutex::default(), AtomicBool::new(to == LineTarget::Notes));
        Self(Arc::new(ProgressInner { out: out.clone(), to, bar, state, open, spoke, held, live }))
    }

    /// A turn begins: the line may move again.
    pub(crate) fn begin_turn(&self) {
        self.0.spoke.store(false, Ordering::Relaxed);
        self.0.live.store(true, Ordering::Relaxed);
        self.0.wake_moving_line();
    }

    /// A turn has ended: ends the line of text and takes the moving line away. Gives whether
    /// the agent at the root has said anything.
    pub(crate) fn end_turn(&self) -> bool {
        self.clear_moving_line();
        self.0.close_line();
        self.0.spoke.load(Ordering::Relaxed)
    }

    /// Where a run sends its events.
    pub(crate) fn event_sink(&self) -> EventSink {
        let inner = Arc::clone(&self.0);
        // In a chat the words stand on the terminal as they come.
        let kept =
            if inner.to == LineTarget::Chat { TextRetention::Top } else { TextRetention::Nothing };
        EventSink::with_listener(move |event| inner.show_event(event)).with_retention(kept)
    }

    /// Takes the moving line away; call it before the result is printed.
    pub(crate) fn clear_moving_line(&self) {
        self.0.live.store(false, Ordering::Relaxed);
        self.0.stop_moving_line();
        // A question without an answer gets a line of its own.
        self.0.let_go(true);
    }

    /// Runs `work` while nothing is redrawn. Must be short, because the run waits.
    pub(crate) fn run_paused<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.close_line();
        match &self.0.bar {
            Some(bar) => bar.suspend(work),
            None => work(),
        }
    }

    /// Runs `question` while nothing is drawn: lines of other agents wait for the answer, without holding a
    /// lock, so that a run can be cancelled during a question.
    pub(crate) fn ask_exclusively(
        &self,
        question: impl FnOnce() -> Option<String>,
    ) -> Option<String> {
        self.0.close_line();
        self.0.lock_waiting().get_or_insert_default();
        self.0.stop_moving_line();
        let answer = question();
        // Without an answer, the next output begins on a new line.
        self.0.let_go(answer.is_none() && self.0.out.is_live());
        self.0.wake_moving_line();
        answer
    }

    /// Shows faults of tools, before anything runs. The run's warnings that only repeat them are not shown
    /// again.
    pub(crate) fn show_problems(&self, problems: &[Diagnostic]) {
        for problem in problems {
            self.run_paused(|| self.0.out.print_diagnostic(problem));
            let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.warned.push(problem.message.clone());
        }
    }

    /// Whether this warning, or its original, was shown already.
    pub(crate) fn has_warned(&self, warning: &str) -> bool {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).has_warned(warning)
    }

    /// A line about the work, between those of the run.
    pub(crate) fn show_note(&self, line: &str) {
        self.0.write_line(line);
    }
}

impl ProgressInner {
    fn show_event(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let agent = &event.agent;
        match &event.kind {
            EventKind::RunResumed { kept } => {
                state.root = Some(Arc::clone(agent));
                self.write_line(&format!(
                    "resumes where the program ended ({kept} entries of its journal)"
                ));
            }
            EventKind::HistoryCompacting { turns, model } => {
                let model = ShownText::new(model);
                self.set_moving_line(agent, &format!("{model} summarises {turns} earlier turns"));
            }
            EventKind::HistoryCompacted { turns, tokens_before, tokens_after, .. } => {
                self.write_line(&format!(
                    "a summary stands for {turns} earlier turns (history: about {tokens_before} \
                     tokens before, {tokens_after} now); the session keeps them"
                ));
            }
            // In a chat, the first lines have said it.
            EventKind::RunStarted { .. } if self.to == LineTarget::Chat => {}
            EventKind::RunStarted { model, tools, .. } => {
                state.root = Some(Arc::clone(agent));
                self.show_start(agent, model, tools);
            }
            EventKind::StepStarted { step, .. } => {
                state.said.remove(agent);
                self.set_moving_line(agent, &format!("step {step}: waiting for the model"));
            }
            EventKind::TextDelta { text }
                if self.to == LineTarget::Chat && !agent.contains('/') =>
            {
                self.stream_text(text);
            }
            EventKind::TextDelta { text } => {
                let said = state.said.entry(Arc::clone(agent)).or_default();
                let room = MAX_BUFFERED.saturating_sub(said.len());
                said.extend(text.chars().take(room));
            }
            EventKind::ToolCallStarted { call_id, tool, arguments, .. } => {
                self.show_words(&mut state, agent);
                self.set_moving_line(
                    agent,
                    &format!("{} {}", ShownText::new(tool), shorten_arguments(arguments)),
                );
                state
                    .calls
                    .insert((Arc::clone(agent), call_id.clone()), shorten_arguments(arguments));
            }
            EventKind::ToolProgress { tool, done, total, message, .. } => {
                let message = ShownText::clip_line(message.trim(), MAX_ARGUMENTS);
                let share = match total {
                    Some(total) => {
                        format!("{}/{}", table::format_count(*done), table::format_count(*total))
                    }
                    None => table::format_count(*done),
                };
                self.set_moving_line(agent, &format!("{} {share} {message}", ShownText::new(tool)));
            }
            EventKind::ToolCallFinished {
                call_id,
                tool,
                ok,
                ending,
                error,
                fuel,
                micros,
                denials,
                ..
            } => {
                let key = (Arc::clone(agent), call_id.clone());
                let arguments = state.calls.remove(&key).unwrap_or_default();
                self.show_call(agent, tool, &arguments, *ok, ending, (*fuel, *micros), *denials);
                self.show_failure(agent, error.as_deref(), ending);
            }
            EventKind::SubagentBatchStart { title, children, background, .. } => {
                self.show_words(&mut state, agent);
                if let Some(title) = title {
                    // A model's words: alone in a line they could pass for a warning of the host.
                    let title =
                        self.paint_text(TextStyle::Bold, ShownText::clip_line(title, MAX_SAID));
                    self.show_agent_line(agent, format_args!("subagents for: {title}"));
                }
                self.show_batch(agent, children, *background);
            }
            // The line of the only one says the same.
            EventKind::SubagentBatchEnd { counts, .. } if counts.total < 2 => {}
            EventKind::SubagentBatchEnd { summary, counts, .. } => {
                let (of, summary) = (counts.total, ShownText::new(summary));
                self.show_agent_line(
                    agent,
                    format_args!("these {of} subagents have ended: {summary}"),
                );
            }
            EventKind::SubagentBackground { id, .. } => {
                let id = ShownText::clip_line(id, MAX_SAID);
                self.show_agent_line(
                    agent,
                    format_args!("its subagent takes long and goes on as `{id}`"),
                );
            }
            EventKind::SubagentUpdate { counts, .. } => {
                self.set_moving_line(agent, &format!("subagents: {}", format_counts(counts)));
            }
            EventKind::SubagentDone { child, status, steps, tokens, error, counts, .. } => {
                state.said.retain(|who, _| who.as_ref() != child.as_str());
                let word = self.paint_text(status_style(*status), status);
                let (steps, tokens) =
                    (table::format_quantity(*steps, "step"), table::format_count(*tokens));
                let (error, from) = (format_reason(error.as_ref()), agent_indent(agent));
                let child = self.paint_text(TextStyle::Bold, ShownText::new(name_of(child)));
                self.write_line(&format!(
                    "{from}← {child} {word}, {steps}, {tokens} tokens{error}"
                ));
                self.set_moving_line(agent, &format!("subagents: {}", format_counts(counts)));
            }
            EventKind::Todos { items } => self.show_todos(agent, items),
            // The person who is asked sees the question itself.
            EventKind::PermissionAsked { .. }
            | EventKind::QuestionAsked { .. }
            | EventKind::QuestionAnswered { .. }
            | EventKind::ThoughtDelta { .. } => {}
            EventKind::PermissionAnswered { tool, answer, .. } => {
                let answer = match answer {
                    Approval::Yes | Approval::ForRun => return,
                    Approval::No => "the person said no",
                    Approval::Nobody => "nobody answered",
                    Approval::Cancelled => "the question was cancelled",
                };
                let tool = ShownText::new(tool);
                self.show_agent_line(agent, format_args!("`{tool}` is not allowed: {answer}"));
            }
            EventKind::HookRan { decision, .. } if decision == "pass" => {}
            EventKind::HookRan { event, tool, hook, decision, micros } => {
                let what = ShownText::new(tool.as_deref().unwrap_or(event)).to_string();
                let time = table::format_micros(*micros);
                let text = format!("hook: {decision} {what}  {hook}, {time}");
                self.show_agent_line(agent, self.paint_text(TextStyle::Dim, text));
            }
            EventKind::TeamStarted { id, stages, .. } => {
                let head = self.paint_text(TextStyle::Bold, ShownText::new(agent));
                let stages = table::format_quantity(*stages as u64, "stage");
                self.write_line(&format!("team {head} ({}, {stages})", ShownText::new(id)));
            }
            EventKind::TeamStageStarted { stage, of, agents } => {
                let agents = ShownText::clip_line(&agents.join(", "), MAX_SAID).to_string();
                self.write_line(&format!("stage {stage} of {of}: {agents}"));
                self.set_moving_line(agent, &format!("stage {stage} of {of}"));
            }
            EventKind::TeamStageFinished { stage, status, error } => {
                let word = self.paint_text(status_style(*status), status);
                self.write_line(&format!("stage {stage} {word}{}", format_reason(error.as_ref())));
            }
            EventKind::Retry { attempt, after_ms, reason, replaces } => {
                if *replaces {
                    state.said.remove(agent);
                }
                let reason = ShownText::clip_line(reason, MAX_SAID);
                let then = format_args!("attempt {attempt} in {after_ms} ms");
                self.show_agent_line(
                    agent,
                    format_args!("the model did not answer ({reason}); {then}"),
                );
            }
            EventKind::Warning { message } => self.show_warning(&mut state, agent, message),
            EventKind::BudgetWarning { meter, used, limit } => {
                let word = self.paint_text(TextStyle::Yellow, "warning:");
                let (used, limit) = (table::format_count(*used), table::format_count(*limit));
                self.show_agent_line(
                    agent,
                    format_args!("{word} {meter} budget: {used} of {limit} used"),
                );
            }
            EventKind::RunFinished { .. } => state.said.clear(),
        }
    }

    /// The first line of an agent; a team's agents are below the team's line.
    fn show_start(&self, agent: &str, model: &str, tools: &[String]) {
        let tools = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
        let (indent, name) = match agent.contains('/') {
            true => (agent_indent(agent), name_of(agent)),
            false => (String::new(), agent),
        };
        let head = self.paint_text(TextStyle::Bold, ShownText::new(name));
        let (model, tools) = (ShownText::new(model), ShownText::new(&tools));
        self.write_line(&format!("{indent}{head} on {model} (tools: {tools})"));
    }

    /// The line of a finished call.
    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    fn show_call(
        &self,
        agent: &str,
        tool: &str,
        arguments: &str,
        ok: bool,
        ending: &str,
        (fuel, micros): (u64, u64),
        denials: usize,
    ) {
        let (style, mark) = if ok { (TextStyle::Green, "✓") } else { (TextStyle::Red, "✗") };
        let mark = self.paint_text(style, mark);
        let ending = if ok {
            String::new()
        } else {
            format!("  {}", ShownText::clip_line(ending, MAX_SAID))
        };
        let ending = self.paint_text(style, ending);
        let mut cost =
            format!("{}, {} fuel", table::format_micros(micros), table::format_fuel(fuel));
        if denials > 0 {
            cost.push_str(&format!(", {denials} refused by the sandbox"));
        }
        let cost = self.paint_text(TextStyle::Dim, cost);
        let tool = ShownText::new(tool);
        self.show_agent_line(agent, format_args!("{mark} {tool} {arguments}{ending}  {cost}"));
    }

    /// The reason of a failed call. A refusal by the host has its own ending.
    fn show_failure(&self, agent: &str, error: Option<&str>, ending: &str) {
        if let Some(error) = error.filter(|error| !ending.contains(error)) {
            let error = self.paint_text(TextStyle::Dim, ShownText::clip_line(error, MAX_SAID));
            self.show_agent_line(agent, format_args!("  {error}"));
        }
    }

    /// The beginning of subagents, each with its task.
    fn show_batch(&self, agent: &str, children: &[BatchChild], background: bool) {
        let how = if background { " (in the background)" } else { "" };
        for BatchChild { child, task } in children {
            let child = self.paint_text(TextStyle::Bold, ShownText::new(name_of(child)));
            let task = ShownText::clip_line(task, MAX_SAID);
            self.write_line(&format!("{}→ {child}{how}: {task}", agent_indent(agent)));
        }
    }

    /// The list of an agent.
    fn show_todos(&self, agent: &str, items: &[TodoItem]) {
        for TodoItem { content, status } in items {
            let mark = match status {
                TodoStatus::Completed => self.paint_text(TextStyle::Green, "✓"),
                TodoStatus::InProgress => self.paint_text(TextStyle::Yellow, "▸"),
                TodoStatus::Pending | TodoStatus::Cancelled => self.paint_text(TextStyle::Dim, "·"),
            };
            let content = ShownText::clip_line(content, MAX_SAID);
            self.show_agent_line(agent, format_args!("{mark} {content}"));
        }
    }

    /// A warning, unless it was shown.
    fn show_warning(&self, state: &mut ProgressState, agent: &str, message: &str) {
        if state.has_warned(message) {
            return;
        }
        if state.warned.len() < MAX_WARNED {
            state.warned.push(message.to_owned());
        }
        let word = self.paint_text(TextStyle::Yellow, "warning:");
        self.show_agent_line(agent, format_args!("{word} {}", ShownText::new(message)));
    }

    /// The words of an agent beside its calls.
    fn show_words(&self, state: &mut ProgressState, agent: &Arc<str>) {
        let Some(said) = state.said.remove(agent) else { return };
        let said = said.trim();
        if !said.is_empty() {
            let said = ShownText::clip_line(said, MAX_SAID);
            self.show_agent_line(agent, self.paint_text(TextStyle::Dim, format_args!("“{said}”")));
        }
    }

    /// A line of an agent.
    fn show_agent_line(&self, agent: &str, text: impl std::fmt::Display) {
        self.write_line(&format!("{}{text}", self.line_prefix(agent)));
    }

    /// The beginning of an agent's line: indented, and for subagents, which may run in parallel, with the
    /// name.
    fn line_prefix(&self, agent: &str) -> String {
        let indent = agent_indent(agent);
        if agent.contains('/') {
            let name = self.paint_text(TextStyle::Dim, ShownText::new(name_of(agent)));
            format!("{indent}{name} ")
        } else {
            indent
        }
    }

    /// Text of the agent at the root, as it comes.
    fn stream_text(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        // It stands where the text goes.
        self.stop_moving_line();
        self.spoke.store(true, Ordering::Relaxed);
        self.open.store(!text.ends_with('\n'), Ordering::Relaxed);
        self.out.print_piece(&ShownText::multiline(text).to_string());
    }

    /// Takes the moving line away.
    fn stop_moving_line(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Shows the lines that waited for an answer; `unanswered` ends the line of the question.
    fn let_go(&self, unanswered: bool) {
        let Some(held) = self.lock_waiting().take() else { return };
        if unanswered {
            self.write_line("");
        }
        held.lines.iter().for_each(|line| self.write_line(line));
        if held.more > 0 {
            self.write_line(&format!("  and {} lines more while a question was open", held.more));
        }
    }

    /// Ends a line of text that is not complete yet.
    fn close_line(&self) {
        if self.open.swap(false, Ordering::Relaxed) {
            self.out.print_piece("\n");
        }
    }

    /// Lets the moving line move again, where text or a question has stopped it.
    fn wake_moving_line(&self) {
        if let Some(bar) = &self.bar
            && bar.is_finished()
            && self.live.load(Ordering::Relaxed)
            && self.lock_waiting().is_none()
        {
            bar.reset();
            bar.enable_steady_tick(TICK);
        }
    }

    fn set_moving_line(&self, agent: &str, text: &str) {
        if self.lock_waiting().is_some() {
            return;
        }
        self.close_line();
        self.wake_moving_line();
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {text}", ShownText::new(name_of(agent))));
        }
    }

    fn lock_waiting(&self) -> MutexGuard<'_, Option<WaitingLines>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_line(&self, line: &str) {
        if let Some(held) = &mut *self.lock_waiting() {
            if held.lines.len() < MAX_HELD {
                held.lines.push(line.to_owned());
            } else {
                held.more += 1;
            }
            return;
        }
        self.close_line();
        match (&self.bar, self.to) {
            (Some(bar), _) => bar.println(self.out.prose_err(line)),
            (None, LineTarget::Result) => self.out.print_line(line),
            (None, LineTarget::Notes | LineTarget::Chat) => self.out.note(line),
        }
    }

    fn paint_text(&self, style: TextStyle, text: impl std::fmt::Display) -> String {
        match self.to {
            LineTarget::Result => self.out.paint(style, text),
            LineTarget::Notes | LineTarget::Chat => self.out.paint_err(style, text),
        }
    }
}
