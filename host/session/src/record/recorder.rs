//! Keeps one turn in the store while it runs: its steps, its receipts and files, and its
//! subagents. Whoever looks there sees what one who watches sees, and the turn goes on from
//! there when the process dies.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use belljar_store::{AuditEntry, Committed, Store, SubagentRecord, SubagentStatus, Write};
use serde_json::json;

use crate::record::event_log::EventLog;
use crate::record::rows::{self, AgentMetadata, ReceiptKey};
use crate::record::turn::Open;
use belljar_agent::{ChildSummary, Outcome};
use belljar_agent::{Clock, RunId};
use belljar_agent::{Journal, QueuedChild};
use belljar_agent::{StepEntry, StepKind};

/// Why a subagent has no outcome although its turn is over.
const GIVEN_UP: &str = "it was still running when its turn was given up";

/// Denials of one call that the audit log names; the receipt has all.
const MAX_DENIALS: usize = 8;

/// One turn.
pub(crate) struct Recorder {
    place: Place,
    log: Arc<EventLog>,
    /// Who keeps the subagents besides.
    next: Arc<dyn Journal>,
    records: Mutex<Records>,
    /// The receipts that were handed to the store.
    receipts: Mutex<HashSet<ReceiptKey>>,
}

/// The turn that is kept.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) session: String,
    /// The agent's message.
    pub(crate) message: String,
    pub(crate) run: RunId,
    /// Who said what the turn answers.
    pub(crate) actor: String,
}

#[derive(Default)]
struct Records {
    all: Vec<SubagentRecord>,
    by_path: HashMap<Arc<str>, usize>,
}

impl Place {
    fn now(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    fn new_id(&self) -> String {
        RunId::new(&*self.clock).into()
    }
}

impl Recorder {
    /// Persists a turn, behind what is stored of it.
    pub(crate) fn new(
        place: Place,
        log: Arc<EventLog>,
        next: Arc<dyn Journal>,
        turn: &mut Open,
    ) -> Arc<Self> {
        let (before, receipts) =
            (std::mem::take(&mut turn.before), std::mem::take(&mut turn.receipts));
        let by_path = before.iter().enumerate();
        let by_path = by_path.filter_map(|(at, record)| Some((rows::path_of(record)?.into(), at)));
        let records = Records { by_path: by_path.collect(), all: before };
        let (records, receipts) = (Mutex::new(records), Mutex::new(receipts));
        Arc::new(Self { place, log, next, records, receipts })
    }

    /// The receipts of an outcome that no step brought: those of calls that were given up.
    pub(crate) fn receipts_left(&self, outcome: &Outcome) -> Option<Write> {
        let kept = self.kept_receipts();
        let all = outcome.all_receipts().into_iter();
        let left = all.filter(|receipt| !kept.contains(&rows::receipt_key(receipt)));
        let row = |receipt| rows::receipt_row(receipt, None, self.place.new_id(), self.place.now());
        let receipts: Vec<_> = left.map(row).collect();
        let Place { session, message, .. } = &self.place;
        let (session, message) = (session.clone(), message.clone());
        (!receipts.is_empty()).then_some(Write::Receipts { session, message, receipts })
    }

    /// The turn is over: all its subagents, each with how it ended.
    pub(crate) fn finish(&self) -> Vec<SubagentRecord> {
        let mut records = std::mem::take(&mut *self.records()).all;
        for record in records.iter_mut().filter(|record| record.ended.is_none()) {
            record.status = SubagentStatus::Cancelled;
            record.error = Some(GIVEN_UP.to_owned());
            record.ended = Some(self.place.now());
        }
        records
    }

    fn queue(&self, run: &RunId, child: &QueuedChild) -> SubagentRecord {
        let mut records = self.records();
        if let Some(known) = records.by_path.get(&child.path).and_then(|at| records.all.get(*at)) {
            return known.clone();
        }
        let (id, now) = (self.place.new_id(), self.place.now());
        let place = records.all.len();
        let run = run.to_string();
        let mut record = rows::queued_record(child, id, &self.place.message, run, place, now);
        let parent = records.by_path.get(&child.parent).and_then(|at| records.all.get(*at));
        record.parent_subagent_id = parent.map(|parent| parent.id.clone());
        records.by_path.insert(Arc::clone(&child.path), place);
        records.all.push(record.clone());
        record
    }

    /// Changes the record of a path, and hands it to the store together with `with`.
    fn change(
        &self,
        path: &str,
        change: impl FnOnce(&mut SubagentRecord),
        with: Option<StepEntry>,
    ) -> io::Result<Committed> {
        let record = {
            let mut records = self.records();
            let at = records.by_path.get(path).copied();
            let record = at.and_then(|at| records.all.get_mut(at));
            let record = record.ok_or_else(|| io::Error::other("it was never queued"))?;
            change(record);
            record.clone()
        };
        self.hand_over(vec![record], with)
    }

    /// Hands subagents, the counts of their batches and a step to the store.
    fn hand_over(
        &self,
        records: Vec<SubagentRecord>,
        with: Option<StepEntry>,
    ) -> io::Result<Committed> {
        let Place { session, message, run, .. } = &self.place;
        let (session, message) = (session.clone(), message.clone());
        let metadata = rows::value(&AgentMetadata::of_running(run, &self.records().all));
        let mut writes = vec![
            Write::Subagents { session: session.clone(), records },
            Write::Metadata { session, message, metadata, updated: self.place.now() },
        ];
        if let Some(entry) = with {
            writes.push(self.step_row(entry)?);
        }
        self.log.flush();
        Ok(self.place.store.enqueue(writes))
    }

    fn step_row(&self, entry: StepEntry) -> io::Result<Write> {
        let Place { session, message, .. } = &self.place;
        let entries = vec![rows::journal_entry(entry)?];
        Ok(Write::Journal { session: session.clone(), message: message.clone(), entries })
    }

    /// What the audit log says of a call that was refused something.
    fn denied(&self, entry: &StepEntry) -> Option<Write> {
        let StepKind::Result(kept) = &entry.kind else { return None };
        let receipt = kept.receipt.as_ref().filter(|call| !call.receipt.denials.is_empty())?;
        let denials = receipt.receipt.denials.iter().map(|denial| {
            json!({"code": denial.code.to_string(), "what": denial.what, "facts": denial.facts})
        });
        let denials: Vec<_> = denials.take(MAX_DENIALS).collect();
        Some(Write::Audit(AuditEntry {
            id: self.place.new_id(),
            at: self.place.now(),
            actor: self.place.actor.clone(),
            action: "call_denied".to_owned(),
            object: format!("{}/{}", self.place.session, self.place.message),
            detail: json!({"agent": receipt.agent, "tool": receipt.tool, "denials": denials}),
        }))
    }

    fn kept_receipts(&self) -> MutexGuard<'_, HashSet<ReceiptKey>> {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner)
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
        let kept = match self.hand_over(new, with) {
            Ok(committed) => committed.await.map_err(io::Error::other),
            Err(error) => Err(error),
        };
        // One that fails does not keep the other from it.
        self.next.subagents_queued(run, children, None).await.and(kept)
    }

    async fn subagent_running(&self, run: &RunId, path: &str) -> io::Result<()> {
        let now = self.place.now();
        let begin = |record: &mut SubagentRecord| {
            record.status = SubagentStatus::Running;
            record.started = Some(now);
        };
        // Nobody has to wait for this: if it is lost, so is all that follows from it.
        let kept = self.change(path, begin, None).map(drop);
        self.next.subagent_running(run, path).await.and(kept)
    }

    async fn subagent_ended(
        &self,
        run: &RunId,
        child: &ChildSummary,
        with: Option<StepEntry>,
    ) -> io::Result<()> {
        let kept = match self.change(&child.path, |record| rows::end(record, child), with) {
            Ok(committed) => committed.await.map_err(io::Error::other),
            Err(error) => Err(error),
        };
        self.next.subagent_ended(run, child, None).await.and(kept)
    }

    async fn step(&self, _run: &RunId, entry: StepEntry) -> io::Result<()> {
        let Place { session, message, .. } = &self.place;
        let (now, new_id) = (self.place.now(), || self.place.new_id());
        let mut writes = rows::of_result(session, message, &entry, now, new_id);
        writes.extend(self.denied(&entry));
        self.kept_receipts().extend(rows::receipt_of(&entry).map(rows::receipt_key));
        writes.push(self.step_row(entry)?);
        self.log.flush();
        self.place.store.enqueue(writes).await.map_err(io::Error::other)
    }

    fn keeps_steps(&self) -> bool {
        true
    }
}
