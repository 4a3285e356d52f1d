//! The functions of the host that a guest can call, with the checks of each call.

pub(crate) mod clocks;
pub(crate) mod files;
pub mod http;
pub(crate) mod link;
pub(crate) mod peers;
pub(crate) mod stdio;
