//! Questions to the person who started the run: permission where a grant says `ask`, and an agent's own
//! questions. Each ends with an answer, a cancellation or a timeout.

use std::sync::PoisonError;

use belljar_policy::{DecisionSource, DenyCode, PolicyDenial, ToolPermit};
use tokio::time::timeout;

use crate::agent_loop::machine::AgentLoop;
use crate::events::{EventKind, MAX_SHOWN, TodoItem};
use crate::limits::{ANSWER_WAIT, MAX_ANSWER_BYTES, truncate_str};
use crate::tools::answer::CallAnswer;
use crate::tools::approval::asker::{
    Approval, ApprovalQuestion, CallReach, ClarificationAnswer, ClarificationQuestion,
};
use crate::tools::builtin::arguments::{ClarifyArguments, TodoCall};
use crate::tools::builtin::todos::TodoList;
use crate::tools::call::PlacedCall;
use crate::tools::call::arguments;
use crate::tools::dispatch::{CallRefusal, RefusalReason};
use crate::tools::executor::CallExecutor;

use super::consent::said_yes;

/// The facts in a refusal after the person has said no.
pub(crate) const SAID_NO: &str = "the person who was asked said no";

/// The facts in a refusal after the person has closed the question.
const CANCELLED: &str = "the question was cancelled where it was shown, without a yes or a no";

impl CallExecutor<'_> {
    /// Asks the person if the permit requires an answer and the person has not allowed the tool for the
    /// whole run. Returns the permit to call with, or the refusal.
    pub(crate) async fn ask_if_required(
        &self,
        call: PlacedCall<'_>,
        permit: ToolPermit,
    ) -> Result<ToolPermit, CallRefusal> {
        if !permit.needs_answer() {
            return Ok(permit);
        }
        let key = (self.job.agent.id.clone(), permit.tool().clone());
        let known = |set: &std::collections::HashSet<_>| set.contains(&key);
        let allowed = &self.job.shared.allowed;
        if !permit.needs_own_answer()
            && known(&allowed.lock().unwrap_or_else(PoisonError::into_inner))
        {
            return Ok(said_yes(permit));
        }
        let (code, facts) = match self.ask_permission(call, &permit).await {
            Some(Approval::Yes) => return Ok(said_yes(permit)),
            Some(Approval::ForRun) => {
                allowed.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
                return Ok(said_yes(permit));
            }
            Some(Approval::No) => (DenyCode::ToolNotAllowed, SAID_NO),
            Some(Approval::Nobody) => {
                (DenyCode::NobodyToAsk, "a person has to say yes, as the grant or a hook wants it")
            }
            Some(Approval::Cancelled) => (DenyCode::NobodyToAsk, CANCELLED),
            None => (DenyCode::NobodyToAsk, "the run was cancelled while a person was asked"),
        };
        let facts = format!("{facts} (tool `{}`)", permit.tool());
        // Who required the question: a hook for the call, otherwise the source that decided about the tool.
        let by = match permit.needs_own_answer() {
            true => DecisionSource::Hook,
            false => {
                let decision = self.job.rights.explain_decision(permit.tool().as_str());
                decision.decided_by.unwrap_or(DecisionSource::Host)
            }
        };
        let denied = PolicyDenial::new(code, by, facts);
        Err(CallRefusal { text: code.to_string(), reason: RefusalReason::Denied(denied) })
    }

    /// Asks the person to permit a call. `None` = the run was cancelled meanwhile.
    async fn ask_permission(&self, call: PlacedCall<'_>, permit: &ToolPermit) -> Option<Approval> {
        if is_unattended(call) {
            return Some(Approval::Nobody);
        }
        let (job, arguments) = (self.job, arguments(call.call));
        let id = job.shared.events.next_question();
        let (call_id, tool) = (&call.call.id, permit.tool().as_str());
        let reach = self.jar.call_reach(job, permit.tool());
        job.emit_event(|| {
            let CallReach { mounts, hosts, secrets } = reach.clone();
            EventKind::PermissionAsked {
                id,
                call_id: call_id.clone(),
                tool: tool.to_owned(),
                arguments: arguments.chars().take(MAX_SHOWN).collect(),
                mounts,
                hosts,
                secrets,
            }
        });
        let reach = &reach;
        let question =
            ApprovalQuestion { id, agent: &job.path, tool: permit.tool(), arguments, reach };
        let asking = job.shared.host.asker.ask_approval(question);
        let heard = self.wait_for_person(call, asking).await;
        let word = heard.map(|word| word.unwrap_or(Approval::Nobody));
        job.emit_event(|| EventKind::PermissionAnswered {
            id,
            call_id: call_id.clone(),
            tool: tool.to_owned(),
            answer: word.unwrap_or(Approval::Nobody),
        });
        word
    }

    /// Asks the person a question of the agent, and returns the answer for the model.
    pub(crate) async fn ask_clarification(
        &self,
        call: PlacedCall<'_>,
        asked: &ClarifyArguments,
    ) -> CallAnswer {
        match self.ask_person(call, &asked.question, None, &asked.options).await {
            ClarificationAnswer::Words(content) => CallAnswer { content, is_error: false },
            ClarificationAnswer::Blank | ClarificationAnswer::No | ClarificationAnswer::Nobody => {
                unanswered_result("nobody answers")
            }
            ClarificationAnswer::Cancelled => unanswered_result("the question was cancelled"),
        }
    }

    /// Puts a question about a call to the person at the root. `noted`: the answer is private, and only this
    /// text is stored of the question (INV-366).
    pub(crate) async fn ask_person(
        &self,
        call: PlacedCall<'_>,
        question: &str,
        noted: Option<&str>,
        options: &[String],
    ) -> ClarificationAnswer {
        if is_unattended(call) {
            return ClarificationAnswer::Nobody;
        }
        let job = self.job;
        let id = job.shared.events.next_question();
        job.emit_event(|| EventKind::QuestionAsked {
            id,
            question: noted.unwrap_or(question).to_owned(),
            options: options.to_vec(),
            private: noted.is_some(),
        });
        let asker = &job.shared.host.asker;
        asker.link_question(id, &call.call.id);
        let question = ClarificationQuestion { id, agent: &job.path, question, noted, options };
        let heard = self.wait_for_person(call, asker.ask_clarification(question)).await;
        let said = heard.flatten().unwrap_or(ClarificationAnswer::Nobody);
        job.emit_event(|| EventKind::QuestionAnswered {
            id,
            answered: matches!(said, ClarificationAnswer::Words(_)),
        });
        match said {
            ClarificationAnswer::Words(text) => {
                ClarificationAnswer::Words(truncate_str(&text, MAX_ANSWER_BYTES).to_owned())
            }
            other => other,
        }
    }

    /// Waits for a person's answer for at most [`ANSWER_WAIT`], during which the run's time limits do not
    /// advance. Outer `None` = the run was cancelled meanwhile; inner `None` = no answer came in time.
    async fn wait_for_person<T>(
        &self,
        call: PlacedCall<'_>,
        asking: impl Future<Output = T>,
    ) -> Option<Option<T>> {
        let waiting = self.job.pause.begin_wait();
        let heard = self.stop.run_until_cancelled(timeout(ANSWER_WAIT, asking)).await;
        drop(waiting);
        if let (Some(Err(_)), Some(nested)) = (&heard, call.nested) {
            nested.outer.record_unanswered_question();
        }
        heard.map(Result::ok)
    }

    /// Executes a call on the agent's todo list, and sends the list to watchers.
    pub(crate) fn execute_todo(&self, call: &TodoCall, machine: &AgentLoop) -> CallAnswer {
        match self.apply_todo(call, machine) {
            Ok((content, items)) => {
                match call {
                    TodoCall::Write(_) | TodoCall::Create { .. } | TodoCall::Update { .. } => {
                        self.job.emit_event(|| EventKind::Todos { items });
                    }
                    TodoCall::Get { .. } | TodoCall::List => {}
                }
                CallAnswer { content, is_error: false }
            }
            Err(content) => CallAnswer { content, is_error: true },
        }
    }

    /// Applies a call to the todo list without an event. Returns the text for the model and the new list.
    pub(crate) fn apply_todo(
        &self,
        call: &TodoCall,
        machine: &AgentLoop,
    ) -> Result<(String, Vec<TodoItem>), String> {
        let mut todos = self.todos.lock().unwrap_or_else(PoisonError::into_inner);
        // The list is derived from the messages once and then kept, because the calls of the step have no
        // answers there yet.
        let list = todos.get_or_insert_with(|| {
            TodoList::from_messages(&machine.request().messages, machine.dispatcher())
        });
        let content = list.apply_call(call)?;
        Ok((content, list.to_items()))
    }
}

/// The result of a question that was not answered, with the reason.
fn unanswered_result(why: &str) -> CallAnswer {
    let content = format!("{why}; go on with the likeliest reading and say which");
    CallAnswer { content, is_error: true }
}

/// Returns whether no question is asked any more (INV-259): a tool made the call, and an earlier question
/// below the same call of the model went unanswered.
fn is_unattended(call: PlacedCall<'_>) -> bool {
    call.nested.is_some_and(|nested| nested.outer.is_unattended())
}
