//! Runs one agent from its first message to its outcome: performs the decisions of
//! [`crate::agent_loop::machine::AgentLoop`]. A panic in this module ends one agent, and its outcome has the work
//! done so far.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use belljar_model::{CallContext, ModelError, ModelReply, ModelTimeouts, StreamEvent};
use belljar_policy::{BudgetHold, Meter};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::agent_loop::agent::{AgentEffects, Notes, RunningAgent, Timer};
use crate::agent_loop::ended::build_outcome;
use crate::agent_loop::ended::panic_message;
use crate::agent_loop::job::AgentJob;
use crate::agent_loop::ledger::Ledger;
use crate::agent_loop::live::LiveEffects;
use crate::agent_loop::machine::{
    AgentEnding, AgentLoop, BudgetGauge, LoopEffect, LoopInput, NextStep, PartialAnswer,
    count_usage, cut_off, hold_tokens, least_tokens,
};
use crate::agent_loop::prepare::prepare_agent;
use crate::agent_loop::remedy::model_error_remedy;
use crate::agent_loop::stops::StopFilter;
use crate::events::EventKind;
use crate::limits::{BACKGROUND_WAIT, CHILD_CLOSE_LIMIT, MAX_REPLY_BYTES, ROOM_WAIT, WARN_PERCENT};
use crate::outcome::{Outcome, RunError, RunStatus};
use crate::replay::log::StepKind;
use crate::replay::replaying::ReplayingEffects;
use crate::schema::{CHECKING, SchemaCheck, deadline_error};
use crate::subagent::background::BackgroundChildren;
use crate::tools::builtin::worktree;
use crate::tools::executor::{CallExecutor, CallMeans};
use crate::trace;

/// Runs an agent to the end and returns the outcome. On return no work of the agent is running, or the
/// outcome names the unfinished work.
pub(crate) fn run_agent(job: AgentJob) -> BoxFuture<'static, Outcome> {
    let (span, lines) = (trace::agent(&job), trace::lines_of(&job));
    let traced = span.clone();
    let life = async move {
        let started = job.shared.host.clock.now();
        let ledger = Arc::<Ledger>::default();
        let stop = job.cancel.child_token();
        let (mut machine, mut means) = (None, None);
        // Cancels running work if this future is dropped, before the jar and the sessions are dropped.
        let _guard = stop.clone().drop_guard();
        let life = run_life(&job, &ledger, &stop, &mut machine, &mut means);
        let ending = AssertUnwindSafe(life).catch_unwind().await.unwrap_or_else(|panic| {
            AgentEnding::failed(RunError::Internal { message: panic_message(&*panic) })
        });
        stop.cancel();
        let mut merged = Vec::new();
        if let Some(CallMeans { background, remote, jar, .. }) = &means {
            part_with(background, &job, &ledger).await;
            remote.close_sessions(&job).await;
            jar.close_jar(&job, &ledger).await;
            merged = worktree::end(jar, &job, &ledger, ending.status).await;
        }
        if !job.depth.is_child() {
            for line in merged.drain(..) {
                job.record_warning(&ledger, line);
            }
        }
        let transcript = machine.map(AgentLoop::into_transcript).unwrap_or_default();
        let mut outcome = build_outcome(&job, &ledger, ending, transcript, started);
        outcome.merged = merged;
        trace::agent_ended(&traced, &outcome);
        outcome
    };
    // The span of log lines is outermost, so that it is not between two spans of the trace.
    Box::pin(life.instrument(span).instrument(lines))
}

/// Prepares and runs the agent. The caller owns `slot` (the loop) and `means`, so both outlive a panic here.
async fn run_life(
    job: &AgentJob,
    ledger: &Arc<Ledger>,
    stop: &CancellationToken,
    slot: &mut Option<AgentLoop>,
    means: &mut Option<CallMeans>,
) -> AgentEnding {
    let mut timer: Timer = Box::pin(tokio::time::sleep_until(job.deadline));
    for note in &job.notes {
        job.record_warning(ledger, note.clone());
    }
    let prepared = tokio::select! {
        biased;
        () = stop.cancelled() => return AgentEnding::cancelled(),
        prepared = prepare_agent(job, ledger, stop) => prepared,
        () = timer.as_mut() => return job.timeout_ending(),
    };
    let (machine, prepared) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return AgentEnding::failed(error),
    };
    let effects: Box<dyn AgentEffects> = match &job.shared.rerun {
        None if job.shared.replay.is_empty() => Box::new(LiveEffects),
        _ => Box::new(ReplayingEffects::new(job)),
    };
    let (means, effects) = (means.insert(prepared), &*effects);
    let agent = RunningAgent(CallExecutor { job, ledger, means, stop, effects });
    agent.drive_loop(slot.insert(machine), &mut timer).await
}

impl RunningAgent<'_> {
    /// Feeds the loop with events and performs its effects until the loop ends: start hooks, library note,
    /// then one effect after another.
    async fn drive_loop(&self, machine: &mut AgentLoop, timer: &mut Timer) -> AgentEnding {
        let effects = self.effects;
        effects.begin_agent(self, machine);
        let task = machine.task_bytes();
        let mut notes = Notes::new();
        match effects.run_start_hooks(self, timer).await {
            Ok(text) if text.is_empty() => {}
            Ok(text) => machine.record_note(&mut notes, text.trim_start().to_owned()),
            Err(ending) => return ending,
        }
        let matched = tokio::select! {
            biased;
            () = self.stop.cancelled() => return AgentEnding::cancelled(),
            matched = effects.match_library(self) => matched,
            () = self.time_up(timer) => return self.job.timeout_ending(),
        };
        if let Some(text) = matched {
            machine.record_note(&mut notes, text);
        }
        if let Err(ending) = self.perform_command(machine, task, timer).await {
            return ending;
        }
        let mut input = LoopInput::Begin;
        let (mut warned, mut again) = (0, false);
        loop {
            let asks = matches!(input, LoopInput::Begin | LoopInput::Answered(_));
            let next_step = asks.then(|| effects.take_step(self, machine));
            let todo = machine.handle_input(input, &self.gauge_budgets(next_step));
            if let Some(left) = machine.dispatcher().narrowed_rights() {
                let mut narrowed = self.narrowed.lock().unwrap_or_else(PoisonError::into_inner);
                *narrowed = Some(left.clone());
            }
            let asked = todo.iter().any(|effect| matches!(effect, LoopEffect::AskModel { .. }));
            if !asked && matches!(next_step, Some(NextStep::Whole | NextStep::Last(_))) {
                self.job.budget.refund(Meter::Steps, 1);
            }
            let mut next = None;
            for effect in todo {
                match effect {
                    LoopEffect::Warn(message) => self.job.record_warning(self.ledger, message),
                    LoopEffect::AskModel { last } => {
                        if let Some(ending) = self.hook_ending() {
                            return ending;
                        }
                        let reply = effects.ask_model(self, machine, last, &mut notes, timer);
                        next = Some(reply.await);
                    }
                    LoopEffect::Check(checks) => next = Some(self.run_checks(checks, timer).await),
                    LoopEffect::Call(decisions) => {
                        next = Some(self.execute_all(machine, decisions, timer).await);
                    }
                    // The turn is not finished: the caller executes the calls, and its next turn brings their
                    // results.
                    LoopEffect::Finish(ending) if machine.hands_over() => return ending,
                    LoopEffect::Finish(ending) => {
                        let ended = effects
                            .finish_answer(self, machine, &mut notes, ending, &mut again, timer);
                        match ended.await {
                            Ok(input) => next = Some(input),
                            Err(ending) => return ending,
                        }
                    }
                }
            }
            let Some(happened) = next else {
                let message = "the loop had nothing to do".to_owned();
                return AgentEnding::failed(RunError::Internal { message });
            };
            input = happened;
            self.warn_of_budgets(&mut warned);
        }
    }

    /// Checks the texts of an answer against their schemas. INV-401: this runs on another thread, counted for
    /// the tenant, and ends with the agent.
    async fn run_checks(&self, checks: Vec<SchemaCheck>, timer: &mut Timer) -> LoopInput {
        let owner = self.job.shared.host.owner_of("schemas");
        let work = belljar_work::run_job(&CHECKING, &owner, move |stop| {
            SchemaCheck::run_all(&checks, stop)
        });
        let ending = tokio::select! {
            biased;
            () = self.stop.cancelled() => AgentEnding::cancelled(),
            () = self.time_up(timer) => self.job.timeout_ending(),
            made = work => match made {
                Ok(Some(verdicts)) => return LoopInput::Checked(verdicts),
                // Only the deadline ends the check while the agent waits.
                Ok(None) => AgentEnding::failed(RunError::from(&deadline_error(&CHECKING))),
                Err(error) => AgentEnding::failed(RunError::from(&error)),
            },
        };
        LoopInput::Interrupted { partial: String::new(), answers: Vec::new(), ending }
    }

    /// Sends the event that the run has begun, if this is the top agent.
    pub(crate) fn say_started(&self, machine: &AgentLoop) {
        let job = self.job;
        if job.depth.is_child() {
            return;
        }
        job.emit_event(|| EventKind::RunStarted {
            id: job.agent.id.to_string(),
            model: job.model.model.id().to_owned(),
            tools: machine.request().tools.iter().map(|tool| tool.name.clone()).collect(),
            workspace: job.shared.workspace.to_string_lossy().into_owned(),
        });
    }

    /// Called when the model makes no more calls. Waits for the background subagents and notes their endings
    /// for the model, which may then answer once more.
    pub(crate) async fn last_word(
        &self,
        machine: &mut AgentLoop,
        notes: &mut Notes,
        ending: AgentEnding,
        timer: &mut Timer,
    ) -> Result<LoopInput, AgentEnding> {
        if ending.status != RunStatus::Completed || !self.background.is_open() {
            return Err(ending);
        }
        tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(AgentEnding::cancelled()),
            () = self.background.wait_for_all() => {}
            () = self.time_up(timer) => return Err(self.job.timeout_ending()),
            () = tokio::time::sleep(BACKGROUND_WAIT) => return Err(ending),
        }
        let news = self.background.take_notes();
        if news.is_empty() {
            // The agent already knows all endings, so it can end.
            return Err(ending);
        }
        for news in news {
            machine.record_note(notes, news);
        }
        Ok(machine.reopen())
    }

    /// Reserves a step for the model's next answer. If only the agent's own steps are used up, one last
    /// answer is charged to the parent's budget; if that has none either, there is no answer.
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
    pub(crate) async fn request_answer(
        &self,
        machine: &mut AgentLoop,
        last: bool,
        notes: Notes,
        timer: &mut Timer,
    ) -> LoopInput {
        let job = self.job;
        let step = machine.current_step();
        let held = match self.reserve_tokens(machine, timer).await {
            Ok(held) => held,
            Err(ending) => {
                job.budget.refund(Meter::Steps, 1);
                return UnansweredRequest::from_ending(ending).into();
            }
        };
        self.ledger.lock_entries().usage.steps += 1;
        job.emit_event(|| EventKind::StepStarted { step, last });
        let mut answered = self.send_request(machine, held, timer).await;
        if answered.as_ref().is_err_and(UnansweredRequest::may_be_shorter) {
            match self.shorten_conversation(machine, timer).await {
                Ok(false) => {}
                Ok(true) => {
                    answered = match self.reserve_tokens(machine, timer).await {
                        Ok(held) => self.send_request(machine, held, timer).await,
                        Err(ending) => Err(UnansweredRequest::from_ending(ending)),
                    };
                }
                Err(ending) => answered = Err(UnansweredRequest::from_ending(ending)),
            }
        }
        match answered {
            Ok(reply) => {
                let answer = || StepKind::Said { notes, reply: reply.clone() };
                job.persist_step(step, 0, answer).await;
                LoopInput::Replied(reply)
            }
            Err(unanswered) => unanswered.into(),
        }
    }

    /// Shortens a conversation that exceeds the model's context: a summary replaces earlier turns, or long
    /// results already read are removed. Returns whether anything was shortened.
    async fn shorten_conversation(
        &self,
        machine: &mut AgentLoop,
        timer: &mut Timer,
    ) -> Result<bool, AgentEnding> {
        let job = self.job;
        if let Some(past) = &job.shorter {
            let cancel = self.stop.child_token();
            let mut making = past.shorten_past(&job.shared.events, &cancel);
            let made = tokio::select! {
                made = &mut making => made,
                () = self.time_up(timer) => {
                    // The work is cancelled and awaited, not dropped, because the stored and the returned
                    // summary have to agree.
                    cancel.cancel();
                    making.await
                }
            };
            if self.stop.is_cancelled() {
                return Err(AgentEnding::cancelled());
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
            job.record_warning(self.ledger, message);
        }
        Ok(bytes > 0)
    }

    /// Sends the conversation to the model and waits for the whole answer.
    async fn send_request(
        &self,
        machine: &AgentLoop,
        held: BudgetHold,
        timer: &mut Timer,
    ) -> Result<ModelReply, UnansweredRequest> {
        let job = self.job;
        let step = machine.current_step();
        let mut partial = PartialAnswer::default();
        let mut stops = StopFilter::new(&machine.request().sampling.stop);
        let span = trace::step_span(&job.model, step);
        let cx = CallContext {
            agent: &job.agent.definition.name,
            spawn_index: job.spawn_index,
            step,
            timeouts: ModelTimeouts {
                first_token: Duration::from_secs(job.rights.limits().prefill_timeout_seconds),
                ..ModelTimeouts::default()
            },
            takes_back: !job.shared.events.retains_text(&job.path),
            cancel: self.stop.clone(),
        };
        // `None` = the agent's time is up before the model answered.
        let asking = async {
            let mut listen = |event| job.on_event(event, &mut partial, &mut stops);
            tokio::select! {
                biased;
                // Dropping the request closes the connection, so a model which ignores the token stops
                // too.
                () = self.stop.cancelled() => Some(Err(ModelError::Cancelled)),
                reply = job.model.model.chat(machine.request(), &cx, &mut listen) => Some(reply),
                () = self.time_up(timer) => None,
            }
        };
        let result = asking.instrument(span.clone()).await;
        if let Some(text) = stops.flush_text() {
            job.emit_text(text, &mut partial);
        }
        // From here on the real usage counts, so the reserved estimate is released.
        drop(held);
        for bytes in &partial.lost {
            self.bill_tokens(machine, &cut_off(machine.request_bytes(), *bytes));
        }
        let ending = match result {
            Some(Ok(mut reply)) => {
                trace::record_reply(&span, &reply);
                self.bill_tokens(machine, &reply);
                job.bills.record_step(machine.request_bytes(), &reply);
                // INV-490: after billing, because the whole answer was paid for.
                stops.cut_reply(&mut reply);
                return Ok(reply);
            }
            Some(Err(ModelError::Cancelled)) => {
                trace::record_model_error(&span, &ModelError::Cancelled);
                AgentEnding::cancelled()
            }
            Some(Err(error)) => {
                trace::record_model_error(&span, &error);
                let too_long = matches!(error, ModelError::ContextLength { .. });
                let hint = model_error_remedy(&error, &job.model.name);
                AgentEnding::failed(RunError::Model { message: error.to_string(), too_long, hint })
            }
            None => {
                trace::record_failure(&span, "wall-time");
                job.timeout_ending()
            }
        };
        // The provider has counted prompt and partial answer but reports neither. Before an answer begins
        // nothing is known, and nothing is billed.
        if partial.begun {
            self.bill_tokens(machine, &cut_off(machine.request_bytes(), partial.bytes));
        }
        Err(UnansweredRequest { partial: partial.text, begun: partial.begun, ending })
    }

    /// Reserves tokens for the next request. Waits while other agents hold the needed tokens, because they
    /// may use fewer.
    async fn reserve_tokens(
        &self,
        machine: &AgentLoop,
        timer: &mut Timer,
    ) -> Result<BudgetHold, AgentEnding> {
        let budget = &self.job.budget;
        loop {
            let billed = self.job.bills.fewest_tokens(machine.request_bytes());
            if let Ok(held) = hold_tokens(budget, machine.request_bytes(), billed) {
                return Ok(held);
            }
            budget
                .check_fits(Meter::Tokens, least_tokens(machine.request_bytes()))
                .map_err(|exhausted| AgentEnding::partial(RunError::Budget { exhausted }))?;
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(AgentEnding::cancelled()),
                () = self.time_up(timer) => return Err(self.job.timeout_ending()),
                () = tokio::time::sleep(ROOM_WAIT) => {}
            }
        }
    }

    /// Bills the tokens of an answer to the budget and to the outcome's usage.
    pub(crate) fn bill_tokens(&self, machine: &AgentLoop, reply: &ModelReply) {
        let usage = count_usage(machine.request_bytes(), reply);
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        // The result is ignored, because `gauge_budgets` reports an exhausted budget.
        let _ = self.job.budget.bill(Meter::Tokens, tokens);
        self.ledger.lock_entries().usage += usage;
    }

    /// The state of the budgets for the loop's next decision.
    fn gauge_budgets(&self, next: Option<NextStep>) -> BudgetGauge {
        let budget = &self.job.budget;
        BudgetGauge {
            halt: budget
                .exhausted_limit(Meter::Tokens)
                .or_else(|| budget.exhausted_limit(Meter::Fuel)),
            next: next.unwrap_or(NextStep::Whole),
            tokens_left: budget.remaining_amount(Meter::Tokens),
        }
    }

    /// Sends one event for each meter past [`WARN_PERCENT`]. Bits of `warned` mark the meters already
    /// reported: 1 steps, 2 tokens, 4 fuel.
    fn warn_of_budgets(&self, warned: &mut u8) {
        if !self.job.shared.events.has_listener() {
            return;
        }
        for (bit, meter) in [(1, Meter::Steps), (2, Meter::Tokens), (4, Meter::Fuel)] {
            let (used, limit) = (self.job.budget.spent_amount(meter), self.job.budget.limit(meter));
            let share = u128::from(used) * 100 >= u128::from(limit) * u128::from(WARN_PERCENT);
            if share && *warned & bit == 0 {
                *warned |= bit;
                self.job.emit_event(|| EventKind::BudgetWarning { meter, used, limit });
            }
        }
    }
}

/// A model request that ended without a complete answer.
struct UnansweredRequest {
    /// The text received before the end.
    partial: String,
    /// True if the model had begun to answer.
    begun: bool,
    ending: AgentEnding,
}

impl UnansweredRequest {
    fn from_ending(ending: AgentEnding) -> Self {
        Self { partial: String::new(), begun: false, ending }
    }

    /// Returns whether the model refused the request for its length, before any output.
    fn may_be_shorter(&self) -> bool {
        !self.begun && matches!(self.ending.error, Some(RunError::Model { too_long: true, .. }))
    }
}

impl From<UnansweredRequest> for LoopInput {
    fn from(UnansweredRequest { partial, ending, .. }: UnansweredRequest) -> Self {
        Self::Interrupted { partial, answers: Vec::new(), ending }
    }
}

impl AgentJob {
    /// Handles an event of the model's stream: counts it, cuts text at stop words, and sends it to watchers.
    fn on_event(
        &self,
        event: StreamEvent,
        partial: &mut PartialAnswer,
        stops: &mut StopFilter<'_>,
    ) {
        let replaces = !partial.text.is_empty();
        partial.on_event(&event);
        let Some(event) = stops.filter_event(event) else { return };
        match event {
            StreamEvent::TextDelta(text) => self.emit_text(text, partial),
            StreamEvent::Retrying { attempt, after, reason } => self.emit_event(|| {
                let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                EventKind::Retry { attempt, after_ms, reason, replaces }
            }),
            StreamEvent::ThinkingDelta(text) => {
                self.emit_event(|| EventKind::ThoughtDelta { text })
            }
            StreamEvent::Started | StreamEvent::CallStarted { .. } => {}
        }
    }

    /// Sends a piece of the answer to watchers and keeps it; drops pieces beyond [`MAX_REPLY_BYTES`].
    fn emit_text(&self, text: String, partial: &mut PartialAnswer) {
        if partial.text.len().saturating_add(text.len()) <= MAX_REPLY_BYTES {
            partial.text.push_str(&text);
        }
        self.emit_event(|| EventKind::TextDelta { text });
    }
}

/// Cancels the background subagents still running at the parent's end, and records the outcomes.
async fn part_with(background: &BackgroundChildren, job: &AgentJob, ledger: &Ledger) {
    for (id, agent) in background.running_children() {
        let agent = belljar_policy::ShownText::clip_line(&agent, 64).to_string();
        let message = format!("subagent `{id}` (`{agent}`) was still running and was cancelled");
        job.record_warning(ledger, message);
    }
    if timeout(CHILD_CLOSE_LIMIT, background.wait_for_all()).await.is_err() {
        job.budget.cancel();
        let left = background.running_children().into_iter();
        let named = left.map(|(id, agent)| format!("subagent `{id}` ({agent}) of `{}`", job.path));
        ledger.lock_entries().unfinished.extend(named);
    }
    background.abort_tasks();
}
