//! Headers that a guest can neither set nor read.

use std::sync::Arc;

use http::HeaderName;
use wasmtime_wasi_http::{DEFAULT_FORBIDDEN_HEADERS, ForbiddenHeaderFilter};

/// Headers about the connection, which the host controls. wasmtime-wasi-http forbids others itself, for
/// example `host`, `connection`, `transfer-encoding` and `upgrade`.
const CONNECTION_HEADERS: &[&str] = &["te", "trailer", "expect", "via", "forwarded"];

/// Whether no guest may set or read this header, whatever its grants.
pub(crate) fn is_always_forbidden(name: &HeaderName) -> bool {
    let text = name.as_str();
    DEFAULT_FORBIDDEN_HEADERS.contains(name)
        || text.starts_with("proxy-")
        || CONNECTION_HEADERS.contains(&text)
}

/// The filter of forbidden headers for a store; it also forbids the headers in which the host sends secrets.
pub(crate) fn header_filter(secret_headers: Vec<HeaderName>) -> ForbiddenHeaderFilter {
    Arc::new(move |name| is_always_forbidden(name) || secret_headers.contains(name))
}
