//! Progress reports of a running tool.

use std::sync::Arc;

/// One report of `belljar:tool/progress`. Foreign text: escape it before showing it to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressReport {
    /// The finished amount, in the tool's unit.
    pub done: u64,
    /// The total amount; `None` = unknown.
    pub total: Option<u64>,
    /// The tool's message, cut to a limit.
    pub message: String,
}

/// Receives the progress reports of a call, on the guest's thread, so it must be quick.
pub type ProgressSink = Arc<dyn Fn(ProgressReport) + Send + Sync>;
