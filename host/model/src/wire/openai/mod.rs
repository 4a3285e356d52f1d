//! Chat completions, defined by OpenAI and offered by many servers.

mod calls;
mod request;
mod stream;

pub(super) use request::request_body;
pub(super) use stream::OpenAiStream;
