//! What the turns of a tenant came to, since this process opened it: numbers for whoever watches the
//! server, and nothing that anybody said.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use belljar_agent::events::{EventKind, EventSink};
use belljar_agent::{Outcome, RunStatus};

/// Counts, of a turn's subagents too.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    completed: AtomicU64,
    partial: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
    tool_calls: AtomicU64,
    denials: AtomicU64,
    questions: AtomicU64,
}

/// What a tenant's turns came to since its first one in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tallied {
    /// Turns that ended so.
    pub completed: u64,
    /// Turns that ended with what there was.
    pub partial: u64,
    /// Turns that failed.
    pub failed: u64,
    /// Turns that somebody ended.
    pub cancelled: u64,
    /// Input tokens of turns that have ended, cached ones included.
    pub input_tokens: u64,
    /// Output tokens of the same.
    pub output_tokens: u64,
    /// Calls of tools that have ended, refused ones included.
    pub tool_calls: u64,
    /// Refusals: calls that were refused, and what calls were refused.
    pub denials: u64,
    /// Questions that were put to a person.
    pub questions: u64,
}

impl std::ops::Add for Tallied {
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

impl Tally {
    /// Counts what happens in a turn.
    pub(crate) fn listening(self: &Arc<Self>) -> EventSink {
        let tally = Arc::clone(self);
        EventSink::to(move |event| match &event.kind {
            EventKind::ToolCallFinished { denials, .. } => {
                add(&tally.tool_calls, 1);
                add(&tally.denials, u64::try_from(*denials).unwrap_or(u64::MAX));
            }
            EventKind::PermissionAsked { .. } | EventKind::QuestionAsked { .. } => {
                add(&tally.questions, 1);
            }
            _ => {}
        })
    }

    /// Counts a turn that has ended.
    pub(crate) fn ended(&self, outcome: &Outcome) {
        let turns = match outcome.status {
            RunStatus::Completed => &self.completed,
            RunStatus::Partial => &self.partial,
            RunStatus::Failed => &self.failed,
            RunStatus::Cancelled => &self.cancelled,
        };
        add(turns, 1);
        add(&self.input_tokens, outcome.total.input_tokens);
        add(&self.output_tokens, outcome.total.output_tokens);
    }

    pub(crate) fn now(&self) -> Tallied {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Tallied {
            completed: get(&self.completed),
            partial: get(&self.partial),
            failed: get(&self.failed),
            cancelled: get(&self.cancelled),
            input_tokens: get(&self.input_tokens),
            output_tokens: get(&self.output_tokens),
            tool_calls: get(&self.tool_calls),
            denials: get(&self.denials),
            questions: get(&self.questions),
        }
    }
}

fn add(count: &AtomicU64, amount: u64) {
    count.fetch_add(amount, Ordering::Relaxed);
}
