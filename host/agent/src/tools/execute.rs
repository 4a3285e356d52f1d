//! Executes the calls of one step. Calls to the jar start together, in the order asked: the
//! jar decides which overlap. Subagents start together too, but not beside tools, because they may change any
//! file. Calls that act on the session itself run one after another. Answers keep the order asked.

use std::sync::Arc;

use belljar_policy::{Meter, ShownText, ToolPermit};
use belljar_sandbox::{ProgressReport, ProgressSink};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Sleep, sleep};

use crate::agent_loop::agent::Timer;
use crate::agent_loop::library;
use crate::agent_loop::machine::{AgentEnding, AgentLoop, LoopInput};
use crate::events::{EventKind, MAX_SHOWN};
use crate::limits::{CALL_CLOSE_LIMIT, CHILD_CLOSE_LIMIT, MAX_NAME_BYTES, truncate_str};
use crate::outcome::CallReceipt;
use crate::prompt::frame::HANDED_OVER;
use crate::prompt::skills::{self, SkillCaller};
use crate::rights::folders::readable_folders;
use crate::tools::answer::CallAnswer;
use crate::tools::approval::consent::{ConsentBasis, without_asking};
use crate::tools::builtin::arguments::BuiltinCall;
use crate::tools::call::PlacedCall;
use crate::tools::call::arguments;
use crate::tools::dispatch::{CallDecision, CallRefusal, RefusalReason};
use crate::tools::executor::CallExecutor;
use crate::tools::requests::ServerRequests;
use crate::tools::result::{self, ExecutedCall};
use crate::trace;

/// Calls that may run side by side, each with its decision.
pub(crate) type Group<'a> = Vec<(PlacedCall<'a>, CallDecision)>;

/// The kinds of calls that may run side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKind {
    Tools,
    Agents,
    /// Calls that act on the session itself: each runs alone.
    Session,
}

impl CallExecutor<'_> {
    /// Executes all calls of a step and returns their answers; if the agent is interrupted, returns the
    /// interruption with the answers so far.
    pub(crate) async fn execute_all(
        &self,
        machine: &AgentLoop,
        decisions: Vec<CallDecision>,
        timer: &mut Timer,
    ) -> LoopInput {
        let calls = machine.calls();
        let mut answers: Vec<Option<CallAnswer>> = calls.iter().map(|_| None).collect();
        let step = machine.current_step();
        let placed = calls.iter().copied().enumerate();
        let fresh = false;
        let placed =
            placed.map(|(position, call)| PlacedCall { step, position, call, nested: None, fresh });
        // Calls of the caller's tools have no result yet, so they are not executed here.
        let (theirs, own): (Vec<_>, Vec<_>) = placed
            .zip(decisions)
            .partition(|(_, decision)| matches!(decision, CallDecision::HandOver));
        for (call, _) in theirs {
            if let Some(slot) = answers.get_mut(call.position) {
                *slot = Some(CallAnswer { content: HANDED_OVER.to_owned(), is_error: false });
            }
        }
        for group in group_calls(own.into_iter()) {
            if let Err(ending) = self.execute_group(group, machine, timer, &mut answers).await {
                return LoopInput::Interrupted { partial: String::new(), answers, ending };
            }
        }
        // Every call has an answer here; the loop reports an internal error if one is missing.
        LoopInput::Answered(answers.into_iter().flatten().collect())
    }

    /// Executes calls side by side. After a cancellation, waits for running calls up to a limit, and names
    /// the unfinished ones.
    pub(crate) async fn execute_group(
        &self,
        group: Group<'_>,
        machine: &AgentLoop,
        timer: &mut Timer,
        answers: &mut [Option<CallAnswer>],
    ) -> Result<(), AgentEnding> {
        if self.stop.is_cancelled() {
            return Err(AgentEnding::cancelled());
        }
        let calls_others = |permit: &ToolPermit| self.jar.may_call_others(self.job, permit.tool());
        let spawns = group.iter().any(|(_, decision)| match decision {
            CallDecision::Builtin(_, builtin) => builtin.spawns_children(),
            // A tool's nested call may start subagents too, so it gets the longer limit.
            CallDecision::Tool(permit) => calls_others(permit),
            CallDecision::Refuse(_) | CallDecision::HandOver => false,
        });
        let limit = if spawns { CHILD_CLOSE_LIMIT } else { CALL_CLOSE_LIMIT };
        let places: Vec<PlacedCall<'_>> = group.iter().map(|(call, _)| *call).collect();
        let mut running: FuturesUnordered<_> =
            group.into_iter().map(|(call, decision)| self.one(call, decision, machine)).collect();
        let mut late = false;
        let mut grace: Option<std::pin::Pin<Box<Sleep>>> = None;
        loop {
            tokio::select! {
                biased;
                done = running.next() => {
                    let Some((position, answer)) = done else { break };
                    if let Some(slot) = answers.get_mut(position) {
                        *slot = Some(answer);
                    }
                }
                () = self.stop.cancelled(), if grace.is_none() => {
                    grace = Some(Box::pin(sleep(limit)));
                }
                () = self.time_up(timer), if !late && grace.is_none() => {
                    late = true;
                    self.stop.cancel();
                }
                () = wait_for_grace(&mut grace) => {
                    drop(running);
                    self.abandon_calls(&places, answers);
                    break;
                }
            }
        }
        if late {
            Err(self.job.timeout_ending())
        } else if self.stop.is_cancelled() {
            Err(AgentEnding::cancelled())
        } else {
            Ok(())
        }
    }

    /// Records the calls that had not ended within the limit after a cancellation.
    fn abandon_calls(&self, places: &[PlacedCall<'_>], answers: &[Option<CallAnswer>]) {
        self.job.budget.cancel();
        for call in places {
            if answers.get(call.position).is_some_and(Option::is_none) {
                let tool = ShownText::clip_line(&call.call.name, MAX_NAME_BYTES);
                let unfinished = format!("`{tool}` of `{}`", self.job.path);
                self.ledger.lock_entries().unfinished.push(unfinished);
                let executed = result::from_abandoned(&call.call.name, arguments(call.call));
                self.record_executed(*call, executed);
            }
        }
    }

    /// Executes one call, and returns it with the answer.
    pub(crate) async fn one(
        &self,
        call: PlacedCall<'_>,
        decision: CallDecision,
        machine: &AgentLoop,
    ) -> (usize, CallAnswer) {
        (call.position, self.effects.execute_call(self, call, decision, machine).await)
    }

    /// Executes a call with the hooks before and after it, and stores the result in the journal.
    pub(crate) async fn run_with_hooks(
        &self,
        call: PlacedCall<'_>,
        decision: CallDecision,
        machine: &AgentLoop,
    ) -> CallAnswer {
        let (mut changed, mut notes) = (None, String::new());
        let dispatcher = machine.dispatcher();
        let decision = self.before_call(call, decision, dispatcher, &mut changed, &mut notes).await;
        let call = PlacedCall { call: changed.as_ref().unwrap_or(call.call), ..call };
        let by_jar = matches!(decision, CallDecision::Tool(_));
        let answer = match decision {
            CallDecision::Builtin(permit, builtin) => {
                self.execute_builtin(call, permit, builtin, machine).await
            }
            CallDecision::Refuse(refusal) => self.refuse_begun(call, refusal),
            // The caller sends the answer of its own tool with a later request.
            CallDecision::HandOver => {
                CallAnswer { content: HANDED_OVER.to_owned(), is_error: false }
            }
            CallDecision::Tool(permit) => {
                self.emit_call_started(call);
                self.call_tool(call, permit, machine).await
            }
        };
        // The jar has already subtracted the size of its own results from the output limit.
        let answer = match call.nested.is_some() && (answer.is_error || !by_jar) {
            true => self.within_output(answer),
            false => answer,
        };
        let mut answer = self.after_call(call, answer, dispatcher).await;
        answer.content.push_str(&notes);
        let called = match call.nested {
            Some(nested) => nested.asked,
            None => machine.asked_calls().get(call.position).map_or("", |asked| &asked.name),
        };
        let answer = dispatcher.reword_answer(called, answer);
        self.persist_result(call, &answer).await;
        answer
    }

    /// Charges the answer of a nested call to the output limit; beyond the limit, the answer becomes an
    /// error. INV-254: all results that a tool reads from nested calls count as output.
    fn within_output(&self, answer: CallAnswer) -> CallAnswer {
        let size = u64::try_from(answer.content.len()).unwrap_or(u64::MAX);
        match self.job.budget.reserve(Meter::Output, size) {
            Ok(()) => answer,
            Err(which) => CallAnswer { content: which.to_string(), is_error: true },
        }
    }

    /// Executes a call of a component or of an MCP server's tool: asks a person if required, stores the
    /// beginning, then calls.
    async fn call_tool(
        &self,
        call: PlacedCall<'_>,
        permit: ToolPermit,
        machine: &AgentLoop,
    ) -> CallAnswer {
        let again = self.effects.had_begun(call);
        // INV-258: a call allowed before needs no second question; if only now a question is required, the
        // person is asked.
        let permit = match self.effects.was_asked(call) {
            true => without_asking(permit, ConsentBasis::AllowedBefore),
            false => permit,
        };
        let asked = permit.needs_answer();
        let permit = match self.ask_if_required(call, permit).await {
            Ok(permit) => permit,
            Err(refusal) => return self.refuse_call(call, refusal),
        };
        let calls_others = self.jar.may_call_others(self.job, permit.tool());
        let course = self.course_of(call, &permit);
        if !again && (calls_others || !self.repeatable.contains(permit.tool())) {
            self.job.persist_begun(call, course.clone(), asked).await;
        }
        if self.remote.has_tool(permit.tool()) {
            let progress = self.progress_sink(call, &permit);
            let requests = ServerRequests { agent: self, call };
            let calling = (arguments(call.call), call.fresh);
            let calling =
                self.remote.call_tool(self.job, self.stop, &permit, calling, progress, &requests);
            let executed = result::from_call_result(&call.call.id, calling.await);
            return self.record_executed(call, executed);
        }
        let executed = match self.jar.get_or_open(self.job) {
            // The future is boxed, because futures of nested calls would otherwise contain each other.
            Ok(Some(jar)) => Box::pin(self.call_jar(&jar, call, permit, course, machine)).await,
            // An advertised tool has a jar; without one the call has no effect.
            Ok(None) => result::from_abandoned(&call.call.name, arguments(call.call)),
            Err(error) => {
                self.job.record_warning(self.ledger, error.to_string());
                result::from_abandoned(&call.call.name, arguments(call.call))
            }
        };
        self.record_executed(call, executed)
    }

    /// The receiver of the tool's progress reports, which become events; `None` = the run has no listener.
    /// The sandbox bounds their number and length.
    pub(crate) fn progress_sink(
        &self,
        call: PlacedCall<'_>,
        permit: &ToolPermit,
    ) -> Option<ProgressSink> {
        let events = &self.job.shared.events;
        if !events.has_listener() {
            return None;
        }
        let (events, agent) = (events.clone(), Arc::clone(&self.job.path));
        let (call_id, tool) = (call.call.id.clone(), permit.tool().to_string());
        Some(Arc::new(move |ProgressReport { done, total, message }| {
            let (call_id, tool) = (call_id.clone(), tool.clone());
            let report = || EventKind::ToolProgress { call_id, tool, done, total, message };
            events.emit(&agent, report);
        }))
    }

    /// Executes a call of a built-in tool that concerns the session, for example the todo list.
    async fn execute_builtin(
        &self,
        call: PlacedCall<'_>,
        permit: ToolPermit,
        builtin: BuiltinCall,
        machine: &AgentLoop,
    ) -> CallAnswer {
        let request = machine.request();
        let builtin = match builtin {
            BuiltinCall::Spawn(asked) => {
                return self.spawn_child(call, permit, asked, request).await;
            }
            BuiltinCall::Parallel(asked) => {
                return self.spawn_batch(call, permit, asked, request).await;
            }
            builtin => builtin,
        };
        self.emit_call_started(call);
        // A search has no effect: no person is asked for it.
        let searches = matches!(builtin, BuiltinCall::Find { .. });
        if !searches && let Err(refusal) = self.ask_if_required(call, permit).await {
            return self.refuse_call(call, refusal);
        }
        let answer = match &builtin {
            BuiltinCall::Status { id } => self.background_status(id.as_deref()),
            BuiltinCall::Result { id, wait } => self.child_result(id, *wait).await,
            BuiltinCall::Cancel { id } => self.cancel_child(id).await,
            BuiltinCall::Todo(todo) => self.execute_todo(todo, machine),
            BuiltinCall::Clarify(asked) => self.ask_clarification(call, asked).await,
            BuiltinCall::Worktree(asked) => self.worktree(call, asked).await,
            BuiltinCall::Find { kind, words } => {
                library::answer_search(self.job, &self.library, *kind, words).await
            }
            BuiltinCall::Skill { name } => {
                let host = &self.job.shared.host;
                let folders = readable_folders(host, &self.job.rights);
                match skills::load_skill(&host.skills, name, SkillCaller::Model, &folders) {
                    Ok(content) => CallAnswer { content, is_error: false },
                    Err(content) => CallAnswer { content, is_error: true },
                }
            }
            // The caller of this function has executed these two.
            BuiltinCall::Spawn(_) | BuiltinCall::Parallel(_) => {
                CallAnswer { content: "the host failed".to_owned(), is_error: true }
            }
        };
        self.record_executed(
            call,
            result::from_builtin(&call.call.name, arguments(call.call), answer),
        )
    }

    /// As [`CallExecutor::refuse_call`], and also sends the event that the call has started.
    pub(crate) fn refuse_begun(&self, call: PlacedCall<'_>, refusal: CallRefusal) -> CallAnswer {
        self.emit_call_started(call);
        self.refuse_call(call, refusal)
    }

    /// Answers a refused call, and records the refusal with a receipt.
    pub(crate) fn refuse_call(&self, call: PlacedCall<'_>, refusal: CallRefusal) -> CallAnswer {
        if let RefusalReason::Denied(denied) = &refusal.reason {
            tracing::info!(target: "belljar::denied", agent = %self.job.path, "{denied}");
        }
        let executed = result::from_refusal(&call.call.name, arguments(call.call), refusal);
        self.record_executed(call, executed)
    }

    /// Sends the event that a call has started.
    pub(crate) fn emit_call_started(&self, call: PlacedCall<'_>) {
        self.job.emit_event(|| EventKind::ToolCallStarted {
            step: call.step,
            call_id: call.call.id.clone(),
            parent: parent_call_id(call),
            tool: truncate_str(&call.call.name, MAX_NAME_BYTES).to_owned(),
            arguments: call.call.arguments.chars().take(MAX_SHOWN).collect(),
        });
    }

    /// Records an executed call, and returns the answer for the model.
    pub(crate) fn record_executed(
        &self,
        call: PlacedCall<'_>,
        executed: ExecutedCall,
    ) -> CallAnswer {
        let error = result::error_of(&executed);
        let ExecutedCall { answer, attachments, mut receipt, form } = executed;
        match call.nested {
            Some(nested) => {
                nested.outer.keep_form(call.position, form);
                nested.outer.receipt_room().fit_receipt(&mut receipt);
            }
            None => self.ledger.keep_form(call.step, form),
        }
        trace::record_call(&receipt);
        self.job.emit_event(|| EventKind::ToolCallFinished {
            step: call.step,
            call_id: call.call.id.clone(),
            parent: parent_call_id(call),
            tool: receipt.tool.clone(),
            ok: !answer.is_error,
            ending: result::ending_word(&receipt.ending),
            error: error.clone(),
            fuel: receipt.fuel,
            micros: receipt.times.total,
            denials: receipt.denials.len(),
            bytes: receipt.bytes.output,
        });
        let receipt = CallReceipt {
            call_id: call.call.id.clone(),
            parent: parent_call_id(call),
            step: call.step,
            tool: receipt.tool.clone(),
            agent: self.job.path.to_string(),
            error,
            receipt,
        };
        self.ledger.record_call(call.position, receipt, attachments);
        answer
    }
}

/// The id of the outer call, for a call that a tool made.
fn parent_call_id(call: PlacedCall<'_>) -> Option<String> {
    call.nested.map(|nested| nested.outer.id().to_owned())
}

/// Splits a step's calls into groups that run one after another: a new group begins where the kind of call
/// changes. A refused call joins the group before it.
pub(crate) fn group_calls<'c>(
    calls: impl Iterator<Item = (PlacedCall<'c>, CallDecision)>,
) -> Vec<Group<'c>> {
    let mut groups: Vec<(Option<CallKind>, Group<'c>)> = Vec::with_capacity(1);
    for (call, decision) in calls {
        let kind = match &decision {
            CallDecision::Tool(_) => Some(CallKind::Tools),
            CallDecision::Builtin(_, builtin) if builtin.spawns_children() => {
                Some(CallKind::Agents)
            }
            CallDecision::Builtin(..) => Some(CallKind::Session),
            CallDecision::Refuse(_) | CallDecision::HandOver => None,
        };
        let entry = (call, decision);
        match groups.last_mut() {
            Some((group, entries))
                if group.is_none()
                    || kind.is_none()
                    || (*group == kind && kind != Some(CallKind::Session)) =>
            {
                *group = group.or(kind);
                entries.push(entry);
            }
            Some(_) | None => groups.push((kind, vec![entry])),
        }
    }
    groups.into_iter().map(|(_, entries)| entries).collect()
}

/// Waits until the grace period is over; without a grace period, waits for ever.
async fn wait_for_grace(grace: &mut Option<std::pin::Pin<Box<Sleep>>>) {
    match grace {
        Some(grace) => grace.as_mut().await,
        None => std::future::pending().await,
    }
}
