//! The state of one agent's hooks.

use std::sync::OnceLock;

use tokio::sync::Mutex;

/// The state of one agent's hooks.
#[derive(Debug, Default)]
pub(crate) struct HookState {
    /// Held while hooks run. Fair, so calls keep their order.
    pub(crate) turn: Mutex<()>,
    /// The reason of a hook that ends the agent.
    pub(crate) halted: OnceLock<String>,
}
