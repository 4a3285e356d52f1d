//! Subagents: planned within the parent's rights and budget, run in the parent's slots.

pub(crate) mod background;
pub(crate) mod control;
pub(crate) mod plan;
pub(crate) mod planned;
pub(crate) mod progress;
pub(crate) mod small;
pub(crate) mod spawn;
pub(crate) mod team;
