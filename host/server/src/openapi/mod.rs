//! The API as a document.

pub(crate) mod document;
pub(crate) mod operations;
