//! The span of a turn, around the spans of agents. [`belljar_agent::trace`] lists the allowed fields
//! (INV-98).

use belljar_agent::TRACE_TARGET;
use belljar_agent::trace::name;
use tracing::field::Empty;
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::record::turn::{OpenState, Turn};

/// Makes the span of a turn. A turn outlives its request, so the request's span is its parent for the tracer
/// only. A turn that is resumed after a restart begins a new trace.
pub(crate) fn turn_span(tenant: &str, session: &str, agent: &str, turn: &Turn<OpenState>) -> Span {
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
        // This fails if no receiver of spans is configured.
        let _ = span.set_parent(request.context());
    }
    span
}
