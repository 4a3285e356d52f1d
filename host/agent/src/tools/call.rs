//! A tool call of a model, or of a tool, with its place.

use belljar_model::ToolCall;

use crate::tools::nested::outer::NestedPlace;

/// A call and where it belongs.
#[derive(Clone, Copy)]
pub(crate) struct PlacedCall<'a> {
    pub(crate) step: u64,
    /// The position in its step, from 0; for a nested call, in the outer call.
    pub(crate) position: usize,
    pub(crate) call: &'a ToolCall,
    /// The outer call, if a tool made this call; `None` = the model made it.
    pub(crate) nested: Option<NestedPlace<'a>>,
    /// True if the tool must find no state of earlier calls.
    pub(crate) fresh: bool,
}

impl PlacedCall<'_> {
    /// The position that counts for the limit of calls in a step; 0 for nested calls, limited in another way.
    pub(crate) fn place_in_step(&self) -> usize {
        if self.nested.is_some() { 0 } else { self.position }
    }
}

/// The arguments that the tool gets. A blank text becomes an empty object.
pub(crate) fn arguments(call: &ToolCall) -> &str {
    if call.arguments.trim().is_empty() { "{}" } else { &call.arguments }
}
