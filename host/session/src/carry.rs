//! Carries out the calls of one step. Calls to the jar start together, in the order asked: the
//! jar decides which of them overlap (rule 3). Subagents start together too, but not beside
//! tools, because they promise nothing about what they change. Answers keep the order asked.

use belljar_model::ToolCall;
use belljar_policy::{Denied, DenyCode, Shown, Source, ToolPermit};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Sleep, sleep};

use crate::agent::{Agent, Timer};
use crate::ask::{Question, Word};
use crate::bounds::{CALL_CLOSE_LIMIT, CHILD_CLOSE_LIMIT, MAX_NAME_BYTES, cut};
use crate::dispatch::{Decision, Reason, Refusal, arguments};
use crate::events::{EventKind, MAX_SHOWN};
use crate::outcome::CallReceipt;
use crate::results::{self, Carried};
use crate::turn::{Answer, Ending, Input, Loop};

/// One call with its place.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) step: u64,
    /// Its place in the step, from 0.
    pub(crate) position: usize,
    pub(crate) call: &'a ToolCall,
}

type Group<'a> = Vec<(Call<'a>, Decision)>;

impl Agent<'_> {
    /// Carries out all calls of the step, or says how the agent was interrupted.
    pub(crate) async fn carry_out(
        &self,
        machine: &Loop,
        decisions: Vec<Decision>,
        timer: &mut Timer,
    ) -> Input {
        let calls = machine.calls();
        let mut answers: Vec<Option<Answer>> = calls.iter().map(|_| None).collect();
        for group in groups(machine.current_step(), calls, decisions) {
            if let Err(ending) = self.together(group, machine, timer, &mut answers).await {
                return Input::Interrupted { heard: String::new(), ending };
            }
        }
        // A call without an answer cannot be; the loop would notice.
        Input::Answered(answers.into_iter().flatten().collect())
    }

    /// Carries out calls side by side. After a cancellation it waits for what is in flight, up
    /// to a limit, and names what is not done by then.
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
        let spawns = group.iter().any(|(_, decision)| matches!(decision, Decision::Spawn(..)));
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
                () = timer.as_mut(), if !late && grace.is_none() => {
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
                let carried = results::of_abandoned(&call.call.name, arguments(call.call));
                self.note(*call, carried);
            }
        }
    }

    async fn one(&self, call: Call<'_>, decision: Decision, machine: &Loop) -> (usize, Answer) {
        let mut changed = None;
        let decision = self.before_call(call, decision, machine.dispatcher(), &mut changed).await;
        let call = Call { call: changed.as_ref().unwrap_or(call.call), ..call };
        let answer = match decision {
            Decision::Spawn(permit, order) => self.spawn(call, permit, order).await,
            Decision::Refuse(refusal) => {
                self.started(call);
                self.refuse(call, refusal)
            }
            Decision::Tool(permit) => {
                self.started(call);
                self.call_tool(call, permit).await
            }
        };
        (call.position, self.after_call(call, answer).await)
    }

    async fn call_tool(&self, call: Call<'_>, permit: ToolPermit) -> Answer {
        let permit = match self.permitted(call, permit).await {
            Ok(permit) => permit,
            Err(refusal) => return self.refuse(call, refusal),
        };
        let carried = match self.jar {
            Some(jar) => {
                let result = jar.call(permit, arguments(call.call)).await;
                results::of_call(&call.call.id, result)
            }
            // A tool was advertised, so there is a jar; if not, nothing happens.
            None => results::of_abandoned(&call.call.name, arguments(call.call)),
        };
        self.note(call, carried)
    }

    /// Asks the person at the root where the grant says so.
    pub(crate) async fn permitted(
        &self,
        call: Call<'_>,
        permit: ToolPermit,
    ) -> Result<ToolPermit, Refusal> {
        if !permit.needs_answer() {
            return Ok(permit);
        }
        let question = Question {
            agent: &self.job.path,
            tool: permit.tool(),
            arguments: arguments(call.call),
        };
        let asking = self.job.shared.host.asker.ask(question);
        let (code, facts) = match self.stop.run_until_cancelled(asking).await {
            Some(Word::Yes) => return Ok(permit.answered()),
            Some(Word::No) => (DenyCode::ToolNotAllowed, "the person who was asked said no"),
            Some(Word::Nobody) => {
                (DenyCode::NobodyToAsk, "a person has to say yes, as the grant or a hook wants it")
            }
            None => (DenyCode::NobodyToAsk, "the run was cancelled while a person was asked"),
        };
        let facts = format!("{facts} (tool `{}`)", permit.tool());
        let denied = Denied::new(code, Source::Grants, facts);
        Err(Refusal { text: code.to_string(), reason: Reason::Denied(denied) })
    }

    /// Answers a call that is not carried out.
    pub(crate) fn refuse(&self, call: Call<'_>, refusal: Refusal) -> Answer {
        if let Reason::Denied(denied) = &refusal.reason {
            tracing::info!(target: "belljar::denied", agent = %self.job.path, "{denied}");
        }
        let carried = results::of_refusal(&call.call.name, arguments(call.call), refusal);
        self.note(call, carried)
    }

    pub(crate) fn started(&self, call: Call<'_>) {
        self.job.emit(|| EventKind::ToolCallStarted {
            step: call.step,
            call_id: call.call.id.clone(),
            tool: cut(&call.call.name, MAX_NAME_BYTES).to_owned(),
            arguments: call.call.arguments.chars().take(MAX_SHOWN).collect(),
        });
    }

    /// Keeps what a call did, and gives back what the model reads.
    fn note(&self, call: Call<'_>, carried: Carried) -> Answer {
        let Carried { answer, attachments, receipt } = carried;
        self.job.emit(|| EventKind::ToolCallFinished {
            step: call.step,
            call_id: call.call.id.clone(),
            tool: receipt.tool.clone(),
            ok: !answer.is_error,
            ending: results::ending_word(&receipt.ending),
            fuel: receipt.fuel,
            micros: receipt.times.total,
            denials: receipt.denials.len(),
            bytes: receipt.bytes.output,
        });
        let receipt = CallReceipt {
            call_id: call.call.id.clone(),
            step: call.step,
            tool: receipt.tool.clone(),
            agent: self.job.path.to_string(),
            receipt,
        };
        self.ledger.carried(call.position, receipt, attachments);
        answer
    }
}

/// Splits the calls where tools follow subagents or the other way round. A refusal goes with
/// whatever it stands beside.
fn groups(step: u64, calls: &[ToolCall], decisions: Vec<Decision>) -> Vec<Group<'_>> {
    let mut groups: Vec<(Option<bool>, Group<'_>)> = Vec::with_capacity(1);
    for ((position, call), decision) in calls.iter().enumerate().zip(decisions) {
        let kind = match &decision {
            Decision::Tool(_) => Some(false),
            Decision::Spawn(..) => Some(true),
            Decision::Refuse(_) => None,
        };
        let entry = (Call { step, position, call }, decision);
        match groups.last_mut() {
            Some((group, entries)) if group.is_none() || kind.is_none() || *group == kind => {
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
