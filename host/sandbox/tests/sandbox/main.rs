//! Tests of the sandbox by its public interface: the promises of the crate's documentation, and misuse.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bounds;
mod builder;
mod calls;
mod commands;
mod files;
mod functions;
mod http;
mod judging;
mod loading;
mod overlay;
mod peers;
mod pool;
mod refusals;
mod testsuite;
