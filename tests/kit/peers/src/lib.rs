//! Servers on this machine for tests: an HTTP peer that answers as the test scripts, an MCP server,
//! and an OAuth issuer; and the client of a program that speaks JSON-RPC. A peer runs in threads of its own, so a test may be synchronous or not.
//!
//! # Example
//!
//! ```
//! use belljar_kit_peers::{HttpPeer, Reply};
//!
//! let peer = HttpPeer::start(|request| match &*request.path {
//!     "/v1/models" => Reply::json(&serde_json::json!({"data": []})),
//!     _ => Reply::status("404 Not Found"),
//! });
//! # use std::io::{Read as _, Write as _};
//! let mut client = std::net::TcpStream::connect(peer.address).unwrap();
//! client.write_all(b"GET /v1/models HTTP/1.1\r\nhost: peer.test\r\n\r\n").unwrap();
//! let mut answer = String::new();
//! client.read_to_string(&mut answer).unwrap();
//! assert!(answer.ends_with(r#"{"data":[]}"#));
//! assert_eq!(peer.requests()[0].header("host"), Some("peer.test"));
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod http;
mod issuer;
pub mod mcp;
mod reply;
mod request;
mod rpc;

pub use http::{HttpPeer, HttpPeerBuilder};
pub use issuer::{AUTHORIZATION_CODE, OAuthIssuer, TOKEN_START};
pub use mcp::McpPeer;
pub use reply::{Connection, Reply};
pub use request::HttpRequest;
pub use rpc::RpcClient;
