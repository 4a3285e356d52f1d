//! The running agent and its effects: one trait, so that the loop is the same before and after a restart.
//! `LiveEffects` (`live.rs`) performs effects; `ReplayingEffects` (`replay/replaying.rs`) first returns earlier results
//! from the journal.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use belljar_policy::ToolPermit;
use futures::future::BoxFuture;
use tokio::time::Sleep;

use crate::agent_loop::machine::{AgentEnding, AgentLoop, LoopInput, NextStep};
use crate::replay::log::{AgentPast, LoggedCourse};
use crate::subagent::background::EndedChild;
use crate::subagent::planned::{PlannedSpawn, StartingChild};
use crate::subagent::progress::{BatchHeading, ChildBatch};
use crate::tools::answer::CallAnswer;
use crate::tools::call::PlacedCall;
use crate::tools::dispatch::{CallDecision, CallRefusal};
use crate::tools::executor::CallExecutor;
use crate::tools::nested::outer::OuterCall;

/// The running agent: an executor of calls, and a model that makes them.
pub(crate) struct RunningAgent<'a>(pub(crate) CallExecutor<'a>);

impl<'a> Deref for RunningAgent<'a> {
    type Target = CallExecutor<'a>;

    fn deref(&self) -> &CallExecutor<'a> {
        &self.0
    }
}

/// The agent's time, as one timer.
pub(crate) type Timer = Pin<Box<Sleep>>;

/// Notes for the model, besides results, since its last answer.
pub(crate) type Notes = Vec<String>;

/// The effects of an agent. After a restart, the loop requests all of them again, in the same order.
#[async_trait]
pub(crate) trait AgentEffects: Send + Sync {
    /// Announces the beginning of the agent.
    fn begin_agent(&self, agent: &RunningAgent<'_>, machine: &AgentLoop);

    /// Runs the start hooks. Returns the hooks' text for the model.
    async fn run_start_hooks(
        &self,
        agent: &RunningAgent<'_>,
        timer: &mut Timer,
    ) -> Result<String, AgentEnding>;

    /// The note about what fits the words of the first message; `None` = none, or the journal has it.
    async fn match_library(&self, agent: &RunningAgent<'_>) -> Option<String>;

    /// Reserves the step of the model's next answer before the request, so that parallel agents never exceed
    /// a shared budget.
    fn take_step(&self, agent: &RunningAgent<'_>, machine: &AgentLoop) -> NextStep;

    /// Asks the model for an answer.
    async fn ask_model(
        &self,
        agent: &RunningAgent<'_>,
        machine: &mut AgentLoop,
        last: bool,
        notes: &mut Notes,
        timer: &mut Timer,
    ) -> LoopInput;

    /// Executes one call of the model, or refuses it.
    async fn execute_call(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        decision: CallDecision,
        machine: &AgentLoop,
    ) -> CallAnswer;

    /// Handles an answer without calls. Returns the ending, or the input to continue with. `again`: a hook
    /// has prevented an ending before.
    async fn finish_answer(
        &self,
        agent: &RunningAgent<'_>,
        machine: &mut AgentLoop,
        notes: &mut Notes,
        ending: AgentEnding,
        again: &mut bool,
        timer: &mut Timer,
    ) -> Result<LoopInput, AgentEnding>;

    /// Reserves the spawn index of a subagent; `None` = the run has its maximum of subagents.
    fn spawn_index(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        place: usize,
        slug: &str,
    ) -> Option<u32>;

    /// Asks a person to allow a call that starts subagents, if necessary.
    async fn permit_spawn(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        permit: ToolPermit,
    ) -> Result<(), CallRefusal>;

    /// Stores that these subagents are about to start, and informs watchers.
    async fn announce_children(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        children: &[&PlannedSpawn],
        heading: BatchHeading<'_>,
    ) -> Arc<ChildBatch>;

    /// The id of the subagent in the background that a call starts.
    fn background_id(&self, agent: &CallExecutor<'_>, call: PlacedCall<'_>) -> String;

    /// Returns whether the subagent of a foreground call was moved to the background before the process died;
    /// `None` = the journal has no decision.
    fn was_left(&self, _: PlacedCall<'_>) -> Option<bool> {
        None
    }

    /// Returns whether this call had begun, before the process died, and runs again.
    fn had_begun(&self, _: PlacedCall<'_>) -> bool {
        false
    }

    /// Returns whether a person allowed the call before the process died.
    fn was_asked(&self, _: PlacedCall<'_>) -> bool {
        false
    }

    /// The source of the call's times and random numbers.
    fn logged_course(&self, _: PlacedCall<'_>) -> Option<LoggedCourse> {
        None
    }

    /// The journal of a call's nested calls, by address.
    fn past_within(&self, _: &CallExecutor<'_>, _: &str) -> Option<Arc<AgentPast>> {
        None
    }

    /// Keeps the recorded nested calls that a repeated call did not make. Returns the difference, if any.
    async fn left_over(
        &self,
        _: &CallExecutor<'_>,
        _: &OuterCall,
        _: &AgentLoop,
    ) -> Option<String> {
        None
    }

    /// Runs a subagent to its end, independent of the parent's future.
    fn run_child(
        &self,
        agent: &CallExecutor<'_>,
        child: StartingChild,
    ) -> BoxFuture<'static, EndedChild>;
}
