//! A call of the model, or of a tool.

use belljar_model::ToolCall;

use crate::tools::nested::outer::NestedPlace;

/// A call with its place.
#[derive(Clone, Copy)]
pub(crate) struct PlacedCall<'a> {
    pub(crate) step: u64,
    /// The place in the step, from 0; for a nested call, in the outer call.
    pub(crate) position: usize,
    pub(crate) call: &'a ToolCall,
    /// The outer call, if a tool made this call.
    pub(crate) nested: Option<NestedPlace<'a>>,
    /// True if the tool must find no state of earlier calls.
    pub(crate) fresh: bool,
}

impl PlacedCall<'_> {
    /// The place among the calls that a model may make in one step. Nested calls have a separate bound.
    pub(crate) fn place_in_step(&self) -> usize {
        if self.nested.is_some() { 0 } else { self.position }
    }
}

/// The arguments to pass on. A blank text means an empty object.
pub(crate) fn arguments(call: &ToolCall) -> &str {
    if call.arguments.trim().is_empty() { "{}" } else { &call.arguments }
}
