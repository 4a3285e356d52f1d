//! The API as an OpenAPI document.

pub(crate) mod document;
mod events;
pub(crate) mod operations;
