//! Questions to the person at the root: permission where a grant says `ask`, and an agent's own questions.
//! Each ends with an answer, a cancellation or a timeout.

use std::sync::PoisonError;

use belljar_policy::{Denied, DenyCode, Source, ToolPermit};
use tokio::time::timeout;

use crate::agent_loop::machine::Loop;
use crate::events::{EventKind, MAX_SHOWN, TodoItem};
use crate::limits::{ANSWER_WAIT, MAX_ANSWER_BYTES, cut};
use crate::tools::answer::Answer;
use crate::tools::approval::asker::{Approval, PrivateQuestion, Question, Reach, Said};
use crate::tools::builtin::arguments::{Clarify, TodoCall};
use crate::tools::builtin::todos::TodoList;
use crate::tools::call::Call;
use crate::tools::call::arguments;
use crate::tools::dispatch::{Reason, Refusal};
use crate::tools::executor::CallExecutor;

use super::consent::said_yes;

/// The facts of a call that a person did not allow.
pub(crate) const SAID_NO: &str = "the person who was asked said no";

/// The facts of a call whose question the person closed.
const CANCELLED: &str = "the question was cancelled where it was shown, without a yes or a no";

impl CallExecutor<'_> {
    /// Asks the person at the root if the grant demands a question, unless already allowed for the run.
    pub(crate) async fn permitted(
        &self,
        call: Call<'_>,
        permit: ToolPermit,
    ) -> Result<ToolPermit, Refusal> {
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
        // The source of the question: a hook about this call, otherwise the decision's source.
        let by = match permit.needs_own_answer() {
            true => Source::Hook,
            false => {
                let decision = self.job.rights.decision(permit.tool().as_str());
                decision.decided_by.unwrap_or(Source::Host)
            }
        };
        let denied = Denied::new(code, by, facts);
        Err(Refusal { text: code.to_string(), reason: Reason::Denied(denied) })
    }

    /// Asks for permission. `None` = the run was cancelled meanwhile.
    async fn ask_permission(&self, call: Call<'_>, permit: &ToolPermit) -> Option<Approval> {
        if is_alone(call) {
            return Some(Approval::Nobody);
        }
        let (job, arguments) = (self.job, arguments(call.call));
        let id = job.shared.events.question();
        let (call_id, tool) = (&call.call.id, permit.tool().as_str());
        let reach = self.jar.reach(job, permit.tool());
        job.emit(|| {
            let Reach { mounts, hosts, secrets } = reach.clone();
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
        let question = Question { id, agent: &job.path, tool: permit.tool(), arguments, reach };
        let waiting = job.pause.begin();
        let asking = timeout(ANSWER_WAIT, job.shared.host.asker.ask(question));
        let word = self.stop.run_until_cancelled(asking).await;
        drop(waiting);
        if let (Some(Err(_)), Some(nested)) = (&word, call.nested) {
            nested.outer.nobody_came();
        }
        let word = word.map(|word| word.unwrap_or(Approval::Nobody));
        job.emit(|| EventKind::PermissionAnswered {
            id,
            call_id: call_id.clone(),
            tool: tool.to_owned(),
            answer: word.unwrap_or(Approval::Nobody),
        });
        word
    }

    /// Puts the agent's question to the person.
    pub(crate) async fn clarify(&self, call: Call<'_>, asked: &Clarify) -> Answer {
        match self.put(call, &asked.question, None, &asked.options).await {
            Said::Words(content) => Answer { content, is_error: false },
            Said::Blank | Said::No | Said::Nobody => unanswered("nobody answers"),
            Said::Cancelled => unanswered("the question was cancelled"),
        }
    }

    /// Puts a question about a call to the person at the root. `noted`: the answer is private, and only this
    /// text is stored of the question (INV-366).
    pub(crate) async fn put(
        &self,
        call: Call<'_>,
        question: &str,
        noted: Option<&str>,
        options: &[String],
    ) -> Said {
        if is_alone(call) {
            return Said::Nobody;
        }
        let job = self.job;
        let id = job.shared.events.question();
        job.emit(|| EventKind::QuestionAsked {
            id,
            question: noted.unwrap_or(question).to_owned(),
            options: options.to_vec(),
            private: noted.is_some(),
        });
        let waiting = job.pause.begin();
        let asker = &job.shared.host.asker;
        asker.concerns(id, &call.call.id);
        let asking = async {
            match noted {
                Some(noted) => {
                    let private =
                        PrivateQuestion { id, agent: &job.path, question, noted, options };
                    asker.clarify_privately(private).await
                }
                None => asker.clarify(id, &job.path, question, options).await,
            }
        };
        let asking = timeout(ANSWER_WAIT, asking);
        let heard = self.stop.run_until_cancelled(asking).await;
        drop(waiting);
        if let (Some(Err(_)), Some(nested)) = (&heard, call.nested) {
            nested.outer.nobody_came();
        }
        let said = heard.and_then(Result::ok).unwrap_or(Said::Nobody);
        job.emit(|| EventKind::QuestionAnswered { id, answered: matches!(said, Said::Words(_)) });
        match said {
            Said::Words(text) => Said::Words(cut(&text, MAX_ANSWER_BYTES).to_owned()),
            other => other,
        }
    }

    /// Executes a call on the agent's list of work, and shows the list to watchers.
    pub(crate) fn todo(&self, call: &TodoCall, machine: &Loop) -> Answer {
        match self.listed(call, machine) {
            Ok((content, items)) => {
                match call {
                    TodoCall::Write(_) | TodoCall::Create { .. } | TodoCall::Update { .. } => {
                        self.job.emit(|| EventKind::Todos { items });
                    }
                    TodoCall::Get { .. } | TodoCall::List => {}
                }
                Answer { content, is_error: false }
            }
            Err(content) => Answer { content, is_error: true },
        }
    }

    /// Applies a call to the list without an event. Returns the model's text and the new list.
    pub(crate) fn listed(
        &self,
        call: &TodoCall,
        machine: &Loop,
    ) -> Result<(String, Vec<TodoItem>), String> {
        let mut todos = self.todos.lock().unwrap_or_else(PoisonError::into_inner);
        // The calls of this step have no answers yet: their effects are in the kept list.
        let list = todos
            .get_or_insert_with(|| TodoList::of(&machine.request().messages, machine.dispatcher()));
        let content = list.apply(call)?;
        Ok((content, list.items()))
    }
}

/// The result of an unanswered question, with the reason.
fn unanswered(why: &str) -> Answer {
    let content = format!("{why}; go on with the likeliest reading and say which");
    Answer { content, is_error: true }
}

/// Returns whether an earlier question about a sibling or outer call went unanswered.
fn is_alone(call: Call<'_>) -> bool {
    call.nested.is_some_and(|nested| nested.outer.is_alone())
}
