//! Headers that a guest can neither set nor read.

use std::sync::Arc;

use http::HeaderName;
use wasmtime_wasi_http::{DEFAULT_FORBIDDEN_HEADERS, ForbiddenHeaderFilter};

/// Headers about the connection, which the host controls, in addition to those forbidden by
/// wasmtime-wasi-http (`host`, `connection`, `transfer-encoding`, `upgrade`, ...).
const CONNECTION_HEADERS: &[&str] = &["te", "trailer", "expect", "via", "forwarded"];

/// Whether the header is forbidden whatever the grants.
pub(crate) fn is_always_forbidden(name: &HeaderName) -> bool {
    let text = name.as_str();
    DEFAULT_FORBIDDEN_HEADERS.contains(name)
        || text.starts_with("proxy-")
        || CONNECTION_HEADERS.contains(&text)
}

/// The filter of one store, which also forbids the headers with secrets.
pub(crate) fn header_filter(secret_headers: Vec<HeaderName>) -> ForbiddenHeaderFilter {
    Arc::new(move |name| is_always_forbidden(name) || secret_headers.contains(name))
}
