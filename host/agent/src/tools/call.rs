//! A call of the model, and what the model reads about it.

use belljar_model::ToolCall;

/// One call with its place.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) step: u64,
    /// Its place in the step, from 0.
    pub(crate) position: usize,
    pub(crate) call: &'a ToolCall,
}

/// The text about one call that the model reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) content: String,
    pub(crate) is_error: bool,
}

/// The arguments to pass on: none at all means no arguments.
pub(crate) fn arguments(call: &ToolCall) -> &str {
    if call.arguments.trim().is_empty() { "{}" } else { &call.arguments }
}
