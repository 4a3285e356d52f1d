//! Which rights an agent has in a run, and whom it may call.

pub(crate) mod advice;
pub(crate) mod decide;
pub(crate) mod delegates;
pub(crate) mod explain;
pub(crate) mod model;
pub(crate) mod resolve;
pub(crate) mod vetting;
