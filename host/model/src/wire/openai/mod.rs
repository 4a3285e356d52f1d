//! Chat completions, as OpenAI defined them and many servers speak them.

mod calls;
mod request;
mod stream;

pub(super) use request::body;
pub(super) use stream::Stream;
