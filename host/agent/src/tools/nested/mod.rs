//! Calls that tools make. They are calls of the agent like those of its model: the same decision, the
//! same hooks, the same person, the same budgets, and a receipt each, below that of the call that
//! makes them.
//!
//! ```text
//! a tool ──PeersPort──> serve (beside the call, in the same task) ──> Effects::call, as for the model's
//! ```

pub(crate) mod outer;
pub(crate) mod port;
pub(crate) mod reply;
pub(crate) mod room;
pub(crate) mod serve;
