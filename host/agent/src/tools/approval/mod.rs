//! Questions to a person, with clocks that stop meanwhile.

pub(crate) mod asker;
pub(crate) mod consent;
pub(crate) mod pause;
pub(crate) mod questions;
