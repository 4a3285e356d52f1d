//! Runs hooks at their events: before a call, after a call, when an agent starts, and when it ends.

use std::future::Future;
use std::time::Instant;

use belljar_definition::HookEvent;
use belljar_model::ToolCall;
use belljar_policy::{Denied, DenyCode, Shown, Source, ToolName, ToolPermit};
use serde_json::{Map, Value};

use super::input::HookInput;
use super::{Hook, Hooks, Judgement, Verdict};
use crate::agent_loop::agent::Timer;
use crate::agent_loop::machine::Ending;
use crate::events::EventKind;
use crate::limits::{MAX_HOOK_TEXT, MAX_NAME_BYTES, cut};
use crate::outcome::{RunError, RunStatus};
use crate::prompt::frame;
use crate::tools::answer::Answer;
use crate::tools::approval::consent::{Instead, without_asking};
use crate::tools::call::Call;
use crate::tools::call::arguments;
use crate::tools::dispatch::{Decision, Dispatcher, Reason, Refusal};
use crate::tools::executor::CallExecutor;

/// The text for a model if a required hook did not answer.
const NO_ANSWER: &str = "the hook gave no answer";

/// The combined result of the hooks of one call.
#[derive(Default)]
struct Said {
    asked: bool,
    /// True while no later hook has changed the arguments that a hook allowed.
    allowed: bool,
    refused: Option<Refusal>,
    notes: String,
}

impl CallExecutor<'_> {
    /// Runs the hooks before an allowed call. New arguments are put into `changed`, and the call is decided
    /// on again, as if the model had written them. Texts for the model are put into `notes`, and follow the
    /// result.
    pub(crate) async fn before_call(
        &self,
        call: Call<'_>,
        decision: Decision,
        dispatcher: &Dispatcher,
        changed: &mut Option<ToolCall>,
        notes: &mut String,
    ) -> Decision {
        let Some(tool) = decision.permit().map(|permit| permit.tool().clone()) else {
            return decision;
        };
        let names = dispatcher.names_of(tool.as_str());
        if !self.hooks().any(HookEvent::PreToolUse, &names) {
            return decision;
        }
        let _turn = self.hooked.turn.lock().await;
        let mut arguments = match object(arguments(call.call)) {
            Ok(arguments) => arguments,
            Err(refusal) => return Decision::Refuse(refusal),
        };
        let mut said = Said::default();
        for hook in self.hooks().matching(HookEvent::PreToolUse, &names) {
            self.ask_hook(hook, call, &tool, &mut arguments, &mut said).await;
            if let Some(refusal) = said.refused {
                return Decision::Refuse(refusal);
            }
        }
        notes.push_str(&said.notes);
        // The tool gets the arguments that the hooks saw, even if unchanged: with two equal keys, two parsers
        // may choose different values.
        let arguments = Value::Object(arguments).to_string();
        let call_now = changed.insert(ToolCall { arguments, ..call.call.clone() });
        let decision = dispatcher.decide(call_now, call.place_in_step());
        if said.asked {
            decision.with_permit(ToolPermit::asking)
        } else if said.allowed {
            decision.with_permit(|permit| without_asking(permit, Instead::HookAllows))
        } else {
            decision
        }
    }

    async fn ask_hook(
        &self,
        hook: &Hook,
        call: Call<'_>,
        tool: &ToolName,
        arguments: &mut Map<String, Value>,
        said: &mut Said,
    ) {
        if let Some(reason) = self.hooked.halted.get() {
            said.refused = Some(denied(hook, tool.as_str(), reason));
            return;
        }
        let event = HookEvent::PreToolUse;
        let input = HookInput::call(self.job, event, call, tool.as_str(), arguments.clone());
        let judgement = self.consult(hook, &input, Some(tool.as_str())).await;
        if let Some(new) = &judgement.arguments {
            match object(new) {
                Ok(new) if new == *arguments => {}
                Ok(new) => {
                    *arguments = new;
                    said.allowed = false;
                }
                Err(refusal) => said.refused = Some(refusal),
            }
        }
        if let Some(context) = &judgement.context {
            said.notes.push_str(&frame::hook_note(context));
        }
        match &judgement.verdict {
            Verdict::Pass => {}
            Verdict::Allow => said.allowed = true,
            Verdict::Ask => said.asked = true,
            Verdict::Deny(reason) => said.refused = Some(denied(hook, tool.as_str(), reason)),
        }
        if let Some(reason) = &judgement.halt {
            said.refused = Some(denied(hook, tool.as_str(), reason));
        }
    }

    /// Runs the hooks after a successful call; their texts follow the result.
    pub(crate) async fn after_call(
        &self,
        call: Call<'_>,
        mut answer: Answer,
        dispatcher: &Dispatcher,
    ) -> Answer {
        let name = call.call.name.as_str();
        let names = dispatcher.names_of(name);
        let event = HookEvent::PostToolUse;
        if answer.is_error || !self.hooks().any(event, &names) {
            return answer;
        }
        let input = object(arguments(call.call)).unwrap_or_default();
        let input =
            HookInput::call(self.job, event, call, name, input).with_response(&answer.content);
        let mut notes = String::new();
        for hook in self.hooks().matching(event, &names) {
            let judgement = self.consult(hook, &input, Some(name)).await;
            if let Verdict::Deny(reason) = &judgement.verdict {
                notes.push_str(&frame::hook_note(reason));
            }
            if let Some(context) = &judgement.context {
                notes.push_str(&frame::hook_note(context));
            }
        }
        answer.content.push_str(&notes);
        answer
    }

    /// Runs the hooks before a subagent's first model call. Returns the hooks' text for the model, or the
    /// ending if a hook refuses.
    pub(crate) async fn before_start(&self, timer: &mut Timer) -> Result<String, Ending> {
        let event = HookEvent::SubagentStart;
        let names = self.names();
        if !self.job.depth.is_child() || !self.hooks().any(event, &names) {
            return Ok(String::new());
        }
        let input = HookInput::start(self.job);
        let work = async {
            let mut notes = String::new();
            for hook in self.hooks().matching(event, &names) {
                let judgement = self.consult(hook, &input, None).await;
                if let Verdict::Deny(reason) = judgement.verdict {
                    return Err(Ending::failed(RunError::Hook { reason: one_line(&reason) }));
                }
                if let Some(ending) = self.halted() {
                    return Err(ending);
                }
                if let Some(context) = &judgement.context {
                    notes.push_str(&frame::hook_note(context));
                }
            }
            Ok(notes)
        };
        // The loop itself notices a deadline or a cancellation.
        self.in_time(timer, work).await.unwrap_or_else(|| Ok(String::new()))
    }

    /// Runs the hooks of an ending agent. If the agent concluded by itself, a hook may return a text that
    /// continues the agent once.
    pub(crate) async fn before_end(
        &self,
        said: &str,
        ending: &Ending,
        again: bool,
        timer: &mut Timer,
    ) -> Option<String> {
        let event =
            if self.job.depth.is_child() { HookEvent::SubagentStop } else { HookEvent::Stop };
        let names = self.names();
        if ending.status == RunStatus::Cancelled || !self.hooks().any(event, &names) {
            return None;
        }
        let input = HookInput::stop(self.job, event, said, again);
        let work = async {
            let mut blocked = None;
            for hook in self.hooks().matching(event, &names) {
                let judgement = self.consult(hook, &input, None).await;
                if let Verdict::Deny(reason) = judgement.verdict {
                    blocked.get_or_insert(reason);
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
            self.job.warn(self.ledger, message);
            return None;
        }
        Some(frame::hook_feedback(cut(&reason, MAX_HOOK_TEXT)))
    }

    /// The agent's ending if a hook halted it.
    pub(crate) fn halted(&self) -> Option<Ending> {
        let reason = one_line(self.hooked.halted.get()?);
        Some(Ending::partial(RunError::Hook { reason }))
    }

    /// Asks one hook, and announces its judgement. Before an event, a missing answer becomes a refusal.
    async fn consult(&self, hook: &Hook, input: &HookInput, tool: Option<&str>) -> Judgement {
        let job = self.job;
        let begun = Instant::now();
        let shared = &job.shared;
        let asked = hook.ask(&shared.host.sandbox, input, &shared.workspace, self.stop).await;
        let judgement = asked.unwrap_or_else(|why| {
            let verdict = if hook.fails_closed() {
                Verdict::Deny(NO_ANSWER.to_owned())
            } else {
                Verdict::Pass
            };
            Judgement { fault: Some(why), ..Judgement::of(verdict) }
        });
        let decision = judgement.word();
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        tracing::info!(
            target: "belljar::hook", agent = %job.path, event = %hook.event, hook = %hook.name,
            decision, micros, "a hook ran"
        );
        job.emit(|| EventKind::HookRan {
            event: hook.event.as_str().to_owned(),
            tool: tool.map(|tool| cut(tool, MAX_NAME_BYTES).to_owned()),
            hook: hook.name.clone(),
            decision: decision.to_owned(),
            micros,
        });
        let told = judgement.fault.as_ref().filter(|_| !self.stop.is_cancelled());
        for text in told.into_iter().chain(&judgement.message) {
            let text = cut(text, MAX_HOOK_TEXT);
            job.warn(self.ledger, format!("hook `{}`: {}", hook.name, Shown::new(text)));
        }
        if let Some(reason) = &judgement.halt {
            // The first word counts.
            let _ = self.hooked.halted.set(reason.clone());
        }
        judgement
    }

    fn hooks(&self) -> &Hooks {
        &self.job.shared.host.hooks
    }

    fn names(&self) -> [&str; 2] {
        [&self.job.agent.definition.name, self.job.agent.id.slug.as_str()]
    }

    /// The result of work; `None` = the agent's time was up, or the agent was cancelled.
    async fn in_time<T>(&self, timer: &mut Timer, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            () = self.time_up(timer) => None,
            done = work => Some(done),
        }
    }
}

/// Parses arguments into an object in which each key occurs once.
fn object(arguments: &str) -> Result<Map<String, Value>, Refusal> {
    belljar_received::json::from_str(arguments).map_err(|error| {
        let shown = Shown::clipped(&error.to_string(), 200).to_string();
        Refusal::malformed(format!("invalid arguments: a hook cannot read them ({shown})"))
    })
}

fn denied(hook: &Hook, tool: &str, reason: &str) -> Refusal {
    let facts = format!("hook `{}` refused tool `{tool}`: {}", hook.name, one_line(reason));
    let denied = Denied::new(DenyCode::DeniedByHook, Source::Hook, facts);
    let text = Shown::multiline(cut(reason, MAX_HOOK_TEXT)).to_string();
    Refusal { text: format!("{}: {text}", denied.code), reason: Reason::Denied(denied) }
}

fn one_line(reason: &str) -> String {
    Shown::new(cut(reason, MAX_HOOK_TEXT)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_equal_keys_hook_and_tool_see_the_same_one() {
        let read = object(r#"{"path":"secret","path":"public"}"#).unwrap();
        assert_eq!(Value::Object(read).to_string(), r#"{"path":"public"}"#);
    }

    #[test]
    fn arguments_that_a_hook_cannot_read_are_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_000), "]".repeat(1_000));
        for bad in [deep.as_str(), "[]", r#"{"a":1e999}"#] {
            assert!(object(bad).is_err(), "{}", Shown::clipped(bad, 20));
        }
    }
}
