//! HTTP and WebSocket in front of sessions: authentication, rights of callers, and answers.
//!
//! ```text
//! listen ──> guard (names) ──> gate (key or login, scope, rate) ──> a handler ──> Service of the tenant
//!               └ the page        └ audit, metrics                     └ problem: every failure
//! ```
//!
//! Promises of this crate:
//!
//! - [`ROUTES`] is the only list of routes: the router, the OpenAPI document and the test of callers' rights
//!   are made from this list.
//! - A handler works with the store and the sessions of its caller's tenant. Another tenant's object is
//!   answered exactly like a missing one.
//! - Keys are compared in constant time. A revoked key opens nothing any more, and its open streams end
//!   within half a minute.
//! - A caller without a key is refused, unless no key exists at all and the address is a loopback one.
//! - Every buffer, body, head, wait and count has a bound. A caller who exceeds a bound gets a problem that
//!   names the bound, and does not slow others.
//! - Every failure is problem details, without a path of the host.
//!
//! The crate decides about no right of an agent, and runs no agent: `belljar_session` does.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod api;
mod app;
mod http;
mod mcp;
mod openai;
mod openapi;
mod page;
mod router;
mod routes;
mod stream;
mod tenants;
mod trace;

pub use app::{
    App, DEFAULT_ADDRESS_CONNECTIONS, DEFAULT_ADDRESS_FAILURES, DEFAULT_DRAIN,
    DEFAULT_ISSUER_CHECK, DEFAULT_KEY_CHECK, DEFAULT_RATE, DEFAULT_STREAM_LIFE,
    DEFAULT_TENANT_CHECK, ServerConfig, connections_within,
};
pub use http::auth::has_keys;
pub use http::guard::{NameError, ServerNames};
pub use http::in_flight::{DEFAULT_BYTES_IN_FLIGHT, DEFAULT_TENANT_BYTES_IN_FLIGHT};
pub use http::keys::NewSecret;
pub use http::links::LINK_MINUTES;
pub use http::listen::{NoKeys, may_listen};
pub use http::outward::HiddenPlace;
pub use http::problem::ProblemKind;
pub use http::respond::MAX_BODY;
pub use http::strangers::{DEFAULT_AUDIT_DAYS, DEFAULT_STRANGER_NOTES};
pub use http::tokens::IssuerSource;
pub use mcp::{MCP_IDENTITY, McpHandler, StdioError, serve_stdio};
pub use routes::{HttpVerb, PathObject, ROUTES, RequiredScope, Route, RouteOp};
pub use tenants::{OpenError, TenantOpener};
