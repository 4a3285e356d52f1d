//! The effects of an agent whose earlier work is in the journal: a resumed agent gets the stored results again,
//! a replayed agent makes the stored calls anew and compares them (`rerunning.rs`). Later work is done normally.

use std::sync::Arc;

use async_trait::async_trait;
use belljar_model::{CallContext, ModelReply};
use belljar_policy::{Meter, ToolPermit};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::agent_loop::agent::{AgentEffects, Notes};
use crate::agent_loop::agent::{RunningAgent, Timer};
use crate::agent_loop::job::AgentJob;
use crate::agent_loop::live::LiveEffects;
use crate::agent_loop::machine::{AgentEnding, AgentLoop, LoopInput, NextStep};
use crate::events::EventKind;
use crate::finding::answers::is_matched_note;
use crate::limits::MAX_CONCLUSION_BYTES;
use crate::outcome::{ChildSummary, RunStatus, Usage};
use crate::prompt::frame;
use crate::replay::again::{reply_again, step_again};
use crate::replay::log::{AgentPast, LoggedCourse, PlannedChild};
use crate::replay::persist::address_of;
use crate::replay::rerun::ReplayedRun;
use crate::replay::rerunning::{CallComparer, permit_unasked};
use crate::subagent::background::{EndedChild, still_running};
use crate::subagent::planned::PlannedSpawn;
use crate::subagent::planned::StartingChild;
use crate::subagent::progress::{BatchHeading, ChildBatch};
use crate::tools::answer::CallAnswer;
use crate::tools::builtin::arguments::BuiltinCall;
use crate::tools::call::PlacedCall;
use crate::tools::call::arguments;
use crate::tools::dispatch::{CallDecision, CallRefusal};
use crate::tools::executor::CallExecutor;
use crate::tools::nested::outer::{NestedPlace, OuterCall, address_within, call_digest};
use crate::tools::result;

/// The conclusion of a subagent that a tool's code had started and that cannot be resumed: the parent may no
/// longer start subagents, or the journal lacks details.
const ENDED_WITH_THE_PROGRAM: &str = "the program ended while it ran; how far it got is not known";

/// The effects of a resumed or replayed agent: from the journal as long as it has entries, then done now.
pub(crate) struct ReplayingEffects {
    past: Arc<AgentPast>,
    policy: ReplayPolicy,
}

/// The use of the stored steps: to resume an interrupted run, or to replay a finished one.
enum ReplayPolicy {
    /// The run resumes and repeats no stored work. `kept` is the number of stored entries of the whole run.
    Resume { kept: usize },
    /// The finished run is replayed, and its calls are compared.
    Compare(Arc<ReplayedRun>),
}

impl ReplayingEffects {
    /// Takes the stored steps of the job's agent out of the run's journal. An agent can do this only once.
    pub(crate) fn new(job: &AgentJob) -> Self {
        let (replay, policy) = match &job.shared.rerun {
            Some(rerun) => (rerun.replay_log(), ReplayPolicy::Compare(Arc::clone(rerun))),
            None => {
                let replay = &*job.shared.replay;
                (replay, ReplayPolicy::Resume { kept: replay.len() })
            }
        };
        Self { past: replay.take_agent(&job.address).unwrap_or_default(), policy }
    }

    fn is_resume(&self) -> bool {
        matches!(self.policy, ReplayPolicy::Resume { .. })
    }

    fn asks_model(&self) -> bool {
        matches!(&self.policy, ReplayPolicy::Compare(rerun) if rerun.asks_model())
    }

    /// The model's stored answer in the step; `None` = not stored, or a replay asks the model anew.
    fn stored_reply(&self, step: u64) -> Option<(&[String], &ModelReply)> {
        self.past.step_reply(step).filter(|_| !self.asks_model())
    }

    /// The journal that has the spawn indices and ids of a call's subagents.
    fn numbered_past<'a>(&'a self, call: PlacedCall<'a>) -> Option<&'a AgentPast> {
        let is_stored = self.is_resume() || (call.nested.is_none() && !self.asks_model());
        self.past_of(call).filter(|_| is_stored)
    }

    /// The journal that contains a call: the agent's own journal, or for a nested call the outer call's.
    /// `None` = the outer call runs for the first time.
    fn past_of<'a>(&'a self, call: PlacedCall<'a>) -> Option<&'a AgentPast> {
        match call.nested {
            Some(nested) => nested.outer.nested_journal().map(Arc::as_ref),
            None => Some(&self.past),
        }
    }

    /// The subagents that a begun call had announced before the process died.
    fn planned_children<'a>(&'a self, call: PlacedCall<'a>) -> Option<&'a [PlannedChild]> {
        self.past_of(call).filter(|_| self.is_resume())?.planned_children(call.step, call.position)
    }

    /// Appends an answer of the model to the transcript, if the replay records one.
    fn record_reply(&self, agent: &RunningAgent<'_>, machine: &AgentLoop, reply: &ModelReply) {
        let ReplayPolicy::Compare(rerun) = &self.policy else { return };
        let Some(recording) = rerun.recording() else { return };
        let cx = CallContext {
            spawn_index: agent.job.spawn_index,
            step: machine.current_step(),
            ..CallContext::new(&agent.job.agent.definition.name)
        };
        recording.record_reply(&cx, machine.request(), reply);
    }

    /// A call's answer from the journal, whose stored usage is billed again.
    async fn stored_answer(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        decision: &CallDecision,
        machine: &AgentLoop,
    ) -> Option<CallAnswer> {
        let past = self.past_of(call)?;
        let persisted = past.call_result(call.step, call.position)?;
        if let (Some(nested), Some(logged)) = (call.nested, &persisted.nested) {
            nested.outer.keep_form(call.position, logged.form.clone());
        }
        // The tool's state ended with its process.
        agent.jar.begins_anew(&call.call.name);
        if let Some(receipt) = &persisted.receipt {
            let _ = agent.job.budget.bill(Meter::Fuel, receipt.receipt.fuel);
            if let Some(nested) = call.nested {
                // INV-252: billed to the outer call too, as before.
                if let Some(within) = nested.within {
                    within.bill_fuel(receipt.receipt.fuel);
                }
            }
            let files = persisted.attachments.clone();
            agent.ledger.record_call(call.position, receipt.clone(), files);
        }
        match decision {
            CallDecision::Builtin(permit, BuiltinCall::Spawn(asked))
                if persisted.background.is_some() =>
            {
                // The call's background subagent resumes, or its stored end is noted again.
                let request = machine.request();
                agent.spawn_child(call, permit.clone(), asked.clone(), request).await;
            }
            CallDecision::Builtin(_, BuiltinCall::Todo(todo)) if !persisted.is_error => {
                // Later calls find the todo list in its former state.
                let _ = agent.apply_todo(todo, machine);
            }
            CallDecision::Builtin(_, BuiltinCall::Worktree(asked)) if !persisted.is_error => {
                agent.worktree_was(call, asked).await;
            }
            CallDecision::Builtin(
                _,
                BuiltinCall::Result { id, .. } | BuiltinCall::Cancel { id },
            ) => {
                // A stored answer `still running` shows that the agent does not know the end yet.
                let ended = persisted.content != still_running(id);
                if ended && (past.ended_in_background(id) || agent.background.has_ended(id)) {
                    agent.background.mark_known(id);
                }
            }
            CallDecision::Builtin(..)
            | CallDecision::Tool(_)
            | CallDecision::Refuse(_)
            | CallDecision::HandOver => {
                for (place, summary) in past.ended_children(call.step, call.position) {
                    bill_child(agent, summary);
                    agent.ledger.record_child(place, summary.clone());
                }
            }
        }
        if let Some(id) = persisted.background.as_deref()
            && agent.background.find_by_call(&call.call.id).is_none()
        {
            // INV-520: the parent knows the subagent's id, so it must learn an end, even if the grants now
            // forbid to start the subagent again.
            match past.ended_child(call.step, (call.position, 0)) {
                Some(child) => {
                    if matches!(decision, CallDecision::Builtin(_, BuiltinCall::Spawn(_))) {
                        bill_child(agent, child);
                        agent.ledger.record_child((call.position, 0), child.clone());
                    }
                    recall_background(agent, id, child);
                }
                None => recall_lost(agent, id),
            }
        }
        recall_within(agent, &calls_of(agent, call), machine).await;
        Some(persisted.answer())
    }

    /// The answer of a call that had begun, may have had effects, and has no stored result: a repetition
    /// could double an effect. `None` = not begun, or the call starts subagents, which resume by themselves.
    async fn interrupted_answer(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        machine: &AgentLoop,
    ) -> Option<CallAnswer> {
        let begun = self.planned_children(call)?;
        if !begun.is_empty() || agent.replayable.contains(call.call.name.as_str()) {
            return None;
        }
        agent.emit_call_started(call);
        let executed = result::from_interrupted(&call.call.name, arguments(call.call));
        let answer = agent.record_executed(call, executed);
        recall_within(agent, &calls_of(agent, call), machine).await;
        agent.persist_result(call, &answer).await;
        Some(answer)
    }

    /// Answers a call from the journal if it has a result, and otherwise makes the call.
    async fn resume_call(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        decision: CallDecision,
        machine: &AgentLoop,
    ) -> CallAnswer {
        if let Some(nested) = call.nested
            && !nested.outer.matches_record(call.position, call.step, nested.called)
        {
            let content = "it goes another way than recorded".to_owned();
            return CallAnswer { content, is_error: true };
        }
        if let Some(answer) = self.stored_answer(agent, call, &decision, machine).await {
            return answer;
        }
        if let Some(answer) = self.interrupted_answer(agent, call, machine).await {
            return answer;
        }
        let answer = LiveEffects.execute_call(agent, call, decision, machine).await;
        // A call that is refused now did not run again: its nested calls are restored here.
        recall_within(agent, &calls_of(agent, call), machine).await;
        answer
    }
}

#[async_trait]
impl AgentEffects for ReplayingEffects {
    fn begin_agent(&self, agent: &RunningAgent<'_>, machine: &AgentLoop) {
        match self.policy {
            ReplayPolicy::Compare(_) => LiveEffects.begin_agent(agent, machine),
            ReplayPolicy::Resume { .. } if agent.job.depth.is_child() => {}
            ReplayPolicy::Resume { kept } => {
                agent.job.emit_event(|| EventKind::RunResumed { kept })
            }
        }
    }

    async fn run_start_hooks(
        &self,
        agent: &RunningAgent<'_>,
        timer: &mut Timer,
    ) -> Result<String, AgentEnding> {
        match self.stored_reply(1) {
            Some(_) => Ok(String::new()),
            None => LiveEffects.run_start_hooks(agent, timer).await,
        }
    }

    /// The stored note about fitting library entries. INV-672: the library's present content does not matter.
    async fn match_library(&self, agent: &RunningAgent<'_>) -> Option<String> {
        if self.stored_reply(1).is_some() {
            return None;
        }
        match self.past.step_reply(1) {
            Some((notes, _)) => notes.iter().find(|note| is_matched_note(note)).cloned(),
            None => LiveEffects.match_library(agent).await,
        }
    }

    fn take_step(&self, agent: &RunningAgent<'_>, machine: &AgentLoop) -> NextStep {
        if self.stored_reply(machine.current_step() + 1).is_none() {
            return LiveEffects.take_step(agent, machine);
        }
        step_again(agent)
    }

    async fn ask_model(
        &self,
        agent: &RunningAgent<'_>,
        machine: &mut AgentLoop,
        last: bool,
        notes: &mut Notes,
        timer: &mut Timer,
    ) -> LoopInput {
        let Some((before, reply)) = self.stored_reply(machine.current_step()) else {
            if let ReplayPolicy::Compare(rerun) = &self.policy
                && !rerun.asks_model()
            {
                rerun.note_ended(&agent.job.path);
                let ending = AgentEnding::cancelled();
                return LoopInput::Interrupted {
                    partial: String::new(),
                    answers: Vec::new(),
                    ending,
                };
            }
            let input = LiveEffects.ask_model(agent, machine, last, notes, timer).await;
            if let LoopInput::Replied(reply) = &input {
                self.record_reply(agent, machine, reply);
            }
            return input;
        };
        let input = reply_again(agent, machine, before, reply);
        self.record_reply(agent, machine, reply);
        if self.is_resume() {
            // INV-364: tokens of texts for MCP servers in the step are billed again, repeated or not.
            agent.bill_text(self.past.server_text_usage(machine.current_step()));
        }
        input
    }

    async fn execute_call(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        decision: CallDecision,
        machine: &AgentLoop,
    ) -> CallAnswer {
        match &self.policy {
            ReplayPolicy::Resume { .. } => self.resume_call(agent, call, decision, machine).await,
            ReplayPolicy::Compare(rerun) => {
                CallComparer { rerun, past: &self.past }
                    .answer_call(agent, call, decision, machine)
                    .await
            }
        }
    }

    async fn finish_answer(
        &self,
        agent: &RunningAgent<'_>,
        machine: &mut AgentLoop,
        notes: &mut Notes,
        ending: AgentEnding,
        again: &mut bool,
        timer: &mut Timer,
    ) -> Result<LoopInput, AgentEnding> {
        if self.stored_reply(machine.current_step() + 1).is_some() {
            *again = true;
            return Ok(machine.reopen());
        }
        if self.is_resume() || self.asks_model() {
            return LiveEffects.finish_answer(agent, machine, notes, ending, again, timer).await;
        }
        // Waits for the background subagents, whose answers come from the journal too.
        tokio::select! {
            biased;
            () = agent.stop.cancelled() => {}
            () = agent.time_up(timer) => {}
            () = agent.background.wait_for_all() => {}
        }
        Err(ending)
    }

    fn spawn_index(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        place: usize,
        slug: &str,
    ) -> Option<u32> {
        let past = self.numbered_past(call);
        past.and_then(|past| past.spawn_index(call.step, call.position, place, slug))
            .or_else(|| LiveEffects.spawn_index(agent, call, place, slug))
    }

    async fn permit_spawn(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        permit: ToolPermit,
    ) -> Result<(), CallRefusal> {
        match self.policy {
            ReplayPolicy::Resume { .. } if self.had_begun(call) => Ok(()),
            ReplayPolicy::Resume { .. } => LiveEffects.permit_spawn(agent, call, permit).await,
            ReplayPolicy::Compare(_) => {
                LiveEffects.permit_spawn(agent, call, permit_unasked(permit)).await
            }
        }
    }

    async fn announce_children(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        children: &[&PlannedSpawn],
        heading: BatchHeading<'_>,
    ) -> Arc<ChildBatch> {
        if !self.had_begun(call) {
            return LiveEffects.announce_children(agent, call, children, heading).await;
        }
        agent.persist_queued(call, children, false).await;
        ChildBatch::without_announcement(
            &agent.job.shared,
            &agent.job.path,
            &call.call.id,
            children.len(),
        )
    }

    fn background_id(&self, agent: &CallExecutor<'_>, call: PlacedCall<'_>) -> String {
        let before =
            self.numbered_past(call).and_then(|past| past.call_result(call.step, call.position));
        let before = before.and_then(|persisted| persisted.background.clone());
        before.unwrap_or_else(|| LiveEffects.background_id(agent, call))
    }

    fn was_left(&self, call: PlacedCall<'_>) -> Option<bool> {
        let past = self.past_of(call).filter(|_| !self.asks_model())?;
        past.call_result(call.step, call.position).map(|persisted| persisted.background.is_some())
    }

    fn had_begun(&self, call: PlacedCall<'_>) -> bool {
        self.planned_children(call).is_some()
    }

    fn was_asked(&self, call: PlacedCall<'_>) -> bool {
        let past = self.past_of(call).filter(|_| self.is_resume());
        past.is_some_and(|past| past.was_asked(call.step, call.position))
    }

    async fn left_over(
        &self,
        agent: &CallExecutor<'_>,
        outer: &OuterCall,
        machine: &AgentLoop,
    ) -> Option<String> {
        let past = outer.nested_journal().filter(|_| self.is_resume())?;
        let left = restore_records(agent, past, outer.address(), &|position| {
            !outer.has_matched_call(position)
        });
        resume_children(agent, left, machine).await;
        outer.end_call(past)
    }

    fn logged_course(&self, call: PlacedCall<'_>) -> Option<LoggedCourse> {
        self.past_of(call)?.call_course(call.step, call.position)
    }

    fn past_within(&self, agent: &CallExecutor<'_>, address: &str) -> Option<Arc<AgentPast>> {
        match &self.policy {
            ReplayPolicy::Resume { .. } => agent.job.shared.replay.take_agent(address),
            ReplayPolicy::Compare(rerun) => rerun.replay_log().take_agent(address),
        }
    }

    fn run_child(
        &self,
        agent: &CallExecutor<'_>,
        child: StartingChild,
    ) -> BoxFuture<'static, EndedChild> {
        let past = if child.nested { child.past.as_deref() } else { Some(&*self.past) };
        let past = past.filter(|_| self.is_resume());
        let place = child.child_place();
        let Some(summary) = past.and_then(|past| past.ended_child(child.step, place)).cloned()
        else {
            return LiveEffects.run_child(agent, child);
        };
        bill_child(agent, &summary);
        Box::pin(async move { child.into_ended(summary) })
    }
}

/// The address of the calls that a call makes.
fn calls_of(agent: &CallExecutor<'_>, call: PlacedCall<'_>) -> Arc<str> {
    address_within(&address_of(agent.job, call), call.step, call.position)
}

/// Restores the nested calls of an unrepeated call: the usage is billed again, and background subagents
/// resume.
async fn recall_within(agent: &CallExecutor<'_>, address: &Arc<str>, machine: &AgentLoop) {
    if let Some(past) = agent.job.shared.replay.take_agent(address) {
        let left = restore_records(agent, &past, address, &|_| true);
        resume_children(agent, left, machine).await;
    }
}

/// A recorded nested call whose background subagent has not ended.
struct UnendedCall {
    /// The journal with the call.
    past: Arc<AgentPast>,
    address: Arc<str>,
    step: u64,
    position: usize,
}

/// INV-252: puts receipts, subagents and costs of unrepeated nested calls (selected by `is_left`) back into
/// the ledger. Returns the calls whose background subagents have not ended.
fn restore_records(
    agent: &CallExecutor<'_>,
    past: &Arc<AgentPast>,
    address: &Arc<str>,
    is_left: &dyn Fn(usize) -> bool,
) -> Vec<UnendedCall> {
    let mut started = Vec::new();
    for (step, position) in past.call_places() {
        if !is_left(position) {
            continue;
        }
        let result = past.call_result(step, position);
        if let Some(receipt) = result.and_then(|result| result.receipt.as_ref()) {
            let _ = agent.job.budget.bill(Meter::Fuel, receipt.receipt.fuel);
            let files = result.map(|result| result.attachments.clone()).unwrap_or_default();
            agent.ledger.record_call(position, receipt.clone(), files);
        }
        for (place, summary) in past.ended_children(step, position) {
            bill_child(agent, summary);
            agent.ledger.record_child(place, summary.clone());
        }
        let id = result.and_then(|result| result.background.as_deref());
        match (past.ended_child(step, (position, 0)), id) {
            (Some(child), Some(id)) => recall_background(agent, id, child),
            (None, Some(_)) => {
                let (past, address) = (Arc::clone(past), Arc::clone(address));
                started.push(UnendedCall { past, address, step, position });
            }
            (_, None) => {}
        }
        let within = address_within(address, step, position);
        if let Some(past) = agent.job.shared.replay.take_agent(&within) {
            started.extend(restore_records(agent, &past, &within, &|_| true));
        }
    }
    started
}

/// Notes the stored end of a background subagent that a tool's code had started.
fn recall_background(agent: &CallExecutor<'_>, id: &str, child: &ChildSummary) {
    let ChildSummary { task, outcome, .. } = child;
    let conclusion = frame::conclusion_message(&outcome.agent, outcome, MAX_CONCLUSION_BYTES);
    agent.background.add_child(id, ("", &outcome.agent, task), CancellationToken::new());
    agent.background.record_end(id, EndedChild { status: outcome.status, conclusion });
}

/// Notes that a background subagent ended with the program, without a conclusion.
fn recall_lost(agent: &CallExecutor<'_>, id: &str) {
    let conclusion = frame::refused_child("", ENDED_WITH_THE_PROGRAM);
    agent.background.add_child(id, ("", "", ""), CancellationToken::new());
    agent.background.record_end(id, EndedChild { status: RunStatus::Cancelled, conclusion });
}

/// INV-252: resumes the unended background subagents of nested calls, with their present rights. An end with
/// a reason is noted for a subagent that cannot resume.
async fn resume_children(agent: &CallExecutor<'_>, started: Vec<UnendedCall>, machine: &AgentLoop) {
    for UnendedCall { past, address, step, position } in started {
        let made = past.planned_children(step, position).and_then(<[_]>::first);
        let made = made.and_then(|child| child.call.as_ref());
        if let Some(made) = made
            && let CallDecision::Builtin(permit, BuiltinCall::Spawn(asked)) =
                machine.dispatcher().decide_call(made, 0)
        {
            let caller = made.id.rsplit_once('.').map_or("", |(caller, _)| caller);
            let outer = OuterCall::new(caller, address, Some(Arc::clone(&past)), None);
            let called = call_digest(made);
            let nested =
                NestedPlace { outer: &outer, within: None, asked: &made.name, called: &called };
            let call =
                PlacedCall { step, position, call: made, nested: Some(nested), fresh: false };
            agent.spawn_child(call, permit, asked, machine.request()).await;
            if agent.background.find_by_call(&made.id).is_some() {
                continue;
            }
        }
        let id = past.call_result(step, position).and_then(|result| result.background.as_deref());
        if let Some(id) = id {
            recall_lost(agent, id);
        }
    }
}

/// Bills the stored usage of an ended subagent again.
fn bill_child(agent: &CallExecutor<'_>, child: &ChildSummary) {
    let Usage { steps, input_tokens, output_tokens, fuel, .. } = child.outcome.total;
    let tokens = input_tokens.saturating_add(output_tokens);
    for (meter, amount) in [(Meter::Steps, steps), (Meter::Tokens, tokens), (Meter::Fuel, fuel)] {
        // Ignored: the budget gauge reports an exhausted budget.
        let _ = agent.job.budget.bill(meter, amount);
    }
}
