//! Records the effects of a call in its receipt.

use std::time::Duration;

use crate::jar::store::{JobReport, OpenStore};
use crate::receipt::Receipt;

/// Moves the recorded effects of a call from its store into its receipt.
pub(super) fn write_receipt(
    receipt: &mut Receipt,
    store: &mut OpenStore,
    ran: &JobReport,
    loading: Duration,
    elapsed: Duration,
) {
    let guest = store.guest_mut();
    let (lists, bytes, host_calls) = guest.record.drain_lists();
    let (stdout, out_dropped) = guest.stdout.drain_text();
    let (stderr, err_dropped) = guest.stderr.drain_text();
    receipt.fuel = ran.fuel;
    receipt.peak_memory = ran.peak_memory;
    receipt.bytes = bytes;
    receipt.host_calls = host_calls;
    receipt.denials = lists.denials;
    receipt.denials_dropped = lists.denials_dropped;
    receipt.paths_read = lists.paths_read.into_iter().collect();
    receipt.paths_written = lists.paths_written.into_iter().collect();
    receipt.paths_dropped = lists.paths_dropped;
    receipt.hosts = lists.hosts.into_iter().collect();
    receipt.secrets_used = lists.secrets_used.into_iter().collect();
    receipt.logs = lists.logs;
    receipt.logs_dropped = lists.logs_dropped;
    receipt.stdout = stdout;
    receipt.stderr = stderr;
    receipt.stdio_dropped = out_dropped.saturating_add(err_dropped);
    let times = &mut receipt.times;
    times.opening = to_micros(loading + ran.opening);
    times.guest = to_micros(ran.guest_time);
    let other = loading + ran.guest_time;
    times.waiting = to_micros(elapsed.saturating_sub(other));
}

/// The time in microseconds, the unit of receipts.
pub(super) fn to_micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
