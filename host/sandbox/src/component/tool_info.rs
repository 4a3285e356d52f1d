//! The checked description of a tool, as its component gives it.

use belljar_policy::ToolName;
use serde::{Deserialize, Serialize};

/// The checked description of a tool of a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInfo {
    /// The name, of the form `[a-z][a-z0-9_]*`, for example `file_read`.
    pub name: ToolName,
    /// The description for the model, of bounded length, without control and bidirectional characters.
    pub description: String,
    /// A JSON Schema of the arguments, an object.
    pub schema: serde_json::Value,
    /// Hints about the effects of calls.
    pub hints: ToolHints,
}

/// A tool's own hints about the effects of its calls. They decide which calls may overlap, and never widen a
/// right. The default, all false, is the most cautious.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolHints {
    /// Whether calls leave everything outside the tool's own store unchanged.
    pub read_only: bool,
    /// Whether repeating a call with the same arguments has no further effect.
    pub idempotent: bool,
    /// Whether calls reach systems outside the host, for example over the network.
    pub open_world: bool,
}
