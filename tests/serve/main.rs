//! Drives the server over real sockets: who may do what, what is refused before anything is
//! looked at, and turns as their callers see them. Every test has a server and a store of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod addresses;
mod agents;
mod auth;
mod budgets;
mod chat;
mod client;
mod described;
mod forms;
mod glass;
mod guards;
mod issuer;
mod kit;
mod lasting;
mod leaving;
mod logins;
mod matrix;
mod mcp;
mod numbers;
mod openai;
mod page;
mod pages;
mod places;
mod sessions;
mod shown;
mod shutdown;
mod socket;
mod subjects;
mod tokens;
