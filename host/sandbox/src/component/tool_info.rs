//! A component's checked description of its tools.

use belljar_policy::ToolName;
use serde::{Deserialize, Serialize};

/// One tool of a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInfo {
    /// The name in the form `[a-z][a-z0-9_]*`, for example `file_read`.
    pub name: ToolName,
    /// The description for the model. Bounded, without control and bidirectional characters.
    pub description: String,
    /// A JSON Schema of an object.
    pub schema: serde_json::Value,
    /// Hints about effects.
    pub hints: ToolHints,
}

/// A tool's hints about its effects. They decide which calls may overlap, and never widen a right. The
/// default is the most cautious.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolHints {
    /// Whether calls change nothing outside the tool's own store.
    pub read_only: bool,
    /// Whether repeating a call with the same arguments has no further effect.
    pub idempotent: bool,
    /// Whether calls reach systems beyond the host.
    pub open_world: bool,
}
