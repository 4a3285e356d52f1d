//! What the hooks of an agent share between calls.

use std::sync::OnceLock;

use tokio::sync::Mutex;

use super::HookReason;

/// The state of one agent's hooks.
#[derive(Debug, Default)]
pub(crate) struct HookState {
    /// Held while the hooks of a call run. It is fair, so calls keep their order.
    pub(crate) turn: Mutex<()>,
    /// The reason of a hook that ends the agent.
    pub(crate) halted: OnceLock<HookReason>,
}
