//! Tells the journal how a run is doing.

use std::io;

use crate::agent::{Job, Shared};
use crate::events::EventKind;
use crate::journal::QueuedChild;
use crate::outcome::ChildSummary;
use crate::steps::{StepEntry, StepKind};

impl Shared {
    /// Keeps that these wait. `children` is not called where nothing is kept.
    pub(crate) async fn keep_queued(
        &self,
        children: impl FnOnce() -> Vec<QueuedChild> + Send,
        with: Option<StepEntry>,
    ) {
        let journal = &self.host.journal;
        if journal.keeps() {
            let children = children();
            let kept = journal.subagents_queued(&self.run, &children, with).await;
            let of = children.first().map_or("", |child| &child.agent);
            self.tell_if_not_kept(kept, of);
        }
    }

    /// Keeps that this one runs.
    pub(crate) async fn keep_running(&self, path: &str, agent: &str) {
        let journal = &self.host.journal;
        if journal.keeps() {
            let kept = journal.subagent_running(&self.run, path).await;
            self.tell_if_not_kept(kept, agent);
        }
    }

    /// Keeps the outcome of a subagent before its parent hears of it.
    pub(crate) async fn keep(&self, child: &ChildSummary, with: Option<StepEntry>) {
        let journal = &self.host.journal;
        if journal.keeps() {
            let kept = journal.subagent_ended(&self.run, child, with).await;
            self.tell_if_not_kept(kept, &child.outcome.agent);
        }
    }

    /// Whether steps are kept, so that what is kept has to be made.
    pub(crate) fn keeps_steps(&self) -> bool {
        self.host.journal.keeps_steps()
    }

    /// The run goes on where something cannot be kept, and says so.
    fn tell_if_not_kept(&self, kept: io::Result<()>, agent: &str) {
        let Err(error) = kept else { return };
        let message = format!("what an agent came to could not be kept: {error}");
        tracing::error!(target: "belljar::session", run = %self.run, "{message}");
        self.events.emit(&agent.into(), || EventKind::Warning { message });
    }
}

impl Job {
    /// Something of one of this agent's steps.
    pub(crate) fn entry(&self, step: u64, position: usize, kind: StepKind) -> StepEntry {
        StepEntry { agent: self.address.clone(), step, position, kind }
    }

    /// Keeps something of one of this agent's steps. `kind` is not called where nothing is
    /// kept.
    pub(crate) async fn keep_step(
        &self,
        step: u64,
        position: usize,
        kind: impl FnOnce() -> StepKind + Send,
    ) {
        if self.shared.keeps_steps() {
            let entry = self.entry(step, position, kind());
            let kept = self.shared.host.journal.step(&self.shared.run, entry).await;
            self.shared.tell_if_not_kept(kept, &self.path);
        }
    }
}
