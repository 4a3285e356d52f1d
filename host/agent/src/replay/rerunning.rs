//! How the calls of a replayed agent are answered: made anew and compared, or from the record.

use belljar_policy::{DenyCode, ToolName, ToolPermit};
use belljar_sandbox::Receipt;

use crate::agent_loop::agent::AgentEffects as _;
use crate::agent_loop::live::LiveEffects;
use crate::agent_loop::machine::AgentLoop;
use crate::outcome::CallReceipt;
use crate::prompt::frame::INTERRUPTED;
use crate::replay::log::{AgentPast, LoggedResult};
use crate::replay::rerun::{CallComparison, CallText, ReplayedCall, ReplayedRun};
use crate::replay::times::without_times;
use crate::tools::answer::CallAnswer;
use crate::tools::approval::consent::{ConsentBasis, without_asking};
use crate::tools::approval::questions::SAID_NO;
use crate::tools::builtin::arguments::BuiltinCall;
use crate::tools::call::{PlacedCall, arguments};
use crate::tools::dispatch::CallDecision;
use crate::tools::executor::CallExecutor;
use crate::tools::result::ExecutedCall;

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

/// The only tool of belljar whose results contain times, for example of `date`, `ls -l` and `diff`.
const SHELL: &str = "shell";

/// Makes the calls of one replayed agent, and compares them with its stored ones.
pub(crate) struct CallComparer<'a> {
    pub(crate) rerun: &'a ReplayedRun,
    pub(crate) past: &'a AgentPast,
}

/// How a replay answers one call.
enum AnswerSource {
    /// The call is made again.
    Anew,
    /// The stored result is returned, for this reason.
    Record(&'static str),
    /// The call is not answered, because the stored run ended here.
    CutShort,
}

impl CallComparer<'_> {
    /// Answers one call of the replayed agent and records the comparison.
    pub(crate) async fn answer_call(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        decision: CallDecision,
        machine: &AgentLoop,
    ) -> CallAnswer {
        if let Some(nested) = call.nested {
            // Nested calls are not compared by themselves; the result of the outer call is.
            let past = nested.outer.nested_journal();
            let past =
                past.filter(|it| it.call_digest(call.step, call.position) == Some(nested.called));
            let way = past.map(|past| (past, self.choose_source(past, agent, call, &decision)));
            return match way {
                Some((past, AnswerSource::Record(_))) => {
                    stand_in(agent, call, past.call_result(call.step, call.position))
                }
                Some((_, AnswerSource::Anew | AnswerSource::CutShort)) | None => {
                    self.make_call(agent, call, decision, machine).await
                }
            };
        }
        if !self.is_stored(call, machine) {
            let answer = self.make_call(agent, call, decision, machine).await;
            let reason = "the model asked for something else then".to_owned();
            self.record_comparison(
                agent,
                call,
                machine,
                &answer,
                (CallComparison::Added, Some(reason)),
            );
            return answer;
        }
        let then = self.past.call_result(call.step, call.position);
        let (answer, compared) = match self.choose_source(self.past, agent, call, &decision) {
            AnswerSource::Anew => {
                let timed = is_timed(&decision);
                let answer = self.make_call(agent, call, decision, machine).await;
                let compared = self.compare_call(agent, call, &answer, timed);
                (answer, compared)
            }
            AnswerSource::Record(why) => {
                (stand_in(agent, call, then), (CallComparison::FromRecord, Some(why.to_owned())))
            }
            AnswerSource::CutShort => (
                stand_in(agent, call, None),
                (CallComparison::NotCompared, Some(CUT_SHORT.to_owned())),
            ),
        };
        self.record_comparison(agent, call, machine, &answer, compared);
        answer
    }

    /// Returns whether the stored model, or before it the stored command, asked for this very call.
    fn is_stored(&self, call: PlacedCall<'_>, machine: &AgentLoop) -> bool {
        if call.step == 0 {
            // No answer of a model has the calls of a command.
            let stored = self.past.call_result(call.step, call.position);
            let stored = stored.and_then(|it| it.receipt.as_ref());
            return stored.is_some_and(|it| it.receipt.tool == call.call.name);
        }
        let asked = machine.asked_calls().get(call.position).unwrap_or(call.call);
        let stored = self.past.step_reply(call.step);
        let stored = stored.and_then(|(_, reply)| reply.calls.get(call.position));
        stored.is_some_and(|it| it.name == asked.name && it.arguments == asked.arguments)
    }

    /// Decides how to answer a call. `past` is the journal that contains the call.
    fn choose_source(
        &self,
        past: &AgentPast,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        decision: &CallDecision,
    ) -> AnswerSource {
        let begun = past.planned_children(call.step, call.position);
        let Some(then) = past.call_result(call.step, call.position) else {
            // A begun call without a result is made again only if it started subagents, because their answers
            // are stored.
            let spawned = begun.is_some_and(|children| !children.is_empty());
            return if spawned { AnswerSource::Anew } else { AnswerSource::CutShort };
        };
        if let Some(why) = refused_by(then) {
            return AnswerSource::Record(why);
        }
        match decision {
            CallDecision::Builtin(_, BuiltinCall::Clarify(_)) => AnswerSource::Record(PERSON),
            CallDecision::Builtin(_, builtin)
                if builtin.spawns_children()
                    && !then.is_error
                    && !self.rerun.asks_model()
                    && begun.is_none() =>
            {
                AnswerSource::Record(NO_SUBAGENTS)
            }
            CallDecision::Builtin(..) | CallDecision::Refuse(_) | CallDecision::HandOver => {
                AnswerSource::Anew
            }
            CallDecision::Tool(permit) => {
                let reached = then.receipt.as_ref().is_some_and(|it| !it.receipt.hosts.is_empty());
                match reached || asks_for_hosts(agent, permit.tool()) {
                    false => AnswerSource::Anew,
                    true if !self.rerun.has_network() => AnswerSource::Record(NETWORK),
                    true if permit.needs_answer() => AnswerSource::Record(ASKED),
                    true => AnswerSource::Anew,
                }
            }
        }
    }

    /// Makes a call. No person is asked, because a replayed call has no outside effect. Exception: with
    /// `--network`, a call of a tool that uses the network keeps its permit as it is.
    async fn make_call(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        decision: CallDecision,
        machine: &AgentLoop,
    ) -> CallAnswer {
        let has_effect = matches!(&decision, CallDecision::Tool(permit)
            if self.rerun.has_network() && asks_for_hosts(agent, permit.tool()));
        let decision = match has_effect {
            true => decision,
            false => decision.with_permit(permit_unasked),
        };
        LiveEffects.execute_call(agent, call, decision, machine).await
    }

    /// Compares the answer of a repeated call with the stored answer. `timed`: the answer may depend on timing.
    fn compare_call(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        answer: &CallAnswer,
        timed: bool,
    ) -> (CallComparison, Option<String>) {
        let Some(then) = self.past.call_result(call.step, call.position) else {
            return (CallComparison::NotCompared, Some(CUT_SHORT.to_owned()));
        };
        let (now, files) = agent.ledger.call_record(call.step, &call.call.id);
        if then.answer() == *answer {
            let digest = |call: Option<&CallReceipt>| {
                call.map(|call| call.receipt.output_digest.clone()).unwrap_or_default()
            };
            let other_file =
                !files.is_empty() && digest(then.receipt.as_ref()) != digest(now.as_ref());
            return match other_file {
                true => (
                    CallComparison::Differs,
                    Some("it handed over a file with another content".to_owned()),
                ),
                false => (CallComparison::Same, None),
            };
        }
        let is_shell = then.receipt.as_ref().is_some_and(|call| call.receipt.tool == SHELL);
        if is_shell
            && then.is_error == answer.is_error
            && without_times(&then.content) == without_times(&answer.content)
        {
            return (CallComparison::Same, Some(BUT_TIMES.to_owned()));
        }
        if timed {
            return (CallComparison::NotCompared, Some(TIMING.to_owned()));
        }
        (CallComparison::Differs, by_rights(then.receipt.as_ref(), now.as_ref()))
    }

    /// Records the comparison of a call, with both texts if they differ.
    fn record_comparison(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        machine: &AgentLoop,
        answer: &CallAnswer,
        (result, reason): (CallComparison, Option<String>),
    ) {
        let asked = machine.asked_calls().get(call.position).unwrap_or(call.call);
        let then = self.past.call_result(call.step, call.position);
        let (receipt, _) = agent.ledger.call_record(call.step, &call.call.id);
        let same = matches!(result, CallComparison::Same | CallComparison::FromRecord);
        let then = then.filter(|_| !same && result != CallComparison::Added);
        self.rerun.record_call(
            &agent.job.address,
            ReplayedCall {
                agent: agent.job.path.to_string(),
                step: call.step,
                position: call.position,
                call_id: asked.id.clone(),
                tool: asked.name.clone(),
                result,
                reason,
                then: then.map(|then| CallText::from_answer(&then.answer(), then.receipt.as_ref())),
                now: (!same).then(|| CallText::from_answer(answer, receipt.as_ref())),
            },
        );
    }
}

/// The permit of a call in a replay. Such a call has no outside effect, so a person does not have to allow
/// it.
pub(crate) fn permit_unasked(permit: ToolPermit) -> ToolPermit {
    without_asking(permit, ConsentBasis::NoEffect)
}

/// Answers a call with the stored result instead of making the call.
fn stand_in(
    agent: &CallExecutor<'_>,
    call: PlacedCall<'_>,
    then: Option<&LoggedResult>,
) -> CallAnswer {
    agent.emit_call_started(call);
    let receipt = then.and_then(|then| then.receipt.as_ref()).map(|call| call.receipt.clone());
    let empty = || Receipt::for_call(&call.call.name, "", arguments(call.call));
    let answer = then.map_or_else(
        || CallAnswer { content: INTERRUPTED.to_owned(), is_error: true },
        LoggedResult::answer,
    );
    let receipt = receipt.unwrap_or_else(empty);
    let form = then.and_then(|then| then.nested.as_ref());
    let form = form.map(|nested| nested.form.clone()).unwrap_or_default();
    agent.record_executed(call, ExecutedCall { answer, attachments: Vec::new(), receipt, form })
}

/// The reason why the stored call was refused, if a person or a hook refused it.
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

/// Names a right that was missing in one of the two calls and explains the difference; `None` = both had the
/// same rights.
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

/// Returns whether a tool uses the network: its manifest asks for hosts, or it is a tool of an MCP server.
fn asks_for_hosts(agent: &CallExecutor<'_>, tool: &ToolName) -> bool {
    if agent.remote.has_tool(tool) {
        return true;
    }
    let owner = agent.job.shared.host.tools.find_component(tool.as_str());
    owner.is_some_and(|component| !component.manifest.ask.hosts.is_empty())
}

/// Returns whether a call's result depends on the progress of a background subagent.
fn is_timed(decision: &CallDecision) -> bool {
    match decision {
        CallDecision::Builtin(_, builtin) => match builtin {
            BuiltinCall::Status { .. }
            | BuiltinCall::Result { .. }
            | BuiltinCall::Cancel { .. } => true,
            BuiltinCall::Spawn(_)
            | BuiltinCall::Parallel(_)
            | BuiltinCall::Find { .. }
            | BuiltinCall::Skill { .. }
            | BuiltinCall::Todo(_)
            | BuiltinCall::Clarify(_)
            | BuiltinCall::Worktree(_) => false,
        },
        CallDecision::Tool(_) | CallDecision::Refuse(_) | CallDecision::HandOver => false,
    }
}
