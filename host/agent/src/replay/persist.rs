//! What is stored of a run while it runs, and when.

use std::io;
use std::sync::Arc;

use crate::agent_loop::job::{AgentJob, RunState};
use crate::events::EventKind;
use crate::outcome::ChildSummary;
use crate::replay::journal::QueuedChild;
use crate::replay::log::{LoggedCourse, LoggedNested, LoggedResult, StepEntry, StepKind};
use crate::tools::answer::CallAnswer;
use crate::tools::call::PlacedCall;
use crate::tools::executor::CallExecutor;

impl RunState {
    /// Stores subagents that wait for a slot, together with the entry `with`. `children` is called only if
    /// the journal stores anything.
    pub(crate) async fn persist_queued(
        &self,
        children: impl FnOnce() -> Vec<QueuedChild> + Send,
        with: Option<StepEntry>,
    ) {
        let journal = &self.host.journal;
        if journal.is_persistent() {
            let children = children();
            let done = journal.subagents_queued(&self.run, &children, with).await;
            let of = children.first().map_or("", |child| &child.agent);
            self.warn_if_not_persisted(done, of);
        }
    }

    /// Stores that a subagent is running.
    pub(crate) async fn persist_running(&self, path: &str, agent: &str) {
        let journal = &self.host.journal;
        if journal.is_persistent() {
            let done = journal.subagent_running(&self.run, path).await;
            self.warn_if_not_persisted(done, agent);
        }
    }

    /// Stores the outcome of a subagent, together with the entry `with`, before the parent receives the
    /// outcome.
    pub(crate) async fn persist_ended(&self, child: &ChildSummary, with: Option<StepEntry>) {
        let journal = &self.host.journal;
        if journal.is_persistent() {
            let done = journal.subagent_ended(&self.run, child, with).await;
            self.warn_if_not_persisted(done, &child.outcome.agent);
        }
    }

    /// Returns whether the journal stores the steps of the run.
    pub(crate) fn persists_steps(&self) -> bool {
        self.host.journal.persists_steps()
    }

    /// Warns the person that an entry could not be stored. The run continues.
    fn warn_if_not_persisted(&self, done: io::Result<()>, agent: &str) {
        let Err(error) = done else { return };
        let message = format!("The outcome of an agent could not be kept: {error}");
        tracing::error!(target: "belljar::session", run = %self.run, "{message}");
        self.events.emit(&agent.into(), || EventKind::Warning { message });
    }
}

impl AgentJob {
    /// The journal entry for a step of the agent.
    pub(crate) fn step_entry(&self, step: u64, position: usize, kind: StepKind) -> StepEntry {
        StepEntry { agent: self.address.clone(), step, position, kind }
    }

    /// Stores an entry for a step of the agent. `kind` is called only if the journal stores steps.
    pub(crate) async fn persist_step(
        &self,
        step: u64,
        position: usize,
        kind: impl FnOnce() -> StepKind + Send,
    ) {
        if self.shared.persists_steps() {
            let entry = self.step_entry(step, position, kind());
            let done = self.shared.host.journal.store_step(&self.shared.run, entry).await;
            self.shared.warn_if_not_persisted(done, &self.path);
        }
    }
}

/// The journal address to which a call belongs: the agent's, or for a nested call the outer call's.
pub(crate) fn address_of(job: &AgentJob, call: PlacedCall<'_>) -> Arc<str> {
    Arc::clone(call.nested.map_or(&job.address, |nested| nested.outer.address()))
}

impl AgentJob {
    /// The journal entry for a call.
    pub(crate) fn entry_of(&self, call: PlacedCall<'_>, kind: StepKind) -> StepEntry {
        let (agent, step, position) = (address_of(self, call), call.step, call.position);
        StepEntry { agent, step, position, kind }
    }

    /// Stores that a call with possible effects is about to start. `asked`: a person has allowed it.
    pub(crate) async fn persist_begun(
        &self,
        call: PlacedCall<'_>,
        course: Option<LoggedCourse>,
        asked: bool,
    ) {
        let called = || call.nested.map(|nested| nested.called.to_owned());
        let begun = || StepKind::Begun { children: Vec::new(), called: called(), course, asked };
        self.persist_call(call, begun).await;
    }

    /// Stores an entry for a call, if the journal stores steps.
    async fn persist_call(&self, call: PlacedCall<'_>, kind: impl FnOnce() -> StepKind + Send) {
        if self.shared.persists_steps() {
            let entry = self.entry_of(call, kind());
            let done = self.shared.host.journal.store_step(&self.shared.run, entry).await;
            self.shared.warn_if_not_persisted(done, &self.path);
        }
    }
}

impl CallExecutor<'_> {
    /// Stores the result of a call before the model receives it.
    pub(crate) async fn persist_result(&self, call: PlacedCall<'_>, answer: &CallAnswer) {
        let entry = || {
            let (receipt, attachments) = self.ledger.call_record(call.step, &call.call.id);
            StepKind::Result(Box::new(LoggedResult {
                content: answer.content.clone(),
                is_error: answer.is_error,
                receipt,
                attachments,
                background: self.background.find_by_call(&call.call.id),
                nested: call.nested.map(|nested| LoggedNested {
                    called: nested.called.to_owned(),
                    form: nested.outer.stored_form(call.position),
                }),
            }))
        };
        self.job.persist_call(call, entry).await;
    }
}
