//! What is persisted of a run while it goes on, and how the next process resumes it.

pub(crate) mod journal;
pub(crate) mod log;
pub(crate) mod persist;
pub(crate) mod replaying;
