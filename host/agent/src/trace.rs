//! The spans for the operator's tracer: one span for each turn, agent, model answer and tool call.
//!
//! INV-98: a span contains ids made by this program, granted or configured names, words of fixed lists, and
//! counts, but never a text of a person, model, tool or peer. So the span of a refused call has no tool name,
//! because the model may have invented it.
//!
//! Without a listener a span costs one load from memory, because its fields are not computed.

use belljar_model::{ModelError, ModelReply, ResolvedModel};
use belljar_policy::ShownText;
use belljar_sandbox::{CallEnding, Receipt};
use tracing::field::Empty;
use tracing::{Span, info_span};

use crate::agent_loop::job::AgentJob;
use crate::outcome::{Outcome, RunError, RunStatus};
use crate::tools::answer::CallAnswer;
use crate::tools::dispatch::CallDecision;

/// The target of belljar's spans, which distinguishes them from log lines.
pub const TRACE_TARGET: &str = "belljar::trace";

/// Most characters of a name in a span.
const MAX_NAME: usize = 64;

/// Most characters of an agent's path in a span; a path has one name for each depth.
const MAX_PATH: usize = 300;

/// The name of a tool call's span.
const TOOL: &str = "execute_tool";

/// Records how a turn ended. The usage includes subagents.
pub fn turn_ended(span: &Span, outcome: &Outcome) {
    if span.is_disabled() {
        return;
    }
    record_outcome(span, outcome);
    record_usage(span, &outcome.total);
    span.record("belljar.subagents", signed_count(outcome.children.len()));
}

/// The tenant in spans of the command line, and of the operator's own agents on a server.
const OWN_TENANT: &str = "local";

/// The span of an agent, below the span of the call that started it.
pub(crate) fn agent(job: &AgentJob) -> Span {
    let slug = job.agent.id.slug.as_str();
    info_span!(
        target: TRACE_TARGET,
        parent: &job.span,
        "invoke_agent",
        otel.name = %format_args!("invoke_agent {}", name(slug)),
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = %name(slug),
        gen_ai.request.model = %name(provider_and_model(&job.model).1),
        belljar.path = %ShownText::clip_line(&job.path, MAX_PATH),
        belljar.depth = i64::from(job.depth.level),
        belljar.status = Empty,
        belljar.steps = Empty,
        belljar.tool_calls = Empty,
        belljar.fuel = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// The outermost span of an agent's log lines, so for example a logged refusal names its tenant and
/// agent. It belongs to no trace.
pub(crate) fn lines_of(job: &AgentJob) -> Span {
    let tenant = job.shared.host.tenant.as_deref().unwrap_or(OWN_TENANT);
    info_span!(
        target: "belljar::agent",
        parent: None,
        "agent",
        tenant,
        path = %ShownText::clip_line(&job.path, MAX_PATH),
    )
}

/// Records how an agent ended, and its usage without subagents.
pub(crate) fn agent_ended(span: &Span, outcome: &Outcome) {
    if span.is_disabled() {
        return;
    }
    record_outcome(span, outcome);
    record_usage(span, &outcome.usage);
    span.record("belljar.steps", signed_amount(outcome.usage.steps));
    span.record("belljar.tool_calls", signed_amount(outcome.usage.tool_calls));
}

/// The span of a request to the model.
pub fn step_span(model: &ResolvedModel, step: u64) -> Span {
    let (provider, model) = provider_and_model(model);
    info_span!(
        target: TRACE_TARGET,
        "chat",
        otel.name = %format_args!("chat {}", name(model)),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = %name(provider),
        gen_ai.request.model = %name(model),
        belljar.step = signed_amount(step),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        belljar.tool_calls = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Records the model's answer in the span of its request.
pub fn record_reply(span: &Span, reply: &ModelReply) {
    if span.is_disabled() {
        return;
    }
    span.record("gen_ai.usage.input_tokens", signed_amount(reply.usage.input_tokens));
    span.record("gen_ai.usage.output_tokens", signed_amount(reply.usage.output_tokens));
    span.record("gen_ai.usage.cache_read.input_tokens", signed_amount(reply.usage.cached_tokens));
    span.record("belljar.tool_calls", signed_count(reply.calls.len()));
}

/// Records why the model did not answer. The provider's own text is left out.
pub fn record_model_error(span: &Span, error: &ModelError) {
    let why = match error {
        ModelError::Cancelled => "cancelled",
        ModelError::Timeout { .. } => "timeout",
        ModelError::RateLimited { .. } => "rate-limited",
        ModelError::Auth { .. } => "auth",
        ModelError::Http { .. } => "http",
        ModelError::Provider { .. } => "provider",
        ModelError::Network { .. } => "network",
        ModelError::Cut => "cut",
        ModelError::ContextLength { .. } => "context-length",
        ModelError::Protocol { .. } => "protocol",
        ModelError::TooLarge { .. } => "too-large",
        ModelError::Script(_) => "script",
    };
    record_failure(span, why);
}

/// The span of a tool call. Its name is `refused` if the call was refused before execution.
pub(crate) fn tool_call(decision: &CallDecision, step: u64) -> Span {
    let tool = decision.tool_permit().map_or("refused", |permit| permit.tool().as_str());
    info_span!(
        target: TRACE_TARGET,
        TOOL,
        otel.name = %format_args!("{TOOL} {}", name(tool)),
        gen_ai.operation.name = TOOL,
        gen_ai.tool.name = %name(tool),
        belljar.step = signed_amount(step),
        belljar.ending = Empty,
        belljar.fuel = Empty,
        belljar.denials = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Records the result of a tool call in the present span.
pub(crate) fn record_call(receipt: &Receipt) {
    let span = Span::current();
    // If a call is dropped, the present span is not its own, and nothing is recorded.
    if span.metadata().is_none_or(|span| span.target() != TRACE_TARGET || span.name() != TOOL) {
        return;
    }
    let ending = receipt.ending.as_str();
    span.record("belljar.ending", ending);
    span.record("belljar.fuel", signed_amount(receipt.fuel));
    span.record("belljar.denials", signed_count(receipt.denials.len()));
    if receipt.ending != CallEnding::Completed {
        record_failure(&span, ending);
    }
}

/// Records the result of a delegating call, which has no receipt, in the present span.
pub(crate) fn record_delegation(answer: &CallAnswer) {
    let span = Span::current();
    if answer.is_error {
        span.record("belljar.ending", "tool-error");
        record_failure(&span, "tool-error");
    } else {
        span.record("belljar.ending", "completed");
    }
}

/// Records that the work of a span failed, and the kind of failure.
pub(crate) fn record_failure(span: &Span, why: &'static str) {
    span.record("error.type", why);
    span.record("otel.status_code", "ERROR");
}

/// Records the status of an outcome and the kind of its error.
fn record_outcome(span: &Span, outcome: &Outcome) {
    let status = match outcome.status {
        RunStatus::Completed => "completed",
        RunStatus::Partial => "partial",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
    };
    span.record("belljar.status", status);
    let Some(error) = &outcome.error else { return };
    let why = match error {
        RunError::Budget { .. } => "budget",
        RunError::WallTime { .. } => "wall-time",
        RunError::OutputCut => "output-cut",
        RunError::NoAnswer => "no-answer",
        RunError::Declined => "declined",
        RunError::Stopped { .. } => "stopped",
        RunError::Model { .. } => "model",
        RunError::Setup { .. } => "setup",
        RunError::Hook { .. } => "hook",
        RunError::Caller { .. } => "caller",
        RunError::Form { .. } => "form",
        RunError::Busy { .. } => "busy",
        RunError::Cancelled => "cancelled",
        RunError::Internal { .. } => "internal",
    };
    record_failure(span, why);
}

/// Records the counts of a usage.
fn record_usage(span: &Span, usage: &crate::outcome::Usage) {
    span.record("gen_ai.usage.input_tokens", signed_amount(usage.input_tokens));
    span.record("gen_ai.usage.output_tokens", signed_amount(usage.output_tokens));
    span.record("gen_ai.usage.cache_read.input_tokens", signed_amount(usage.cached_tokens));
    span.record("belljar.fuel", signed_amount(usage.fuel));
}

/// The provider and the name of a model. A model without a provider is built into the host.
fn provider_and_model(model: &ResolvedModel) -> (&str, &str) {
    let id = model.model.id();
    id.split_once(':').unwrap_or(("belljar", id))
}

/// A name for a span, escaped and cut.
pub fn name(text: &str) -> ShownText<'_> {
    ShownText::clip_line(text, MAX_NAME)
}

/// Converts a count for a span, whose numbers are signed.
fn signed_amount(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn signed_count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
