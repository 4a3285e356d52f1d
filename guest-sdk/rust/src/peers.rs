//! The other tools of the agent: calling them from a tool.
//!
//! The tool's manifest asks for them (`peers = true`, or a list of names in `tool.toml`); which ones
//! there are is for the operator's grants and the agent's own list to say. A call made here is a call
//! of that agent: it is asked about, billed and recorded like one of its model's.
//!
//! A tool built with this feature imports `belljar:tool/peers@0.2.0`. Natively (in unit tests) there
//! is nobody to call: [`list`] is empty, and every call is denied.
//!
//! ```no_run
//! use belljar_guest::prelude::*;
//!
//! fn count() -> ToolResult {
//!     let text = belljar_guest::peers::call("file_read", &serde_json::json!({"path": "a.txt"}))?;
//!     Ok(Output::text(format!("{} lines", text.text_parts().lines().count())))
//! }
//! ```

use crate::{Call, Definition, Output, Part, ToolError};
use serde::Serialize;

/// The tools that can be called from here.
pub fn list() -> Vec<Definition> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::belljar::tool::peers::list();
    #[cfg(not(target_family = "wasm"))]
    Vec::new()
}

/// Calls a tool with these arguments, which have to become a JSON object.
///
/// # Errors
///
/// What the tool said, or why it was not called: see [`call_text`].
pub fn call(tool: &str, arguments: &impl Serialize) -> Result<Output, ToolError> {
    call_text(&prepared(tool, arguments)?)
}

/// Calls a tool whose arguments are JSON text already.
///
/// # Errors
///
/// What the tool said. `Denied` where it is not in [`list`], where the operator, a hook or a person
/// refuses it, and where calls are nested too deeply; `Failed` where it ended without an answer.
pub fn call_text(call: &Call) -> Result<Output, ToolError> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::belljar::tool::peers::call(call);
    #[cfg(not(target_family = "wasm"))]
    {
        let _ = call;
        Err(nobody())
    }
}

/// Calls several tools. Those that only read overlap; the results are in the order of the calls.
pub fn call_many(calls: &[Call]) -> Vec<Result<Output, ToolError>> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::belljar::tool::peers::call_many(calls);
    #[cfg(not(target_family = "wasm"))]
    calls.iter().map(|_| Err(nobody())).collect()
}

/// A call to be made, for [`call_many`].
///
/// # Errors
///
/// [`ToolError::Failed`] when the arguments cannot be written as JSON.
pub fn prepared(tool: &str, arguments: &impl Serialize) -> Result<Call, ToolError> {
    let arguments = serde_json::to_string(arguments)
        .map_err(|error| ToolError::Failed(format!("the arguments are not JSON: {error}")))?;
    Ok(Call { tool: tool.to_owned(), arguments })
}

impl Output {
    /// The text and JSON parts, one below the other.
    pub fn text_parts(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) | Part::Json(text) => Some(text.as_str()),
            Part::Attachment(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(not(target_family = "wasm"))]
fn nobody() -> ToolError {
    ToolError::Denied("there are no other tools outside a jar".to_owned())
}
