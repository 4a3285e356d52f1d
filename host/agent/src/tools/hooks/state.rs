//! The state of one agent's hooks.

use std::sync::OnceLock;

use tokio::sync::Mutex;

/// The state of one agent's hooks.
#[derive(Debug, Default)]
pub(crate) struct HookState {
    /// Whose hooks run now. First come, first served, so calls keep their order.
    pub(crate) turn: Mutex<()>,
    /// Why the agent has to end.
    pub(crate) halted: OnceLock<String>,
}
