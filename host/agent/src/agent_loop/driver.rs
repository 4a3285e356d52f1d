//! Runs one agent from its first message to its outcome: performs the decisions of
//! [`crate::agent_loop::machine::Loop`]. A panic in this module ends one agent, and its outcome has the work
//! done so far.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use belljar_model::{CallContext, ModelError, Reply, StreamEvent, Timeouts};
use belljar_policy::{Hold, Meter};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::agent_loop::agent::{Agent, Effects, Notes, Timer};
use crate::agent_loop::ended::outcome;
use crate::agent_loop::ended::panic_message;
use crate::agent_loop::job::Job;
use crate::agent_loop::ledger::Ledger;
use crate::agent_loop::live::Live;
use crate::agent_loop::machine::{
    Effect, Ending, Gauge, Input, Loop, NextStep, Partial, counted, cut_off, hold_tokens,
    least_tokens,
};
use crate::agent_loop::prepare::prepare;
use crate::agent_loop::remedy::remedy;
use crate::agent_loop::stops::Stops;
use crate::events::EventKind;
use crate::limits::{BACKGROUND_WAIT, CHILD_CLOSE_LIMIT, MAX_REPLY_BYTES, ROOM_WAIT, WARN_PERCENT};
use crate::outcome::{Outcome, RunError, RunStatus};
use crate::replay::log::StepKind;
use crate::replay::replaying::Replaying;
use crate::schema::{CHECKING, Check, late};
use crate::subagent::background::Background;
use crate::tools::builtin::worktree;
use crate::tools::executor::{CallExecutor, CallMeans};
use crate::trace;

/// Runs one agent. Returns once the agent has ended and none of its work is running, or names the unfinished
/// work in the outcome.
pub(crate) fn run_agent(job: Job) -> BoxFuture<'static, Outcome> {
    let (span, lines) = (trace::agent(&job), trace::lines_of(&job));
    let traced = span.clone();
    let life = async move {
        let started = job.shared.host.clock.now();
        let ledger = Arc::<Ledger>::default();
        let stop = job.cancel.child_token();
        let (mut machine, mut means) = (None, None);
        // Ends the running work when this future is dropped, before its means are.
        let _guard = stop.clone().drop_guard();
        let life = run_life(&job, &ledger, &stop, &mut machine, &mut means);
        let ending = AssertUnwindSafe(life).catch_unwind().await.unwrap_or_else(|panic| {
            Ending::failed(RunError::Internal { message: panic_message(&*panic) })
        });
        stop.cancel();
        let mut merged = Vec::new();
        if let Some(CallMeans { background, remote, jar, .. }) = &means {
            part_with(background, &job, &ledger).await;
            remote.close(&job).await;
            jar.close(&job, &ledger).await;
            merged = worktree::end(jar, &job, &ledger, ending.status).await;
        }
        if !job.depth.is_child() {
            for line in merged.drain(..) {
                job.warn(&ledger, line);
            }
        }
        let transcript = machine.map(Loop::into_transcript).unwrap_or_default();
        let mut outcome = outcome(&job, &ledger, ending, transcript, started);
        outcome.merged = merged;
        trace::agent_ended(&traced, &outcome);
        outcome
    };
    // The span of log lines is outermost, so that it is not between two spans of the trace.
    Box::pin(life.instrument(span).instrument(lines))
}

/// The agent's life; `slot` and `means` outlive it, whatever happens in here.
async fn run_life(
    job: &Job,
    ledger: &Arc<Ledger>,
    stop: &CancellationToken,
    slot: &mut Option<Loop>,
    means: &mut Option<CallMeans>,
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
    let (machine, prepared) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return Ending::failed(error),
    };
    let effects: Box<dyn Effects> = match &job.shared.rerun {
        None if job.shared.replay.is_empty() => Box::new(Live),
        _ => Box::new(Replaying::new(job)),
    };
    let (means, effects) = (means.insert(prepared), &*effects);
    let agent = Agent(CallExecutor { job, ledger, means, stop, effects });
    agent.drive(slot.insert(machine), &mut timer).await
}

impl Agent<'_> {
    async fn drive(&self, machine: &mut Loop, timer: &mut Timer) -> Ending {
        let effects = self.effects;
        effects.begin(self, machine);
        let mut notes = Notes::new();
        match effects.start(self, timer).await {
            Ok(text) if text.is_empty() => {}
            Ok(text) => machine.note(&mut notes, text.trim_start().to_owned()),
            Err(ending) => return ending,
        }
        let mut input = Input::Begin;
        let (mut warned, mut again) = (0, false);
        loop {
            let asks = matches!(input, Input::Begin | Input::Answered(_));
            let next_step = asks.then(|| effects.take_step(self, machine));
            let todo = machine.step(input, &self.gauge(next_step));
            let asked = todo.iter().any(|effect| matches!(effect, Effect::AskModel { .. }));
            if !asked && matches!(next_step, Some(NextStep::Whole | NextStep::Last(_))) {
                self.job.budget.refund(Meter::Steps, 1);
            }
            let mut next = None;
            for effect in todo {
                match effect {
                    Effect::Warn(message) => self.job.warn(self.ledger, message),
                    Effect::AskModel { last } => {
                        if let Some(ending) = self.halted() {
                            return ending;
                        }
                        let reply = effects.ask_model(self, machine, last, &mut notes, timer);
                        next = Some(reply.await);
                    }
                    Effect::Check(checks) => next = Some(self.check(checks, timer).await),
                    Effect::Call(decisions) => {
                        next = Some(self.execute_all(machine, decisions, timer).await);
                    }
                    // The turn is not finished: its next turn brings the results.
                    Effect::Finish(ending) if machine.hands_over() => return ending,
                    Effect::Finish(ending) => {
                        let ended =
                            effects.finish(self, machine, &mut notes, ending, &mut again, timer);
                        match ended.await {
                            Ok(input) => next = Some(input),
                            Err(ending) => return ending,
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

    /// Makes the checks of an answer. INV-401: on a thread that counts for the tenant, and ended with the agent.
    async fn check(&self, checks: Vec<Check>, timer: &mut Timer) -> Input {
        let owner = self.job.shared.host.owner_of("schemas");
        let work = belljar_work::run(&CHECKING, &owner, move |stop| Check::all(&checks, stop));
        let ending = tokio::select! {
            biased;
            () = self.stop.cancelled() => Ending::cancelled(),
            () = self.time_up(timer) => self.job.late(),
            made = work => match made {
                Ok(Some(verdicts)) => return Input::Checked(verdicts),
                // Only the deadline ends the check while the agent waits.
                Ok(None) => Ending::failed(RunError::from(&late(&CHECKING))),
                Err(error) => Ending::failed(RunError::from(&error)),
            },
        };
        Input::Interrupted { partial: String::new(), answers: Vec::new(), ending }
    }

    /// Reports the beginning of the run, for the top agent.
    pub(crate) fn say_started(&self, machine: &Loop) {
        let job = self.job;
        if job.depth.is_child() {
            return;
        }
        job.emit(|| EventKind::RunStarted {
            id: job.agent.id.to_string(),
            model: job.model.model.id().to_owned(),
            tools: machine.request().tools.iter().map(|tool| tool.name.clone()).collect(),
            workspace: job.shared.workspace.to_string_lossy().into_owned(),
        });
    }

    /// Ends an agent that makes no more calls. Waits first for its background subagents and notes their
    /// endings; the model may then answer once more.
    pub(crate) async fn last_word(
        &self,
        machine: &mut Loop,
        notes: &mut Notes,
        ending: Ending,
        timer: &mut Timer,
    ) -> Result<Input, Ending> {
        if ending.status != RunStatus::Completed || !self.background.is_open() {
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
            // The agent knows all endings.
            return Err(ending);
        }
        for news in news {
            machine.note(notes, news);
        }
        Ok(machine.reopen())
    }

    /// Takes the step of the model's next answer, or returns the reason against it.
    pub(crate) fn reserve_step(&self) -> NextStep {
        let budget = &self.job.budget;
        let Err(exhausted) = budget.reserve(Meter::Steps, 1) else { return NextStep::Whole };
        match budget.reserve_above(Meter::Steps, 1) {
            Ok(()) => NextStep::Last(exhausted),
            Err(above) => NextStep::None(above),
        }
    }

    /// Requests the model's answer. `notes`: messages added besides results. If the conversation is too long
    /// for the model, it is shortened and sent once more.
    pub(crate) async fn ask(
        &self,
        machine: &mut Loop,
        last: bool,
        notes: Notes,
        timer: &mut Timer,
    ) -> Input {
        let job = self.job;
        let step = machine.current_step();
        let held = match self.room(machine, timer).await {
            Ok(held) => held,
            Err(ending) => {
                job.budget.refund(Meter::Steps, 1);
                return Unanswered::of(ending).into();
            }
        };
        self.ledger.entries().usage.steps += 1;
        job.emit(|| EventKind::StepStarted { step, last });
        let mut answered = self.send(machine, held, timer).await;
        if answered.as_ref().is_err_and(Unanswered::may_be_shorter) {
            match self.shorten(machine, timer).await {
                Ok(false) => {}
                Ok(true) => {
                    answered = match self.room(machine, timer).await {
                        Ok(held) => self.send(machine, held, timer).await,
                        Err(ending) => Err(Unanswered::of(ending)),
                    };
                }
                Err(ending) => answered = Err(Unanswered::of(ending)),
            }
        }
        match answered {
            Ok(reply) => {
                let answer = || StepKind::Said { notes, reply: reply.clone() };
                job.persist_step(step, 0, answer).await;
                Input::Replied(reply)
            }
            Err(unanswered) => unanswered.into(),
        }
    }

    /// Shortens a conversation that exceeds the model's context: a summary replaces earlier turns, or long
    /// results already read are removed. Returns whether anything was shortened.
    async fn shorten(&self, machine: &mut Loop, timer: &mut Timer) -> Result<bool, Ending> {
        let job = self.job;
        if let Some(past) = &job.shorter {
            let cancel = self.stop.child_token();
            let mut making = past.shorten(&job.shared.events, &cancel);
            let made = tokio::select! {
                made = &mut making => made,
                () = self.time_up(timer) => {
                    // Not dropped, because the stored and the returned summary have to agree.
                    cancel.cancel();
                    making.await
                }
            };
            if self.stop.is_cancelled() {
                return Err(Ending::cancelled());
            }
            if let Some(messages) = made {
                machine.replace_past(messages);
                return Ok(true);
            }
        }
        let bytes = machine.cut_results();
        if bytes > 0 {
            let message = format!(
                "{bytes} bytes of earlier tool results were taken out of the conversation: its \
                 model could not read it whole"
            );
            job.warn(self.ledger, message);
        }
        Ok(bytes > 0)
    }

    /// Sends the conversation to the model and waits for the whole answer.
    async fn send(
        &self,
        machine: &Loop,
        held: Hold,
        timer: &mut Timer,
    ) -> Result<Reply, Unanswered> {
        let job = self.job;
        let step = machine.current_step();
        let mut partial = Partial::default();
        let mut stops = Stops::new(&machine.request().sampling.stop);
        let span = trace::step(&job.model, step);
        let cx = CallContext {
            agent: &job.agent.definition.name,
            spawn_index: job.spawn_index,
            step,
            timeouts: Timeouts {
                first_token: Duration::from_secs(job.rights.limits().prefill_timeout_seconds),
                ..Timeouts::default()
            },
            takes_back: !job.shared.events.keeps(&job.path),
            cancel: self.stop.clone(),
        };
        // `None` if the agent's time is up first.
        let asking = async {
            let mut listen = |event| job.on_event(event, &mut partial, &mut stops);
            tokio::select! {
                biased;
                // Dropping the call closes the connection, so a model that ignores the token is stopped too.
                () = self.stop.cancelled() => Some(Err(ModelError::Cancelled)),
                reply = job.model.model.chat(machine.request(), &cx, &mut listen) => Some(reply),
                () = self.time_up(timer) => None,
            }
        };
        let result = asking.instrument(span.clone()).await;
        if let Some(text) = stops.rest() {
            job.say(text, &mut partial);
        }
        // From here on the real usage counts, not the estimate.
        drop(held);
        for bytes in &partial.lost {
            self.bill_tokens(machine, &cut_off(machine.bytes(), *bytes));
        }
        let ending = match result {
            Some(Ok(mut reply)) => {
                trace::answered(&span, &reply);
                self.bill_tokens(machine, &reply);
                job.bills.note(machine.bytes(), &reply);
                // INV-490: after billing, because the whole answer was paid for.
                stops.cut(&mut reply);
                return Ok(reply);
            }
            Some(Err(ModelError::Cancelled)) => {
                trace::unanswered(&span, &ModelError::Cancelled);
                Ending::cancelled()
            }
            Some(Err(error)) => {
                trace::unanswered(&span, &error);
                let too_long = matches!(error, ModelError::ContextLength { .. });
                let hint = remedy(&error, &job.model.name);
                Ending::failed(RunError::Model { message: error.to_string(), too_long, hint })
            }
            None => {
                trace::failed(&span, "wall-time");
                job.late()
            }
        };
        // The provider has counted both directions, and reports neither. Before an answer's beginning nothing
        // is known.
        if partial.begun {
            self.bill_tokens(machine, &cut_off(machine.bytes(), partial.bytes));
        }
        Err(Unanswered { partial: partial.text, begun: partial.begun, ending })
    }

    /// Reserves room for the next request. Waits while others hold the needed tokens, because they may use
    /// less.
    async fn room(&self, machine: &Loop, timer: &mut Timer) -> Result<Hold, Ending> {
        let budget = &self.job.budget;
        loop {
            let billed = self.job.bills.least(machine.bytes());
            if let Ok(held) = hold_tokens(budget, machine.bytes(), billed) {
                return Ok(held);
            }
            budget
                .fits(Meter::Tokens, least_tokens(machine.bytes()))
                .map_err(|exhausted| Ending::partial(RunError::Budget { exhausted }))?;
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(Ending::cancelled()),
                () = self.time_up(timer) => return Err(self.job.late()),
                () = tokio::time::sleep(ROOM_WAIT) => {}
            }
        }
    }

    /// Bills an answer.
    pub(crate) fn bill_tokens(&self, machine: &Loop, reply: &Reply) {
        let usage = counted(machine.bytes(), reply);
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        // As with steps, an exhausted budget is reported by the gauge.
        let _ = self.job.budget.bill(Meter::Tokens, tokens);
        self.ledger.entries().usage += usage;
    }

    fn gauge(&self, next: Option<NextStep>) -> Gauge {
        let budget = &self.job.budget;
        Gauge {
            halt: budget.exhausted(Meter::Tokens).or_else(|| budget.exhausted(Meter::Fuel)),
            next: next.unwrap_or(NextStep::Whole),
            tokens_left: budget.remaining(Meter::Tokens),
        }
    }

    /// Sends one warning for each meter past [`WARN_PERCENT`]; `warned` is a set of bits, one for each.
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

/// A request without a whole answer.
struct Unanswered {
    /// The text received so far.
    partial: String,
    /// True if the answer had begun.
    begun: bool,
    ending: Ending,
}

impl Unanswered {
    fn of(ending: Ending) -> Self {
        Self { partial: String::new(), begun: false, ending }
    }

    /// Returns whether the model refused the request for its length, before any output.
    fn may_be_shorter(&self) -> bool {
        !self.begun && matches!(self.ending.error, Some(RunError::Model { too_long: true, .. }))
    }
}

impl From<Unanswered> for Input {
    fn from(Unanswered { partial, ending, .. }: Unanswered) -> Self {
        Self::Interrupted { partial, answers: Vec::new(), ending }
    }
}

impl Job {
    fn on_event(&self, event: StreamEvent, partial: &mut Partial, stops: &mut Stops<'_>) {
        let replaces = !partial.text.is_empty();
        partial.on_event(&event);
        let Some(event) = stops.take(event) else { return };
        match event {
            StreamEvent::TextDelta(text) => self.say(text, partial),
            StreamEvent::Retrying { attempt, after, reason } => self.emit(|| {
                let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                EventKind::Retry { attempt, after_ms, reason, replaces }
            }),
            StreamEvent::ThinkingDelta(text) => self.emit(|| EventKind::ThoughtDelta { text }),
            StreamEvent::Started | StreamEvent::CallStarted { .. } => {}
        }
    }

    fn say(&self, text: String, partial: &mut Partial) {
        if partial.text.len().saturating_add(text.len()) <= MAX_REPLY_BYTES {
            partial.text.push_str(&text);
        }
        self.emit(|| EventKind::TextDelta { text });
    }
}

/// Cancels the remaining background subagents of an ended parent, and keeps their results.
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
