//! Tells the journal how a run is doing: what is persisted, and when.

use std::io;

use crate::agent_loop::agent::Agent;
use crate::agent_loop::job::{Job, Shared};
use crate::events::EventKind;
use crate::outcome::ChildSummary;
use crate::replay::journal::QueuedChild;
use crate::replay::log::{Kept, StepEntry, StepKind};
use crate::tools::call::Answer;
use crate::tools::call::Call;

impl Shared {
    /// Persists that these wait. `children` is not called where nothing is.
    pub(crate) async fn persist_queued(
        &self,
        children: impl FnOnce() -> Vec<QueuedChild> + Send,
        with: Option<StepEntry>,
    ) {
        let journal = &self.host.journal;
        if journal.keeps() {
            let children = children();
            let kept = journal.subagents_queued(&self.run, &children, with).await;
            let of = children.first().map_or("", |child| &child.agent);
            self.tell_if_not_persisted(kept, of);
        }
    }

    /// Persists that this one runs.
    pub(crate) async fn persist_running(&self, path: &str, agent: &str) {
        let journal = &self.host.journal;
        if journal.keeps() {
            let kept = journal.subagent_running(&self.run, path).await;
            self.tell_if_not_persisted(kept, agent);
        }
    }

    /// Persists the outcome of a subagent before its parent hears of it.
    pub(crate) async fn persist_ended(&self, child: &ChildSummary, with: Option<StepEntry>) {
        let journal = &self.host.journal;
        if journal.keeps() {
            let kept = journal.subagent_ended(&self.run, child, with).await;
            self.tell_if_not_persisted(kept, &child.outcome.agent);
        }
    }

    /// Whether steps are persisted, so that their entries have to be made.
    pub(crate) fn keeps_steps(&self) -> bool {
        self.host.journal.keeps_steps()
    }

    /// The run continues where something cannot be persisted, and says so.
    fn tell_if_not_persisted(&self, kept: io::Result<()>, agent: &str) {
        let Err(error) = kept else { return };
        let message = format!("The outcome of an agent could not be kept: {error}");
        tracing::error!(target: "belljar::session", run = %self.run, "{message}");
        self.events.emit(&agent.into(), || EventKind::Warning { message });
    }
}

impl Job {
    /// Something of one of this agent's steps.
    pub(crate) fn entry(&self, step: u64, position: usize, kind: StepKind) -> StepEntry {
        StepEntry { agent: self.address.clone(), step, position, kind }
    }

    /// Persists something of one of this agent's steps. `kind` is not called where nothing is.
    pub(crate) async fn persist_step(
        &self,
        step: u64,
        position: usize,
        kind: impl FnOnce() -> StepKind + Send,
    ) {
        if self.shared.keeps_steps() {
            let entry = self.entry(step, position, kind());
            let kept = self.shared.host.journal.step(&self.shared.run, entry).await;
            self.shared.tell_if_not_persisted(kept, &self.path);
        }
    }
}

impl Agent<'_> {
    /// Persists the result of a call, before the model hears of it.
    pub(crate) async fn persist_result(&self, call: Call<'_>, answer: &Answer) {
        let entry = || {
            let (receipt, attachments) = self.ledger.of_call(call.step, call.position);
            StepKind::Result(Box::new(Kept {
                content: answer.content.clone(),
                is_error: answer.is_error,
                receipt,
                attachments,
                background: self.background.of_call(&call.call.id),
            }))
        };
        self.job.persist_step(call.step, call.position, entry).await;
    }
}
