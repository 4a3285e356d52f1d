//! `belljar changes`, `apply`, `discard` and `undo`: agents' changes in overlays, and a person's decisions. A
//! chat's commands of these names share the code.

pub(crate) mod apply;
pub(crate) mod discard;
pub(crate) mod find;
pub(crate) mod look;
mod repository;
pub(crate) mod show;
pub(crate) mod undo;
