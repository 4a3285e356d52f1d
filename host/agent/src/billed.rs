//! The bills of models for the latest steps of agents. A prompt is counted before it is sent, by
//! its bytes, and how many of those a token has differs between models and texts; some bill more
//! than they are sent. What was billed says how much the next step takes at the least.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::limits::MAX_BYTES_PER_TOKEN;

/// Steps of an agent that are remembered: about those of one turn.
const MAX_STEPS: usize = 8;

/// Agents with their models that are remembered; past it all are forgotten and learnt anew.
const MAX_AGENTS: usize = 1_024;

/// The last steps of each agent with each model. Process-wide for one tenant, and not stored.
#[derive(Debug, Default)]
pub(crate) struct Billed(Mutex<HashMap<(String, String), VecDeque<Step>>>);

/// The bill of one step.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Bytes of its prompt.
    bytes: u64,
    input: u64,
    output: u64,
}

impl Billed {
    /// Remembers a step.
    pub(crate) fn note(&self, agent: &str, model: &str, bytes: u64, (input, output): (u64, u64)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (agent.to_owned(), model.to_owned());
        if all.len() >= MAX_AGENTS && !all.contains_key(&key) {
            all.clear();
        }
        let steps = all.entry(key).or_default();
        if steps.len() >= MAX_STEPS {
            steps.pop_front();
        }
        steps.push_back(Step { bytes, input, output });
    }

    /// The fewest tokens that a step with a prompt of so many bytes takes, by what was billed; 0 =
    /// nothing is known. A longer prompt is billed no less than a shorter one.
    pub(crate) fn least(&self, agent: &str, model: &str, bytes: u64) -> u64 {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let steps = all.get(&(agent.to_owned(), model.to_owned()));
        steps.map_or(0, |steps| least(steps, bytes))
    }
}

fn least(steps: &VecDeque<Step>, bytes: u64) -> u64 {
    let like = |step: &&Step| step.bytes <= bytes && step.bytes >= bytes / 2;
    let more = |step: &Step| {
        step.input.saturating_add(bytes.saturating_sub(step.bytes) / MAX_BYTES_PER_TOKEN)
    };
    // Of those that are much alike the cheapest: texts differ, and this must not be too much.
    let alike = steps.iter().filter(like).map(more).min();
    let shorter = || {
        let shorter = steps.iter().filter(|step| step.bytes <= bytes);
        shorter.max_by_key(|step| step.bytes).map(more)
    };
    let longer = || {
        let share = |step: &Step| {
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

    #[test]
    fn a_step_takes_at_least_what_one_like_it_was_billed() {
        let billed = Billed::default();
        let least = |bytes| billed.least("a", "m", bytes);
        assert_eq!(least(1_000), 0, "nothing is known");
        billed.note("a", "m", 1_000, (900, 20));
        assert_eq!((least(1_000), least(1_160)), (920, 930));
        assert_eq!(least(100), 110, "a part of it, and an answer");
        assert_eq!(least(100_000), 900 + 99_000 / 16 + 20, "a text that nobody knows");
        // The cheaper of two that are alike, and the shortest answer.
        billed.note("a", "m", 900, (300, 5));
        assert_eq!(least(1_000), 300 + 100 / 16 + 5);
        billed.note("a", "m", 8_000, (7_000, 9));
        assert_eq!(least(8_000), 7_005, "its own prompt so far");
        // Others know nothing of it, and what is long ago is forgotten.
        assert_eq!((billed.least("b", "m", 1_000), billed.least("a", "n", 1_000)), (0, 0));
        for _ in 0..MAX_STEPS {
            billed.note("a", "m", 1_000, (10, 1));
        }
        assert_eq!(least(1_000), 11);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_huge_numbers_do_not_wrap() {
        let billed = Billed::default();
        for agent in 0..=MAX_AGENTS {
            billed.note(&agent.to_string(), "m", 0, (u64::MAX, u64::MAX));
        }
        assert!(billed.0.lock().unwrap().len() <= MAX_AGENTS);
        assert_eq!(billed.least(&MAX_AGENTS.to_string(), "m", u64::MAX), u64::MAX);
    }
}
