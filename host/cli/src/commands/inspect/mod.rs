//! The commands that show past runs and stored data, and that attack the sandbox.

pub(crate) mod context;
pub(crate) mod export;
pub(crate) mod prove;
pub(crate) mod prove_wall;
pub(crate) mod receipts;
pub(crate) mod replay;
pub(crate) mod replay_shown;
pub(crate) mod sessions;
