//! The span of a request, for the operator's tracing system (INV-98).
//!
//! Only requests of authenticated callers have a span, because a stranger must not fill a collector, nor
//! choose a trace. Refused requests are counted, and are in the audit log.

use axum::http::{HeaderMap, StatusCode};
use belljar_agent::TRACE_TARGET;
use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{SpanContext, TraceContextExt as _, TraceState};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::field::Empty;
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::http::auth::Caller;
use crate::routes::{Route, RouteOp};

/// The header in which a request names its trace (W3C Trace Context).
const TRACEPARENT: &str = "traceparent";

/// The span of a request. Requests that machines repeat, for example health checks, have no span.
pub(crate) fn request_span(route: &Route, caller: &Caller, headers: &HeaderMap) -> Span {
    if route.op == RouteOp::Metrics {
        return Span::none();
    }
    let method = route.verb.as_str();
    let span = info_span!(
        target: TRACE_TARGET,
        parent: None,
        "request",
        otel.name = %format_args!("{method} {}", route.path),
        otel.kind = "server",
        http.request.method = method,
        http.route = route.path,
        http.response.status_code = Empty,
        belljar.tenant = &*caller.tenant,
        error.type = Empty,
        otel.status_code = Empty,
    );
    if !span.is_disabled()
        && let Some(parent) = remote_parent(headers)
    {
        // An error means: no receiver of spans is set up.
        let _ = span.set_parent(parent);
    }
    span
}

/// Records the answer's status. Only a server error marks the span as failed, because a caller's mistake is
/// not the server's.
pub(crate) fn record_answer(span: &Span, status: StatusCode) {
    if span.is_disabled() {
        return;
    }
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("error.type", status.as_str());
        span.record("otel.status_code", "ERROR");
    }
}

/// The span that a caller names as the request's parent, if the header occurs once and in the form of the
/// W3C. The other header (`tracestate`) is not passed on.
fn remote_parent(headers: &HeaderMap) -> Option<Context> {
    if headers.get_all(TRACEPARENT).iter().count() != 1 {
        return None;
    }
    let said = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    let span = said.span();
    let said = span.span_context();
    let (trace, span, flags) = (said.trace_id(), said.span_id(), said.trace_flags());
    let parent = SpanContext::new(trace, span, flags, true, TraceState::default());
    parent.is_valid().then(|| Context::new().with_remote_span_context(parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(lines: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(TRACEPARENT, line.parse().unwrap());
        }
        headers.append("tracestate", "a=secret".parse().unwrap());
        let parent = remote_parent(&headers)?;
        let span = parent.span();
        assert_eq!(span.span_context().trace_state().header(), "");
        Some(format!("{}/{}", span.span_context().trace_id(), span.span_context().span_id()))
    }

    #[test]
    fn a_parent_is_one_that_is_said_once_and_in_its_form() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let ids = "0af7651916cd43dd8448eb211c80319c/b7ad6b7169203331";
        assert_eq!(parent(&[good]).as_deref(), Some(ids));
        let bad = [
            "",
            "x",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        ];
        for line in bad {
            assert_eq!(parent(&[line]), None, "{line}");
        }
        assert_eq!(parent(&[]), None);
        assert_eq!(parent(&[good, good]), None);
    }
}
