//! The rights of an agent in a run, and the agents open to its delegation.

pub(crate) mod advice;
pub(crate) mod decide;
pub(crate) mod delegates;
pub(crate) mod explain;
pub(crate) mod folders;
pub(crate) mod model;
pub(crate) mod resolve;
pub(crate) mod vetting;
