//! Questions to a person, and the clocks that stand still meanwhile.

pub(crate) mod asker;
pub(crate) mod consent;
pub(crate) mod pause;
pub(crate) mod questions;
