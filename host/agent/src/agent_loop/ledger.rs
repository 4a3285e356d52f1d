//! What an agent has done so far. It is kept outside the agent's own future, so a panic or a drop loses
//! nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::outcome::{Attachment, CallReceipt, ChildSummary, Usage, in_tree_order};
use crate::tools::nested::reply::AnswerForm;

/// What the outcome of an agent will report, recorded as it happens.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Mutex<LedgerEntries>,
    /// True if the ledger keeps how answers are divided into parts, for a client that reads the parts.
    keeps_forms: bool,
}

/// The position of a call in its step, and of a child in its call.
pub(crate) type Place = (usize, usize);

/// The entries of a ledger. Receipts and children have the position of their call.
#[derive(Debug, Default)]
pub(crate) struct LedgerEntries {
    pub(crate) receipts: Vec<(usize, CallReceipt)>,
    pub(crate) children: Vec<(Place, ChildSummary)>,
    pub(crate) attachments: Vec<(u64, usize, Attachment)>,
    pub(crate) usage: Usage,
    pub(crate) warnings: Vec<String>,
    pub(crate) unfinished: Vec<String>,
    /// How the answer of each step's only call is divided into parts, by step.
    forms: HashMap<u64, AnswerForm>,
}

impl Ledger {
    /// A ledger that also keeps how answers are divided, for calls of a client.
    pub(crate) fn keeping_forms() -> Self {
        Self { keeps_forms: true, ..Self::default() }
    }

    /// Keeps how the answer of the step's only call is divided into parts.
    pub(crate) fn keep_form(&self, step: u64, form: AnswerForm) {
        if self.keeps_forms {
            self.lock_entries().forms.insert(step, form);
        }
    }

    /// Removes and returns the receipts, attachments and answer form of a step.
    pub(crate) fn take_step(
        &self,
        step: u64,
    ) -> (Vec<CallReceipt>, Vec<Attachment>, Option<AnswerForm>) {
        let mut entries = self.lock_entries();
        let receipts = entries.receipts.extract_if(.., |(_, receipt)| receipt.step == step);
        let receipts = receipts.map(|(_, receipt)| receipt).collect();
        let files = entries.attachments.extract_if(.., |(of, ..)| *of == step);
        let files = files.map(|(.., file)| file).collect();
        (receipts, files, entries.forms.remove(&step))
    }

    /// Removes and returns the tokens used since the last call of this function.
    pub(crate) fn take_tokens(&self) -> Usage {
        let mut entries = self.lock_entries();
        let used = &mut entries.usage;
        Usage {
            input_tokens: std::mem::take(&mut used.input_tokens),
            cached_tokens: std::mem::take(&mut used.cached_tokens),
            output_tokens: std::mem::take(&mut used.output_tokens),
            ..Usage::default()
        }
    }

    /// Records one executed call of the step. The answer is not recorded here.
    pub(crate) fn record_call(
        &self,
        position: usize,
        receipt: CallReceipt,
        files: Vec<Attachment>,
    ) {
        let mut entries = self.lock_entries();
        entries.usage.tool_calls += 1;
        entries.usage.fuel = entries.usage.fuel.saturating_add(receipt.receipt.fuel);
        let step = receipt.step;
        entries.attachments.extend(files.into_iter().map(|file| (step, position, file)));
        entries.receipts.push((position, receipt));
    }

    /// Records the outcome of a subagent that ended.
    pub(crate) fn record_child(&self, place: Place, child: ChildSummary) {
        let mut entries = self.lock_entries();
        entries.usage.tool_calls += 1;
        entries.children.push((place, child));
    }

    /// The receipt and files of a call; empty for a call that started subagents.
    pub(crate) fn call_record(
        &self,
        step: u64,
        id: &str,
    ) -> (Option<CallReceipt>, Vec<Attachment>) {
        let entries = self.lock_entries();
        let receipt = entries
            .receipts
            .iter()
            .rev()
            .find(|(_, receipt)| receipt.call_id == id && receipt.step == step);
        let files =
            entries.attachments.iter().filter(|(of, _, file)| *of == step && file.call_id == id);
        (
            receipt.map(|(_, receipt)| receipt.clone()),
            files.map(|(.., file)| file.clone()).collect(),
        )
    }

    /// Locks the entries for reading or writing.
    pub(crate) fn lock_entries(&self) -> MutexGuard<'_, LedgerEntries> {
        // The lists are well-formed even after a panic of a thread that held the lock.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns all entries, each list in the order of the calls.
    pub(crate) fn take_entries(&self) -> LedgerEntries {
        let mut entries = std::mem::take(&mut *self.lock_entries());
        entries.receipts.sort_by_key(|(position, call)| (call.step, *position));
        in_tree_order(&mut entries.receipts, |(_, call)| call);
        entries.children.sort_by_key(|(place, child)| (child.step, *place));
        entries.attachments.sort_by_key(|(step, position, _)| (*step, *position));
        entries
    }
}
