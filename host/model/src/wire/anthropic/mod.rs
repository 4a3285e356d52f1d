//! Anthropic's messages API.

mod request;
mod stream;

pub(super) use request::body;
pub(super) use stream::Stream;
