//! Asks a person, and stops the clocks of the run meanwhile.

pub(crate) mod asker;
pub(crate) mod consent;
pub(crate) mod pause;
pub(crate) mod questions;
