//! The port for storing a run while the run is going on. A subagent's outcome is stored before the parent
//! receives the outcome, so no fact is lost on which a parent has acted.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;

use crate::clock::RunId;
use crate::outcome::{ChildOrigin, ChildSummary};
use crate::replay::log::StepEntry;

/// Stores a run while it runs.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Stores the subagents of a call that wait for a slot, in their order. The entry `with` is stored in
    /// the same transaction.
    async fn subagents_queued(
        &self,
        _run: &RunId,
        _children: &[QueuedChild],
        _with: Option<StepEntry>,
    ) -> io::Result<()> {
        Ok(())
    }

    /// Stores that the subagent at this path is running.
    async fn subagent_running(&self, _run: &RunId, _path: &str) -> io::Result<()> {
        Ok(())
    }

    /// Stores the outcome of a subagent. On return the outcome is stored, together with the entry `with`.
    async fn subagent_ended(
        &self,
        run: &RunId,
        child: &ChildSummary,
        with: Option<StepEntry>,
    ) -> io::Result<()>;

    /// Adds an entry about a step. On return this entry and all earlier ones are stored.
    async fn store_step(&self, _run: &RunId, _entry: StepEntry) -> io::Result<()> {
        Ok(())
    }

    /// Returns whether the journal stores entries about steps.
    fn persists_steps(&self) -> bool {
        false
    }

    /// Returns whether the journal stores anything.
    fn is_persistent(&self) -> bool {
        true
    }
}

/// A journal that stores nothing.
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

    fn is_persistent(&self) -> bool {
        false
    }
}

/// The record of a subagent that has not begun.
#[derive(Debug, Clone)]
pub struct QueuedChild {
    /// Its path, for example `main/scout#0`, unique in the run.
    pub path: Arc<str>,
    /// The parent's path, for example `main`.
    pub parent: Arc<str>,
    /// The id of the parent's agent: scope and slug, for example `library/NAME/scout`.
    pub parent_agent: String,
    /// Its depth in the tree: 1 = a person started its parent.
    pub depth: u32,
    /// The id of its agent: scope and slug.
    pub agent: String,
    /// The subagent's origin.
    pub origin: ChildOrigin,
    /// The number of earlier agents with the same slug in the run.
    pub spawn_index: u32,
    /// The id of the call that started it.
    pub call_id: String,
    /// The subagent's task.
    pub task: String,
    /// The subagent's context beside the task.
    pub context: Option<String>,
}
