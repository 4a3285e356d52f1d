//! Bytes as a peer sends them, made into what a strict reader takes.
//!
//! Three faults of peers are common enough to be mended at every door, in one way:
//!
//! - [`json`]: JSON with half a surrogate pair, for example `"cut \ud83d"`. JavaScript cuts texts
//!   in the middle of an emoji, and its JSON writer says so; a strict parser refuses the whole
//!   message. Half a pair becomes U+FFFD.
//! - [`coding`]: a body that is compressed although nobody asked for that. It is decoded within a
//!   bound, or refused by the coding's name.
//! - [`whole`]: an integer that is written as a float, for example `5.0` or `1e1`. It becomes the
//!   integer where one is asked for, and no number changes its value.
//!
//! All take time that is linear in the bytes that come in and out, and hold no more than a bound.

pub mod coding;
pub mod json;
pub mod whole;
