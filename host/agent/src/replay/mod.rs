//! The log of a run's steps, and how the next process resumes from it.

pub(crate) mod journal;
pub(crate) mod log;
pub(crate) mod persist;
pub(crate) mod replaying;
