//! The port through which a run is persisted while it runs. A subagent's outcome is persisted before
//! its parent is sent it, so nothing that a parent acted on is ever lost.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;

use crate::clock::RunId;
use crate::outcome::{ChildOrigin, ChildSummary};
use crate::replay::log::StepEntry;

/// Persists a run before it is over.
#[async_trait]
pub trait Journal: Send + Sync {
    /// The subagents of one call wait for a slot; in the order asked. `with` is persisted
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

    /// A subagent has ended. When this returns, its outcome is persisted, and `with` together with
    /// it.
    async fn subagent_ended(
        &self,
        run: &RunId,
        child: &ChildSummary,
        with: Option<StepEntry>,
    ) -> io::Result<()>;

    /// A new entry of the journal. When this returns, it is persisted, and so is all that was given
    /// before.
    async fn step(&self, _run: &RunId, _entry: StepEntry) -> io::Result<()> {
        Ok(())
    }

    /// Whether it persists steps.
    fn persists_steps(&self) -> bool {
        false
    }

    /// Whether it persists anything at all.
    fn persists(&self) -> bool {
        true
    }
}

/// Persists nothing.
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

    fn persists(&self) -> bool {
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
    /// Its origin.
    pub origin: ChildOrigin,
    /// How many of its name this run had before it.
    pub spawn_index: u32,
    /// The call that started it.
    pub call_id: String,
    /// Its task.
    pub task: String,
    /// Its context beside the task.
    pub context: Option<String>,
}
