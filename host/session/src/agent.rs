//! One agent from its first message to its outcome: performs what [`crate::turn::Loop`]
//! decides. A panic in here ends this agent, with all it did until then, and nothing else.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar_definition::AgentId;
use belljar_model::{
    CallContext, ChatRequest, Message, ModelError, Reply, Resolved, StreamEvent, Timeouts,
};
use belljar_policy::{Budget, Meter, Rights, ToolName};
use belljar_sandbox::Jar;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use crate::background::Background;
use crate::bounds::{
    BACKGROUND_WAIT, CHILD_CLOSE_LIMIT, JAR_CLOSE_LIMIT, MAX_CHILDREN_PER_RUN, MAX_REPLY_BYTES,
    WARN_PERCENT,
};
use crate::clock::RunId;
use crate::control::Control;
use crate::delegates::Delegates;
use crate::ended::outcome;
pub(crate) use crate::ended::{not_started, panic_message};
use crate::events::{EventKind, Events};
use crate::hooks::HookState;
use crate::host::Host;
use crate::hosttool::Scene;
use crate::ledger::Ledger;
use crate::outcome::{Outcome, RunError, Status};
use crate::pause::Pause;
use crate::prepare::{Prepared, prepare};
use crate::resolve::ResolvedAgent;
use crate::steps::{AgentPast, Replay, StepKind};
use crate::trace;
use crate::turn::{Effect, Ending, Gauge, Input, Loop, Turn, counted};

/// What all agents of one run share.
pub(crate) struct Shared {
    pub(crate) host: Host,
    pub(crate) run: RunId,
    pub(crate) events: Events,
    pub(crate) workspace: PathBuf,
    pub(crate) spawned: SpawnCount,
    /// What is kept of the run from before its process died.
    pub(crate) replay: Arc<Replay>,
    /// Ends single subagents.
    pub(crate) control: Arc<Control>,
    /// What a person has allowed for the whole run.
    pub(crate) allowed: Mutex<HashSet<(AgentId, ToolName)>>,
}

/// Counts the agents of one run.
#[derive(Debug, Default)]
pub(crate) struct SpawnCount(Mutex<(usize, HashMap<String, u32>)>);

impl SpawnCount {
    /// Goes on after the indices that were given before the process died; the agent at the top
    /// had the first of its slug.
    pub(crate) fn after(replay: &Replay, top: &str) -> Self {
        let (children, mut by_slug) = replay.spawned();
        let first = by_slug.entry(top.to_owned()).or_default();
        *first = (*first).max(1);
        Self(Mutex::new((children + 1, by_slug)))
    }

    /// The index of the next agent of that slug, from 0; `None` when the run has had
    /// [`MAX_CHILDREN_PER_RUN`] besides its first.
    pub(crate) fn next(&self, slug: &str) -> Option<u32> {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (total, by_slug) = &mut *count;
        if *total > MAX_CHILDREN_PER_RUN {
            return None;
        }
        *total += 1;
        let next = by_slug.entry(slug.to_owned()).or_default();
        let index = *next;
        *next += 1;
        Some(index)
    }
}

/// One agent to be run.
pub(crate) struct Job {
    pub(crate) shared: Arc<Shared>,
    /// The agent's name, behind its parent's path.
    pub(crate) path: Arc<str>,
    /// Its address among what is kept of the run.
    pub(crate) address: Arc<str>,
    pub(crate) agent: Arc<ResolvedAgent>,
    /// Its rights in this run: within those of its grants and of its parent.
    pub(crate) rights: Rights,
    pub(crate) model: Resolved,
    /// Earlier messages of the conversation.
    pub(crate) history: Vec<Message>,
    /// The first user message after them.
    pub(crate) first: String,
    pub(crate) spawn_index: u32,
    pub(crate) budget: Budget,
    pub(crate) deadline: Instant,
    pub(crate) cancel: CancellationToken,
    /// The time it waits for a person, which its limits do not count.
    pub(crate) pause: Arc<Pause>,
    /// Where it stands.
    pub(crate) scene: Scene,
    /// The request that a fork goes on from.
    pub(crate) fork: Option<Arc<ChatRequest>>,
    /// What a person should know before it starts.
    pub(crate) notes: Vec<String>,
    /// What it was asked for in, for whoever traces it.
    pub(crate) span: Span,
}

/// The running agent: what its effects need.
pub(crate) struct Agent<'a> {
    pub(crate) job: &'a Job,
    pub(crate) ledger: &'a Arc<Ledger>,
    pub(crate) background: &'a Arc<Background>,
    pub(crate) jar: Option<&'a Jar>,
    pub(crate) delegates: &'a Delegates,
    /// Ends everything that this agent has under way.
    pub(crate) stop: &'a CancellationToken,
    /// One permit for each child at a time.
    pub(crate) slots: Arc<Semaphore>,
    /// What hooks have said about this agent.
    pub(crate) hooked: HookState,
    /// What is kept of it from before its process died.
    pub(crate) past: Arc<AgentPast>,
    /// The tools whose calls may be made again: belljar's own that only read.
    pub(crate) repeatable: BTreeSet<ToolName>,
}

/// The agent's time, as one timer.
pub(crate) type Timer = Pin<Box<Sleep>>;

/// How a model call went.
enum Heard {
    Reply(Result<Reply, ModelError>),
    Cancelled,
    Late,
}

/// Runs one agent. Returns when it has ended and nothing of it is in flight any more, or
/// names in the outcome what is.
pub(crate) fn run_agent(job: Job) -> BoxFuture<'static, Outcome> {
    let span = trace::agent(&job);
    let traced = span.clone();
    let life = async move {
        let started = job.shared.host.clock.now();
        let (ledger, background) = (Arc::<Ledger>::default(), Arc::<Background>::default());
        let stop = job.cancel.child_token();
        let _guard = Guard { stop: stop.clone(), background: Arc::clone(&background) };
        let (mut machine, mut jar) = (None, None);
        let life = live(&job, &ledger, &background, &stop, &mut machine, &mut jar);
        let ending = AssertUnwindSafe(life).catch_unwind().await.unwrap_or_else(|panic| {
            Ending::failed(RunError::Internal { message: panic_message(&*panic) })
        });
        stop.cancel();
        part_with(&background, &job, &ledger).await;
        if let Some(jar) = &jar {
            close(jar, &job, &ledger).await;
        }
        let said = machine.map(Loop::into_said).unwrap_or_default();
        let outcome = outcome(&job, &ledger, ending, said, started);
        trace::agent_ended(&traced, &outcome);
        outcome
    };
    Box::pin(life.instrument(span))
}

/// Ends what an agent has under way when its future is dropped: its children in the background
/// hold each other and the list they stand in, so nothing else would.
struct Guard {
    stop: CancellationToken,
    background: Arc<Background>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stop.cancel();
        self.background.abandon();
    }
}

/// The agent's life; `slot` and `jar_slot` outlive it, whatever happens in here.
async fn live(
    job: &Job,
    ledger: &Arc<Ledger>,
    background: &Arc<Background>,
    stop: &CancellationToken,
    slot: &mut Option<Loop>,
    jar_slot: &mut Option<Jar>,
) -> Ending {
    let mut timer: Timer = Box::pin(tokio::time::sleep_until(job.deadline));
    for note in &job.notes {
        job.warn(ledger, note.clone());
    }
    let prepared = tokio::select! {
        biased;
        () = stop.cancelled() => return Ending::cancelled(),
        prepared = prepare(job, ledger, stop) => prepared,
        () = timer.as_mut() => return job.late(),
    };
    let Prepared { machine, jar, delegates, repeatable } = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return Ending::failed(error),
    };
    let past = job.shared.replay.take(&job.address);
    let replay = &job.shared.replay;
    if !job.scene.is_child() && !replay.is_empty() {
        job.emit(|| EventKind::RunResumed { kept: replay.len() });
    } else if !job.scene.is_child() {
        job.emit(|| EventKind::RunStarted {
            id: job.agent.id.to_string(),
            model: job.model.model.id().to_owned(),
            tools: machine.request().tools.iter().map(|tool| tool.name.clone()).collect(),
            workspace: job.shared.workspace.to_string_lossy().into_owned(),
        });
    }
    *jar_slot = jar;
    let agent = Agent {
        job,
        ledger,
        background,
        jar: jar_slot.as_ref(),
        slots: Arc::new(Semaphore::new(delegates.max_concurrent())),
        delegates: &delegates,
        stop,
        hooked: HookState::default(),
        past: past.unwrap_or_default(),
        repeatable,
    };
    agent.drive(slot.insert(machine), &mut timer).await
}

impl Agent<'_> {
    async fn drive(&self, machine: &mut Loop, timer: &mut Timer) -> Ending {
        // What the model was told beside results since its last answer.
        let mut told = Vec::new();
        if self.past.said(1).is_none() {
            match self.before_start(timer).await {
                Ok(notes) if notes.is_empty() => {}
                Ok(notes) => tell(machine, &mut told, notes.trim_start().to_owned()),
                Err(ending) => return ending,
            }
        }
        let mut input = Input::Begin;
        let (mut warned, mut resumed) = (0, false);
        loop {
            let asks = matches!(input, Input::Begin | Input::Answered(_));
            let turn = asks.then(|| self.take_step(machine));
            let effects = machine.step(input, &self.gauge(turn));
            let asked = effects.iter().any(|effect| matches!(effect, Effect::AskModel { .. }));
            if !asked && matches!(turn, Some(Turn::Whole | Turn::Last(_))) {
                self.job.budget.refund(Meter::Steps, 1);
            }
            let mut next = None;
            for effect in effects {
                match effect {
                    Effect::Warn(message) => self.job.warn(self.ledger, message),
                    Effect::AskModel { last } => {
                        if let Some(ending) = self.halted() {
                            return ending;
                        }
                        if let Some(input) = self.recall(machine) {
                            next = Some(input);
                            continue;
                        }
                        for news in self.background.news() {
                            tell(machine, &mut told, news);
                        }
                        let told = std::mem::take(&mut told);
                        next = Some(self.ask(machine, last, told, timer).await);
                    }
                    Effect::Call(decisions) => {
                        next = Some(self.carry_out(machine, decisions, timer).await);
                    }
                    // It went on after this, before its process died.
                    Effect::Finish(_) if self.past.said(machine.current_step() + 1).is_some() => {
                        machine.reopen();
                        resumed = true;
                        next = Some(Input::Begin);
                    }
                    Effect::Finish(ending) => {
                        match self.last_word(machine, &mut told, ending, timer).await {
                            Ok(input) => next = Some(input),
                            Err(ending) => {
                                let said = machine.output();
                                let kept = self.before_end(said, &ending, resumed, timer).await;
                                let Some(text) = kept else { return ending };
                                tell(machine, &mut told, text);
                                machine.reopen();
                                resumed = true;
                                next = Some(Input::Begin);
                            }
                        }
                    }
                }
            }
            let Some(happened) = next else {
                let message = "the loop had nothing to do".to_owned();
                return Ending::failed(RunError::Internal { message });
            };
            input = happened;
            self.warn_of_budgets(&mut warned);
        }
    }

    /// The agent has nothing more to do. While it has subagents in the background, it waits for
    /// them and hears how they ended; then it may say something else.
    async fn last_word(
        &self,
        machine: &mut Loop,
        told: &mut Vec<String>,
        ending: Ending,
        timer: &mut Timer,
    ) -> Result<Input, Ending> {
        if ending.status != Status::Completed || !self.background.is_open() {
            return Err(ending);
        }
        tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(Ending::cancelled()),
            () = self.background.all() => {}
            () = self.time_up(timer) => return Err(self.job.late()),
            () = tokio::time::sleep(BACKGROUND_WAIT) => return Err(ending),
        }
        let news = self.background.news();
        if news.is_empty() {
            // It had heard of all of them before its process died.
            return Err(ending);
        }
        for news in news {
            tell(machine, told, news);
        }
        machine.reopen();
        Ok(Input::Begin)
    }

    /// Ends when the agent's time is up, not counting what it waited for a person.
    pub(crate) async fn time_up(&self, timer: &mut Timer) {
        loop {
            timer.as_mut().await;
            let pause = &self.job.pause;
            pause.over().await;
            let deadline = self.job.deadline.checked_add(pause.total());
            match deadline {
                Some(deadline) if deadline > Instant::now() => timer.as_mut().reset(deadline),
                Some(_) | None => return,
            }
        }
    }

    /// What the model had answered before the process died, if this step is one of those. What
    /// it used counts as it did then.
    fn recall(&self, machine: &mut Loop) -> Option<Input> {
        let (told, reply) = self.past.said(machine.current_step())?;
        for text in told {
            self.background.told(text);
            machine.tell(text.clone());
        }
        self.ledger.entries().usage.steps += 1;
        self.bill_tokens(machine, reply);
        Some(Input::Replied(reply.clone()))
    }

    /// Takes the step of the model's next turn before the model is asked, so that agents that run
    /// side by side never take more than a budget above them has. One that was answered before the
    /// process died was taken then.
    fn take_step(&self, machine: &Loop) -> Turn {
        let budget = &self.job.budget;
        if self.past.said(machine.current_step() + 1).is_some() {
            let before = budget.exhausted(Meter::Steps);
            let _ = budget.bill(Meter::Steps, 1);
            return before.map_or(Turn::Whole, Turn::Last);
        }
        let Err(exhausted) = budget.reserve(Meter::Steps, 1) else { return Turn::Whole };
        match budget.reserve_above(Meter::Steps, 1) {
            Ok(()) => Turn::Last(exhausted),
            Err(above) => Turn::None(above),
        }
    }

    /// Sends the conversation to the model and waits for the whole answer. `told`: what was
    /// added to it besides results.
    async fn ask(&self, machine: &Loop, last: bool, told: Vec<String>, timer: &mut Timer) -> Input {
        let job = self.job;
        let step = machine.current_step();
        self.ledger.entries().usage.steps += 1;
        job.emit(|| EventKind::StepStarted { step, last });
        let mut heard = String::new();
        let span = trace::model_turn(&job.model, step);
        let cx = CallContext {
            agent: &job.agent.definition.name,
            spawn_index: job.spawn_index,
            step,
            timeouts: Timeouts {
                first_token: Duration::from_secs(job.rights.limits().prefill_timeout_seconds),
                ..Timeouts::default()
            },
            cancel: self.stop.clone(),
        };
        let asking = async {
            let mut listen = |event| job.hear(event, &mut heard);
            tokio::select! {
                biased;
                // Dropping the call closes its connection, so a model that is slow to notice
                // the token does no more either.
                () = self.stop.cancelled() => Heard::Cancelled,
                reply = job.model.model.chat(machine.request(), &cx, &mut listen) => {
                    Heard::Reply(reply)
                }
                () = self.time_up(timer) => Heard::Late,
            }
        };
        let result = asking.instrument(span.clone()).await;
        let ending = match result {
            Heard::Reply(Ok(reply)) => {
                trace::answered(&span, &reply);
                self.bill_tokens(machine, &reply);
                let said = || StepKind::Said { told, reply: reply.clone() };
                job.keep_step(step, 0, said).await;
                return Input::Replied(reply);
            }
            Heard::Reply(Err(ModelError::Cancelled)) | Heard::Cancelled => {
                trace::unanswered(&span, &ModelError::Cancelled);
                Ending::cancelled()
            }
            Heard::Reply(Err(error)) => {
                trace::unanswered(&span, &error);
                Ending::failed(RunError::Model { message: error.to_string() })
            }
            Heard::Late => {
                trace::failed(&span, "wall-time");
                job.late()
            }
        };
        Input::Interrupted { heard, answers: Vec::new(), ending }
    }

    /// Bills an answer.
    fn bill_tokens(&self, machine: &Loop, reply: &Reply) {
        let usage = counted(machine.request(), reply);
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        // As with steps: the gauge tells.
        let _ = self.job.budget.bill(Meter::Tokens, tokens);
        self.ledger.entries().usage += usage;
    }

    fn gauge(&self, turn: Option<Turn>) -> Gauge {
        let budget = &self.job.budget;
        Gauge {
            halt: budget.exhausted(Meter::Tokens).or_else(|| budget.exhausted(Meter::Fuel)),
            turn: turn.unwrap_or(Turn::Whole),
            tokens_left: budget.remaining(Meter::Tokens),
        }
    }

    /// Sends one warning for each meter that passes [`WARN_PERCENT`]; `warned` is a set of
    /// bits, one for each.
    fn warn_of_budgets(&self, warned: &mut u8) {
        if !self.job.shared.events.listened() {
            return;
        }
        for (bit, meter) in [(1, Meter::Steps), (2, Meter::Tokens), (4, Meter::Fuel)] {
            let (used, limit) = (self.job.budget.spent(meter), self.job.budget.limit(meter));
            let share = u128::from(used) * 100 >= u128::from(limit) * u128::from(WARN_PERCENT);
            if share && *warned & bit == 0 {
                *warned |= bit;
                self.job.emit(|| EventKind::BudgetWarning { meter, used, limit });
            }
        }
    }
}

impl Job {
    /// Sends an event about this agent.
    pub(crate) fn emit(&self, make: impl FnOnce() -> EventKind) {
        self.shared.events.emit(&self.path, make);
    }

    /// Tells a person, now and in the outcome.
    pub(crate) fn warn(&self, ledger: &Ledger, message: String) {
        self.emit(|| EventKind::Warning { message: message.clone() });
        ledger.entries().warnings.push(message);
    }

    /// How the agent ends when its time is up.
    pub(crate) fn late(&self) -> Ending {
        let seconds = self.rights.limits().timeout_seconds;
        Ending::partial(RunError::WallTime { seconds })
    }

    fn hear(&self, event: StreamEvent, heard: &mut String) {
        match event {
            StreamEvent::TextDelta(text) => {
                if heard.len().saturating_add(text.len()) <= MAX_REPLY_BYTES {
                    heard.push_str(&text);
                }
                self.emit(|| EventKind::TextDelta { text });
            }
            StreamEvent::Retrying { attempt, after, reason } => self.emit(|| {
                let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                EventKind::Retry { attempt, after_ms, reason }
            }),
            StreamEvent::Started
            | StreamEvent::ThinkingDelta(_)
            | StreamEvent::CallStarted { .. } => {}
        }
    }
}

/// Tells the model something, and notes that it was told.
fn tell(machine: &mut Loop, told: &mut Vec<String>, text: String) {
    told.push(text.clone());
    machine.tell(text);
}

/// Ends what is left in the background: its parent is gone. What it had done is kept.
async fn part_with(background: &Background, job: &Job, ledger: &Ledger) {
    for (id, agent) in background.running() {
        let agent = belljar_policy::Shown::clipped(&agent, 64).to_string();
        let message = format!("subagent `{id}` (`{agent}`) was still running and was cancelled");
        job.warn(ledger, message);
    }
    if timeout(CHILD_CLOSE_LIMIT, background.all()).await.is_err() {
        job.budget.cancel();
        let left = background.running().into_iter();
        let named = left.map(|(id, agent)| format!("subagent `{id}` ({agent}) of `{}`", job.path));
        ledger.entries().unfinished.extend(named);
    }
    background.abandon();
}

/// Waits until nothing of the jar is in flight, and names what is after the jar's own limit.
async fn close(jar: &Jar, job: &Job, ledger: &Ledger) {
    let closing = timeout(JAR_CLOSE_LIMIT, AssertUnwindSafe(jar.close()).catch_unwind()).await;
    let left = match closing {
        Ok(Ok(left)) => left,
        Ok(Err(_)) | Err(_) => vec!["the jar".to_owned()],
    };
    if !left.is_empty() {
        // What is left stops at its next check of the budget.
        job.budget.cancel();
        let named = left.into_iter().map(|what| format!("{what} of `{}`", job.path));
        ledger.entries().unfinished.extend(named);
    }
}
