//! A subagent before its run: first planned, then ready to start.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::agent_loop::job::{AgentJob, RunState};
use crate::agent_loop::ledger::{Ledger, Place};
use crate::outcome::Outcome;
use crate::replay::log::AgentPast;
use crate::rights::resolve::ResolvedAgent;
use crate::subagent::progress::ChildBatch;
use crate::tools::builtin::arguments::SpawnArguments;

/// A subagent that has a spawn index and has not started.
pub(crate) struct PlannedSpawn {
    pub(crate) agent: Arc<ResolvedAgent>,
    pub(crate) path: Arc<str>,
    /// Its address in the run's journal.
    pub(crate) address: Arc<str>,
    /// Its place in the starting call, from 0.
    pub(crate) place: usize,
    pub(crate) spawn_index: u32,
    /// The arguments of the starting call.
    pub(crate) asked: SpawnArguments,
    /// The name that the parent's model used for it, for example `scout`.
    pub(crate) name: String,
    /// True if it may still run after the starting call has its result.
    pub(crate) outlives: bool,
}

/// A subagent that is about to run, in the foreground or in the background.
pub(crate) struct StartingChild {
    /// The journal address of the starting call's maker: of the parent, or of a call of the parent.
    pub(crate) parent: Arc<str>,
    /// True if a tool's code made the starting call.
    pub(crate) nested: bool,
    /// The journal of that outer call's nested calls; `None` = none.
    pub(crate) past: Option<Arc<AgentPast>>,
    pub(crate) job: Result<AgentJob, Box<Outcome>>,
    pub(crate) planned: PlannedSpawn,
    pub(crate) call_id: String,
    pub(crate) step: u64,
    /// The position of the starting call in its step.
    pub(crate) position: usize,
    /// Most bytes of the conclusion that the parent reads.
    pub(crate) limit: usize,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) batch: Arc<ChildBatch>,
    pub(crate) shared: Arc<RunState>,
    pub(crate) ledger: Arc<Ledger>,
}

impl StartingChild {
    /// Its place among the children of the parent's step.
    pub(crate) fn child_place(&self) -> Place {
        (self.position, self.planned.place)
    }
}
