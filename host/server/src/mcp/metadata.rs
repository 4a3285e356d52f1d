//! What an MCP client without a key needs: the path of `/mcp`, and the address of the document about
//! credentials.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};

use crate::http::problem::{Problem, ProblemKind};

/// The path at which MCP is served.
pub(crate) const DOOR: &str = "/mcp";

/// The path of the document in which a client reads how to authenticate.
pub(crate) const PATH: &str = "/.well-known/oauth-protected-resource/mcp";

/// The header `WWW-Authenticate` for a caller of `/mcp` without a valid key; `None` for other problems and
/// paths.
pub(crate) fn auth_challenge(problem: &Problem, request: &Request) -> Option<HeaderValue> {
    if request.uri().path() != DOOR || problem.kind() != ProblemKind::NoKey {
        return None;
    }
    let metadata = format!("{}{PATH}", base_address(request.headers()));
    let presented = request.headers().contains_key(header::AUTHORIZATION);
    let error = if presented { ", error=\"invalid_token\"" } else { "" };
    HeaderValue::try_from(format!("Bearer resource_metadata=\"{metadata}\"{error}")).ok()
}

/// This server's address with scheme and host, as the client wrote it; the guard has checked the host name.
pub(super) fn base_address(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let proxied = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    let scheme = if proxied { "https" } else { "http" };
    format!("{scheme}://{host}")
}
