//! The state of one agent's hooks.

use std::sync::OnceLock;

use tokio::sync::Mutex;

/// The state of one agent's hooks.
#[derive(Debug, Default)]
pub(crate) struct HookState {
    /// Held while hooks run. Fair, so calls keep their order.
    pub(crate) turn: Mutex<()>,
    /// Why the agent has to end.
    pub(crate) halted: OnceLock<String>,
}
