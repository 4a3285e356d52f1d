//! The subagents of one call, counted while they run: what a live card shows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::agent_loop::job::Shared;
use crate::events::{BatchChild, Counts, EventKind, MAX_SHOWN};
use crate::outcome::{Outcome, RunStatus};

/// The subagents that one call started.
pub(crate) struct Batch {
    shared: Arc<Shared>,
    parent: Arc<str>,
    id: String,
    counts: Mutex<Counts>,
}

impl Batch {
    /// Announces them to `parent`, all queued. `children`: path and task of each.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        parent: &Arc<str>,
        id: &str,
        children: &[(Arc<str>, String)],
        background: bool,
        max_concurrent: usize,
    ) -> Arc<Self> {
        let total = children.len();
        shared.events.emit(parent, || EventKind::SubagentBatchStart {
            batch: id.to_owned(),
            children: children.iter().map(shown).collect(),
            background,
            max_concurrent,
        });
        Arc::new(Self {
            shared: Arc::clone(shared),
            parent: Arc::clone(parent),
            id: id.to_owned(),
            counts: Mutex::new(Counts { total, queued: total, ..Counts::default() }),
        })
    }

    /// The same without telling anybody: they were announced before.
    pub(crate) fn unannounced(
        shared: &Arc<Shared>,
        parent: &Arc<str>,
        id: &str,
        total: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::clone(shared),
            parent: Arc::clone(parent),
            id: id.to_owned(),
            counts: Mutex::new(Counts { total, queued: total, ..Counts::default() }),
        })
    }

    /// One of them had ended, and that was announced before.
    pub(crate) fn ended_before(&self, status: RunStatus) {
        let mut counts = self.counts();
        counts.queued = counts.queued.saturating_sub(1);
        *counts.ended(status) += 1;
    }

    /// One of them runs now.
    pub(crate) fn running(&self, child: &str) {
        let counts = {
            let mut counts = self.counts();
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

    /// One of them has ended; `ran` = it had begun.
    pub(crate) fn done(&self, child: &str, outcome: &Outcome, ran: bool) {
        let counts = {
            let mut counts = self.counts();
            let left = if ran { &mut counts.running } else { &mut counts.queued };
            *left = left.saturating_sub(1);
            *counts.ended(outcome.status) += 1;
            *counts
        };
        self.shared.events.emit(&self.parent, || EventKind::SubagentDone {
            batch: self.id.clone(),
            child: child.to_owned(),
            status: outcome.status,
            steps: outcome.total.steps,
            tokens: outcome.total.input_tokens.saturating_add(outcome.total.output_tokens),
            error: outcome.error.as_ref().map(ToString::to_string),
            counts,
        });
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// The count of those that ended like this.
    pub fn ended(&mut self, status: RunStatus) -> &mut usize {
        match status {
            RunStatus::Completed => &mut self.completed,
            RunStatus::Partial => &mut self.partial,
            RunStatus::Failed => &mut self.failed,
            RunStatus::Cancelled => &mut self.cancelled,
        }
    }
}

fn shown((path, task): &(Arc<str>, String)) -> BatchChild {
    BatchChild { child: path.to_string(), task: task.chars().take(MAX_SHOWN).collect() }
}
