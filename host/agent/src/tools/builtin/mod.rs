//! The tools that the host itself provides.

pub(crate) mod arguments;
pub(crate) mod spec;
pub(crate) mod todos;
pub(crate) mod tool;
pub(crate) mod worktree;
