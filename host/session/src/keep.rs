//! Tells the journal how the subagents of a run are doing.

use std::io;

use crate::agent::Shared;
use crate::events::EventKind;
use crate::journal::QueuedChild;
use crate::outcome::ChildSummary;

impl Shared {
    /// Keeps that these wait. `children` is not called where nothing is kept.
    pub(crate) async fn keep_queued(&self, children: impl FnOnce() -> Vec<QueuedChild> + Send) {
        let journal = &self.host.journal;
        if journal.keeps() {
            let children = children();
            let kept = journal.subagents_queued(&self.run, &children).await;
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
    pub(crate) async fn keep(&self, child: &ChildSummary) {
        let journal = &self.host.journal;
        if journal.keeps() {
            let kept = journal.subagent_ended(&self.run, child).await;
            self.tell_if_not_kept(kept, &child.outcome.agent);
        }
    }

    /// The run goes on where something cannot be kept, and says so.
    fn tell_if_not_kept(&self, kept: io::Result<()>, agent: &str) {
        let Err(error) = kept else { return };
        let message = format!("what came of a subagent could not be kept: {error}");
        tracing::error!(target: "belljar::session", run = %self.run, "{message}");
        self.events.emit(&agent.into(), || EventKind::Warning { message });
    }
}
