//! Shared helpers of tests: the world of the crates' tests, tools written in a few lines of
//! WebAssembly text, and a sandbox to run them in. The world of tests that run the binary stands
//! beside this crate, in `binary/`.
//!
//! Helpers panic where a test would: a broken fixture is a failed test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod cases;
mod golden;
mod guest;
mod host;
mod hostile;
pub mod world;

pub use belljar_kit_peers as peers;
pub use guest::{WatTool, command, component, wat_hook, wat_tool};
pub use host::{
    JarBuilder, TestHost, TestJar, assert_denied, assert_text, hostile, stock, text, unpacked,
};
pub use hostile::hostile_guest;
#[doc(hidden)]
pub use insta;
