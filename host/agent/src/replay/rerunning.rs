//! The calls of a replayed agent: made anew and compared, or answered from the record.

use belljar_policy::{DenyCode, ToolName, ToolPermit};
use belljar_sandbox::Receipt;

use crate::agent_loop::agent::Effects as _;
use crate::agent_loop::live::Live;
use crate::agent_loop::machine::Loop;
use crate::outcome::CallReceipt;
use crate::prompt::frame::INTERRUPTED;
use crate::replay::log::{AgentPast, LoggedResult};
use crate::replay::rerun::{CallText, Comparison, ReplayedCall, Rerun};
use crate::replay::times::without_times;
use crate::tools::answer::Answer;
use crate::tools::approval::consent::{Instead, without_asking};
use crate::tools::approval::questions::SAID_NO;
use crate::tools::builtin::arguments::BuiltinCall;
use crate::tools::call::{Call, arguments};
use crate::tools::dispatch::Decision;
use crate::tools::executor::CallExecutor;
use crate::tools::result::Executed;

const NETWORK: &str =
    "its tool asks for hosts, and a replay makes no requests; `--network` has it make them";
const ASKED: &str = "its tool asks for hosts, and the grant has a person asked before";
const PERSON: &str = "it is a person's answer";
const REFUSED: &str = "a person, or nobody, was asked then and did not allow it";
const HOOK: &str = "a hook refused it then, and hooks do not run in a replay";
const CUT_SHORT: &str = "the run ended during it, so it has no stored result; it was not made";
const NO_SUBAGENTS: &str =
    "no answers of its subagents are stored; runs keep them, and older programs kept none";
const TIMING: &str = "it depends on the timing of a subagent in the background";

const BUT_TIMES: &str = "but for times and dates";

/// The only stock tool with times in its results, for example of `date`, `ls -l`, `diff`.
const SHELL: &str = "shell";

/// Makes the calls of one replayed agent, and compares them with its stored ones.
pub(crate) struct CallComparison<'a> {
    pub(crate) rerun: &'a Rerun,
    pub(crate) past: &'a AgentPast,
}

/// The way in which a replay answers a call of the stored model.
enum Way {
    /// The call is made again.
    Anew,
    /// The stored result, for this reason.
    Record(&'static str),
    /// The call is not answered.
    CutShort,
}

impl CallComparison<'_> {
    /// Answers a call.
    pub(crate) async fn call(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        decision: Decision,
        machine: &Loop,
    ) -> Answer {
        if let Some(nested) = call.nested {
            // The result of the outer call is compared.
            let past = nested.outer.past();
            let past = past.filter(|it| it.called(call.step, call.position) == Some(nested.called));
            let way = past.map(|past| (past, self.way(past, agent, call, &decision)));
            return match way {
                Some((past, Way::Record(_))) => {
                    stand_in(agent, call, past.result(call.step, call.position))
                }
                Some((_, Way::Anew | Way::CutShort)) | None => {
                    self.make(agent, call, decision, machine).await
                }
            };
        }
        if !self.is_stored(call, machine) {
            let answer = self.make(agent, call, decision, machine).await;
            let reason = "the model asked for something else then".to_owned();
            self.note(agent, call, machine, &answer, (Comparison::Added, Some(reason)));
            return answer;
        }
        let then = self.past.result(call.step, call.position);
        let (answer, compared) = match self.way(self.past, agent, call, &decision) {
            Way::Anew => {
                let timed = is_timed(&decision);
                let answer = self.make(agent, call, decision, machine).await;
                let compared = self.compare(agent, call, &answer, timed);
                (answer, compared)
            }
            Way::Record(why) => {
                (stand_in(agent, call, then), (Comparison::FromRecord, Some(why.to_owned())))
            }
            Way::CutShort => {
                (stand_in(agent, call, None), (Comparison::NotCompared, Some(CUT_SHORT.to_owned())))
            }
        };
        self.note(agent, call, machine, &answer, compared);
        answer
    }

    /// Returns whether the stored model asked for this very call.
    fn is_stored(&self, call: Call<'_>, machine: &Loop) -> bool {
        let asked = machine.asked().get(call.position).unwrap_or(call.call);
        let stored = self.past.said(call.step);
        let stored = stored.and_then(|(_, reply)| reply.calls.get(call.position));
        stored.is_some_and(|it| it.name == asked.name && it.arguments == asked.arguments)
    }

    /// `past`: the journal that the call stands in.
    fn way(
        &self,
        past: &AgentPast,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        decision: &Decision,
    ) -> Way {
        let begun = past.begun(call.step, call.position);
        let Some(then) = past.result(call.step, call.position) else {
            // Without a result, only a call with subagents is made again, because the subagents' answers are
            // stored.
            let spawned = begun.is_some_and(|children| !children.is_empty());
            return if spawned { Way::Anew } else { Way::CutShort };
        };
        if let Some(why) = refused_by(then) {
            return Way::Record(why);
        }
        match decision {
            Decision::Builtin(_, BuiltinCall::Clarify(_)) => Way::Record(PERSON),
            Decision::Builtin(_, builtin)
                if builtin.spawns()
                    && !then.is_error
                    && !self.rerun.asks_model()
                    && begun.is_none() =>
            {
                Way::Record(NO_SUBAGENTS)
            }
            Decision::Builtin(..) | Decision::Refuse(_) | Decision::HandOver => Way::Anew,
            Decision::Tool(permit) => {
                let reached = then.receipt.as_ref().is_some_and(|it| !it.receipt.hosts.is_empty());
                match reached || asks_for_hosts(agent, permit.tool()) {
                    false => Way::Anew,
                    true if !self.rerun.has_network() => Way::Record(NETWORK),
                    true if permit.needs_answer() => Way::Record(ASKED),
                    true => Way::Anew,
                }
            }
        }
    }

    /// Makes a call. A call without an effect needs no permission of a person.
    async fn make(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        decision: Decision,
        machine: &Loop,
    ) -> Answer {
        let has_effect = matches!(&decision, Decision::Tool(permit)
            if self.rerun.has_network() && asks_for_hosts(agent, permit.tool()));
        let decision = match has_effect {
            true => decision,
            false => decision.with_permit(permit_unasked),
        };
        Live.call(agent, call, decision, machine).await
    }

    /// Compares a repeated call with the stored one.
    fn compare(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        answer: &Answer,
        timed: bool,
    ) -> (Comparison, Option<String>) {
        let Some(then) = self.past.result(call.step, call.position) else {
            return (Comparison::NotCompared, Some(CUT_SHORT.to_owned()));
        };
        let (now, files) = agent.ledger.of_call(call.step, &call.call.id);
        if then.answer() == *answer {
            let digest = |call: Option<&CallReceipt>| {
                call.map(|call| call.receipt.output_digest.clone()).unwrap_or_default()
            };
            let other_file =
                !files.is_empty() && digest(then.receipt.as_ref()) != digest(now.as_ref());
            return match other_file {
                true => (
                    Comparison::Differs,
                    Some("it handed over a file with another content".to_owned()),
                ),
                false => (Comparison::Same, None),
            };
        }
        let is_shell = then.receipt.as_ref().is_some_and(|call| call.receipt.tool == SHELL);
        if is_shell
            && then.is_error == answer.is_error
            && without_times(&then.content) == without_times(&answer.content)
        {
            return (Comparison::Same, Some(BUT_TIMES.to_owned()));
        }
        if timed {
            return (Comparison::NotCompared, Some(TIMING.to_owned()));
        }
        (Comparison::Differs, by_rights(then.receipt.as_ref(), now.as_ref()))
    }

    fn note(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        machine: &Loop,
        answer: &Answer,
        (result, reason): (Comparison, Option<String>),
    ) {
        let asked = machine.asked().get(call.position).unwrap_or(call.call);
        let then = self.past.result(call.step, call.position);
        let (receipt, _) = agent.ledger.of_call(call.step, &call.call.id);
        let same = matches!(result, Comparison::Same | Comparison::FromRecord);
        let then = then.filter(|_| !same && result != Comparison::Added);
        self.rerun.note(
            &agent.job.address,
            ReplayedCall {
                agent: agent.job.path.to_string(),
                step: call.step,
                position: call.position,
                call_id: asked.id.clone(),
                tool: asked.name.clone(),
                result,
                reason,
                then: then.map(|then| CallText::of(&then.answer(), then.receipt.as_ref())),
                now: (!same).then(|| CallText::of(answer, receipt.as_ref())),
            },
        );
    }
}

/// The permit of what has no effect in a replay: a person does not have to allow it.
pub(crate) fn permit_unasked(permit: ToolPermit) -> ToolPermit {
    without_asking(permit, Instead::NoEffect)
}

/// Answers a call without making it.
fn stand_in(agent: &CallExecutor<'_>, call: Call<'_>, then: Option<&LoggedResult>) -> Answer {
    agent.started(call);
    let receipt = then.and_then(|then| then.receipt.as_ref()).map(|call| call.receipt.clone());
    let empty = || Receipt::empty(&call.call.name, "", arguments(call.call));
    let answer = then.map_or_else(
        || Answer { content: INTERRUPTED.to_owned(), is_error: true },
        LoggedResult::answer,
    );
    let receipt = receipt.unwrap_or_else(empty);
    let form = then.and_then(|then| then.nested.as_ref());
    let form = form.map(|nested| nested.form.clone()).unwrap_or_default();
    agent.note(call, Executed { answer, attachments: Vec::new(), receipt, form })
}

/// The reason if a person or a hook refused the stored call.
fn refused_by(then: &LoggedResult) -> Option<&'static str> {
    let denial = then.receipt.as_ref()?.receipt.denials.first()?;
    match denial.code {
        DenyCode::NobodyToAsk => Some(REFUSED),
        DenyCode::DeniedByHook => Some(HOOK),
        DenyCode::ToolNotAllowed if denial.facts.contains(SAID_NO) => Some(REFUSED),
        DenyCode::ToolNotAllowed
        | DenyCode::PathNotAllowed
        | DenyCode::ReadOnly
        | DenyCode::SpecialFile
        | DenyCode::HostNotAllowed
        | DenyCode::AddressNotAllowed
        | DenyCode::RequestNotAllowed
        | DenyCode::SecretInReply
        | DenyCode::InterfaceNotGranted
        | DenyCode::LimitReached => None,
    }
}

/// The right that only one of the two calls had.
fn by_rights(then: Option<&CallReceipt>, now: Option<&CallReceipt>) -> Option<String> {
    let facts = |call: Option<&CallReceipt>| {
        let denials = call.map(|call| call.receipt.denials.as_slice()).unwrap_or_default();
        denials.first().map(|denial| denial.facts.clone())
    };
    match (facts(then), facts(now)) {
        (None, Some(facts)) => Some(format!("refused now: {facts}")),
        (Some(facts), None) => Some(format!("refused then: {facts}")),
        (Some(then), Some(now)) if then != now => Some(format!("refused now: {now}")),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

/// Whether the component of a tool asks for the network at all; a tool of a server is there.
fn asks_for_hosts(agent: &CallExecutor<'_>, tool: &ToolName) -> bool {
    if agent.remote.has(tool) {
        return true;
    }
    let owner = agent.job.shared.host.tools.owner(tool.as_str());
    owner.is_some_and(|component| !component.manifest.ask.hosts.is_empty())
}

/// Whether the result of a call depends on how far a subagent in the background is.
fn is_timed(decision: &Decision) -> bool {
    match decision {
        Decision::Builtin(_, builtin) => match builtin {
            BuiltinCall::Status { .. }
            | BuiltinCall::Result { .. }
            | BuiltinCall::Cancel { .. } => true,
            BuiltinCall::Spawn(_)
            | BuiltinCall::Parallel(_)
            | BuiltinCall::Skill { .. }
            | BuiltinCall::Todo(_)
            | BuiltinCall::Clarify(_)
            | BuiltinCall::Worktree(_) => false,
        },
        Decision::Tool(_) | Decision::Refuse(_) | Decision::HandOver => false,
    }
}
