//! Bytes from a peer, converted for strict parsers.
//!
//! Three faults of peers are common enough to be mended at every door, in one way:
//!
//! - [`json`]: JSON with half a surrogate pair, for example `"cut \ud83d"`. JavaScript cuts texts in the
//!   middle of an emoji, and its JSON writer escapes the half; a strict parser refuses the whole message.
//!   Half a pair becomes U+FFFD.
//! - [`coding`]: a body compressed without a request for it. It is decoded within a limit, or refused with
//!   the coding's name.
//! - [`whole`]: an integer written as a float, for example `5.0` or `1e1`. It becomes an integer where one is
//!   expected, and no number changes its value.
//!
//! [`sse`] cuts a stream into server-sent events, each of bounded size.
//!
//! All take time linear in the input and output, with bounded memory.

pub mod coding;
pub mod json;
pub mod sse;
pub mod whole;
