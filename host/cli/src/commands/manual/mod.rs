//! The commands that print texts about the command line itself: the manual, and completions for shells.

pub(crate) mod completions;
pub(crate) mod man;
