//! The span of a turn, which holds those of its agents. [`belljar_agent::trace`] says what a span may
//! hold (INV-98).

use belljar_agent::TRACE_TARGET;
use belljar_agent::trace::name;
use tracing::field::Empty;
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::record::turn::{Open, Turn};

/// A turn of a session. It runs on when the request that began it has ended, so that one is its
/// parent for the tracer only. One that is resumed after a restart begins a trace.
pub(crate) fn turn(tenant: &str, session: &str, agent: &str, turn: &Turn<Open>) -> Span {
    let request = Span::current();
    let span = info_span!(
        target: TRACE_TARGET,
        parent: None,
        "turn",
        gen_ai.conversation.id = session,
        gen_ai.agent.name = %name(agent),
        belljar.message = turn.message,
        belljar.tenant = tenant,
        belljar.resumed = turn.state.replay.is_some(),
        belljar.status = Empty,
        belljar.subagents = Empty,
        belljar.fuel = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    );
    if !span.is_disabled() && !request.is_disabled() {
        // An error: nobody listens to spans.
        let _ = span.set_parent(request.context());
    }
    span
}
