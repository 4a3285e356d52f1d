//! The subagents of one call, counted while they run, for example for a live card on a page.
//!
//! A batch is announced once, with the title if the parent's model wrote one, and ends once, with a summary
//! of its subagents' endings.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::agent_loop::job::RunState;
use crate::events::{BatchChild, Counts, EventKind, MAX_SHOWN};
use crate::outcome::{Outcome, RunStatus, Usage};

/// The subagents that one call started.
pub(crate) struct ChildBatch {
    shared: Arc<RunState>,
    parent: Arc<str>,
    id: String,
    state: Mutex<BatchState>,
}

/// How many subagents of a batch are in each state, and the usage of the ended ones.
#[derive(Debug, Clone, Copy, Default)]
struct BatchState {
    counts: Counts,
    steps: u64,
    tokens: u64,
}

/// What is announced about a batch when it starts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchHeading<'a> {
    /// What the tasks are about, as the parent's model wrote it.
    pub(crate) title: Option<&'a str>,
    /// True if the parent does not wait for the subagents.
    pub(crate) background: bool,
}

impl ChildBatch {
    /// Announces a batch to watchers, with all children queued. `children` has the path and task of each.
    pub(crate) fn start(
        shared: &Arc<RunState>,
        parent: &Arc<str>,
        id: &str,
        children: &[(Arc<str>, String)],
        BatchHeading { title, background }: BatchHeading<'_>,
        max_concurrent: usize,
    ) -> Arc<Self> {
        shared.events.emit(parent, || EventKind::SubagentBatchStart {
            batch: id.to_owned(),
            title: title.map(|title| title.chars().take(MAX_SHOWN).collect()),
            children: children.iter().map(to_batch_child).collect(),
            background,
            max_concurrent,
        });
        Self::without_announcement(shared, parent, id, children.len())
    }

    /// A batch that was announced before the process died; sends no event.
    pub(crate) fn without_announcement(
        shared: &Arc<RunState>,
        parent: &Arc<str>,
        id: &str,
        total: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::clone(shared),
            parent: Arc::clone(parent),
            id: id.to_owned(),
            state: Mutex::new(BatchState {
                counts: Counts { total, queued: total, ..Counts::default() },
                ..BatchState::default()
            }),
        })
    }

    /// Counts a subagent whose end was announced before the process died.
    pub(crate) fn ended_before(&self, outcome: &Outcome) {
        let mut state = self.lock_state();
        state.counts.queued = state.counts.queued.saturating_sub(1);
        state.count_ended(outcome);
    }

    /// Announces that the batch's only subagent continues in the background under this id.
    pub(crate) fn move_to_background(&self, id: &str) {
        self.shared.events.emit(&self.parent, || EventKind::SubagentBackground {
            batch: self.id.clone(),
            id: id.to_owned(),
        });
    }

    /// Announces that a child has begun to run.
    pub(crate) fn mark_running(&self, child: &str) {
        let counts = {
            let counts = &mut self.lock_state().counts;
            counts.queued = counts.queued.saturating_sub(1);
            counts.running += 1;
            *counts
        };
        self.shared.events.emit(&self.parent, || EventKind::SubagentUpdate {
            batch: self.id.clone(),
            child: child.to_owned(),
            counts,
        });
    }

    /// Announces the end of a child. `ran`: it had begun to run.
    pub(crate) fn mark_done(&self, child: &str, outcome: &Outcome, ran: bool) {
        let state = {
            let mut state = self.lock_state();
            let counts = &mut state.counts;
            let left = if ran { &mut counts.running } else { &mut counts.queued };
            *left = left.saturating_sub(1);
            state.count_ended(outcome);
            *state
        };
        let counts = state.counts;
        self.shared.events.emit(&self.parent, || EventKind::SubagentDone {
            batch: self.id.clone(),
            child: child.to_owned(),
            status: outcome.status,
            steps: outcome.total.steps,
            tokens: outcome.total.input_tokens.saturating_add(outcome.total.output_tokens),
            error: outcome.error.as_ref().map(ToString::to_string),
            counts,
        });
        if counts.queued == 0 && counts.running == 0 {
            self.shared.events.emit(&self.parent, || EventKind::SubagentBatchEnd {
                batch: self.id.clone(),
                summary: state.summary(),
                counts,
            });
        }
    }

    /// One line about how the subagents of the batch have ended.
    pub(crate) fn summary(&self) -> String {
        self.lock_state().summary()
    }

    fn lock_state(&self) -> MutexGuard<'_, BatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BatchState {
    /// Counts one more ended subagent and its usage.
    fn count_ended(&mut self, outcome: &Outcome) {
        *self.counts.count_for_status(outcome.status) += 1;
        let Usage { steps, input_tokens, output_tokens, .. } = outcome.total;
        self.steps = self.steps.saturating_add(steps);
        let tokens = input_tokens.saturating_add(output_tokens);
        self.tokens = self.tokens.saturating_add(tokens);
    }

    /// The line about the ended subagents, for example `2 completed, 1 failed; steps: 9, tokens: 4100`.
    fn summary(self) -> String {
        let Counts { completed, partial, failed, cancelled, .. } = self.counts;
        let counted = [
            (completed, "completed"),
            (partial, "partial"),
            (failed, "failed"),
            (cancelled, "cancelled"),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        let counted: Vec<String> = counted.map(|(count, word)| format!("{count} {word}")).collect();
        let ended = if counted.is_empty() { "none ended".to_owned() } else { counted.join(", ") };
        format!("{ended}; steps: {}, tokens: {}", self.steps, self.tokens)
    }
}

impl Counts {
    /// The count for this status, for a change.
    pub fn count_for_status(&mut self, status: RunStatus) -> &mut usize {
        match status {
            RunStatus::Completed => &mut self.completed,
            RunStatus::Partial => &mut self.partial,
            RunStatus::Failed => &mut self.failed,
            RunStatus::Cancelled => &mut self.cancelled,
        }
    }
}

fn to_batch_child((path, task): &(Arc<str>, String)) -> BatchChild {
    BatchChild { child: path.to_string(), task: task.chars().take(MAX_SHOWN).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_how_they_ended_and_what_they_used() {
        let counts =
            Counts { total: 4, completed: 2, failed: 1, cancelled: 1, ..Counts::default() };
        let state = BatchState { counts, steps: 7, tokens: 1_234 };
        assert_eq!(state.summary(), "2 completed, 1 failed, 1 cancelled; steps: 7, tokens: 1234");
        assert_eq!(BatchState::default().summary(), "none ended; steps: 0, tokens: 0");
    }
}
