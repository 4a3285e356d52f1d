//! Anthropic's messages API.

mod request;
mod stream;

pub(super) use request::request_body;
pub(super) use stream::AnthropicStream;
