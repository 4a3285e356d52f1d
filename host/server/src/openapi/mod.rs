//! The API as a document.

pub(crate) mod document;
mod events;
pub(crate) mod operations;
