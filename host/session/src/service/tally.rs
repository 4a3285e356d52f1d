//! Counts of a tenant's turns since this process opened the service: numbers for operators, without any text
//! of people.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_agent::events::{EventKind, EventSink};
use belljar_agent::{Outcome, RunStatus, Usage};

/// The counter that a tenant's turns and their subagents are counted in.
#[derive(Debug, Default)]
pub(crate) struct TallyCounter(Mutex<TurnTally>);

/// The counts of a tenant's turns since the tenant's first turn in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnTally {
    /// Turns that completed.
    pub completed: u64,
    /// Turns that ended with a partial answer.
    pub partial: u64,
    /// Turns that failed.
    pub failed: u64,
    /// Cancelled turns.
    pub cancelled: u64,
    /// Input tokens of ended turns, cached tokens included.
    pub input_tokens: u64,
    /// Output tokens of ended turns.
    pub output_tokens: u64,
    /// Ended tool calls, refused ones included.
    pub tool_calls: u64,
    /// Refused calls, and single refusals within calls.
    pub denials: u64,
    /// Questions that were put to a person.
    pub questions: u64,
}

impl std::ops::Add for TurnTally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let sum = u64::saturating_add;
        Self {
            completed: sum(self.completed, other.completed),
            partial: sum(self.partial, other.partial),
            failed: sum(self.failed, other.failed),
            cancelled: sum(self.cancelled, other.cancelled),
            input_tokens: sum(self.input_tokens, other.input_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
            tool_calls: sum(self.tool_calls, other.tool_calls),
            denials: sum(self.denials, other.denials),
            questions: sum(self.questions, other.questions),
        }
    }
}

impl TallyCounter {
    /// An event sink that counts the questions and calls of a turn.
    pub(crate) fn event_sink(self: &Arc<Self>) -> EventSink {
        let tally = Arc::clone(self);
        EventSink::with_listener(move |event| match &event.kind {
            EventKind::ToolCallFinished { denials, .. } => {
                let denials = u64::try_from(*denials).unwrap_or(u64::MAX);
                tally.add_counts(TurnTally { tool_calls: 1, denials, ..TurnTally::default() });
            }
            EventKind::PermissionAsked { .. } | EventKind::QuestionAsked { .. } => {
                tally.add_counts(TurnTally { questions: 1, ..TurnTally::default() });
            }
            _ => {}
        })
    }

    /// Counts a turn that has ended.
    pub(crate) fn count_outcome(&self, outcome: &Outcome) {
        let Usage { input_tokens, output_tokens, .. } = outcome.total;
        let mut more = TurnTally { input_tokens, output_tokens, ..TurnTally::default() };
        *match outcome.status {
            RunStatus::Completed => &mut more.completed,
            RunStatus::Partial => &mut more.partial,
            RunStatus::Failed => &mut more.failed,
            RunStatus::Cancelled => &mut more.cancelled,
        } = 1;
        self.add_counts(more);
    }

    pub(crate) fn current_tally(&self) -> TurnTally {
        *self.lock_counts()
    }

    fn add_counts(&self, more: TurnTally) {
        let mut counts = self.lock_counts();
        *counts = *counts + more;
    }

    fn lock_counts(&self) -> MutexGuard<'_, TurnTally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
