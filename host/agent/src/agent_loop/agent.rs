//! The running agent, and the trait of its effects, so the loop is the same before and after a restart.
//! `LiveEffects` (`live.rs`) performs the effects; `ReplayingEffects` (`replay/replaying.rs`) first returns
//! stored results from the journal.

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

/// The timer of the agent's deadline.
pub(crate) type Timer = Pin<Box<Sleep>>;

/// Texts that the host added to the conversation since the model's last answer, for the journal.
pub(crate) type Notes = Vec<String>;

/// What an agent does outside its loop. After a restart, the loop requests all effects again, in the same
/// order.
#[async_trait]
pub(crate) trait AgentEffects: Send + Sync {
    /// Announces to watchers that the agent has begun.
    fn begin_agent(&self, agent: &RunningAgent<'_>, machine: &AgentLoop);

    /// Runs the hooks of the agent's start. Returns their text for the model.
    async fn run_start_hooks(
        &self,
        agent: &RunningAgent<'_>,
        timer: &mut Timer,
    ) -> Result<String, AgentEnding>;

    /// The note about library entries that fit the first message; `None` = no entry fits, or the journal has
    /// the note.
    async fn match_library(&self, agent: &RunningAgent<'_>) -> Option<String>;

    /// Charges a step for the model's next answer, before the request, so parallel agents never exceed a
    /// shared budget.
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

    /// Executes or refuses one call of the model.
    async fn execute_call(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        decision: CallDecision,
        machine: &AgentLoop,
    ) -> CallAnswer;

    /// Handles an answer of the model without calls. Returns the agent's ending, or the input with which the
    /// loop continues. `again`: a hook has already kept the agent from ending once.
    async fn finish_answer(
        &self,
        agent: &RunningAgent<'_>,
        machine: &mut AgentLoop,
        notes: &mut Notes,
        ending: AgentEnding,
        again: &mut bool,
        timer: &mut Timer,
    ) -> Result<LoopInput, AgentEnding>;

    /// The spawn index of the next subagent of a call; `None` = the run has reached its maximum of subagents.
    fn spawn_index(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        place: usize,
        slug: &str,
    ) -> Option<u32>;

    /// Asks a person to allow a call that starts subagents, if the call's permit requires an answer.
    async fn permit_spawn(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        permit: ToolPermit,
    ) -> Result<(), CallRefusal>;

    /// Records in the store that these subagents are about to start, and announces them to watchers.
    async fn announce_children(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        children: &[&PlannedSpawn],
        heading: BatchHeading<'_>,
    ) -> Arc<ChildBatch>;

    /// The id for the background subagent that a call starts, for example `bg-1`.
    fn background_id(&self, agent: &CallExecutor<'_>, call: PlacedCall<'_>) -> String;

    /// Looks up in the journal whether the call's subagent was moved to the background. `None` = the journal
    /// does not have the call's result.
    fn was_left(&self, _: PlacedCall<'_>) -> Option<bool> {
        None
    }

    /// Returns whether the call had begun before the process died, and now runs again.
    fn had_begun(&self, _: PlacedCall<'_>) -> bool {
        false
    }

    /// Returns whether a person allowed the call before the process died.
    fn was_asked(&self, _: PlacedCall<'_>) -> bool {
        false
    }

    /// The stored source of the call's times and random numbers; `None` = a new one.
    fn logged_course(&self, _: PlacedCall<'_>) -> Option<LoggedCourse> {
        None
    }

    /// The journal of a call's nested calls, which is stored under their address.
    fn past_within(&self, _: &CallExecutor<'_>, _: &str) -> Option<Arc<AgentPast>> {
        None
    }

    /// Keeps the journal's nested calls that a repeated call did not make again. Returns the difference, if
    /// any.
    async fn left_over(
        &self,
        _: &CallExecutor<'_>,
        _: &OuterCall,
        _: &AgentLoop,
    ) -> Option<String> {
        None
    }

    /// Runs a subagent to its end, in a future that does not borrow from the parent.
    fn run_child(
        &self,
        agent: &CallExecutor<'_>,
        child: StartingChild,
    ) -> BoxFuture<'static, EndedChild>;
}
