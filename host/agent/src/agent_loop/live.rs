//! The effects of an agent, done now.

use std::sync::Arc;

use async_trait::async_trait;
use belljar_policy::ToolPermit;
use futures::future::BoxFuture;
use tracing::Instrument as _;

use crate::agent_loop::agent::{AgentEffects, Notes, RunningAgent, Timer};
use crate::agent_loop::library::match_message;
use crate::agent_loop::machine::{AgentEnding, AgentLoop, LoopInput, NextStep};
use crate::outcome::{RunError, RunStatus};
use crate::subagent::background::EndedChild;
use crate::subagent::planned::{PlannedSpawn, StartingChild};
use crate::subagent::progress::{BatchHeading, ChildBatch};
use crate::tools::answer::CallAnswer;
use crate::tools::call::PlacedCall;
use crate::tools::dispatch::{CallDecision, CallRefusal};
use crate::tools::executor::CallExecutor;
use crate::trace;

/// Performs every effect.
pub(crate) struct LiveEffects;

#[async_trait]
impl AgentEffects for LiveEffects {
    fn begin_agent(&self, agent: &RunningAgent<'_>, machine: &AgentLoop) {
        agent.say_started(machine);
    }

    async fn run_start_hooks(
        &self,
        agent: &RunningAgent<'_>,
        timer: &mut Timer,
    ) -> Result<String, AgentEnding> {
        agent.before_start(timer).await
    }

    async fn match_library(&self, agent: &RunningAgent<'_>) -> Option<String> {
        match_message(agent.job, &agent.library).await
    }

    fn take_step(&self, agent: &RunningAgent<'_>, _: &AgentLoop) -> NextStep {
        agent.reserve_step()
    }

    async fn ask_model(
        &self,
        agent: &RunningAgent<'_>,
        machine: &mut AgentLoop,
        last: bool,
        notes: &mut Notes,
        timer: &mut Timer,
    ) -> LoopInput {
        for news in agent.background.take_notes() {
            machine.record_note(notes, news);
        }
        agent.request_answer(machine, last, std::mem::take(notes), timer).await
    }

    async fn execute_call(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        decision: CallDecision,
        machine: &AgentLoop,
    ) -> CallAnswer {
        let span = trace::tool_call(&decision, call.step);
        agent.run_with_hooks(call, decision, machine).instrument(span).await
    }

    async fn finish_answer(
        &self,
        agent: &RunningAgent<'_>,
        machine: &mut AgentLoop,
        notes: &mut Notes,
        ending: AgentEnding,
        again: &mut bool,
        timer: &mut Timer,
    ) -> Result<LoopInput, AgentEnding> {
        let ending = match agent.last_word(machine, notes, ending, timer).await {
            Ok(input) => return Ok(input),
            Err(ending) => ending,
        };
        if ending.status == RunStatus::Completed
            && let Some((why, note)) = machine.unfit_reason()
        {
            let Some(note) = note.map(str::to_owned) else {
                let message = why.to_owned();
                return Err(AgentEnding::failed(RunError::Form { message }));
            };
            machine.record_note(notes, note);
            return Ok(machine.reopen());
        }
        match agent.before_end(machine.last_output(), &ending, *again, timer).await {
            Some(text) => {
                machine.record_note(notes, text);
                *again = true;
                Ok(machine.reopen())
            }
            None => Err(ending),
        }
    }

    fn spawn_index(
        &self,
        agent: &CallExecutor<'_>,
        _: PlacedCall<'_>,
        _: usize,
        slug: &str,
    ) -> Option<u32> {
        agent.job.shared.spawned.next_index(slug)
    }

    async fn permit_spawn(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        permit: ToolPermit,
    ) -> Result<(), CallRefusal> {
        agent.ask_if_required(call, permit).await.map(drop)
    }

    async fn announce_children(
        &self,
        agent: &CallExecutor<'_>,
        call: PlacedCall<'_>,
        children: &[&PlannedSpawn],
        heading: BatchHeading<'_>,
    ) -> Arc<ChildBatch> {
        agent.persist_queued(call, children, true).await;
        agent.announce_batch(call, children, heading)
    }

    fn background_id(&self, agent: &CallExecutor<'_>, _: PlacedCall<'_>) -> String {
        agent.background.next_id()
    }

    fn run_child(
        &self,
        _: &CallExecutor<'_>,
        child: StartingChild,
    ) -> BoxFuture<'static, EndedChild> {
        Box::pin(child.run_to_end())
    }
}
