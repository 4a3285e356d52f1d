//! The port for storing a run while it runs. A subagent's outcome is stored before its parent receives the
//! outcome, so no fact that a parent acted on is lost.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;

use crate::clock::RunId;
use crate::outcome::{ChildOrigin, ChildSummary};
use crate::replay::log::StepEntry;

/// The store of a running run.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Notes the subagents of one call that wait for a slot, in the order asked. `with` is stored in the same
    /// transaction.
    async fn subagents_queued(
        &self,
        _run: &RunId,
        _children: &[QueuedChild],
        _with: Option<StepEntry>,
    ) -> io::Result<()> {
        Ok(())
    }

    /// Notes that the subagent at this path is running.
    async fn subagent_running(&self, _run: &RunId, _path: &str) -> io::Result<()> {
        Ok(())
    }

    /// Notes the end of a subagent. On return the outcome is stored, together with `with`.
    async fn subagent_ended(
        &self,
        run: &RunId,
        child: &ChildSummary,
        with: Option<StepEntry>,
    ) -> io::Result<()>;

    /// Adds an entry to the journal. On return the entry is stored, and all earlier ones.
    async fn store_step(&self, _run: &RunId, _entry: StepEntry) -> io::Result<()> {
        Ok(())
    }

    /// Returns whether the journal stores steps.
    fn persists_steps(&self) -> bool {
        false
    }

    /// Returns whether the journal stores entries.
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

/// A subagent that has not begun.
#[derive(Debug, Clone)]
pub struct QueuedChild {
    /// The name after the parent's path, for example `main/scout#0`; unique in the run.
    pub path: Arc<str>,
    /// The parent's path, for example `main`.
    pub parent: Arc<str>,
    /// The parent's identity: scope and slug, for example `library/NAME/scout`.
    pub parent_agent: String,
    /// The depth: 1 = the parent was started by a person.
    pub depth: u32,
    /// The subagent's identity.
    pub agent: String,
    /// The subagent's origin.
    pub origin: ChildOrigin,
    /// The number of earlier agents of the same name in the run.
    pub spawn_index: u32,
    /// The starting call.
    pub call_id: String,
    /// The subagent's task.
    pub task: String,
    /// The subagent's context beside the task.
    pub context: Option<String>,
}
