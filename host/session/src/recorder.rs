//! Keeps the subagents of one turn in the store while the turn runs: whoever looks there sees
//! what one who watches sees, and what was concluded is there when the process dies.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use belljar_store::{Store, SubagentRecord, SubagentStatus};

use crate::clock::{Clock, RunId};
use crate::journal::{Journal, QueuedChild};
use crate::outcome::ChildSummary;
use crate::rows;
use crate::steps::StepEntry;

/// Why a subagent has no outcome although its turn is over.
const GIVEN_UP: &str = "it was still running when its turn was given up";

/// The subagents of one turn.
pub(crate) struct Recorder {
    store: Store,
    clock: Arc<dyn Clock>,
    session: String,
    message: String,
    /// Who keeps them besides.
    next: Arc<dyn Journal>,
    records: Mutex<Records>,
}

#[derive(Default)]
struct Records {
    all: Vec<SubagentRecord>,
    by_path: HashMap<Arc<str>, usize>,
}

impl Recorder {
    /// Keeps the subagents of a turn whose placeholder is `message`.
    pub(crate) fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        session: String,
        message: String,
        next: Arc<dyn Journal>,
    ) -> Arc<Self> {
        let records = Mutex::default();
        Arc::new(Self { store, clock, session, message, next, records })
    }

    /// The turn is over: all its subagents, each with how it ended.
    pub(crate) fn finish(&self) -> Vec<SubagentRecord> {
        let mut records = std::mem::take(&mut *self.records()).all;
        for record in records.iter_mut().filter(|record| record.ended.is_none()) {
            record.status = SubagentStatus::Cancelled;
            record.error = Some(GIVEN_UP.to_owned());
            record.ended = Some(self.now());
        }
        records
    }

    fn queue(&self, run: &RunId, child: &QueuedChild) -> SubagentRecord {
        let id = RunId::new(&*self.clock).into();
        let mut records = self.records();
        let place = records.all.len();
        let run = run.to_string();
        let mut record = rows::queued_record(child, id, &self.message, run, place, self.now());
        let parent = records.by_path.get(&child.parent).and_then(|at| records.all.get(*at));
        record.parent_subagent_id = parent.map(|parent| parent.id.clone());
        records.by_path.insert(Arc::clone(&child.path), place);
        records.all.push(record.clone());
        record
    }

    /// Changes the record of a path and writes it.
    async fn change(&self, path: &str, change: impl FnOnce(&mut SubagentRecord)) -> io::Result<()> {
        let record = {
            let mut records = self.records();
            let at = records.by_path.get(path).copied();
            let record = at.and_then(|at| records.all.get_mut(at));
            let record = record.ok_or_else(|| io::Error::other("it was never queued"))?;
            change(record);
            record.clone()
        };
        self.write(&[record]).await
    }

    async fn write(&self, records: &[SubagentRecord]) -> io::Result<()> {
        self.store.record_subagents(&self.session, records).await.map_err(io::Error::other)
    }

    fn now(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Journal for Recorder {
    async fn subagents_queued(
        &self,
        run: &RunId,
        children: &[QueuedChild],
        with: Option<StepEntry>,
    ) -> io::Result<()> {
        let new: Vec<_> = children.iter().map(|child| self.queue(run, child)).collect();
        let kept = self.write(&new).await;
        // One that fails does not keep the other from it.
        self.next.subagents_queued(run, children, with).await.and(kept)
    }

    async fn subagent_running(&self, run: &RunId, path: &str) -> io::Result<()> {
        let now = self.now();
        let begin = |record: &mut SubagentRecord| {
            record.status = SubagentStatus::Running;
            record.started = Some(now);
        };
        let kept = self.change(path, begin).await;
        self.next.subagent_running(run, path).await.and(kept)
    }

    async fn subagent_ended(
        &self,
        run: &RunId,
        child: &ChildSummary,
        with: Option<StepEntry>,
    ) -> io::Result<()> {
        let kept = self.change(&child.path, |record| rows::end(record, child)).await;
        self.next.subagent_ended(run, child, with).await.and(kept)
    }
}
