//! OpenAI's chat completions, which many other servers offer too: requests and streamed answers.

mod calls;
mod request;
mod stream;

pub(super) use request::request_body;
pub(super) use stream::OpenAiStream;
