//! A component's checked description of its tools.

use belljar_policy::ToolName;
use serde::{Deserialize, Serialize};

/// One tool of a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInfo {
    /// The name in the form `[a-z][a-z0-9_]*`, for example `file_read`.
    pub name: ToolName,
    /// The description that the model is told. Bounded, without control and bidirectional
    /// characters.
    pub description: String,
    /// A JSON Schema of an object.
    pub schema: serde_json::Value,
    /// Promises about effects.
    pub hints: Hints,
}

/// A tool's promises about its effects. They decide which calls may overlap, and never widen a right. The
/// default promises nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    /// Changes nothing outside its own store.
    pub read_only: bool,
    /// Calling again with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Talks to things beyond the host.
    pub open_world: bool,
}
