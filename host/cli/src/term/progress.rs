//! Shows a run while it happens: a line for each finished tool call and subagent, and on a terminal a moving
//! status line at the bottom.

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

/// The most characters of a task or of an agent's text on one line.
const MAX_SAID: usize = 160;

/// The most bytes of an agent's text that are kept until its step ends.
const MAX_BUFFERED: usize = 4 << 10;

/// The most lines that are kept while a question to the person is open: more than a screen.
const MAX_HELD: usize = 200;

/// The most warnings that are remembered as shown; after more, one may be shown twice.
const MAX_WARNED: usize = 200;

/// The time between two redraws of the moving line.
const TICK: Duration = Duration::from_millis(120);

/// Where the lines about a run are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineTarget {
    /// On stdout: the run itself is the result of the command.
    Result,
    /// On stderr, with the moving line on a terminal; nothing with `--quiet`.
    Notes,
    /// As [`LineTarget::Notes`]; in addition, the root agent's text is printed on stdout as it arrives, even
    /// with `--quiet`. Between turns there is no moving line.
    Chat,
}

/// Prints the events of one run for a person.
#[derive(Clone)]
pub(crate) struct RunProgress(Arc<ProgressInner>);

/// The state that all clones of a run's display share.
struct ProgressInner {
    out: TerminalOutput,
    to: LineTarget,
    bar: Option<ProgressBar>,
    state: Mutex<ProgressState>,
    /// True if the last output on stdout was a part of the agent's text without a line end.
    open: AtomicBool,
    /// True if the agent at the root has written any text in this turn.
    spoke: AtomicBool,
    /// Lines that wait until the person has answered a question; `None` = no question is open.
    held: Mutex<Option<WaitingLines>>,
    /// True if the moving line may be drawn.
    live: AtomicBool,
}

/// Lines that wait while a person answers a question.
#[derive(Default)]
struct WaitingLines {
    lines: Vec<String>,
    /// The number of lines beyond [`MAX_HELD`], which are dropped.
    more: usize,
}

/// What the display remembers of a run's events.
#[derive(Default)]
struct ProgressState {
    /// The arguments of running calls, by agent and call id.
    calls: HashMap<(Arc<str>, String), String>,
    /// The text of each agent since its last step.
    said: HashMap<Arc<str>, String>,
    /// The agent at the root; its last text is the result of the run.
    root: Option<Arc<str>>,
    /// Warnings that were shown, so that each is shown once, for all agents and turns.
    warned: Vec<String>,
}

impl ProgressState {
    fn has_warned(&self, warning: &str) -> bool {
        self.warned.iter().any(|known| warning.contains(known))
    }
}

impl RunProgress {
    /// Makes the display of a run for the output `out`, with its lines printed at `to`.
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

    /// Starts a turn: the moving line may be drawn again.
    pub(crate) fn begin_turn(&self) {
        self.0.spoke.store(false, Ordering::Relaxed);
        self.0.live.store(true, Ordering::Relaxed);
        self.0.wake_moving_line();
    }

    /// Ends a turn: completes the line of the agent's text, and removes the moving line. Returns whether the
    /// agent at the root has written any text.
    pub(crate) fn end_turn(&self) -> bool {
        self.clear_moving_line();
        self.0.close_line();
        self.0.spoke.load(Ordering::Relaxed)
    }

    /// A sink that shows each event of a run here.
    pub(crate) fn event_sink(&self) -> EventSink {
        let inner = Arc::clone(&self.0);
        // In a chat the text is shown as it arrives, so it cannot be withdrawn later.
        let kept =
            if inner.to == LineTarget::Chat { TextRetention::Top } else { TextRetention::Nothing };
        EventSink::with_listener(move |event| inner.show_event(event)).with_retention(kept)
    }

    /// Removes the moving line. Must be called before the result is printed.
    pub(crate) fn clear_moving_line(&self) {
        self.0.live.store(false, Ordering::Relaxed);
        self.0.stop_moving_line();
        // A question without an answer ends with a line feed.
        self.0.let_go(true);
    }

    /// Runs `work` while the moving line is not drawn. `work` must be short, because the run waits.
    pub(crate) fn run_paused<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.close_line();
        match &self.0.bar {
            Some(bar) => bar.suspend(work),
            None => work(),
        }
    }

    /// Runs `question` while nothing else is printed: lines of other agents wait for the answer. No lock is
    /// held meanwhile, so that the run can be cancelled.
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

    /// Shows faults of tools before anything runs. Warnings of the run that only repeat one of them are not
    /// shown again.
    pub(crate) fn show_problems(&self, problems: &[Diagnostic]) {
        for problem in problems {
            self.run_paused(|| self.0.out.print_diagnostic(problem));
            let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.warned.push(problem.message.clone());
        }
    }

    /// Returns whether this warning, or the one that it repeats, was shown already.
    pub(crate) fn has_warned(&self, warning: &str) -> bool {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).has_warned(warning)
    }

    /// Prints a line about the work, between the lines of the run.
    pub(crate) fn show_note(&self, line: &str) {
        self.0.write_line(line);
    }
}

impl ProgressInner {
    /// Shows one event: as a line, as a change of the moving line, or as a part of the agent's text.
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
            // In a chat, the greeting has named the model and the agent.
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
                    // The title is a model's text: alone on a line it could look like a warning of the host.
                    let title =
                        self.paint_text(TextStyle::Bold, ShownText::clip_line(title, MAX_SAID));
                    self.show_agent_line(agent, format_args!("subagents for: {title}"));
                }
                self.show_batch(agent, children, *background);
            }
            // For a single subagent, its own last line says the same.
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
            // The person sees the question itself.
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

    /// The first line of an agent: its model and tools. The agents of a team are indented below the team's
    /// line.
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

    /// The line of a finished call: its tool, arguments, ending and costs.
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

    /// The line with the reason of a failed call. For a refusal by the host, `ending` says so.
    fn show_failure(&self, agent: &str, error: Option<&str>, ending: &str) {
        if let Some(error) = error.filter(|error| !ending.contains(error)) {
            let error = self.paint_text(TextStyle::Dim, ShownText::clip_line(error, MAX_SAID));
            self.show_agent_line(agent, format_args!("  {error}"));
        }
    }

    /// The line about subagents that begin, with the task of each.
    fn show_batch(&self, agent: &str, children: &[BatchChild], background: bool) {
        let how = if background { " (in the background)" } else { "" };
        for BatchChild { child, task } in children {
            let child = self.paint_text(TextStyle::Bold, ShownText::new(name_of(child)));
            let task = ShownText::clip_line(task, MAX_SAID);
            self.write_line(&format!("{}→ {child}{how}: {task}", agent_indent(agent)));
        }
    }

    /// The agent's list of its own tasks.
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

    /// The line of a warning, unless it was shown already.
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

    /// The line with the text that an agent wrote beside its calls.
    fn show_words(&self, state: &mut ProgressState, agent: &Arc<str>) {
        let Some(said) = state.said.remove(agent) else { return };
        let said = said.trim();
        if !said.is_empty() {
            let said = ShownText::clip_line(said, MAX_SAID);
            self.show_agent_line(agent, self.paint_text(TextStyle::Dim, format_args!("“{said}”")));
        }
    }

    /// A line of an agent, indented by its depth.
    fn show_agent_line(&self, agent: &str, text: impl std::fmt::Display) {
        self.write_line(&format!("{}{text}", self.line_prefix(agent)));
    }

    /// The beginning of an agent's line: the indent, and for subagents the name, because several may run in
    /// parallel.
    fn line_prefix(&self, agent: &str) -> String {
        let indent = agent_indent(agent);
        if agent.contains('/') {
            let name = self.paint_text(TextStyle::Dim, ShownText::new(name_of(agent)));
            format!("{indent}{name} ")
        } else {
            indent
        }
    }

    /// Prints a part of the root agent's text as it arrives.
    fn stream_text(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        // The moving line would be in the same place as the text.
        self.stop_moving_line();
        self.spoke.store(true, Ordering::Relaxed);
        self.open.store(!text.ends_with('\n'), Ordering::Relaxed);
        self.out.print_piece(&ShownText::multiline(text).to_string());
    }

    /// Removes the moving line.
    fn stop_moving_line(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Shows the lines that waited for an answer. `unanswered` = the question got no answer, so its line is
    /// ended first.
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

    /// Ends a line of the agent's text that is not complete yet.
    fn close_line(&self) {
        if self.open.swap(false, Ordering::Relaxed) {
            self.out.print_piece("\n");
        }
    }

    /// Lets the moving line be drawn again, after text or a question has removed it.
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

    /// Sets the text of the moving line, unless a question is open.
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

    /// Prints a line, or keeps it while a question is open.
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

    /// Applies a style, if the stream of the lines shows colours.
    fn paint_text(&self, style: TextStyle, text: impl std::fmt::Display) -> String {
        match self.to {
            LineTarget::Result => self.out.paint(style, text),
            LineTarget::Notes | LineTarget::Chat => self.out.paint_err(style, text),
        }
    }
}
