//! Calls that tools make. Nested calls are treated like a model's: the same decision, hooks, person and
//! budgets, and a receipt each, below the outer call's.
//!
//! ```text
//! a tool ──PeersPort──> serve (beside the call, in the same task) ──> AgentEffects::execute_call, as for the model's
//! ```

pub(crate) mod outer;
pub(crate) mod port;
pub(crate) mod reply;
pub(crate) mod room;
pub(crate) mod serve;
