//! Reports of a tool while it works.

use std::sync::Arc;

/// One report of `belljar:tool/progress`. Foreign text: escape it before showing it to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// How much is done, in the tool's unit.
    pub done: u64,
    /// Of how much; `None` = not known.
    pub total: Option<u64>,
    /// The tool's words, cut at a bound.
    pub message: String,
}

/// Receives the progress reports of a call, on the guest's thread, so it must be quick.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;
