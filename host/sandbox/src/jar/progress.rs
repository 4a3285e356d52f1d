//! Progress reports of a running tool.

use std::sync::Arc;

/// One progress report of a tool, made with `belljar:tool/progress`. Foreign text: escape before display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressReport {
    /// The amount done, in a unit of the tool's choice.
    pub done: u64,
    /// The total in the same unit; `None`: unknown.
    pub total: Option<u64>,
    /// The tool's message, cut to a limit.
    pub message: String,
}

/// Receives the progress reports of a call. Runs on the guest's thread, so it must be quick.
pub type ProgressSink = Arc<dyn Fn(ProgressReport) + Send + Sync>;
