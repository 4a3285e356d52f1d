//! Tests of the catalogue of what is on disk.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents_on_disk;
mod installed_tools;
mod kept_tokens;
