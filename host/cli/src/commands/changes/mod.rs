//! `belljar changes`, `apply`, `discard` and `undo`: what agents changed in their overlays, and what a
//! person decides about it. A chat's commands of these names are the same code.

pub(crate) mod apply;
pub(crate) mod discard;
pub(crate) mod find;
pub(crate) mod look;
mod repository;
pub(crate) mod show;
pub(crate) mod undo;
