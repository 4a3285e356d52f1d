//! A subagent before its run: planned, then ready to start.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::agent_loop::job::{AgentJob, RunState};
use crate::agent_loop::ledger::{Ledger, Place};
use crate::outcome::Outcome;
use crate::replay::log::AgentPast;
use crate::rights::resolve::ResolvedAgent;
use crate::subagent::progress::ChildBatch;
use crate::tools::builtin::arguments::SpawnArguments;

/// A planned child: not started, with a reserved spawn index.
pub(crate) struct PlannedSpawn {
    pub(crate) agent: Arc<ResolvedAgent>,
    pub(crate) path: Arc<str>,
    /// The child's address in the journal of the run.
    pub(crate) address: Arc<str>,
    /// The place in the call, from 0.
    pub(crate) place: usize,
    pub(crate) spawn_index: u32,
    /// The arguments of the starting call.
    pub(crate) asked: SpawnArguments,
    /// The parent model's name for the child, for example `scout`.
    pub(crate) name: String,
    /// True if the child may continue to run after the starting call has its result.
    pub(crate) outlives: bool,
}

/// A planned child that is about to run, in the foreground or in the background.
pub(crate) struct StartingChild {
    /// The address of the starter: the parent, or a call of the parent.
    pub(crate) parent: Arc<str>,
    /// True if a tool's call starts the child.
    pub(crate) nested: bool,
    /// The journal of that call's nested calls.
    pub(crate) past: Option<Arc<AgentPast>>,
    pub(crate) job: Result<AgentJob, Box<Outcome>>,
    pub(crate) planned: PlannedSpawn,
    pub(crate) call_id: String,
    pub(crate) step: u64,
    /// The position of the starting call in the step.
    pub(crate) position: usize,
    /// Bytes of the conclusion for the parent.
    pub(crate) limit: usize,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) batch: Arc<ChildBatch>,
    pub(crate) shared: Arc<RunState>,
    pub(crate) ledger: Arc<Ledger>,
}

impl StartingChild {
    /// The place among the children of the parent's step.
    pub(crate) fn child_place(&self) -> Place {
        (self.position, self.planned.place)
    }
}
