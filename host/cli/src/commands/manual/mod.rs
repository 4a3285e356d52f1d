//! Texts made of the command line's own definition: the manual, and completions for shells.

pub(crate) mod completions;
pub(crate) mod man;
