//! The effects of an agent, done now.

use std::sync::Arc;

use async_trait::async_trait;
use belljar_policy::ToolPermit;
use futures::future::BoxFuture;
use tracing::Instrument as _;

use crate::agent_loop::agent::{Agent, Effects, Notes, Timer};
use crate::agent_loop::machine::{Ending, Input, Loop, NextStep};
use crate::outcome::{RunError, RunStatus};
use crate::subagent::background::Ended;
use crate::subagent::planned::{Planned, Starting};
use crate::subagent::progress::{Batch, Heading};
use crate::tools::answer::Answer;
use crate::tools::call::Call;
use crate::tools::dispatch::{Decision, Refusal};
use crate::tools::executor::CallExecutor;
use crate::trace;

/// Performs every effect.
pub(crate) struct Live;

#[async_trait]
impl Effects for Live {
    fn begin(&self, agent: &Agent<'_>, machine: &Loop) {
        agent.say_started(machine);
    }

    async fn start(&self, agent: &Agent<'_>, timer: &mut Timer) -> Result<String, Ending> {
        agent.before_start(timer).await
    }

    fn take_step(&self, agent: &Agent<'_>, _: &Loop) -> NextStep {
        agent.reserve_step()
    }

    async fn ask_model(
        &self,
        agent: &Agent<'_>,
        machine: &mut Loop,
        last: bool,
        notes: &mut Notes,
        timer: &mut Timer,
    ) -> Input {
        for news in agent.background.news() {
            machine.note(notes, news);
        }
        agent.ask(machine, last, std::mem::take(notes), timer).await
    }

    async fn call(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        decision: Decision,
        machine: &Loop,
    ) -> Answer {
        let span = trace::tool_call(&decision, call.step);
        agent.execute(call, decision, machine).instrument(span).await
    }

    async fn finish(
        &self,
        agent: &Agent<'_>,
        machine: &mut Loop,
        notes: &mut Notes,
        ending: Ending,
        again: &mut bool,
        timer: &mut Timer,
    ) -> Result<Input, Ending> {
        let ending = match agent.last_word(machine, notes, ending, timer).await {
            Ok(input) => return Ok(input),
            Err(ending) => ending,
        };
        if ending.status == RunStatus::Completed
            && let Some((why, note)) = machine.unfit()
        {
            let Some(note) = note.map(str::to_owned) else {
                let message = why.to_owned();
                return Err(Ending::failed(RunError::Form { message }));
            };
            machine.note(notes, note);
            return Ok(machine.reopen());
        }
        match agent.before_end(machine.output(), &ending, *again, timer).await {
            Some(text) => {
                machine.note(notes, text);
                *again = true;
                Ok(machine.reopen())
            }
            None => Err(ending),
        }
    }

    fn spawn_index(
        &self,
        agent: &CallExecutor<'_>,
        _: Call<'_>,
        _: usize,
        slug: &str,
    ) -> Option<u32> {
        agent.job.shared.spawned.next(slug)
    }

    async fn permit_spawn(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        permit: ToolPermit,
    ) -> Result<(), Refusal> {
        agent.permitted(call, permit).await.map(drop)
    }

    async fn announce(
        &self,
        agent: &CallExecutor<'_>,
        call: Call<'_>,
        children: &[&Planned],
        heading: Heading<'_>,
    ) -> Arc<Batch> {
        agent.persist_queued(call, children, true).await;
        agent.batch(call, children, heading)
    }

    fn background_id(&self, agent: &CallExecutor<'_>, _: Call<'_>) -> String {
        agent.background.next_id()
    }

    fn run_child(&self, _: &CallExecutor<'_>, child: Starting) -> BoxFuture<'static, Ended> {
        Box::pin(child.run())
    }
}
