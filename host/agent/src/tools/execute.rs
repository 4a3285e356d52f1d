//! Executes the calls of one step. Calls to the jar start together, in the order asked: the
//! jar decides which overlap. Subagents start together too, but not beside tools, because they may change any
//! file. Calls that act on the session itself run one after another. Answers keep the order asked.

use std::sync::Arc;

use belljar_policy::{Meter, Shown, ToolPermit};
use belljar_sandbox::{Progress, ProgressSink};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Sleep, sleep};

use crate::agent_loop::agent::Timer;
use crate::agent_loop::machine::{Ending, Input, Loop};
use crate::events::{EventKind, MAX_SHOWN};
use crate::limits::{CALL_CLOSE_LIMIT, CHILD_CLOSE_LIMIT, MAX_NAME_BYTES, cut};
use crate::outcome::CallReceipt;
use crate::prompt::frame::HANDED_OVER;
use crate::prompt::skills::{self, Caller};
use crate::tools::answer::Answer;
use crate::tools::approval::consent::{Instead, without_asking};
use crate::tools::builtin::arguments::BuiltinCall;
use crate::tools::call::Call;
use crate::tools::call::arguments;
use crate::tools::dispatch::{Decision, Reason, Refusal};
use crate::tools::executor::CallExecutor;
use crate::tools::requests::Requests;
use crate::tools::result::{self, Executed};
use crate::trace;

/// Calls that may run side by side.
pub(crate) type Group<'a> = Vec<(Call<'a>, Decision)>;

/// The kinds of calls that may run side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tools,
    Agents,
    /// Alone.
    Session,
}

impl CallExecutor<'_> {
    /// Executes all calls of the step, or says how the agent was interrupted.
    pub(crate) async fn execute_all(
        &self,
        machine: &Loop,
        decisions: Vec<Decision>,
        timer: &mut Timer,
    ) -> Input {
        let calls = machine.calls();
        let mut answers: Vec<Option<Answer>> = calls.iter().map(|_| None).collect();
        let step = machine.current_step();
        let placed = calls.iter().copied().enumerate();
        let fresh = false;
        let placed =
            placed.map(|(position, call)| Call { step, position, call, nested: None, fresh });
        // The caller's calls have no result yet, and nothing is executed here.
        let (theirs, own): (Vec<_>, Vec<_>) =
            placed.zip(decisions).partition(|(_, decision)| matches!(decision, Decision::HandOver));
        for (call, _) in theirs {
            if let Some(slot) = answers.get_mut(call.position) {
                *slot = Some(Answer { content: HANDED_OVER.to_owned(), is_error: false });
            }
        }
        for group in groups(own.into_iter()) {
            if let Err(ending) = self.together(group, machine, timer, &mut answers).await {
                return Input::Interrupted { partial: String::new(), answers, ending };
            }
        }
        // A call without an answer cannot be; the loop would notice.
        Input::Answered(answers.into_iter().flatten().collect())
    }

    /// Executes calls side by side. After a cancellation, waits for running calls up to a limit, and names
    /// the unfinished ones.
    async fn together(
        &self,
        group: Group<'_>,
        machine: &Loop,
        timer: &mut Timer,
        answers: &mut [Option<Answer>],
    ) -> Result<(), Ending> {
        if self.stop.is_cancelled() {
            return Err(Ending::cancelled());
        }
        let calls_others = |permit: &ToolPermit| self.jar.may_call_others(self.job, permit.tool());
        let spawns = group.iter().any(|(_, decision)| match decision {
            Decision::Builtin(_, builtin) => builtin.spawns(),
            // A tool's call may start subagents too.
            Decision::Tool(permit) => calls_others(permit),
            Decision::Refuse(_) | Decision::HandOver => false,
        });
        let limit = if spawns { CHILD_CLOSE_LIMIT } else { CALL_CLOSE_LIMIT };
        let places: Vec<Call<'_>> = group.iter().map(|(call, _)| *call).collect();
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
                () = over(&mut grace) => {
                    drop(running);
                    self.abandon(&places, answers);
                    break;
                }
            }
        }
        if late {
            Err(self.job.late())
        } else if self.stop.is_cancelled() {
            Err(Ending::cancelled())
        } else {
            Ok(())
        }
    }

    /// Notes the calls that were still under way when the limit passed.
    fn abandon(&self, places: &[Call<'_>], answers: &[Option<Answer>]) {
        self.job.budget.cancel();
        for call in places {
            if answers.get(call.position).is_some_and(Option::is_none) {
                let tool = Shown::clipped(&call.call.name, MAX_NAME_BYTES);
                let unfinished = format!("`{tool}` of `{}`", self.job.path);
                self.ledger.entries().unfinished.push(unfinished);
                let executed = result::of_abandoned(&call.call.name, arguments(call.call));
                self.note(*call, executed);
            }
        }
    }

    /// Executes one call, and returns it with the answer.
    pub(crate) async fn one(
        &self,
        call: Call<'_>,
        decision: Decision,
        machine: &Loop,
    ) -> (usize, Answer) {
        (call.position, self.effects.call(self, call, decision, machine).await)
    }

    /// Executes one call, with the hooks around it, and stores the result.
    pub(crate) async fn execute(
        &self,
        call: Call<'_>,
        decision: Decision,
        machine: &Loop,
    ) -> Answer {
        let (mut changed, mut notes) = (None, String::new());
        let dispatcher = machine.dispatcher();
        let decision = self.before_call(call, decision, dispatcher, &mut changed, &mut notes).await;
        let call = Call { call: changed.as_ref().unwrap_or(call.call), ..call };
        let by_jar = matches!(decision, Decision::Tool(_));
        let answer = match decision {
            Decision::Builtin(permit, builtin) => {
                self.builtin(call, permit, builtin, machine).await
            }
            Decision::Refuse(refusal) => self.refuse_begun(call, refusal),
            // The answer exists before any call is executed.
            Decision::HandOver => Answer { content: HANDED_OVER.to_owned(), is_error: false },
            Decision::Tool(permit) => {
                self.started(call);
                self.call_tool(call, permit, machine).await
            }
        };
        // The jar has subtracted the size of its own results.
        let answer = match call.nested.is_some() && (answer.is_error || !by_jar) {
            true => self.within_output(answer),
            false => answer,
        };
        let mut answer = self.after_call(call, answer, dispatcher).await;
        answer.content.push_str(&notes);
        let called = match call.nested {
            Some(nested) => nested.asked,
            None => machine.asked().get(call.position).map_or("", |asked| &asked.name),
        };
        let answer = dispatcher.reword(called, answer);
        self.persist_result(call, &answer).await;
        answer
    }

    /// INV-254: all results that a tool reads from nested calls count as output.
    fn within_output(&self, answer: Answer) -> Answer {
        let size = u64::try_from(answer.content.len()).unwrap_or(u64::MAX);
        match self.job.budget.reserve(Meter::Output, size) {
            Ok(()) => answer,
            Err(which) => Answer { content: which.to_string(), is_error: true },
        }
    }

    async fn call_tool(&self, call: Call<'_>, permit: ToolPermit, machine: &Loop) -> Answer {
        let again = self.effects.had_begun(call);
        // INV-258: a call allowed before needs no second question; if only now a question is required, the
        // person is asked.
        let permit = match self.effects.was_asked(call) {
            true => without_asking(permit, Instead::AllowedBefore),
            false => permit,
        };
        let asked = permit.needs_answer();
        let permit = match self.permitted(call, permit).await {
            Ok(permit) => permit,
            Err(refusal) => return self.refuse(call, refusal),
        };
        let calls_others = self.jar.may_call_others(self.job, permit.tool());
        let course = self.course_of(call, &permit);
        if !again && (calls_others || !self.repeatable.contains(permit.tool())) {
            self.job.persist_begun(call, course.clone(), asked).await;
        }
        if self.remote.has(permit.tool()) {
            let progress = self.progress(call, &permit);
            let requests = Requests { agent: self, call };
            let calling = (arguments(call.call), call.fresh);
            let calling =
                self.remote.call(self.job, self.stop, &permit, calling, progress, &requests);
            let executed = result::of_call(&call.call.id, calling.await);
            return self.note(call, executed);
        }
        let executed = match self.jar.get(self.job) {
            // The futures of calls in calls are as large as they are deep.
            Ok(Some(jar)) => Box::pin(self.call_jar(&jar, call, permit, course, machine)).await,
            // An advertised tool has a jar; without one the call has no effect.
            Ok(None) => result::of_abandoned(&call.call.name, arguments(call.call)),
            Err(error) => {
                self.job.warn(self.ledger, error.to_string());
                result::of_abandoned(&call.call.name, arguments(call.call))
            }
        };
        self.note(call, executed)
    }

    /// The receiver of the tool's progress reports; `None` = no listener. The sandbox bounds their number and
    /// length.
    pub(crate) fn progress(&self, call: Call<'_>, permit: &ToolPermit) -> Option<ProgressSink> {
        let events = &self.job.shared.events;
        if !events.listened() {
            return None;
        }
        let (events, agent) = (events.clone(), Arc::clone(&self.job.path));
        let (call_id, tool) = (call.call.id.clone(), permit.tool().to_string());
        Some(Arc::new(move |Progress { done, total, message }| {
            let (call_id, tool) = (call_id.clone(), tool.clone());
            let report = || EventKind::ToolProgress { call_id, tool, done, total, message };
            events.emit(&agent, report);
        }))
    }

    /// Executes a call of a built-in tool.
    async fn builtin(
        &self,
        call: Call<'_>,
        permit: ToolPermit,
        builtin: BuiltinCall,
        machine: &Loop,
    ) -> Answer {
        let request = machine.request();
        let builtin = match builtin {
            BuiltinCall::Spawn(asked) => return self.spawn(call, permit, asked, request).await,
            BuiltinCall::Parallel(asked) => {
                return self.parallel(call, permit, asked, request).await;
            }
            builtin => builtin,
        };
        self.started(call);
        if let Err(refusal) = self.permitted(call, permit).await {
            return self.refuse(call, refusal);
        }
        let answer = match &builtin {
            BuiltinCall::Status { id } => self.status(id.as_deref()),
            BuiltinCall::Result { id, wait } => self.result(id, *wait).await,
            BuiltinCall::Cancel { id } => self.cancel(id).await,
            BuiltinCall::Todo(todo) => self.todo(todo, machine),
            BuiltinCall::Clarify(asked) => self.clarify(call, asked).await,
            BuiltinCall::Worktree(asked) => self.worktree(call, asked).await,
            BuiltinCall::Skill { name } => {
                match skills::load(&self.job.shared.host.skills, name, Caller::Model) {
                    Ok(content) => Answer { content, is_error: false },
                    Err(content) => Answer { content, is_error: true },
                }
            }
            // Executed out above.
            BuiltinCall::Spawn(_) | BuiltinCall::Parallel(_) => {
                Answer { content: "the host failed".to_owned(), is_error: true }
            }
        };
        self.note(call, result::of_builtin(&call.call.name, arguments(call.call), answer))
    }

    /// As [`CallExecutor::refuse`], for a call that was not announced yet.
    pub(crate) fn refuse_begun(&self, call: Call<'_>, refusal: Refusal) -> Answer {
        self.started(call);
        self.refuse(call, refusal)
    }

    /// Answers a call that is not executed.
    pub(crate) fn refuse(&self, call: Call<'_>, refusal: Refusal) -> Answer {
        if let Reason::Denied(denied) = &refusal.reason {
            tracing::info!(target: "belljar::denied", agent = %self.job.path, "{denied}");
        }
        let executed = result::of_refusal(&call.call.name, arguments(call.call), refusal);
        self.note(call, executed)
    }

    pub(crate) fn started(&self, call: Call<'_>) {
        self.job.emit(|| EventKind::ToolCallStarted {
            step: call.step,
            call_id: call.call.id.clone(),
            parent: parent(call),
            tool: cut(&call.call.name, MAX_NAME_BYTES).to_owned(),
            arguments: call.call.arguments.chars().take(MAX_SHOWN).collect(),
        });
    }

    /// Records an executed call, and returns the answer for the model.
    pub(crate) fn note(&self, call: Call<'_>, executed: Executed) -> Answer {
        let error = result::error_of(&executed);
        let Executed { answer, attachments, mut receipt, form } = executed;
        match call.nested {
            Some(nested) => {
                nested.outer.keep(call.position, form);
                nested.outer.room().fit(&mut receipt);
            }
            None => self.ledger.keep_form(call.step, form),
        }
        trace::called(&receipt);
        self.job.emit(|| EventKind::ToolCallFinished {
            step: call.step,
            call_id: call.call.id.clone(),
            parent: parent(call),
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
            parent: parent(call),
            step: call.step,
            tool: receipt.tool.clone(),
            agent: self.job.path.to_string(),
            error,
            receipt,
        };
        self.ledger.executed(call.position, receipt, attachments);
        answer
    }
}

/// The id of the outer call.
fn parent(call: Call<'_>) -> Option<String> {
    call.nested.map(|nested| nested.outer.id().to_owned())
}

/// Splits the calls at each change of kind. A refusal joins its neighbours.
pub(crate) fn groups<'c>(calls: impl Iterator<Item = (Call<'c>, Decision)>) -> Vec<Group<'c>> {
    let mut groups: Vec<(Option<Kind>, Group<'c>)> = Vec::with_capacity(1);
    for (call, decision) in calls {
        let kind = match &decision {
            Decision::Tool(_) => Some(Kind::Tools),
            Decision::Builtin(_, builtin) if builtin.spawns() => Some(Kind::Agents),
            Decision::Builtin(..) => Some(Kind::Session),
            Decision::Refuse(_) | Decision::HandOver => None,
        };
        let entry = (call, decision);
        match groups.last_mut() {
            Some((group, entries))
                if group.is_none()
                    || kind.is_none()
                    || (*group == kind && kind != Some(Kind::Session)) =>
            {
                *group = group.or(kind);
                entries.push(entry);
            }
            Some(_) | None => groups.push((kind, vec![entry])),
        }
    }
    groups.into_iter().map(|(_, entries)| entries).collect()
}

/// Ends when the grace is over; never without one.
async fn over(grace: &mut Option<std::pin::Pin<Box<Sleep>>>) {
    match grace {
        Some(grace) => grace.as_mut().await,
        None => std::future::pending().await,
    }
}
