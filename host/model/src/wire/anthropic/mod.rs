//! Anthropic's messages API: requests and streamed answers.

mod request;
mod stream;

pub(super) use request::request_body;
pub(super) use stream::AnthropicStream;
