//! CORS answers for the origins that the operator lists, and for no others. Requests of other origins
//! are refused before (`guard.rs`).

use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::http::guard::parse_origin;

/// The time for which a browser may reuse the answer to a preflight request.
const MAX_AGE: Duration = Duration::from_secs(600);

/// The CORS layer for the given origins, in the form of [`parse_origin`]. An answer names only the origin
/// that sent the request, and cookies of another origin are never accepted.
pub(crate) fn cors_layer(origins: Vec<String>) -> CorsLayer {
    let listed = move |origin: &HeaderValue, _: &Parts| {
        let origin = origin.to_str().ok().and_then(parse_origin);
        origin.is_some_and(|origin| origins.contains(&origin))
    };
    let asked = [
        header::AUTHORIZATION,
        header::CONTENT_TYPE,
        header::IF_MATCH,
        HeaderName::from_static("last-event-id"),
        HeaderName::from_static("traceparent"),
    ];
    let told = [
        header::ETAG,
        header::RETRY_AFTER,
        header::CONTENT_DISPOSITION,
        HeaderName::from_static("belljar-session"),
        HeaderName::from_static("belljar-message"),
        HeaderName::from_static("x-belljar-run"),
        HeaderName::from_static("x-belljar-session"),
        HeaderName::from_static("x-belljar-ignored"),
    ];
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(listed))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers(asked)
        .expose_headers(told)
        .max_age(MAX_AGE)
}
