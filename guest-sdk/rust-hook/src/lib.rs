//! Write hooks for belljar.
//!
//! A hook is a function and one line that publishes it:
//!
//! ```
//! use belljar_hook::{Event, Verdict};
//!
//! fn check(event: Event) -> Result<Verdict, String> {
//!     if event.tool_name == "file_write" && event.text("path").ends_with(".lock") {
//!         return Ok(Verdict::Deny("lock files are not written by hand".into()));
//!     }
//!     Ok(Verdict::Pass)
//! }
//!
//! belljar_hook::hook!(check);
//! # fn main() {}
//! ```
//!
//! Build the crate as a `cdylib` for `wasm32-wasip2`: the output is a component. Name it in
//! the `[[hooks]]` of `belljar.toml`. Whatever goes wrong in a hook, an error included, counts
//! as a denial.

#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated from hook.wit")]
#[doc(hidden)]
pub mod bindings;

use serde::Deserialize;
use serde_json::{Map, Value};

pub use bindings::exports::belljar::hook::hooks::Verdict;

/// What happened, or is about to. Fields that an event does not have are empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Event {
    /// `PreToolUse`, `PostToolUse`, `SubagentStart`, `SubagentStop` or `Stop`.
    pub hook_event_name: String,
    /// The run.
    pub session_id: String,
    /// Whose call it is, or who starts or stops: `main`, or `main/scout#0` for a subagent.
    pub agent: String,
    /// The tool, for `PreToolUse` and `PostToolUse`.
    pub tool_name: String,
    /// Its arguments.
    pub tool_input: Map<String, Value>,
    /// The call.
    pub tool_use_id: String,
    /// What the tool returned, for `PostToolUse`: an object with `content`.
    pub tool_response: Value,
    /// The subagent's name, for `SubagentStart` and `SubagentStop`.
    pub agent_type: String,
    /// The agent's last text, for `SubagentStop` and `Stop`.
    pub last_assistant_message: String,
    /// Whether the agent goes on already because a hook kept it from stopping.
    pub stop_hook_active: bool,
}

impl Event {
    /// The text of an argument; empty where there is none or it is no text.
    pub fn text(&self, argument: &str) -> &str {
        self.tool_input.get(argument).and_then(Value::as_str).unwrap_or_default()
    }

    /// The verdict that replaces one argument and keeps the others.
    pub fn narrow(&self, argument: &str, value: impl Into<Value>) -> Verdict {
        let mut input = self.tool_input.clone();
        input.insert(argument.to_owned(), value.into());
        Verdict::Narrow(Value::Object(input).to_string())
    }
}

/// Publishes a function `fn(Event) -> Result<Verdict, String>` as this component's hook.
#[macro_export]
macro_rules! hook {
    ($check:path) => {
        // Only the component's exports use it, and those exist for WebAssembly alone.
        #[allow(dead_code)]
        struct BelljarHook;

        #[allow(dead_code)]
        impl $crate::bindings::exports::belljar::hook::hooks::Guest for BelljarHook {
            fn check(
                event: ::std::string::String,
            ) -> ::core::result::Result<$crate::Verdict, ::std::string::String> {
                $crate::__private::run(&event, $check)
            }
        }

        #[cfg(target_family = "wasm")]
        $crate::bindings::export!(BelljarHook with_types_in $crate::bindings);
    };
}

/// What [`hook!`] expands to. Not part of the API.
#[doc(hidden)]
pub mod __private {
    use crate::{Event, Verdict};

    pub fn run(
        event: &str,
        check: fn(Event) -> Result<Verdict, String>,
    ) -> Result<Verdict, String> {
        check(serde_json::from_str(event).map_err(|error| format!("not an event: {error}"))?)
    }
}
