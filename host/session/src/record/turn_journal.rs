//! The journal of one running turn in the store: steps, receipts, files and subagents. Watchers see only
//! stored events, and the turn resumes from the store after the process dies.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use belljar_model::ChatMessage;
use belljar_store::{
    AuditEntry, CommitHandle, MessageEnding, StoreWrite, SubagentRecord, SubagentStatus,
};
use serde_json::json;

use crate::record::cause;
use crate::record::event_log::EventLog;
use crate::record::place::TurnPlace;
use crate::record::rows::{self, AgentContent, AgentMetadata, ReceiptKey};
use crate::record::turn::OpenState;
use belljar_agent::events::EventSink;
use belljar_agent::{
    CallReceipt, ChildSummary, Host, Journal, Outcome, QueuedChild, RunId, RunStatus, StepEntry,
    StepKind, SubagentControl,
};

/// The error of a subagent that was still running when its turn ended.
const GIVEN_UP: &str = "it was still running when its turn was given up";

/// The most denials of one call in the audit log; the call's receipt has all of them.
const MAX_DENIALS: usize = 8;

/// Stores the events, steps, receipts, files and subagents of one running turn.
pub(crate) struct TurnJournal {
    pub(crate) place: TurnPlace,
    pub(crate) log: EventLog,
    /// The host's own journal, which gets every entry after this one.
    next: Arc<dyn Journal>,
    records: Mutex<SubagentRecords>,
    /// The keys of the receipts that were enqueued for the store already.
    receipts: Mutex<HashSet<ReceiptKey>>,
    /// Knows who cancelled the turn or one of its subagents.
    control: Arc<SubagentControl>,
}

/// The records of a turn's subagents, in the order of their starts, with an index by path.
#[derive(Default)]
struct SubagentRecords {
    all: Vec<SubagentRecord>,
    by_path: HashMap<Arc<str>, usize>,
}

impl TurnJournal {
    /// Makes the journal of a turn; for a resumed turn, it continues after the stored part.
    pub(crate) fn new(
        place: TurnPlace,
        log: EventLog,
        next: Arc<dyn Journal>,
        turn: &mut OpenState,
    ) -> Arc<Self> {
        let (before, receipts) =
            (std::mem::take(&mut turn.before), std::mem::take(&mut turn.receipts));
        let by_path = before.iter().enumerate();
        let by_path = by_path.filter_map(|(at, record)| Some((rows::path_of(record)?.into(), at)));
        let records = SubagentRecords { by_path: by_path.collect(), all: before };
        let (records, receipts) = (Mutex::new(records), Mutex::new(receipts));
        let control = Arc::clone(&turn.control);
        Arc::new(Self { place, log, next, records, receipts, control })
    }

    /// Returns a copy of the host with this journal.
    pub(crate) fn journaled_host(self: &Arc<Self>, host: &Host) -> Host {
        let mut host = host.clone();
        host.journal = Arc::clone(self) as Arc<dyn Journal>;
        host
    }

    /// A sink that sends each event to `events` and to the session's watchers.
    pub(crate) fn joined_sink(&self, events: EventSink) -> EventSink {
        events.add_listener(self.log.event_listener())
    }

    /// Ends the turn: the outcome replaces the placeholder. `added` are the messages of the turn.
    pub(crate) fn finish_turn(&self, outcome: &Outcome, added: &[ChatMessage]) -> CommitHandle {
        let TurnPlace { store, clock, session, message, .. } = &self.place;
        let (session, message) = (session.clone(), message.clone());
        let cancelled = (outcome.status == RunStatus::Cancelled).then_some(());
        let cancelled_by = cancelled.and_then(|()| self.control.run_cancelled_by());
        let mut records = self.ended_records();
        cause::note_causes(&mut records, outcome.status, cancelled_by.as_deref());
        let metadata =
            AgentMetadata { cancelled_by, ..AgentMetadata::from_outcome(outcome, &records) };
        let finished = MessageEnding {
            status: rows::message_status(outcome.status),
            content: rows::to_row_value(&AgentContent::from_outcome(outcome, added)),
            metadata: rows::to_row_value(&metadata),
            updated: self.place.now_millis(),
        };
        let mut writes = Vec::with_capacity(4);
        if !records.is_empty() {
            // All records are written again, in case an earlier write of one failed.
            writes.push(StoreWrite::Subagents { session: session.clone(), records });
        }
        writes.extend(self.receipts_left(outcome));
        writes.push(StoreWrite::FinishMessage { session, message, finished });
        writes.extend(rows::usage_parts(outcome, &**clock).into_iter().map(StoreWrite::Usage));
        store.enqueue_writes(writes)
    }

    /// The receipts that belong to no step of the journal, for example of calls that were dropped.
    fn receipts_left(&self, outcome: &Outcome) -> Option<StoreWrite> {
        let stored = self.stored_receipts();
        let all = outcome.all_receipts().into_iter();
        let left = all.filter(|receipt| !stored.contains(&rows::receipt_key(receipt)));
        let row = |receipt| {
            rows::receipt_row(receipt, None, self.place.new_id(), self.place.now_millis())
        };
        let receipts: Vec<_> = left.map(row).collect();
        let TurnPlace { session, message, .. } = &self.place;
        let (session, message) = (session.clone(), message.clone());
        (!receipts.is_empty()).then_some(StoreWrite::Receipts { session, message, receipts })
    }

    /// The records of all subagents with their endings; unfinished subagents are marked as cancelled.
    fn ended_records(&self) -> Vec<SubagentRecord> {
        let mut records = std::mem::take(&mut *self.lock_records()).all;
        for record in records.iter_mut().filter(|record| record.ended.is_none()) {
            record.status = SubagentStatus::Cancelled;
            record.error = Some(GIVEN_UP.to_owned());
            record.ended = Some(self.place.now_millis());
        }
        records
    }

    /// Makes the record of a subagent that waits to be started; a record of the same path is returned
    /// unchanged.
    fn queue_child(&self, run: &RunId, child: &QueuedChild) -> SubagentRecord {
        let mut records = self.lock_records();
        if let Some(known) = records.by_path.get(&child.path).and_then(|at| records.all.get(*at)) {
            return known.clone();
        }
        let (id, now) = (self.place.new_id(), self.place.now_millis());
        let place = records.all.len();
        let run = run.to_string();
        let mut record = rows::queued_record(child, id, &self.place.message, run, place, now);
        let parent = records.by_path.get(&child.parent).and_then(|at| records.all.get(*at));
        record.parent_subagent_id = parent.map(|parent| parent.id.clone());
        records.by_path.insert(Arc::clone(&child.path), place);
        records.all.push(record.clone());
        record
    }

    /// Changes the record of the subagent with this path, and enqueues the record together with the step
    /// `with`.
    fn change_record(
        &self,
        path: &str,
        change: impl FnOnce(&mut SubagentRecord),
        with: Option<StepEntry>,
    ) -> io::Result<CommitHandle> {
        let record = {
            let mut records = self.lock_records();
            let at = records.by_path.get(path).copied();
            let record = at.and_then(|at| records.all.get_mut(at));
            let record = record.ok_or_else(|| io::Error::other("it was never queued"))?;
            change(record);
            record.clone()
        };
        self.hand_over(vec![record], with)
    }

    /// Enqueues records of subagents, the counts for their starting calls, and a step, in one write.
    fn hand_over(
        &self,
        records: Vec<SubagentRecord>,
        with: Option<StepEntry>,
    ) -> io::Result<CommitHandle> {
        let TurnPlace { session, message, run, .. } = &self.place;
        let (session, message) = (session.clone(), message.clone());
        let metadata =
            rows::to_row_value(&AgentMetadata::for_running(run, &self.lock_records().all));
        let mut writes = vec![
            StoreWrite::Subagents { session: session.clone(), records },
            StoreWrite::Metadata { session, message, metadata, updated: self.place.now_millis() },
        ];
        if let Some(entry) = with {
            writes.push(self.step_row(entry)?);
        }
        self.log.flush();
        Ok(self.place.store.enqueue_writes(writes))
    }

    fn step_row(&self, entry: StepEntry) -> io::Result<StoreWrite> {
        let TurnPlace { session, message, .. } = &self.place;
        let entries = vec![rows::journal_entry(entry)?];
        Ok(StoreWrite::Journal { session: session.clone(), message: message.clone(), entries })
    }

    /// The audit entry for a step whose call was refused something; `None` = nothing was refused.
    fn denial_entry(&self, entry: &StepEntry) -> Option<StoreWrite> {
        let StepKind::Result(result) = &entry.kind else { return None };
        result.receipt.as_ref().and_then(|receipt| denied_call(&self.place, receipt))
    }

    fn stored_receipts(&self) -> MutexGuard<'_, HashSet<ReceiptKey>> {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_records(&self) -> MutexGuard<'_, SubagentRecords> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The audit entry for a receipt with refusals; `None` = nothing was refused.
pub(crate) fn denied_call(place: &TurnPlace, receipt: &CallReceipt) -> Option<StoreWrite> {
    let denials = &receipt.receipt.denials;
    if denials.is_empty() {
        return None;
    }
    let denials = denials.iter().map(|denial| {
        json!({"code": denial.code.to_string(), "what": denial.what, "facts": denial.facts})
    });
    let denials: Vec<_> = denials.take(MAX_DENIALS).collect();
    Some(StoreWrite::Audit(AuditEntry {
        id: place.new_id(),
        at: place.now_millis(),
        actor: place.actor.clone(),
        action: "call_denied".to_owned(),
        object: format!("{}/{}", place.session, place.message),
        detail: json!({"agent": receipt.agent, "tool": receipt.tool, "denials": denials}),
    }))
}

#[async_trait]
impl Journal for TurnJournal {
    async fn subagents_queued(
        &self,
        run: &RunId,
        children: &[QueuedChild],
        with: Option<StepEntry>,
    ) -> io::Result<()> {
        let new: Vec<_> = children.iter().map(|child| self.queue_child(run, child)).collect();
        let done = match self.hand_over(new, with) {
            Ok(committed) => committed.await.map_err(io::Error::other),
            Err(error) => Err(error),
        };
        // If one of the two writes fails, the other still happens.
        self.next.subagents_queued(run, children, None).await.and(done)
    }

    async fn subagent_running(&self, run: &RunId, path: &str) -> io::Result<()> {
        let now = self.place.now_millis();
        let begin = |record: &mut SubagentRecord| {
            record.status = SubagentStatus::Running;
            record.started = Some(now);
        };
        // Returns before the commit: if this write is lost, all later writes are lost too.
        let done = self.change_record(path, begin, None).map(drop);
        self.next.subagent_running(run, path).await.and(done)
    }

    async fn subagent_ended(
        &self,
        run: &RunId,
        child: &ChildSummary,
        with: Option<StepEntry>,
    ) -> io::Result<()> {
        let end = |record: &mut SubagentRecord| {
            rows::end_record(record, child);
            if record.status == SubagentStatus::Cancelled {
                cause::note_canceller(record, self.control.cancelled_by(&child.path).as_deref());
            }
        };
        let done = match self.change_record(&child.path, end, with) {
            Ok(committed) => committed.await.map_err(io::Error::other),
            Err(error) => Err(error),
        };
        self.next.subagent_ended(run, child, None).await.and(done)
    }

    async fn store_step(&self, run: &RunId, entry: StepEntry) -> io::Result<()> {
        let next = self.next.persists_steps().then(|| entry.clone());
        let TurnPlace { session, message, .. } = &self.place;
        let (now, new_id) = (self.place.now_millis(), || self.place.new_id());
        let mut writes = rows::result_writes(session, message, &entry, now, new_id);
        writes.extend(self.denial_entry(&entry));
        self.stored_receipts().extend(rows::receipt_of(&entry).map(rows::receipt_key));
        writes.push(self.step_row(entry)?);
        self.log.flush();
        let done = self.place.store.enqueue_writes(writes).await.map_err(io::Error::other);
        match next {
            Some(entry) => self.next.store_step(run, entry).await.and(done),
            None => done,
        }
    }

    fn persists_steps(&self) -> bool {
        true
    }
}
