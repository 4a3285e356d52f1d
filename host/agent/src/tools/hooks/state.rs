//! What the hooks of an agent share between calls.

use std::sync::OnceLock;

use tokio::sync::Mutex;

/// What the hooks of an agent share between calls.
#[derive(Debug, Default)]
pub(crate) struct HookState {
    /// Held while the hooks of a call run. It is fair, so calls keep their order.
    pub(crate) turn: Mutex<()>,
    /// Why the agent has to end, once a hook has said so.
    pub(crate) halted: OnceLock<String>,
}
