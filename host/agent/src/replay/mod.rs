//! The journal of a run: how the next process resumes from it, and how a finished run is replayed.

pub(crate) mod again;
pub(crate) mod journal;
pub(crate) mod log;
pub(crate) mod persist;
pub(crate) mod replaying;
pub(crate) mod rerun;
pub(crate) mod rerunning;
pub(crate) mod times;
