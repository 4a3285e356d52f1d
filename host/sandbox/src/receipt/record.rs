//! The record of a running call: the host's imports write its effects, and the receipt is made from it.
//!
//! Each store has one record, which is emptied between calls. It is shared by `Arc`, because streams and
//! requests may outlive the call into the host that made them. Every list is bounded.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_policy::{Budget, ExhaustedLimit, Meter, PolicyDenial, RequestTarget};

use crate::jar::operations::{JarOperations, OperationGuard};
use crate::receipt::{CallBytes, Denial, LogLine};

/// The most refusals stored for a call: enough to see a pattern, because a guest can cause millions.
pub(crate) const MAX_DENIALS: usize = 64;
/// The most paths read, paths written and hosts stored for a call, for each list.
pub(crate) const MAX_PATHS: usize = 256;
/// The most bytes stored of a path, log message or fact.
pub(crate) const MAX_TEXT: usize = 1024;

/// The effects of a store's running call, and the budget that its bytes are billed to.
#[derive(Debug)]
pub(crate) struct CallRecord {
    budget: Budget,
    host_calls: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    reports: AtomicU64,
    log_limit: u64,
    operations: Arc<JarOperations>,
    lists: Mutex<RecordLists>,
}

/// The lists of a record, each of bounded length.
#[derive(Debug, Default)]
pub(crate) struct RecordLists {
    pub(crate) denials: Vec<Denial>,
    pub(crate) denials_dropped: u64,
    pub(crate) paths_read: BTreeSet<String>,
    pub(crate) paths_written: BTreeSet<String>,
    /// Paths of `paths_written` that did not exist before the call.
    made: BTreeSet<String>,
    pub(crate) paths_dropped: u64,
    pub(crate) hosts: BTreeSet<String>,
    pub(crate) secrets_used: BTreeSet<String>,
    pub(crate) logs: Vec<LogLine>,
    pub(crate) logs_dropped: u64,
}

impl CallRecord {
    /// Makes an empty record. Bytes are billed to `budget` when they move.
    pub(crate) fn new(budget: Budget, log_limit: u64) -> Self {
        Self {
            budget,
            host_calls: AtomicU64::new(0),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            reports: AtomicU64::new(0),
            log_limit,
            operations: Arc::default(),
            lists: Mutex::default(),
        }
    }

    /// Returns the record with the list of running operations on which closing the jar waits.
    pub(crate) fn with_operations(self, operations: Arc<JarOperations>) -> Self {
        Self { operations, ..self }
    }

    /// Begins an operation that may outlive the call. Hold the returned guard until it has ended.
    pub(crate) fn begin_operation(&self, name: &str) -> OperationGuard {
        self.operations.begin_operation(name)
    }

    /// The host's work since the record was emptied: the number of calls into the host, and the bytes moved.
    pub(crate) fn host_work(&self) -> (u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let bytes = [&self.read, &self.written, &self.sent, &self.received].map(load);
        (load(&self.host_calls), bytes.into_iter().fold(0, u64::saturating_add))
    }

    /// Counts a progress report, and returns whether it is within the limit.
    pub(crate) fn count_progress(&self) -> bool {
        let kept = self.reports.fetch_add(1, Ordering::Relaxed) < self.log_limit;
        if !kept {
            self.lock_lists().logs_dropped += 1;
        }
        kept
    }

    /// Counts a call of the guest into the host.
    pub(crate) fn host_call(&self) {
        self.host_calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Bills bytes before they are moved; `Err`: the budget has not so many left, and nothing is billed.
    pub(crate) fn reserve_bytes(&self, meter: Meter, bytes: u64) -> Result<(), ExhaustedLimit> {
        self.budget.reserve(meter, bytes)?;
        self.count_bytes(meter, bytes);
        Ok(())
    }

    /// Bills bytes that have already been moved; `Err`: the budget is used up.
    pub(crate) fn bill_bytes(&self, meter: Meter, bytes: u64) -> Result<(), ExhaustedLimit> {
        self.count_bytes(meter, bytes);
        self.budget.bill(meter, bytes)
    }

    /// Gives bytes back to the budget reserved but not moved.
    pub(crate) fn refund_bytes(&self, meter: Meter, bytes: u64) {
        self.budget.refund(meter, bytes);
        if let Some(counter) = self.meter_counter(meter) {
            let back = |n: u64| Some(n.saturating_sub(bytes));
            let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, back);
        }
    }

    /// Records that the policy refused a request because of its target.
    pub(crate) fn denied_request(&self, target: &RequestTarget, denied: &PolicyDenial) {
        self.add_denial(
            Denial::new(denied.code, "request", clip_text(&denied.to_string())).with_target(target),
        );
    }

    /// Records a refusal.
    pub(crate) fn add_denial(&self, denial: Denial) {
        tracing::info!(target: "belljar::denied", code = %denial.code, what = %denial.what, "{}", denial.facts);
        let mut lists = self.lock_lists();
        if lists.denials.len() < MAX_DENIALS {
            lists.denials.push(denial);
        } else {
            lists.denials_dropped += 1;
        }
    }

    /// Records that a file's content was read.
    pub(crate) fn path_read(&self, path: &str) {
        let mut lists = self.lock_lists();
        let RecordLists { paths_read, paths_dropped, .. } = &mut *lists;
        insert_bounded(paths_read, path, paths_dropped);
    }

    /// Records that a path was created, changed, renamed or removed.
    pub(crate) fn path_written(&self, path: &str) {
        let mut lists = self.lock_lists();
        let RecordLists { paths_written, paths_dropped, .. } = &mut *lists;
        insert_bounded(paths_written, path, paths_dropped);
    }

    /// Records that a file was made at a path where none was.
    pub(crate) fn path_made(&self, path: &str) {
        let is_known = self.lock_lists().paths_written.contains(path);
        self.path_written(path);
        let mut lists = self.lock_lists();
        // A longer path was cut, so it might be confused with another.
        if !is_known && path.len() <= MAX_TEXT && lists.paths_written.contains(path) {
            lists.made.insert(path.to_owned());
        }
    }

    /// Records that a file moved. If the call itself made the file, its old path is no longer listed: there
    /// was no file before the call and there is none after it.
    pub(crate) fn path_moved(&self, from: &str, to: &str) {
        if from == to || !self.lock_lists().made.remove(from) {
            self.path_written(from);
        } else {
            self.lock_lists().paths_written.remove(from);
        }
        self.path_written(to);
    }

    /// Records a host to which a request was sent, for example `https://api.test`.
    pub(crate) fn add_host(&self, host: &str) {
        let mut lists = self.lock_lists();
        let RecordLists { hosts, paths_dropped, .. } = &mut *lists;
        insert_bounded(hosts, host, paths_dropped);
    }

    /// Records that a secret was added to a request.
    pub(crate) fn secret_used(&self, name: &str) {
        self.lock_lists().secrets_used.insert(clip_text(name));
    }

    /// Stores a line of the guest's log; beyond the limit, it is only counted.
    pub(crate) fn add_log_line(&self, level: &str, message: &str) {
        let mut lists = self.lock_lists();
        if (lists.logs.len() as u64) < self.log_limit {
            lists.logs.push(LogLine { level: level.to_owned(), message: clip_text(message) });
        } else {
            lists.logs_dropped += 1;
        }
    }

    /// Returns the lists, the bytes and the number of host calls, and empties the record for the next call.
    pub(crate) fn drain_lists(&self) -> (RecordLists, CallBytes, u64) {
        let lists = std::mem::take(&mut *self.lock_lists());
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        take(&self.reports);
        let bytes = CallBytes {
            read: take(&self.read),
            written: take(&self.written),
            sent: take(&self.sent),
            received: take(&self.received),
            output: 0,
        };
        (lists, bytes, take(&self.host_calls))
    }

    fn count_bytes(&self, meter: Meter, bytes: u64) {
        if let Some(counter) = self.meter_counter(meter) {
            counter.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn meter_counter(&self, meter: Meter) -> Option<&AtomicU64> {
        match meter {
            Meter::Read => Some(&self.read),
            Meter::Write => Some(&self.written),
            Meter::Egress => Some(&self.sent),
            Meter::Ingress => Some(&self.received),
            Meter::Steps | Meter::Tokens | Meter::Fuel | Meter::Memory | Meter::Output => None,
        }
    }

    /// If a thread panicked with the lock held, the lists are still usable.
    fn lock_lists(&self) -> MutexGuard<'_, RecordLists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cuts a text to [`MAX_TEXT`] bytes, at a character.
pub(crate) fn clip_text(text: &str) -> String {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

fn insert_bounded(set: &mut BTreeSet<String>, text: &str, dropped: &mut u64) {
    if set.contains(text) {
        return;
    }
    if set.len() < MAX_PATHS {
        set.insert(clip_text(text));
    } else {
        *dropped += 1;
    }
}
