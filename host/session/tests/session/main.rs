//! Turns that last, in a store.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod compaction;
mod conversations;
mod resume;
mod runs_in_store;
mod service;
mod versions;
