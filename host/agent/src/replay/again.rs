//! A stored answer, and its step, once more.

use belljar_model::ModelReply;
use belljar_policy::Meter;

use crate::agent_loop::agent::RunningAgent;
use crate::agent_loop::machine::{AgentLoop, LoopInput, NextStep};

/// Takes the step of a repeated answer: counted, never refused.
pub(crate) fn step_again(agent: &RunningAgent<'_>) -> NextStep {
    let budget = &agent.job.budget;
    let before = budget.exhausted_limit(Meter::Steps);
    let _ = budget.bill(Meter::Steps, 1);
    before.map_or(NextStep::Whole, NextStep::Last)
}

/// Returns a stored answer, with its earlier notes.
pub(crate) fn reply_again(
    agent: &RunningAgent<'_>,
    machine: &mut AgentLoop,
    notes: &[String],
    reply: &ModelReply,
) -> LoopInput {
    for text in notes {
        agent.background.mark_announced(text);
        machine.add_note(text.clone());
    }
    agent.ledger.lock_entries().usage.steps += 1;
    agent.bill_tokens(machine, reply);
    LoopInput::Replied(reply.clone())
}
