//! Answers that go on for long: server-sent events and WebSockets.

pub(crate) mod follow;
pub(crate) mod message;
pub(crate) mod pump;
pub(crate) mod sse;
pub(crate) mod ws;
