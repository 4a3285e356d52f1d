//! The bills of models for the latest steps of agents. The host estimates a prompt's tokens by bytes before
//! sending. Because the ratio differs between models and texts, and some models bill more than the received
//! text, past bills are a lower bound for the next step's estimate.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use belljar_definition::AgentId;
use belljar_model::ModelReply;

use crate::agent_loop::machine::count_usage;
use crate::limits::MAX_BYTES_PER_TOKEN;

/// Remembered steps of an agent with one model: about as many as a turn has.
const MAX_STEPS: usize = 8;

/// Most remembered pairs of agent and model. Beyond it all are forgotten, and learnt again.
const MAX_AGENTS: usize = 1_024;

/// The bills of each agent with each model, for one tenant's process. Not stored.
#[derive(Debug, Default)]
pub(crate) struct AgentBills(Mutex<HashMap<(AgentId, String), Arc<RecentBills>>>);

/// The bills of the last steps of an agent with one model.
#[derive(Debug, Default)]
pub(crate) struct RecentBills(Mutex<VecDeque<StepBill>>);

/// The bill of one step.
#[derive(Debug, Clone, Copy)]
struct StepBill {
    /// Bytes of the step's prompt.
    bytes: u64,
    input: u64,
    output: u64,
}

impl AgentBills {
    /// The bills of an agent with a model. A run gets these once, not at each step.
    pub(crate) fn bills_for_agent(&self, agent: &AgentId, model: &str) -> Arc<RecentBills> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (agent.clone(), model.to_owned());
        if all.len() >= MAX_AGENTS && !all.contains_key(&key) {
            all.clear();
        }
        Arc::clone(all.entry(key).or_default())
    }
}

impl RecentBills {
    /// Adds the bill of a step whose prompt had this number of bytes.
    pub(crate) fn record_step(&self, bytes: u64, reply: &ModelReply) {
        let used = count_usage(bytes, reply);
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.len() >= MAX_STEPS {
            steps.pop_front();
        }
        steps.push_back(StepBill { bytes, input: used.input_tokens, output: used.output_tokens });
    }

    /// The fewest tokens that a step with a prompt of `bytes` will cost, by past bills; 0 = unknown. A longer
    /// prompt never costs less than a shorter one.
    pub(crate) fn fewest_tokens(&self, bytes: u64) -> u64 {
        let steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.is_empty() { 0 } else { estimate_tokens(&steps, bytes) }
    }
}

/// Estimates input tokens from similar, shorter or longer prompts, in this order, and adds the smallest
/// output.
fn estimate_tokens(steps: &VecDeque<StepBill>, bytes: u64) -> u64 {
    let like = |step: &&StepBill| step.bytes <= bytes && step.bytes >= bytes / 2;
    let more = |step: &StepBill| {
        step.input.saturating_add(bytes.saturating_sub(step.bytes) / MAX_BYTES_PER_TOKEN)
    };
    // The cheapest of similar steps counts, because texts differ and the estimate must not be too high.
    let alike = steps.iter().filter(like).map(more).min();
    let shorter = || {
        let shorter = steps.iter().filter(|step| step.bytes <= bytes);
        shorter.max_by_key(|step| step.bytes).map(more)
    };
    let longer = || {
        let share = |step: &StepBill| {
            let share = u128::from(step.input) * u128::from(bytes) / u128::from(step.bytes.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        steps.iter().map(share).min()
    };
    let input = alike.or_else(shorter).or_else(longer).unwrap_or(0);
    let output = steps.iter().map(|step| step.output).min().unwrap_or(0);
    input.saturating_add(output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_loop::machine::cut_off;

    fn bills(of: &AgentBills, agent: &str, model: &str) -> Arc<RecentBills> {
        of.bills_for_agent(&agent.parse().unwrap(), model)
    }

    fn reply(input_tokens: u64, output_tokens: u64) -> ModelReply {
        let usage = belljar_model::TokenUsage { input_tokens, output_tokens, ..Default::default() };
        ModelReply { usage, ..cut_off(0, 0) }
    }

    #[test]
    fn a_step_takes_at_least_what_one_like_it_was_billed() {
        let billed = AgentBills::default();
        let it = bills(&billed, "a", "m");
        let least = |bytes| bills(&billed, "a", "m").fewest_tokens(bytes);
        assert_eq!(least(1_000), 0, "nothing is known");
        it.record_step(1_000, &reply(900, 20));
        assert_eq!((least(1_000), least(1_160)), (920, 930));
        assert_eq!(least(100), 110, "a part of it, and an answer");
        assert_eq!(least(100_000), 900 + 99_000 / 16 + 20, "a text that nobody knows");
        // Of two similar steps the cheaper one counts, with the shortest answer.
        it.record_step(900, &reply(300, 5));
        assert_eq!(least(1_000), 300 + 100 / 16 + 5);
        it.record_step(8_000, &reply(7_000, 9));
        assert_eq!(least(8_000), 7_005, "its own prompt so far");
        // Another agent or model has no bills, and old bills are forgotten.
        let others = [bills(&billed, "b", "m"), bills(&billed, "a", "n")];
        assert_eq!(others.map(|other| other.fewest_tokens(1_000)), [0, 0]);
        for _ in 0..MAX_STEPS {
            it.record_step(1_000, &reply(10, 1));
        }
        assert_eq!(least(1_000), 11);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_huge_numbers_do_not_wrap() {
        let billed = AgentBills::default();
        for agent in 0..=MAX_AGENTS {
            bills(&billed, &format!("a{agent}"), "m").record_step(0, &reply(u64::MAX, u64::MAX));
        }
        assert!(billed.0.lock().unwrap().len() <= MAX_AGENTS);
        assert_eq!(
            bills(&billed, &format!("a{MAX_AGENTS}"), "m").fewest_tokens(u64::MAX),
            u64::MAX
        );
    }
}
