//! The agent loop, with scripted models, real jars and tools.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agent_loop;
mod builder;
mod code;
mod delegation;
mod guests;
mod hook_components;
mod hooks;
mod peers;
mod skills;
mod teams;
