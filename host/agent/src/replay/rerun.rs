//! A replay of a finished run: stored model answers are returned, calls are made anew, and results are
//! compared with the stored ones.
//!
//! ```text
//! StepEntry (stored) ──> ReplayedRun ──ReplayingEffects──> the same agent, with overlays ──> ReplayedCall
//! ```
//!
//! A replay has no effect outside its own overlays (INV-200): every writable mount is an overlay, no host is
//! reached without the operator's permission (INV-201), no hook runs and no person is asked (INV-202). Other
//! effects are answered from the record, with a note.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_model::Recording;
use belljar_policy::Rights;
use serde::Serialize;

use crate::agent_loop::job::SpawnCount;
use crate::host::Host;
use crate::outcome::CallReceipt;
use crate::replay::journal::NoJournal;
use crate::replay::log::{ReplayLog, StepEntry};
use crate::tools::answer::CallAnswer;
use crate::tools::approval::asker::NoAsker;
use crate::tools::hooks::Hooks;
use crate::tools::nested::outer::is_within;
use crate::tools::result::ending_word;

/// A finished run that is replayed, with the comparisons so far.
#[derive(Debug)]
pub struct ReplayedRun {
    past: ReplayLog,
    asks_model: bool,
    network: bool,
    recording: Option<Recording>,
    calls: Mutex<Vec<ReplayedCall>>,
    /// Stored calls that the replay has not reached yet.
    left: Mutex<BTreeMap<CallPlace, LeftCall>>,
    ended: Mutex<Vec<String>>,
}

/// Where a call is in a run: its agent's address, the step, and the position in the step.
type CallPlace = (Arc<str>, u64, usize);

/// A stored call that the replay has not reached yet.
#[derive(Debug)]
struct LeftCall {
    agent: String,
    call_id: String,
    tool: String,
    then: CallText,
}

/// One call of a replayed run.
#[derive(Debug, Clone, Serialize)]
pub struct ReplayedCall {
    /// The calling agent's name, for example `main`; for a subagent, after the parent's.
    pub agent: String,
    /// The step of the call, from 1.
    pub step: u64,
    /// The call's position in the step, from 0.
    pub position: usize,
    /// The call's id in the conversation.
    pub call_id: String,
    /// The name that the model called, for example `file_read`. Foreign text.
    pub tool: String,
    /// The comparison with the stored result.
    pub result: CallComparison,
    /// The reason, if the result alone does not show it. Foreign text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The stored result, if the two differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<CallText>,
    /// The new result, if the two differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<CallText>,
}

/// The comparison of a call in a replay with the stored call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallComparison {
    /// The call was made again, and its result for the model is the same.
    Same,
    /// The call was made again, and its result differs from the recorded one.
    Differs,
    /// The call was not made: the stored result was used.
    FromRecord,
    /// The call was made again or left out, and has no stored result for comparison.
    NotCompared,
    /// A newly asked model made a call that is not stored.
    Added,
    /// The replay ended before this call.
    Missing,
}

/// The result of a call as a model reads it. Foreign text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallText {
    /// The text.
    pub content: String,
    /// True if the result is an error.
    pub is_error: bool,
    /// The ending of the call; absent if the call started subagents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
}

impl ReplayedRun {
    /// Prepares the replay of a run from its stored entries, in the order of storing.
    pub fn from_steps(steps: Vec<StepEntry>) -> Self {
        let past = ReplayLog::from_entries(steps);
        // Nested calls are not compared: the result of their outer call is.
        let results = past.logged_results().into_iter().filter(|(address, ..)| !is_within(address));
        let left = results.map(|(agent, step, position, result)| {
            let receipt = result.receipt.as_ref();
            let named = past.call_name(&agent, step, position);
            let left = LeftCall {
                agent: receipt.map_or_else(|| agent.to_string(), |receipt| receipt.agent.clone()),
                call_id: receipt.map(|receipt| receipt.call_id.clone()).unwrap_or_default(),
                tool: named.unwrap_or_default(),
                then: CallText::from_answer(&result.answer(), receipt),
            };
            ((agent, step, position), left)
        });
        let left = Mutex::new(left.collect());
        Self {
            past,
            asks_model: false,
            network: false,
            recording: None,
            calls: Mutex::default(),
            left,
            ended: Mutex::default(),
        }
    }

    /// Makes the replay ask the model again, instead of returning stored answers.
    #[must_use]
    pub fn asking_the_model(self) -> Self {
        Self { asks_model: true, ..self }
    }

    /// Lets tools reach the granted hosts, with secrets. Requests of tools then have a second effect.
    #[must_use]
    pub fn with_network(self) -> Self {
        Self { network: true, ..self }
    }

    /// Also writes the returned answers to a transcript.
    #[must_use]
    pub fn with_recording(self, recording: Recording) -> Self {
        Self { recording: Some(recording), ..self }
    }

    /// The compared calls in the order of their results, then the stored calls that the replay did not reach.
    pub fn calls(&self) -> Vec<ReplayedCall> {
        let mut calls = self.lock_calls().clone();
        let why = match self.asks_model {
            true => "the model did not ask for it this time",
            false => "the replay ended before it",
        };
        let left = self
            .lock_left_calls()
            .iter()
            .map(|((_, step, position), left)| ReplayedCall {
                agent: left.agent.clone(),
                step: *step,
                position: *position,
                call_id: left.call_id.clone(),
                tool: left.tool.clone(),
                result: CallComparison::Missing,
                reason: Some(why.to_owned()),
                then: Some(left.then.clone()),
                now: None,
            })
            .collect::<Vec<_>>();
        calls.extend(left);
        calls
    }

    /// The agents whose stored answers ended before they concluded.
    pub fn ended_early(&self) -> Vec<String> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// INV-202: the host of a replay asks no person, runs no hook and stores nothing.
    pub(crate) fn restrict_host(&self, mut host: Host) -> Host {
        host.hooks = Arc::new(Hooks::default());
        host.asker = Arc::new(NoAsker);
        host.journal = Arc::new(NoJournal);
        host
    }

    /// Narrows the rights of an agent for a replay: overlays instead of writable mounts (INV-200), and no
    /// hosts unless permitted (INV-201).
    pub(crate) fn restrict_rights(&self, rights: Rights) -> Rights {
        rights.for_rehearsal(self.network)
    }

    /// Creates the counter of the replay's agents, starting with the slug `top`.
    pub(crate) fn spawn_count(&self, top: &str) -> SpawnCount {
        match self.asks_model {
            true => SpawnCount::from_replay(&ReplayLog::default(), top),
            false => SpawnCount::from_replay(&self.past, top),
        }
    }

    pub(crate) fn replay_log(&self) -> &ReplayLog {
        &self.past
    }

    pub(crate) fn asks_model(&self) -> bool {
        self.asks_model
    }

    pub(crate) fn has_network(&self) -> bool {
        self.network
    }

    pub(crate) fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// Records how a call compares. `address` is its agent's.
    pub(crate) fn record_call(&self, address: &Arc<str>, call: ReplayedCall) {
        // A call that was added at a place leaves the stored call there unreached.
        if call.result != CallComparison::Added {
            self.lock_left_calls().remove(&(Arc::clone(address), call.step, call.position));
        }
        self.lock_calls().push(call);
    }

    /// Records that an agent asked for an answer after the last stored one.
    pub(crate) fn note_ended(&self, agent: &str) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(agent.to_owned());
    }

    fn lock_calls(&self) -> MutexGuard<'_, Vec<ReplayedCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_left_calls(&self) -> MutexGuard<'_, BTreeMap<CallPlace, LeftCall>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallComparison {
    /// Returns whether this result of a comparison is a difference.
    pub fn is_difference(self) -> bool {
        match self {
            Self::Differs | Self::Added | Self::Missing => true,
            Self::Same | Self::FromRecord | Self::NotCompared => false,
        }
    }

    /// The name of the result in one or two words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Differs => "differs",
            Self::FromRecord => "from the record",
            Self::NotCompared => "not compared",
            Self::Added => "added",
            Self::Missing => "missing",
        }
    }
}

impl CallText {
    /// The text of an answer, with the ending from its receipt.
    pub(crate) fn from_answer(answer: &CallAnswer, receipt: Option<&CallReceipt>) -> Self {
        Self {
            content: answer.content.clone(),
            is_error: answer.is_error,
            ending: receipt.map(|call| ending_word(&call.receipt.ending)),
        }
    }
}
