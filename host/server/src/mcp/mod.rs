//! The MCP door: belljar's tools and agents for clients that speak the Model Context Protocol, over
//! stdio and streamable HTTP, in the revisions 2025-11-25 and 2026-07-28.
//!
//! ```text
//! stdio ──────────┐                                 ┌──> Service::begin_direct (a tool, in the client's own jar)
//! HTTP `/mcp` ────┴──> McpHandler ──> ProtocolClient ──> Service::begin_turn (an agent, in a session of its own)
//! ```
//!
//! The protocol itself is `rmcp`'s, without any decision: the caller is authenticated before a message is
//! read, and rights are decided by the same service as at every other entrance.

pub(crate) mod about;
mod agents;
mod ask;
mod calls;
mod client;
mod content;
pub(crate) mod door;
mod flow;
mod forms;
mod handler;
pub(crate) mod http;
mod logs;
mod mended;
pub(crate) mod metadata;
mod prompts;
mod resources;
mod state;
mod stdio;
mod tasks;
mod uri;
mod watch;

pub use self::client::MCP_IDENTITY;
pub use self::handler::McpHandler;
pub use self::stdio::{StdioError, serve_stdio};
