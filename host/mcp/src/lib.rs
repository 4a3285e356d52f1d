//! Tools of MCP servers: what an operator has accepted of a server, and calling it.
//!
//! ```text
//! Server::list ──> Listing ──(a person looks at it)──> Accepted, a file in the home
//! Accepted ──> the tools that agents are granted ──> Connection::call ──> CallResult
//! ```
//!
//! A server is a stranger. It is reached through the network gate, or is a program that the broker has
//! started behind a wall of its own; for one call at a time, which is billed for every byte. Models are shown what was accepted, never what the server says now; where
//! the two differ the tool is not called. What a server says of itself (its annotations, its
//! instructions) is not read. It is answered `ping`, and in a call what the operator has granted it;
//! whatever else it asks for is refused.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod accepted;
mod answer;
mod auth;
mod call;
mod challenge;
mod connection;
mod demands;
mod exchange;
mod limits;
mod line;
mod listing;
mod message;
mod opening;
mod pages;
mod parameters;
mod process;
mod program;
mod revision;
mod rounds;
mod server;
mod sse;
mod wants;

pub use accepted::{Accepted, AcceptedError};
pub use auth::{AuthError, KeepTokens, Login, LoginAsk, Tokens, signing_keys};
pub use call::CallSpec;
pub use connection::Connection;
pub use demands::{Answers, Granted, Heard, Sample, Sampled, SamplingGrant, ServerQuestion};
pub use listing::{Difference, LeftOut, ListedTool, Listing};
pub use program::ServerProgram;
pub use revision::Revision;
pub use server::{LoginSetting, Server, ServerError};
