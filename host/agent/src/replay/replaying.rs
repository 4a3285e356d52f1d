//! An agent whose earlier work is stored: returned from the journal in the same order where it resumes, made
//! anew and compared where it is replayed (`rerunning.rs`). Later work is done now.

use std::sync::Arc;

use async_trait::async_trait;
use belljar_model::{CallContext, Reply};
use belljar_policy::{Meter, ToolPermit};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::agent_loop::agent::{Agent, Timer};
use crate::agent_loop::agent::{Effects, Notes};
use crate::agent_loop::job::Job;
use crate::agent_loop::live::Live;
use crate::agent_loop::machine::{Ending, Input, Loop, NextStep};
use crate::events::EventKind;
use crate::limits::MAX_CONCLUSION_BYTES;
use crate::outcome::{ChildSummary, RunStatus, Usage};
use crate::prompt::frame;
use crate::replay::log::{AgentPast, LoggedCourse, PlannedChild};
use crate::replay::persist::address_of;
use crate::replay::rerun::Rerun;
use crate::replay::rerunning::{CallComparison, permit_unasked};
use crate::subagent::background::{Ended, still_running};
use crate::subagent::planned::Planned;
use crate::subagent::planned::Starting;
use crate::subagent::progress::{Batch, Heading};
use crate::tools::answer::Answer;
use crate::tools::builtin::arguments::BuiltinCall;
use crate::tools::call::Call;
use crate::tools::call::arguments;
use crate::tools::dispatch::{Decision, Refusal};
use crate::tools::executor::CallExecutor;
use crate::tools::nested::outer::{Nested, Outer, address_within, called};
use crate::tools::result;

/// The end of a subagent that was started by code, and may not be started again or is not known well
/// enough.
const ENDED_WITH_THE_PROGRAM: &str = "the program ended while it ran; how far it got is not known";

/// Returns an agent's stored results by a policy, and does everything else now.
pub(crate) struct Replaying {
    past: Arc<AgentPast>,
    policy: ReplayPolicy,
}

/// The use of the stored steps.
enum ReplayPolicy {
    /// The run resumes: nothing stored is done again. `kept`: how much is persisted of the whole run.
    Resume { kept: usize },
    /// The finished run is replayed, and its calls are compared.
    Compare(Arc<Rerun>),
}

impl Replaying {
    /// Takes an agent's stored steps from the run; once for each agent.
    pub(crate) fn new(job: &Job) -> Self {
        let (replay, policy) = match &job.shared.rerun {
            Some(rerun) => (rerun.past(), ReplayPolicy::Compare(Arc::clone(rerun))),
            None => {
                let replay = &*job.shared.replay;
                (replay, ReplayPolicy::Resume { kept: replay.len() })
            }
        };
        Self { past: replay.take(&job.address).unwrap_or_default(), policy }
    }

    fn resumes(&self) -> bool {
        matches!(self.policy, ReplayPolicy::Resume { .. })
    }

    fn asks_model(&self) -> bool {
        matches!(&self.policy, ReplayPolicy::Compare(rerun) if rerun.asks_model())
    }

    /// The model's stored answer, unless the model is asked again.
    fn said(&self, step: u64) -> Option<(&[String], &Reply)> {
        self.past.said(step).filter(|_| !self.asks_model())
    }

    /// The journal that has the numbers and ids of a call's subagents.
    fn numbered<'a>(&'a self, call: Call<'a>) -> Option<&'a AgentPast> {
        let is_stored = self.resumes() || (call.nested.is_none() && !self.asks_model());
        self.past_of(call).filter(|_| is_stored)
    }

    /// The journal with a call: the agent's, or the outer call's. `None` = the outer call runs for the first
    /// time.
    fn past_of<'a>(&'a self, call: Call<'a>) -> Option<&'a AgentPast> {
        match call.nested {
            Some(nested) => nested.outer.past().map(Arc::as_ref),
            None => Some(&self.past),
        }
    }

    /// The subagents of a call that begins again.
    fn begun<'a>(&'a self, call: Call<'a>) -> Option<&'a [PlannedChild]> {
        self.past_of(call).filter(|_| self.resumes())?.begun(call.step, call.position)
    }

    /// Puts an answer into the transcript, where a replay writes one.
    fn record(&self, agent: &Agent<'_>, machine: &Loop, reply: &Reply) {
        let ReplayPolicy::Compare(rerun) = &self.policy else { return };
        let Some(recording) = rerun.recording() else { return };
        let cx = CallContext {
            spawn_index: agent.job.spawn_index,
            step: machine.current_step(),
            ..CallContext::new(&agent.job.agent.definition.name)
        };
        recording.replied(&cx, machine.request(), reply);
    }

    /// The stored answer of a call, whose usage counts again.
    async fn answered(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        decision: &Decision,
        machine: &Loop,
    ) -> Option<Answer> {
        let past = self.past_of(call)?;
        let persisted = past.result(call.step, call.position)?;
        if let (Some(nested), Some(logged)) = (call.nested, &persisted.nested) {
            nested.outer.keep(call.position, logged.form.clone());
        }
        // The tool's state ended with its process.
        agent.jar.begins_anew(&call.call.name);
        if let Some(receipt) = &persisted.receipt {
            let _ = agent.job.budget.bill(Meter::Fuel, receipt.receipt.fuel);
            if let Some(nested) = call.nested {
                // INV-252: billed to the outer call too, as before.
                if let Some(within) = nested.within {
                    within.bill(receipt.receipt.fuel);
                }
            }
            let files = persisted.attachments.clone();
            agent.ledger.executed(call.position, receipt.clone(), files);
        }
        match decision {
            Decision::Builtin(permit, BuiltinCall::Spawn(asked))
                if persisted.background.is_some() =>
            {
                // The subagent resumes in the background, or its end is noted again.
                let request = machine.request();
                agent.spawn(call, permit.clone(), asked.clone(), request).await;
            }
            Decision::Builtin(_, BuiltinCall::Todo(todo)) if !persisted.is_error => {
                // Later calls find the list in its former state.
                let _ = agent.listed(todo, machine);
            }
            Decision::Builtin(_, BuiltinCall::Worktree(asked)) if !persisted.is_error => {
                agent.worktree_was(call, asked).await;
            }
            Decision::Builtin(_, BuiltinCall::Result { id, .. } | BuiltinCall::Cancel { id }) => {
                // The agent does not know a later ending yet.
                let ended = persisted.content != still_running(id);
                if ended && (past.ended_in_background(id) || agent.background.has_ended(id)) {
                    agent.background.known(id);
                }
            }
            Decision::Builtin(..)
            | Decision::Tool(_)
            | Decision::Refuse(_)
            | Decision::HandOver => {
                for (place, summary) in past.children(call.step, call.position) {
                    bill_child(agent, summary);
                    agent.ledger.child(place, summary.clone());
                }
            }
        }
        if let Some(id) = persisted.background.as_deref()
            && agent.background.of_call(&call.call.id).is_none()
        {
            // INV-520: the parent was told of this subagent, and the subagent may not be allowed to start any
            // more.
            match past.child(call.step, (call.position, 0)) {
                Some(child) => {
                    if matches!(decision, Decision::Builtin(_, BuiltinCall::Spawn(_))) {
                        bill_child(agent, child);
                        agent.ledger.child((call.position, 0), child.clone());
                    }
                    recall_background(agent, id, child);
                }
                None => recall_lost(agent, id),
            }
        }
        recall_within(agent, &calls_of(agent, call), machine).await;
        Some(persisted.answer())
    }

    /// The answer of a begun call with effects and without a result: repeating the call might double an
    /// effect. `None` = not begun, or a start of subagents, which resume by themselves.
    async fn interrupted(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        machine: &Loop,
    ) -> Option<Answer> {
        let begun = self.begun(call)?;
        if !begun.is_empty() || agent.replayable.contains(call.call.name.as_str()) {
            return None;
        }
        agent.started(call);
        let executed = result::of_interrupted(&call.call.name, arguments(call.call));
        let answer = agent.note(call, executed);
        recall_within(agent, &calls_of(agent, call), machine).await;
        agent.persist_result(call, &answer).await;
        Some(answer)
    }

    /// Answers a call from the journal, else makes it.
    async fn resumed(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        decision: Decision,
        machine: &Loop,
    ) -> Answer {
        if let Some(nested) = call.nested
            && !nested.outer.follows(call.position, call.step, nested.called)
        {
            let content = "it goes another way than recorded".to_owned();
            return Answer { content, is_error: true };
        }
        if let Some(answer) = self.answered(agent, call, &decision, machine).await {
            return answer;
        }
        if let Some(answer) = self.interrupted(agent, call, machine).await {
            return answer;
        }
        let answer = Live.call(agent, call, decision, machine).await;
        // If the call did not run again, because it is refused now.
        recall_within(agent, &calls_of(agent, call), machine).await;
        answer
    }
}

#[async_trait]
impl Effects for Replaying {
    fn begin(&self, agent: &Agent<'_>, machine: &Loop) {
        match self.policy {
            ReplayPolicy::Compare(_) => Live.begin(agent, machine),
            ReplayPolicy::Resume { .. } if agent.job.depth.is_child() => {}
            ReplayPolicy::Resume { kept } => agent.job.emit(|| EventKind::RunResumed { kept }),
        }
    }

    async fn start(&self, agent: &Agent<'_>, timer: &mut Timer) -> Result<String, Ending> {
        match self.said(1) {
            Some(_) => Ok(String::new()),
            None => Live.start(agent, timer).await,
        }
    }

    fn take_step(&self, agent: &Agent<'_>, machine: &Loop) -> NextStep {
        if self.said(machine.current_step() + 1).is_none() {
            return Live.take_step(agent, machine);
        }
        step_again(agent)
    }

    async fn ask_model(
        &self,
        agent: &Agent<'_>,
        machine: &mut Loop,
        last: bool,
        notes: &mut Notes,
        timer: &mut Timer,
    ) -> Input {
        let Some((before, reply)) = self.said(machine.current_step()) else {
            if let ReplayPolicy::Compare(rerun) = &self.policy
                && !rerun.asks_model()
            {
                rerun.note_ended(&agent.job.path);
                let ending = Ending::cancelled();
                return Input::Interrupted { partial: String::new(), answers: Vec::new(), ending };
            }
            let input = Live.ask_model(agent, machine, last, notes, timer).await;
            if let Input::Replied(reply) = &input {
                self.record(agent, machine, reply);
            }
            return input;
        };
        let input = reply_again(agent, machine, before, reply);
        self.record(agent, machine, reply);
        if self.resumes() {
            // INV-364: texts written for servers in this step count again, repeated or not.
            agent.bill_text(self.past.written(machine.current_step()));
        }
        input
    }

    async fn call(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        decision: Decision,
        machine: &Loop,
    ) -> Answer {
        match &self.policy {
            ReplayPolicy::Resume { .. } => self.resumed(agent, call, decision, machine).await,
            ReplayPolicy::Compare(rerun) => {
                CallComparison { rerun, past: &self.past }
                    .call(agent, call, decision, machine)
                    .await
            }
        }
    }

    async fn finish(
        &self,
        agent: &Agent<'_>,
        machine: &mut Loop,
        notes: &mut Notes,
        ending: Ending,
        again: &mut bool,
        timer: &mut Timer,
    ) -> Result<Input, Ending> {
        if self.said(machine.current_step() + 1).is_some() {
            *again = true;
            return Ok(machine.reopen());
        }
        if self.resumes() || self.asks_model() {
            return Live.finish(agent, machine, notes, ending, again, timer).await;
        }
        // They have stored answers too.
        tokio::select! {
            biased;
            () = agent.stop.cancelled() => {}
            () = agent.time_up(timer) => {}
            () = agent.background.all() => {}
        }
        Err(ending)
    }

    fn spawn_index(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        place: usize,
        slug: &str,
    ) -> Option<u32> {
        let past = self.numbered(call);
        past.and_then(|past| past.spawn_index(call.step, call.position, place, slug))
            .or_else(|| Live.spawn_index(agent, call, place, slug))
    }

    async fn permit_spawn(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        permit: ToolPermit,
    ) -> Result<(), Refusal> {
        match self.policy {
            ReplayPolicy::Resume { .. } if self.had_begun(call) => Ok(()),
            ReplayPolicy::Resume { .. } => Live.permit_spawn(agent, call, permit).await,
            ReplayPolicy::Compare(_) => {
                Live.permit_spawn(agent, call, permit_unasked(permit)).await
            }
        }
    }

    async fn announce(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        children: &[&Planned],
        heading: Heading<'_>,
    ) -> Arc<Batch> {
        if !self.had_begun(call) {
            return Live.announce(agent, call, children, heading).await;
        }
        agent.persist_queued(call, children, false).await;
        Batch::unannounced(&agent.job.shared, &agent.job.path, &call.call.id, children.len())
    }

    fn background_id(&self, agent: &CallExecutor<'_>, call: Call<'_>) -> String {
        let before = self.numbered(call).and_then(|past| past.result(call.step, call.position));
        let before = before.and_then(|persisted| persisted.background.clone());
        before.unwrap_or_else(|| Live.background_id(agent, call))
    }

    fn was_left(&self, call: Call<'_>) -> Option<bool> {
        let past = self.past_of(call).filter(|_| !self.asks_model())?;
        past.result(call.step, call.position).map(|persisted| persisted.background.is_some())
    }

    fn had_begun(&self, call: Call<'_>) -> bool {
        self.begun(call).is_some()
    }

    fn was_asked(&self, call: Call<'_>) -> bool {
        let past = self.past_of(call).filter(|_| self.resumes());
        past.is_some_and(|past| past.was_asked(call.step, call.position))
    }

    async fn left_over(
        &self,
        agent: &CallExecutor<'_>,
        outer: &Outer,
        machine: &Loop,
    ) -> Option<String> {
        let past = outer.past().filter(|_| self.resumes())?;
        let left = recall(agent, past, outer.address(), &|position| !outer.has_made(position));
        resume(agent, left, machine).await;
        outer.ends(past)
    }

    fn course(&self, call: Call<'_>) -> Option<LoggedCourse> {
        self.past_of(call)?.course(call.step, call.position)
    }

    fn past_within(&self, agent: &CallExecutor<'_>, address: &str) -> Option<Arc<AgentPast>> {
        match &self.policy {
            ReplayPolicy::Resume { .. } => agent.job.shared.replay.take(address),
            ReplayPolicy::Compare(rerun) => rerun.past().take(address),
        }
    }

    fn run_child(&self, agent: &CallExecutor<'_>, child: Starting) -> BoxFuture<'static, Ended> {
        let past = if child.nested { child.past.as_deref() } else { Some(&*self.past) };
        let past = past.filter(|_| self.resumes());
        let place = child.place();
        let Some(summary) = past.and_then(|past| past.child(child.step, place)).cloned() else {
            return Live.run_child(agent, child);
        };
        bill_child(agent, &summary);
        Box::pin(async move { child.ended(summary) })
    }
}

/// Takes the step of a repeated answer: counted, never refused.
fn step_again(agent: &Agent<'_>) -> NextStep {
    let budget = &agent.job.budget;
    let before = budget.exhausted(Meter::Steps);
    let _ = budget.bill(Meter::Steps, 1);
    before.map_or(NextStep::Whole, NextStep::Last)
}

/// Returns a stored answer, with its earlier notes.
fn reply_again(agent: &Agent<'_>, machine: &mut Loop, notes: &[String], reply: &Reply) -> Input {
    for text in notes {
        agent.background.announced(text);
        machine.add_note(text.clone());
    }
    agent.ledger.entries().usage.steps += 1;
    agent.bill_tokens(machine, reply);
    Input::Replied(reply.clone())
}

/// The address of the calls that a call makes.
fn calls_of(agent: &CallExecutor<'_>, call: Call<'_>) -> Arc<str> {
    address_within(&address_of(agent.job, call), call.step, call.position)
}

/// Restores the nested calls of a call that is not repeated. Their usage counts again, and their background
/// subagents resume.
async fn recall_within(agent: &CallExecutor<'_>, address: &Arc<str>, machine: &Loop) {
    if let Some(past) = agent.job.shared.replay.take(address) {
        let left = recall(agent, &past, address, &|_| true);
        resume(agent, left, machine).await;
    }
}

/// A recorded nested call whose background subagent has not ended.
struct Started {
    /// The journal that contains the call, and its address.
    past: Arc<AgentPast>,
    address: Arc<str>,
    step: u64,
    position: usize,
}

/// INV-252: the records of nested calls that are not repeated stay: receipts, subagents, costs. `is_left`
/// selects the calls. Returns the calls with unended subagents.
fn recall(
    agent: &CallExecutor<'_>,
    past: &Arc<AgentPast>,
    address: &Arc<str>,
    is_left: &dyn Fn(usize) -> bool,
) -> Vec<Started> {
    let mut started = Vec::new();
    for (step, position) in past.places() {
        if !is_left(position) {
            continue;
        }
        let result = past.result(step, position);
        if let Some(receipt) = result.and_then(|result| result.receipt.as_ref()) {
            let _ = agent.job.budget.bill(Meter::Fuel, receipt.receipt.fuel);
            let files = result.map(|result| result.attachments.clone()).unwrap_or_default();
            agent.ledger.executed(position, receipt.clone(), files);
        }
        for (place, summary) in past.children(step, position) {
            bill_child(agent, summary);
            agent.ledger.child(place, summary.clone());
        }
        let id = result.and_then(|result| result.background.as_deref());
        match (past.child(step, (position, 0)), id) {
            (Some(child), Some(id)) => recall_background(agent, id, child),
            (None, Some(_)) => {
                let (past, address) = (Arc::clone(past), Arc::clone(address));
                started.push(Started { past, address, step, position });
            }
            (_, None) => {}
        }
        let within = address_within(address, step, position);
        if let Some(past) = agent.job.shared.replay.take(&within) {
            started.extend(recall(agent, &past, &within, &|_| true));
        }
    }
    started
}

/// Reports the end of a background subagent that code had started.
fn recall_background(agent: &CallExecutor<'_>, id: &str, child: &ChildSummary) {
    let ChildSummary { task, outcome, .. } = child;
    let conclusion = frame::conclusion(&outcome.agent, outcome, MAX_CONCLUSION_BYTES);
    agent.background.add(id, ("", &outcome.agent, task), CancellationToken::new());
    agent.background.ended(id, Ended { status: outcome.status, conclusion });
}

/// A subagent that ended with the program: its end is told, without a conclusion.
fn recall_lost(agent: &CallExecutor<'_>, id: &str) {
    let conclusion = frame::refused_child("", ENDED_WITH_THE_PROGRAM);
    agent.background.add(id, ("", "", ""), CancellationToken::new());
    agent.background.ended(id, Ended { status: RunStatus::Cancelled, conclusion });
}

/// INV-252: resumes the subagents of such calls, with the present rights. If one cannot resume, its end has
/// the reason.
async fn resume(agent: &CallExecutor<'_>, started: Vec<Started>, machine: &Loop) {
    for Started { past, address, step, position } in started {
        let made = past.begun(step, position).and_then(<[_]>::first);
        let made = made.and_then(|child| child.call.as_ref());
        if let Some(made) = made
            && let Decision::Builtin(permit, BuiltinCall::Spawn(asked)) =
                machine.dispatcher().decide(made, 0)
        {
            let caller = made.id.rsplit_once('.').map_or("", |(caller, _)| caller);
            let outer = Outer::new(caller, address, Some(Arc::clone(&past)), None);
            let called = called(made);
            let nested = Nested { outer: &outer, within: None, asked: &made.name, called: &called };
            let call = Call { step, position, call: made, nested: Some(nested), fresh: false };
            agent.spawn(call, permit, asked, machine.request()).await;
            if agent.background.of_call(&made.id).is_some() {
                continue;
            }
        }
        let id = past.result(step, position).and_then(|result| result.background.as_deref());
        if let Some(id) = id {
            recall_lost(agent, id);
        }
    }
}

/// The usage of a subagent counts as it did then.
fn bill_child(agent: &CallExecutor<'_>, child: &ChildSummary) {
    let Usage { steps, input_tokens, output_tokens, fuel, .. } = child.outcome.total;
    let tokens = input_tokens.saturating_add(output_tokens);
    for (meter, amount) in [(Meter::Steps, steps), (Meter::Tokens, tokens), (Meter::Fuel, fuel)] {
        // An exhausted budget is reported by the gauge.
        let _ = agent.job.budget.bill(meter, amount);
    }
}
