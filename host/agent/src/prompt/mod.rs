//! The texts that a model reads beside results: its frame, blocks, skills.

pub(crate) mod blocks;
pub(crate) mod findings;
pub mod frame;
pub(crate) mod known;
pub mod skills;
pub(crate) mod stubs;
