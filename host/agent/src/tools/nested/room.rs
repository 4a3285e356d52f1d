//! Bounds the receipts of nested calls. One call of a model can have a thousand nested calls, and each
//! receipt could be as large as a whole one.

use std::sync::atomic::{AtomicU64, Ordering};

use belljar_sandbox::Receipt;

/// Most bytes of texts and file names in the receipts below one call of the model: about the maximum of one
/// receipt.
const MAX_KEPT: u64 = 1 << 20;

/// The bytes that are left for receipts of nested calls.
#[derive(Debug)]
pub(crate) struct ReceiptRoom(AtomicU64);

impl Default for ReceiptRoom {
    fn default() -> Self {
        Self(AtomicU64::new(MAX_KEPT))
    }
}

impl ReceiptRoom {
    /// INV-253: reserves the bytes of a receipt. If too few are left, its texts and file names are removed
    /// and counted; the first refusal stays in it.
    pub(crate) fn fit_receipt(&self, receipt: &mut Receipt) {
        let needed = receipt_size(receipt);
        let take = |left: u64| left.checked_sub(needed);
        if self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            return;
        }
        let count =
            |dropped: &mut u64, length: usize| *dropped = dropped.saturating_add(length as u64);
        let Receipt { denials, paths_read, paths_written, hosts, logs, stdout, stderr, .. } =
            receipt;
        let denied = denials.len().saturating_sub(1);
        denials.truncate(1);
        let paths = [paths_read, paths_written, hosts].map(|list| std::mem::take(list).len());
        let lines = std::mem::take(logs).len();
        let streams = [stdout, stderr].map(|text| std::mem::take(text).len());
        count(&mut receipt.denials_dropped, denied);
        count(&mut receipt.paths_dropped, paths.iter().sum());
        count(&mut receipt.logs_dropped, lines);
        count(&mut receipt.stdio_dropped, streams.iter().sum());
    }
}

/// The bytes of the lists and texts in a receipt whose length a guest chooses.
fn receipt_size(receipt: &Receipt) -> u64 {
    let Receipt { denials, paths_read, paths_written, hosts, logs, stdout, stderr, .. } = receipt;
    let denials = denials.iter().map(|denial| denial.facts.len() + denial.what.len());
    let paths = [paths_read, paths_written, hosts].into_iter().flatten().map(String::len);
    let lines = logs.iter().map(|line| line.message.len());
    let all: usize = denials.chain(paths).chain(lines).sum();
    (all + stdout.len() + stderr.len()) as u64
}
