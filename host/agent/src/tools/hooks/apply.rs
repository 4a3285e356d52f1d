//! Runs hooks at their events: before a call, after a call, when an agent starts, and when it ends.

use std::future::Future;
use std::time::Instant;

use belljar_definition::HookEvent;
use belljar_model::ToolCall;
use belljar_policy::{DecisionSource, DenyCode, PolicyDenial, ShownText, ToolName, ToolPermit};
use serde_json::{Map, Value};

use super::input::{HookInput, NEW_SESSION};
use super::{EventVerdict, Hook, HookJudgement, HookReason, Hooks};
use crate::agent_loop::agent::Timer;
use crate::agent_loop::machine::AgentEnding;
use crate::events::EventKind;
use crate::limits::{MAX_HOOK_TEXT, MAX_NAME_BYTES, truncate_str};
use crate::outcome::{RunError, RunStatus};
use crate::prompt::frame;
use crate::tools::answer::CallAnswer;
use crate::tools::approval::consent::{ConsentBasis, without_asking};
use crate::tools::call::PlacedCall;
use crate::tools::call::arguments;
use crate::tools::dispatch::{CallDecision, CallRefusal, Dispatcher, RefusalReason};
use crate::tools::executor::CallExecutor;

/// What a model reads if a required hook gave no answer.
const NO_ANSWER: &str = "the hook gave no answer";

/// The results of the hooks before one call, combined.
#[derive(Default)]
struct HookResults {
    asked: bool,
    /// True if a hook allowed the call and no later hook has changed the arguments since.
    allowed: bool,
    refused: Option<CallRefusal>,
    notes: String,
}

impl CallExecutor<'_> {
    /// Runs the hooks before a permitted call. Arguments that a hook changes are put into `changed`, and the
    /// call is decided again as if the model had written them. Texts for the model are put into `notes` and
    /// follow the call's result.
    pub(crate) async fn before_call(
        &self,
        call: PlacedCall<'_>,
        decision: CallDecision,
        dispatcher: &Dispatcher,
        changed: &mut Option<ToolCall>,
        notes: &mut String,
    ) -> CallDecision {
        let Some(tool) = decision.tool_permit().map(|permit| permit.tool().clone()) else {
            return decision;
        };
        let names = dispatcher.names_of(tool.as_str());
        if !self.hooks().has_matching(HookEvent::PreToolUse, &names) {
            return decision;
        }
        let _turn = self.hooked.turn.lock().await;
        let mut arguments = match parse_object(arguments(call.call)) {
            Ok(arguments) => arguments,
            Err(refusal) => return CallDecision::Refuse(refusal),
        };
        let mut said = HookResults::default();
        for hook in self.hooks().matching_hooks(HookEvent::PreToolUse, &names) {
            self.ask_hook(hook, call, &tool, &mut arguments, &mut said).await;
            if let Some(refusal) = said.refused {
                return CallDecision::Refuse(refusal);
            }
        }
        notes.push_str(&said.notes);
        // The tool gets the arguments exactly as the hooks saw them: if a key occurred twice, another parser
        // might choose the other value.
        let arguments = Value::Object(arguments).to_string();
        let call_now = changed.insert(ToolCall { arguments, ..call.call.clone() });
        let decision = dispatcher.decide_call(call_now, call.place_in_step());
        if said.asked {
            decision.with_permit(ToolPermit::with_question)
        } else if said.allowed {
            decision.with_permit(|permit| without_asking(permit, ConsentBasis::HookAllows))
        } else {
            decision
        }
    }

    /// Asks a hook about a call, and adds its answer to the results: new arguments, a refusal, a question
    /// or an approval.
    async fn ask_hook(
        &self,
        hook: &Hook,
        call: PlacedCall<'_>,
        tool: &ToolName,
        arguments: &mut Map<String, Value>,
        said: &mut HookResults,
    ) {
        if let Some(reason) = self.hooked.halted.get() {
            said.refused = Some(hook_refusal(hook, tool.as_str(), reason));
            return;
        }
        let event = HookEvent::PreToolUse;
        let input = HookInput::for_call(self.job, event, call, tool.as_str(), arguments.clone());
        let judgement = self.consult_hook(hook, &input, Some(tool.as_str())).await;
        if let Some(new) = &judgement.arguments {
            match parse_object(new) {
                Ok(new) if new == *arguments => {}
                Ok(new) => {
                    *arguments = new;
                    said.allowed = false;
                }
                Err(refusal) => said.refused = Some(refusal),
            }
        }
        if let Some(context) = &judgement.context {
            said.notes.push_str(&hook.frame_note(context));
        }
        match &judgement.verdict {
            EventVerdict::Pass => {}
            EventVerdict::Allow => said.allowed = true,
            EventVerdict::Ask => said.asked = true,
            EventVerdict::Deny(reason) => {
                let reason = hook.attribute_reason(reason);
                said.refused = Some(hook_refusal(hook, tool.as_str(), &reason))
            }
        }
        if let Some(reason) = &judgement.halt {
            let reason = hook.attribute_reason(reason);
            said.refused = Some(hook_refusal(hook, tool.as_str(), &reason));
        }
    }

    /// Runs the hooks after a successful call. Their texts follow the result.
    pub(crate) async fn after_call(
        &self,
        call: PlacedCall<'_>,
        mut answer: CallAnswer,
        dispatcher: &Dispatcher,
    ) -> CallAnswer {
        let name = call.call.name.as_str();
        let names = dispatcher.names_of(name);
        let event = HookEvent::PostToolUse;
        if answer.is_error || !self.hooks().has_matching(event, &names) {
            return answer;
        }
        let input = parse_object(arguments(call.call)).unwrap_or_default();
        let input =
            HookInput::for_call(self.job, event, call, name, input).with_response(&answer.content);
        let mut notes = String::new();
        for hook in self.hooks().matching_hooks(event, &names) {
            let judgement = self.consult_hook(hook, &input, Some(name)).await;
            if let EventVerdict::Deny(reason) = &judgement.verdict {
                notes.push_str(&hook.frame_note(reason));
            }
            if let Some(context) = &judgement.context {
                notes.push_str(&hook.frame_note(context));
            }
        }
        answer.content.push_str(&notes);
        answer
    }

    /// Runs the hooks before an agent's first model call: those of a subagent's start, or of the person's
    /// message and, in a new session, of the session. Returns the hooks' text for the model, or the ending if
    /// a hook refuses.
    pub(crate) async fn before_start(&self, timer: &mut Timer) -> Result<String, AgentEnding> {
        if self.job.depth.is_child() {
            let input = HookInput::for_start(self.job);
            return self.start_event(HookEvent::SubagentStart, input, timer).await;
        }
        // A client that makes the calls itself sends no message for a model.
        if self.job.direct || self.job.first.trim().is_empty() {
            return Ok(String::new());
        }
        let mut notes = String::new();
        if self.job.history.is_empty() {
            let input = HookInput::for_session(self.job);
            notes.push_str(&self.start_event(HookEvent::SessionStart, input, timer).await?);
        }
        let input = HookInput::for_prompt(self.job);
        notes.push_str(&self.start_event(HookEvent::UserPromptSubmit, input, timer).await?);
        Ok(notes)
    }

    async fn start_event(
        &self,
        event: HookEvent,
        input: HookInput,
        timer: &mut Timer,
    ) -> Result<String, AgentEnding> {
        let own = self.agent_names();
        let names: &[&str] = match event {
            HookEvent::SessionStart => &[NEW_SESSION],
            _ => &own,
        };
        if !self.hooks().has_matching(event, names) {
            return Ok(String::new());
        }
        let work = async {
            let mut notes = String::new();
            for hook in self.hooks().matching_hooks(event, names) {
                let judgement = self.consult_hook(hook, &input, None).await;
                if let EventVerdict::Deny(reason) = judgement.verdict {
                    let reason = hook.attribute_reason(&reason).to_line();
                    return Err(AgentEnding::failed(RunError::Hook { reason }));
                }
                if let Some(ending) = self.hook_ending() {
                    return Err(ending);
                }
                if let Some(context) = &judgement.context {
                    notes.push_str(&hook.frame_note(context));
                }
            }
            Ok(notes)
        };
        // If the time is up or the agent is cancelled, the loop notices it by itself.
        self.in_time(timer, work).await.unwrap_or_else(|| Ok(String::new()))
    }

    /// Runs the hooks of an agent that ends. If the agent concluded by itself, a hook may return a text that
    /// makes it continue once. `said` is the agent's last text.
    pub(crate) async fn before_end(
        &self,
        said: &str,
        ending: &AgentEnding,
        again: bool,
        timer: &mut Timer,
    ) -> Option<String> {
        let event =
            if self.job.depth.is_child() { HookEvent::SubagentStop } else { HookEvent::Stop };
        let names = self.agent_names();
        if ending.status == RunStatus::Cancelled || !self.hooks().has_matching(event, &names) {
            return None;
        }
        let input = HookInput::for_stop(self.job, event, said, again);
        let work = async {
            let mut blocked = None;
            for hook in self.hooks().matching_hooks(event, &names) {
                let judgement = self.consult_hook(hook, &input, None).await;
                if let EventVerdict::Deny(reason) = judgement.verdict {
                    blocked.get_or_insert(hook.attribute_reason(&reason));
                }
            }
            blocked
        };
        let reason = self.in_time(timer, work).await.flatten()?;
        if self.hooked.halted.get().is_some() {
            return None;
        }
        if again || ending.status != RunStatus::Completed {
            let message = "a hook would have it go on; it ends all the same".to_owned();
            self.job.record_warning(self.ledger, message);
            return None;
        }
        Some(frame::hook_feedback(&reason.to_model_text()))
    }

    /// The agent's ending, if a hook has halted it.
    pub(crate) fn hook_ending(&self) -> Option<AgentEnding> {
        let reason = self.hooked.halted.get()?.to_line();
        Some(AgentEnding::partial(RunError::Hook { reason }))
    }

    /// Asks a hook, and sends watchers its judgement. If a hook before an event does not answer, that
    /// counts as a refusal.
    async fn consult_hook(
        &self,
        hook: &Hook,
        input: &HookInput,
        tool: Option<&str>,
    ) -> HookJudgement {
        let job = self.job;
        let begun = Instant::now();
        let shared = &job.shared;
        let asked = hook.ask_hook(&shared.host.sandbox, input, &shared.workspace, self.stop).await;
        let judgement = asked.unwrap_or_else(|why| {
            let verdict = if hook.fails_closed() {
                EventVerdict::Deny(NO_ANSWER.to_owned())
            } else {
                EventVerdict::Pass
            };
            HookJudgement { fault: Some(why), ..HookJudgement::from_verdict(verdict) }
        });
        let decision = judgement.event_word();
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        tracing::info!(
            target: "belljar::hook", agent = %job.path, event = %hook.event, hook = %hook.name,
            decision, micros, "a hook ran"
        );
        job.emit_event(|| EventKind::HookRan {
            event: hook.event.as_str().to_owned(),
            tool: tool.map(|tool| truncate_str(tool, MAX_NAME_BYTES).to_owned()),
            hook: hook.name.clone(),
            decision: decision.to_owned(),
            micros,
        });
        let told = judgement.fault.as_ref().filter(|_| !self.stop.is_cancelled());
        for text in told.into_iter().chain(&judgement.message) {
            let text = truncate_str(text, MAX_HOOK_TEXT);
            job.record_warning(
                self.ledger,
                format!("hook `{}`: {}", hook.name, ShownText::new(text)),
            );
        }
        if let Some(reason) = &judgement.halt {
            // The first word counts.
            let _ = self.hooked.halted.set(hook.attribute_reason(reason));
        }
        judgement
    }

    fn hooks(&self) -> &Hooks {
        &self.job.shared.host.hooks
    }

    fn agent_names(&self) -> [&str; 2] {
        [&self.job.agent.definition.name, self.job.agent.id.slug.as_str()]
    }

    /// Awaits `work`; `None` = the agent's time was up or the agent was cancelled before.
    async fn in_time<T>(&self, timer: &mut Timer, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            () = self.time_up(timer) => None,
            done = work => Some(done),
        }
    }
}

/// Parses arguments into an object; a key that occurs twice is an error.
fn parse_object(arguments: &str) -> Result<Map<String, Value>, CallRefusal> {
    belljar_received::json::from_str(arguments).map_err(|error| {
        let shown = ShownText::clip_line(&error.to_string(), 200).to_string();
        CallRefusal::malformed_call(format!("invalid arguments: a hook cannot read them ({shown})"))
    })
}

fn hook_refusal(hook: &Hook, tool: &str, reason: &HookReason) -> CallRefusal {
    let facts = format!("hook `{}` refused tool `{tool}`: {}", hook.name, reason.to_line());
    let denied = PolicyDenial::new(DenyCode::DeniedByHook, DecisionSource::Hook, facts);
    let text = ShownText::multiline(&reason.to_model_text()).to_string();
    CallRefusal { text: format!("{}: {text}", denied.code), reason: RefusalReason::Denied(denied) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_equal_keys_hook_and_tool_see_the_same_one() {
        let read = parse_object(r#"{"path":"secret","path":"public"}"#).unwrap();
        assert_eq!(Value::Object(read).to_string(), r#"{"path":"public"}"#);
    }

    #[test]
    fn arguments_that_a_hook_cannot_read_are_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_000), "]".repeat(1_000));
        for bad in [deep.as_str(), "[]", r#"{"a":1e999}"#] {
            assert!(parse_object(bad).is_err(), "{}", ShownText::clip_line(bad, 20));
        }
    }
}
