//! Shows a run while it happens: a line for each finished tool call and subagent, and on a terminal one
//! moving line.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belljar_agent::{
    Approval, BatchChild, Counts, Event, EventKind, EventSink, RunStatus, Staying, TodoItem,
    TodoStatus,
};
use belljar_definition::Diagnostic;
use belljar_policy::Shown;
use belljar_store::MessageStatus;
use indicatif::{ProgressBar, ProgressStyle};

use crate::term::out::{Out, Style};
use crate::term::table;

/// Characters of arguments on a line: a path or a pattern, not a file.
const MAX_ARGUMENTS: usize = 60;

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
pub(crate) enum To {
    /// stdout: the run itself is what the command shows.
    Result,
    /// stderr, with a moving line on a terminal; nothing with `--quiet`.
    Notes,
    /// Like [`To::Notes`], and the root agent's words go to stdout as they arrive, even with `--quiet`.
    /// Between turns nothing moves.
    Chat,
}

/// Shows the events of one run.
#[derive(Clone)]
pub(crate) struct Progress(Arc<Inner>);

struct Inner {
    out: Out,
    to: To,
    bar: Option<ProgressBar>,
    state: Mutex<State>,
    /// Whether stdout stands in the middle of a line of the agent's text.
    open: AtomicBool,
    /// Whether the agent at the root has said anything in this turn.
    spoke: AtomicBool,
    /// Lines that wait for the answer to a question.
    held: Mutex<Option<Held>>,
    /// Whether the line may move.
    live: AtomicBool,
}

/// Lines that wait.
#[derive(Default)]
struct Held {
    lines: Vec<String>,
    /// How many there were past [`MAX_HELD`].
    more: usize,
}

#[derive(Default)]
struct State {
    /// Arguments of calls that run, by agent and call.
    calls: HashMap<(Arc<str>, String), String>,
    /// The words of each agent since its last step.
    said: HashMap<Arc<str>, String>,
    /// The agent at the root, whose last words are the result.
    root: Option<Arc<str>>,
    /// Shown warnings: each once, for all agents and turns.
    warned: Vec<String>,
}

impl State {
    fn has_warned(&self, warning: &str) -> bool {
        self.warned.iter().any(|known| warning.contains(known))
    }
}

impl Progress {
    pub(crate) fn new(out: &Out, to: To) -> Self {
        let bar = (to != To::Result && out.is_live()).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
                bar.set_style(style);
            }
            if to == To::Notes {
                bar.enable_steady_tick(TICK);
            } else {
                bar.finish_and_clear();
            }
            bar
        });
        let state = Mutex::default();
        let (open, spoke) = (AtomicBool::new(false), AtomicBool::new(false));
        let (held, live) = (Mutex::default(), AtomicBool::new(to == To::Notes));
        Self(Arc::new(Inner { out: out.clone(), to, bar, state, open, spoke, held, live }))
    }

    /// A turn begins: the line may move again.
    pub(crate) fn begin_turn(&self) {
        self.0.spoke.store(false, Ordering::Relaxed);
        self.0.live.store(true, Ordering::Relaxed);
        self.0.wake();
    }

    /// A turn has ended: ends the line of text and takes the moving line away. Gives whether
    /// the agent at the root has said anything.
    pub(crate) fn end_turn(&self) -> bool {
        self.finish();
        self.0.close_line();
        self.0.spoke.load(Ordering::Relaxed)
    }

    /// Where a run sends its events.
    pub(crate) fn sink(&self) -> EventSink {
        let inner = Arc::clone(&self.0);
        // In a chat the words stand on the terminal as they come.
        let kept = if inner.to == To::Chat { Staying::Top } else { Staying::Nothing };
        EventSink::to(move |event| inner.show(event)).keeping(kept)
    }

    /// Takes the moving line away; call it before the result is printed.
    pub(crate) fn finish(&self) {
        self.0.live.store(false, Ordering::Relaxed);
        self.0.still();
        // A question without an answer gets a line of its own.
        self.0.let_go(true);
    }

    /// Runs `work` while nothing is redrawn. Must be short, because the run waits.
    pub(crate) fn pause<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.close_line();
        match &self.0.bar {
            Some(bar) => bar.suspend(work),
            None => work(),
        }
    }

    /// Runs `question` while nothing is drawn: lines of other agents wait for the answer, without holding a
    /// lock, so that a run can be cancelled during a question.
    pub(crate) fn ask(&self, question: impl FnOnce() -> Option<String>) -> Option<String> {
        self.0.close_line();
        self.0.held().get_or_insert_default();
        self.0.still();
        let answer = question();
        // Without an answer, the next output begins on a new line.
        self.0.let_go(answer.is_none() && self.0.out.is_live());
        self.0.wake();
        answer
    }

    /// Shows faults of tools, before anything runs. The run's warnings that only repeat them are not shown
    /// again.
    pub(crate) fn problems(&self, problems: &[Diagnostic]) {
        for problem in problems {
            self.pause(|| self.0.out.diagnostic(problem));
            let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.warned.push(problem.message.clone());
        }
    }

    /// Whether this warning, or its original, was shown already.
    pub(crate) fn has_warned(&self, warning: &str) -> bool {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).has_warned(warning)
    }

    /// A line about the work, between those of the run.
    pub(crate) fn note(&self, line: &str) {
        self.0.line(line);
    }
}

impl Inner {
    fn show(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let agent = &event.agent;
        match &event.kind {
            EventKind::RunResumed { kept } => {
                state.root = Some(Arc::clone(agent));
                self.line(&format!(
                    "resumes where the program ended ({kept} entries of its journal)"
                ));
            }
            EventKind::HistoryCompacting { turns, model } => {
                let model = Shown::new(model);
                self.moving(agent, &format!("{model} summarises {turns} earlier turns"));
            }
            EventKind::HistoryCompacted { turns, tokens_before, tokens_after, .. } => {
                self.line(&format!(
                    "a summary stands for {turns} earlier turns (history: about {tokens_before} \
                     tokens before, {tokens_after} now); the session keeps them"
                ));
            }
            // In a chat, the first lines have said it.
            EventKind::RunStarted { .. } if self.to == To::Chat => {}
            EventKind::RunStarted { model, tools, .. } => {
                state.root = Some(Arc::clone(agent));
                self.started(agent, model, tools);
            }
            EventKind::StepStarted { step, .. } => {
                state.said.remove(agent);
                self.moving(agent, &format!("step {step}: waiting for the model"));
            }
            EventKind::TextDelta { text } if self.to == To::Chat && !agent.contains('/') => {
                self.stream(text);
            }
            EventKind::TextDelta { text } => {
                let said = state.said.entry(Arc::clone(agent)).or_default();
                let room = MAX_BUFFERED.saturating_sub(said.len());
                said.extend(text.chars().take(room));
            }
            EventKind::ToolCallStarted { call_id, tool, arguments, .. } => {
                self.say(&mut state, agent);
                self.moving(agent, &format!("{} {}", Shown::new(tool), short(arguments)));
                state.calls.insert((Arc::clone(agent), call_id.clone()), short(arguments));
            }
            EventKind::ToolProgress { tool, done, total, message, .. } => {
                let message = Shown::clipped(message.trim(), MAX_ARGUMENTS);
                let share = match total {
                    Some(total) => format!("{}/{}", table::count(*done), table::count(*total)),
                    None => table::count(*done),
                };
                self.moving(agent, &format!("{} {share} {message}", Shown::new(tool)));
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
                self.call(agent, tool, &arguments, *ok, ending, (*fuel, *micros), *denials);
                self.failure(agent, error.as_deref(), ending);
            }
            EventKind::SubagentBatchStart { title, children, background, .. } => {
                self.say(&mut state, agent);
                if let Some(title) = title {
                    // A model's words: alone in a line they could pass for a warning of the host.
                    let title = self.paint(Style::Bold, Shown::clipped(title, MAX_SAID));
                    self.own(agent, format_args!("subagents for: {title}"));
                }
                self.batch(agent, children, *background);
            }
            // The line of the only one says the same.
            EventKind::SubagentBatchEnd { counts, .. } if counts.total < 2 => {}
            EventKind::SubagentBatchEnd { summary, counts, .. } => {
                let (of, summary) = (counts.total, Shown::new(summary));
                self.own(agent, format_args!("these {of} subagents have ended: {summary}"));
            }
            EventKind::SubagentBackground { id, .. } => {
                let id = Shown::clipped(id, MAX_SAID);
                self.own(agent, format_args!("its subagent takes long and goes on as `{id}`"));
            }
            EventKind::SubagentUpdate { counts, .. } => {
                self.moving(agent, &format!("subagents: {}", counted(counts)));
            }
            EventKind::SubagentDone { child, status, steps, tokens, error, counts, .. } => {
                state.said.retain(|who, _| who.as_ref() != child.as_str());
                let word = self.paint(status_style(*status), status);
                let (steps, tokens) = (table::some(*steps, "step"), table::count(*tokens));
                let (error, from) = (because(error.as_ref()), indent(agent));
                let child = self.paint(Style::Bold, Shown::new(name_of(child)));
                self.line(&format!("{from}← {child} {word}, {steps}, {tokens} tokens{error}"));
                self.moving(agent, &format!("subagents: {}", counted(counts)));
            }
            EventKind::Todos { items } => self.todos(agent, items),
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
                let tool = Shown::new(tool);
                self.own(agent, format_args!("`{tool}` is not allowed: {answer}"));
            }
            EventKind::HookRan { decision, .. } if decision == "pass" => {}
            EventKind::HookRan { event, tool, hook, decision, micros } => {
                let what = Shown::new(tool.as_deref().unwrap_or(event)).to_string();
                let time = table::micros(*micros);
                let text = format!("hook: {decision} {what}  {hook}, {time}");
                self.own(agent, self.paint(Style::Dim, text));
            }
            EventKind::TeamStarted { id, stages, .. } => {
                let head = self.paint(Style::Bold, Shown::new(agent));
                let stages = table::some(*stages as u64, "stage");
                self.line(&format!("team {head} ({}, {stages})", Shown::new(id)));
            }
            EventKind::TeamStageStarted { stage, of, agents } => {
                let agents = Shown::clipped(&agents.join(", "), MAX_SAID).to_string();
                self.line(&format!("stage {stage} of {of}: {agents}"));
                self.moving(agent, &format!("stage {stage} of {of}"));
            }
            EventKind::TeamStageFinished { stage, status, error } => {
                let word = self.paint(status_style(*status), status);
                self.line(&format!("stage {stage} {word}{}", because(error.as_ref())));
            }
            EventKind::Retry { attempt, after_ms, reason, replaces } => {
                if *replaces {
                    state.said.remove(agent);
                }
                let reason = Shown::clipped(reason, MAX_SAID);
                let then = format_args!("attempt {attempt} in {after_ms} ms");
                self.own(agent, format_args!("the model did not answer ({reason}); {then}"));
            }
            EventKind::Warning { message } => self.warning(&mut state, agent, message),
            EventKind::BudgetWarning { meter, used, limit } => {
                let word = self.paint(Style::Yellow, "warning:");
                let (used, limit) = (table::count(*used), table::count(*limit));
                self.own(agent, format_args!("{word} {meter} budget: {used} of {limit} used"));
            }
            EventKind::RunFinished { .. } => state.said.clear(),
        }
    }

    /// The first line of an agent; a team's agents are below the team's line.
    fn started(&self, agent: &str, model: &str, tools: &[String]) {
        let tools = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
        let (indent, name) = match agent.contains('/') {
            true => (indent(agent), name_of(agent)),
            false => (String::new(), agent),
        };
        let head = self.paint(Style::Bold, Shown::new(name));
        let (model, tools) = (Shown::new(model), Shown::new(&tools));
        self.line(&format!("{indent}{head} on {model} (tools: {tools})"));
    }

    /// The line of a finished call.
    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    fn call(
        &self,
        agent: &str,
        tool: &str,
        arguments: &str,
        ok: bool,
        ending: &str,
        (fuel, micros): (u64, u64),
        denials: usize,
    ) {
        let (style, mark) = if ok { (Style::Green, "✓") } else { (Style::Red, "✗") };
        let mark = self.paint(style, mark);
        let ending =
            if ok { String::new() } else { format!("  {}", Shown::clipped(ending, MAX_SAID)) };
        let ending = self.paint(style, ending);
        let mut cost = format!("{}, {} fuel", table::micros(micros), table::fuel(fuel));
        if denials > 0 {
            cost.push_str(&format!(", {denials} refused by the sandbox"));
        }
        let cost = self.paint(Style::Dim, cost);
        let tool = Shown::new(tool);
        self.own(agent, format_args!("{mark} {tool} {arguments}{ending}  {cost}"));
    }

    /// The reason of a failed call. A refusal by the host has its own ending.
    fn failure(&self, agent: &str, error: Option<&str>, ending: &str) {
        if let Some(error) = error.filter(|error| !ending.contains(error)) {
            let error = self.paint(Style::Dim, Shown::clipped(error, MAX_SAID));
            self.own(agent, format_args!("  {error}"));
        }
    }

    /// The beginning of subagents, each with its task.
    fn batch(&self, agent: &str, children: &[BatchChild], background: bool) {
        let how = if background { " (in the background)" } else { "" };
        for BatchChild { child, task } in children {
            let child = self.paint(Style::Bold, Shown::new(name_of(child)));
            let task = Shown::clipped(task, MAX_SAID);
            self.line(&format!("{}→ {child}{how}: {task}", indent(agent)));
        }
    }

    /// The list of an agent.
    fn todos(&self, agent: &str, items: &[TodoItem]) {
        for TodoItem { content, status } in items {
            let mark = match status {
                TodoStatus::Completed => self.paint(Style::Green, "✓"),
                TodoStatus::InProgress => self.paint(Style::Yellow, "▸"),
                TodoStatus::Pending | TodoStatus::Cancelled => self.paint(Style::Dim, "·"),
            };
            let content = Shown::clipped(content, MAX_SAID);
            self.own(agent, format_args!("{mark} {content}"));
        }
    }

    /// A warning, unless it was shown.
    fn warning(&self, state: &mut State, agent: &str, message: &str) {
        if state.has_warned(message) {
            return;
        }
        if state.warned.len() < MAX_WARNED {
            state.warned.push(message.to_owned());
        }
        let word = self.paint(Style::Yellow, "warning:");
        self.own(agent, format_args!("{word} {}", Shown::new(message)));
    }

    /// The words of an agent beside its calls.
    fn say(&self, state: &mut State, agent: &Arc<str>) {
        let Some(said) = state.said.remove(agent) else { return };
        let said = said.trim();
        if !said.is_empty() {
            let said = Shown::clipped(said, MAX_SAID);
            self.own(agent, self.paint(Style::Dim, format_args!("“{said}”")));
        }
    }

    /// A line of an agent.
    fn own(&self, agent: &str, text: impl std::fmt::Display) {
        self.line(&format!("{}{text}", self.from(agent)));
    }

    /// The beginning of an agent's line: indented, and for subagents, which may run in parallel, with the
    /// name.
    fn from(&self, agent: &str) -> String {
        let indent = indent(agent);
        if agent.contains('/') {
            let name = self.paint(Style::Dim, Shown::new(name_of(agent)));
            format!("{indent}{name} ")
        } else {
            indent
        }
    }

    /// Text of the agent at the root, as it comes.
    fn stream(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        // It stands where the text goes.
        self.still();
        self.spoke.store(true, Ordering::Relaxed);
        self.open.store(!text.ends_with('\n'), Ordering::Relaxed);
        self.out.piece(&Shown::multiline(text).to_string());
    }

    /// Takes the moving line away.
    fn still(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Shows the lines that waited for an answer; `unanswered` ends the line of the question.
    fn let_go(&self, unanswered: bool) {
        let Some(held) = self.held().take() else { return };
        if unanswered {
            self.line("");
        }
        held.lines.iter().for_each(|line| self.line(line));
        if held.more > 0 {
            self.line(&format!("  and {} lines more while a question was open", held.more));
        }
    }

    /// Ends a line of text that is not complete yet.
    fn close_line(&self) {
        if self.open.swap(false, Ordering::Relaxed) {
            self.out.piece("\n");
        }
    }

    /// Lets the moving line move again, where text or a question has stopped it.
    fn wake(&self) {
        if let Some(bar) = &self.bar
            && bar.is_finished()
            && self.live.load(Ordering::Relaxed)
            && self.held().is_none()
        {
            bar.reset();
            bar.enable_steady_tick(TICK);
        }
    }

    fn moving(&self, agent: &str, text: &str) {
        if self.held().is_some() {
            return;
        }
        self.close_line();
        self.wake();
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {text}", Shown::new(name_of(agent))));
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, line: &str) {
        if let Some(held) = &mut *self.held() {
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
            (None, To::Result) => self.out.line(line),
            (None, To::Notes | To::Chat) => self.out.note(line),
        }
    }

    fn paint(&self, style: Style, text: impl std::fmt::Display) -> String {
        match self.to {
            To::Result => self.out.paint(style, text),
            To::Notes | To::Chat => self.out.paint_err(style, text),
        }
    }
}

/// The colour of an ending.
pub(crate) fn status_style(status: RunStatus) -> Style {
    match status {
        RunStatus::Completed => Style::Green,
        RunStatus::Partial | RunStatus::Cancelled => Style::Yellow,
        RunStatus::Failed => Style::Red,
    }
}

/// The colour of how far a turn is.
pub(crate) fn message_style(status: MessageStatus) -> Style {
    match status {
        MessageStatus::Completed => Style::Green,
        MessageStatus::Partial
        | MessageStatus::Cancelled
        | MessageStatus::Interrupted
        | MessageStatus::InFlight => Style::Yellow,
        MessageStatus::Failed => Style::Red,
    }
}

/// How a batch is doing, without the zeros.
fn counted(counts: &Counts) -> String {
    let Counts { total: _, queued, running, completed, partial, failed, cancelled } = counts;
    let words = [
        (queued, "queued"),
        (running, "running"),
        (completed, "completed"),
        (partial, "partial"),
        (failed, "failed"),
        (cancelled, "cancelled"),
    ];
    let some = words.into_iter().filter(|(count, _)| **count > 0);
    some.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Why something failed, behind what did.
fn because(error: Option<&String>) -> String {
    error.map_or(String::new(), |error| format!(": {}", Shown::new(error)))
}

/// Arguments on one line, without the braces of an object.
fn short(arguments: &str) -> String {
    Shown::clipped(arguments.trim(), MAX_ARGUMENTS).to_string()
}

/// Two spaces for each agent above, and for the agent's own lines.
fn indent(agent: &str) -> String {
    "  ".repeat(agent.matches('/').count() + 1)
}

/// The last part of an agent's path; the first of its name goes without a number.
fn name_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix("#0").unwrap_or(name)
}
