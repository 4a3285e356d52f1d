//! What a guest can import, and what each of its calls is checked against.

pub(crate) mod clocks;
pub(crate) mod files;
pub mod http;
pub(crate) mod link;
pub(crate) mod stdio;
