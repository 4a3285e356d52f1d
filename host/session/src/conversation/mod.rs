//! A conversation: many turns of one agent with one history.

pub(crate) mod compaction;
pub(crate) mod fitting;
pub(crate) mod history;
pub(crate) mod material;
pub(crate) mod talk;
