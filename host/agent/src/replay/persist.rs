//! Persists a run: which parts of it, and when.

use std::io;

use crate::agent_loop::agent::Agent;
use crate::agent_loop::job::{Job, Shared};
use crate::events::EventKind;
use crate::outcome::ChildSummary;
use crate::replay::journal::QueuedChild;
use crate::replay::log::{LoggedResult, StepEntry, StepKind};
use crate::tools::call::Answer;
use crate::tools::call::Call;

impl Shared {
    /// Persists that these wait. `children` is not called where nothing is persisted.
    pub(crate) async fn persist_queued(
        &self,
        children: impl FnOnce() -> Vec<QueuedChild> + Send,
        with: Option<StepEntry>,
    ) {
        let journal = &self.host.journal;
        if journal.persists() {
            let children = children();
            let done = journal.subagents_queued(&self.run, &children, with).await;
            let of = children.first().map_or("", |child| &child.agent);
            self.warn_if_not_persisted(done, of);
        }
    }

    /// Persists that this one runs.
    pub(crate) async fn persist_running(&self, path: &str, agent: &str) {
        let journal = &self.host.journal;
        if journal.persists() {
            let done = journal.subagent_running(&self.run, path).await;
            self.warn_if_not_persisted(done, agent);
        }
    }

    /// Persists the outcome of a subagent before its parent is sent it.
    pub(crate) async fn persist_ended(&self, child: &ChildSummary, with: Option<StepEntry>) {
        let journal = &self.host.journal;
        if journal.persists() {
            let done = journal.subagent_ended(&self.run, child, with).await;
            self.warn_if_not_persisted(done, &child.outcome.agent);
        }
    }

    /// Whether steps are persisted, so that their entries have to be made.
    pub(crate) fn persists_steps(&self) -> bool {
        self.host.journal.persists_steps()
    }

    /// The run continues where something cannot be persisted, and says so.
    fn warn_if_not_persisted(&self, done: io::Result<()>, agent: &str) {
        let Err(error) = done else { return };
        let message = format!("The outcome of an agent could not be kept: {error}");
        tracing::error!(target: "belljar::session", run = %self.run, "{message}");
        self.events.emit(&agent.into(), || EventKind::Warning { message });
    }
}

impl Job {
    /// An entry about one of this agent's steps.
    pub(crate) fn entry(&self, step: u64, position: usize, kind: StepKind) -> StepEntry {
        StepEntry { agent: self.address.clone(), step, position, kind }
    }

    /// Persists an entry about one of this agent's steps. `kind` is not called where none is.
    pub(crate) async fn persist_step(
        &self,
        step: u64,
        position: usize,
        kind: impl FnOnce() -> StepKind + Send,
    ) {
        if self.shared.persists_steps() {
            let entry = self.entry(step, position, kind());
            let done = self.shared.host.journal.step(&self.shared.run, entry).await;
            self.shared.warn_if_not_persisted(done, &self.path);
        }
    }
}

impl Agent<'_> {
    /// Persists the result of a call, before the model is sent it.
    pub(crate) async fn persist_result(&self, call: Call<'_>, answer: &Answer) {
        let entry = || {
            let (receipt, attachments) = self.ledger.of_call(call.step, call.position);
            StepKind::Result(Box::new(LoggedResult {
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
