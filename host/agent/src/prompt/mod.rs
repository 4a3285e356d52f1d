//! The texts that a model reads, besides results of tools: frames, prompt blocks, skills.

pub(crate) mod blocks;
pub mod commands;
pub(crate) mod findings;
pub mod frame;
pub(crate) mod known;
pub mod skills;
pub(crate) mod stubs;
