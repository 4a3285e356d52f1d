//! Views of past work, stored data, and the sandbox's guarantees.

pub(crate) mod context;
pub(crate) mod export;
pub(crate) mod prove;
pub(crate) mod prove_wall;
pub(crate) mod receipts;
pub(crate) mod replay;
pub(crate) mod replay_shown;
pub(crate) mod sessions;
