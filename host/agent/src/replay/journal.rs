//! What a run tells somebody who keeps it, while it goes on. A subagent's outcome is kept before
//! anybody hears of it, so what a parent acted on is never lost.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;

use crate::clock::RunId;
use crate::outcome::{ChildOrigin, ChildSummary};
use crate::replay::log::StepEntry;

/// Keeps what a run has come to before the run is over.
#[async_trait]
pub trait Journal: Send + Sync {
    /// The subagents of one call wait for their turn; in the order asked. `with` is kept
    /// together with them or not at all.
    async fn subagents_queued(
        &self,
        _run: &RunId,
        _children: &[QueuedChild],
        _with: Option<StepEntry>,
    ) -> io::Result<()> {
        Ok(())
    }

    /// The one with this path runs now.
    async fn subagent_running(&self, _run: &RunId, _path: &str) -> io::Result<()> {
        Ok(())
    }

    /// A subagent has ended. When this returns, its outcome is kept, and `with` together with
    /// it.
    async fn subagent_ended(
        &self,
        run: &RunId,
        child: &ChildSummary,
        with: Option<StepEntry>,
    ) -> io::Result<()>;

    /// A step has come so far. When this returns, that is kept, and so is all that was given
    /// before.
    async fn step(&self, _run: &RunId, _entry: StepEntry) -> io::Result<()> {
        Ok(())
    }

    /// Whether it keeps steps.
    fn keeps_steps(&self) -> bool {
        false
    }

    /// Whether it keeps anything at all.
    fn keeps(&self) -> bool {
        true
    }
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJournal;

#[async_trait]
impl Journal for NoJournal {
    async fn subagent_ended(
        &self,
        _run: &RunId,
        _child: &ChildSummary,
        _with: Option<StepEntry>,
    ) -> io::Result<()> {
        Ok(())
    }

    fn keeps(&self) -> bool {
        false
    }
}

/// A subagent that has not begun.
#[derive(Debug, Clone)]
pub struct QueuedChild {
    /// Its name behind its parent's path; no other of the run has it.
    pub path: Arc<str>,
    /// Its parent's path.
    pub parent: Arc<str>,
    /// Its parent's identity: scope and slug.
    pub parent_agent: String,
    /// How deep it stands: 1 = its parent was started by a person.
    pub depth: u32,
    /// Its identity.
    pub agent: String,
    /// What it starts from.
    pub origin: ChildOrigin,
    /// How many of its name this run had before it.
    pub spawn_index: u32,
    /// The call that started it.
    pub call_id: String,
    /// Its task.
    pub task: String,
    /// What it was told beside the task.
    pub context: Option<String>,
}
