//! The MCP door for callers without a key: its path, and the address of the document about its tokens.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};

use crate::http::problem::{Problem, ProblemKind};

/// The path of the door.
pub(crate) const DOOR: &str = "/mcp";

/// The address at which a client reads about keys.
pub(crate) const PATH: &str = "/.well-known/oauth-protected-resource/mcp";

/// The challenge to a caller without a valid key.
pub(crate) fn auth_challenge(problem: &Problem, request: &Request) -> Option<HeaderValue> {
    if request.uri().path() != DOOR || problem.kind() != ProblemKind::NoKey {
        return None;
    }
    let metadata = format!("{}{PATH}", base_address(request.headers()));
    let presented = request.headers().contains_key(header::AUTHORIZATION);
    let error = if presented { ", error=\"invalid_token\"" } else { "" };
    HeaderValue::try_from(format!("Bearer resource_metadata=\"{metadata}\"{error}")).ok()
}

/// This server's address, as the client wrote the address; the guard has checked the name.
pub(super) fn base_address(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let proxied = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    let scheme = if proxied { "https" } else { "http" };
    format!("{scheme}://{host}")
}
