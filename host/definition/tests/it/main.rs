//! What the parsers say, as a person reads it: each test is text in, diagnostics out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod canonical;
mod catalog;
mod foreign;
mod grants;
mod hostile;
mod limits;
mod manifest;
mod named;
mod never_panics;
mod quotes;
mod recovery;
mod server;
mod settings;
mod shapes;
mod show;
mod skills;
mod teams;
