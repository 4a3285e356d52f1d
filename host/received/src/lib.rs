//! Converts bytes from a peer for strict parsers.
//!
//! Three faults of peers are frequent enough to be corrected, in the same way for every peer:
//!
//! - [`json`]: half a surrogate pair in JSON, for example `"cut \ud83d"`. JavaScript cuts texts in the
//!   middle of an emoji, and its JSON writer escapes the half; a strict parser refuses the whole message.
//!   Half a pair becomes U+FFFD.
//! - [`coding`]: a body that is compressed although the request did not ask for compression. The body is
//!   decoded within a limit, or refused with the coding's name.
//! - [`whole`]: an integer written as a float, for example `5.0` or `1e1`. The number becomes an integer if
//!   an integer is expected; no value changes.
//!
//! [`sse`] decodes a stream into server-sent events of bounded size.
//!
//! Every conversion takes time linear in the input and output, and bounded memory.

pub mod coding;
pub mod json;
pub mod sse;
pub mod whole;
