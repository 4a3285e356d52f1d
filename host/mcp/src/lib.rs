//! Tools of MCP servers: the operator's accepted list, and calls.
//!
//! ```text
//! Connection::list_tools ──> ToolListing ──(a person looks at it)──> AcceptedTools, a file in the home
//! AcceptedTools ──> the tools that agents are granted ──> Connection::call_tool ──> CallResult
//! ```
//!
//! A server is a stranger: reached through the network gate, or a program that the broker started behind a
//! separate wall. A connection makes one call at a time, and every byte is billed. Models read the accepted
//! descriptions, never the server's present ones; if the two differ, the tool is not called. A server's
//! annotations and instructions are not read. A server's `ping` is answered, and during a call the requests
//! that the operator has granted; any other request is refused. For example, a server that asks for a text of
//! the model (`sampling`) without a grant gets an error.

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
mod transport;
mod wants;

pub use accepted::{AcceptedError, AcceptedTools};
pub use auth::{AuthError, KeepTokens, LoginAsk, PendingLogin, ServerTokens, signing_keys};
pub use call::CallSpec;
pub use connection::Connection;
pub use demands::{
    QuestionAnswer, SampleRequest, SampledText, SamplingGrant, ServerGrants, ServerQuestion,
    ServerResponder,
};
pub use listing::{LeftOut, ListedTool, ListingDifference, ToolListing};
pub use program::ServerProgram;
pub use revision::ProtocolRevision;
pub use server::{LoginSetting, Server, ServerError};
