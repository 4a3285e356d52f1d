//! Starts one subagent for a `spawn_agent` call and waits for its conclusion.
//!
//! The child's rights are its own definition ∩ its own grants ∩ the parent's rights. It gets a
//! jar and a history of its own, and a budget below the parent's. It is never offered
//! `spawn_agent`: depth ends here.

use std::sync::Arc;
use std::time::Duration;

use belljar_policy::{
    Asked, Caps, Denied, DenyCode, Level, Narrowing, Rights, Shown, Source, ToolName, ToolPermit,
};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::agent::{Agent, Job, not_started, panic_message, run_agent};
use crate::bounds::MAX_CHILDREN_PER_RUN;
use crate::carry::Call;
use crate::dispatch::{Reason, Refusal};
use crate::events::{EventKind, MAX_SHOWN};
use crate::frame;
use crate::outcome::{ChildSummary, Outcome, RunError, Status};
use crate::resolve::ResolvedAgent;
use crate::run::model_of;
use crate::spawn::SpawnOrder;
use crate::turn::Answer;

impl Agent<'_> {
    /// Starts the child, waits for it, and gives back what the parent's model reads.
    pub(crate) async fn spawn(
        &self,
        call: Call<'_>,
        permit: ToolPermit,
        order: SpawnOrder,
    ) -> Answer {
        // Everything up to the first wait happens in the order of the calls, so spawn indices
        // do not depend on timing.
        let (agent, index) = match self.child_of(&order) {
            Ok(found) => found,
            Err(refusal) => {
                self.started(call);
                return self.refuse(call, refusal);
            }
        };
        if let Err(refusal) = self.permitted(call, permit).await {
            self.started(call);
            return self.refuse(call, refusal);
        }
        let path: Arc<str> = format!("{}/{}#{index}", self.job.path, agent.id.slug.as_str()).into();
        let Some(Ok(_slot)) = self.stop.run_until_cancelled(self.slots.acquire()).await else {
            return Answer { content: "cancelled".to_owned(), is_error: true };
        };
        self.job.emit(|| EventKind::SubagentStarted {
            call_id: call.call.id.clone(),
            child: path.to_string(),
            task: order.task.chars().take(MAX_SHOWN).collect(),
        });
        let outcome = self.run_child(Arc::clone(&path), agent, index, &order).await;
        self.finish(call, &path, index, order, outcome)
    }

    /// The agent that was asked for and its spawn index, or why there is none. Unknown,
    /// internal and blocked agents get one answer: the names that would do.
    fn child_of(&self, order: &SpawnOrder) -> Result<(Arc<ResolvedAgent>, u32), Refusal> {
        let job = self.job;
        let found = self.delegates.find(&order.agent).and_then(|id| {
            crate::resolve::resolve_child(&job.shared.host, id, &job.shared.workspace).ok()
        });
        let Some(agent) = found else {
            let names = self.delegates.names();
            let text = format!("no such agent: the available agents are {names}");
            let facts = format!(
                "agent `{}` is unknown, internal or blocked",
                Shown::clipped(&order.agent, 64)
            );
            let denied = Denied::new(DenyCode::ToolNotAllowed, Source::Grants, facts);
            return Err(Refusal { text, reason: Reason::Denied(denied) });
        };
        let index = job.shared.spawned.next(&agent.definition.name).ok_or_else(|| {
            Refusal::malformed(format!(
                "too many subagents in this run: at most {MAX_CHILDREN_PER_RUN}"
            ))
        })?;
        Ok((Arc::new(agent), index))
    }

    async fn run_child(
        &self,
        path: Arc<str>,
        agent: Arc<ResolvedAgent>,
        spawn_index: u32,
        order: &SpawnOrder,
    ) -> Outcome {
        let job = self.job;
        let (rights, narrowed) = child_rights(&job.rights, &agent, self.delegates.allowed_tools());
        let mut notes: Vec<String> = narrowed.iter().map(Narrowing::to_string).collect();
        let model = match model_of(&job.shared.host, None, &agent, Some(&job.model.name)) {
            Ok(model) => model,
            Err(error) => {
                let status = Status::Failed;
                return not_started(&job.shared, &agent, String::new(), status, error);
            }
        };
        notes.extend(model.notes.iter().cloned());
        let own = Duration::from_secs(rights.limits().timeout_seconds);
        let deadline = Instant::now().checked_add(own).unwrap_or(job.deadline).min(job.deadline);
        let name = model.model.id().to_owned();
        let child = Job {
            shared: Arc::clone(&job.shared),
            path,
            agent: Arc::clone(&agent),
            budget: job.budget.child(Level::Subagent, Caps::of(rights.limits())),
            rights,
            model,
            history: Vec::new(),
            first: frame::first_message(&order.task, order.context.as_deref()),
            spawn_index,
            deadline,
            cancel: self.stop.clone(),
            child: true,
            notes,
        };
        // A task of its own, so that children use all cores; it ends with this future.
        match AbortOnDropHandle::new(tokio::spawn(run_agent(child))).await {
            Ok(outcome) => outcome,
            Err(error) => {
                let message = match error.try_into_panic() {
                    Ok(panic) => panic_message(&*panic),
                    Err(error) => error.to_string(),
                };
                let error = RunError::Internal { message };
                not_started(&job.shared, &agent, name, Status::Failed, error)
            }
        }
    }

    fn finish(
        &self,
        call: Call<'_>,
        path: &str,
        spawn_index: u32,
        order: SpawnOrder,
        outcome: Outcome,
    ) -> Answer {
        self.job.emit(|| EventKind::SubagentFinished {
            call_id: call.call.id.clone(),
            child: path.to_owned(),
            status: outcome.status,
            steps: outcome.total.steps,
            tokens: outcome.total.input_tokens.saturating_add(outcome.total.output_tokens),
            error: outcome.error.as_ref().map(ToString::to_string),
        });
        let answer = Answer {
            content: frame::conclusion(&order.agent, &outcome),
            is_error: frame::is_error(outcome.status),
        };
        let SpawnOrder { task, context, agent: _ } = order;
        let call_id = call.call.id.clone();
        let summary =
            ChildSummary { call_id, step: call.step, spawn_index, task, context, outcome };
        self.ledger.child(call.position, summary);
        answer
    }
}

/// The child's rights: never more than the parent's, and no more tools than the parent's
/// definition lets its children have.
fn child_rights(
    parent: &Rights,
    agent: &ResolvedAgent,
    allowed: Option<&[ToolName]>,
) -> (Rights, Vec<Narrowing>) {
    let asked = &agent.definition.asked;
    let narrowed = allowed.map(|allowed| {
        let keep =
            |name: &&ToolName| asked.tools.as_ref().is_none_or(|tools| tools.contains(*name));
        Asked { tools: Some(allowed.iter().filter(keep).cloned().collect()), ..asked.clone() }
    });
    parent.attenuate(narrowed.as_ref().unwrap_or(asked), &agent.grants)
}
