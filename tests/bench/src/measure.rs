//! Timing: medians over many repetitions, printed as ratios against a floor of the same run.

use std::time::Duration;

/// The middle of the samples.
pub(crate) fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

/// Resident memory of this process in bytes, where the system tells.
pub(crate) fn resident() -> Option<u64> {
    status("VmRSS:")
}

/// The part of it that is no file's: what a copy of a page that all stores share costs.
pub(crate) fn resident_anon() -> Option<u64> {
    status("RssAnon:")
}

fn status(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// A duration in microseconds, with one decimal.
pub(crate) fn micros(duration: Duration) -> String {
    format!("{:.1} µs", duration.as_secs_f64() * 1e6)
}

/// A duration in milliseconds, with one decimal.
pub(crate) fn millis(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}
