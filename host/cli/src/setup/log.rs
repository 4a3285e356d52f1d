//! The log of this process: lines on stderr, and for a server the spans for the operator's collector.
//!
//! The two never mix. Lines are not part of spans, and spans print nothing: without a collector there is no
//! subscriber to spans, so none is made.

use belljar_agent::TRACE_TARGET;
use opentelemetry_sdk::trace::SdkTracer;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, filter_fn};
use tracing_subscriber::layer::{Filter, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::term::out::TerminalOutput;

/// The library that logs every failed batch. Its lines are left out, because `telemetry` summarizes them.
const EXPORTER: &str = "opentelemetry-otlp";
/// The name of that library's event about a failed batch.
const EXPORT_ERROR: &str = "BatchSpanProcessor.ExportError";

/// The default filter of a server's lines. Without `rmcp=off`, that library would log each message of a
/// client.
const OWN_LINES: &str = "info,rmcp=off";

/// Starts the log of a command: lines on stderr, only if the variable `BELLJAR_LOG` asks for them (for
/// example `debug` or `belljar_sandbox=trace`).
pub(crate) fn start_log(out: &TerminalOutput) {
    if let Some(filter) = asked_for() {
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(out.colours_errors())
            .with_filter(line_filter(&filter));
        tracing_subscriber::registry().with(lines).init();
    }
}

/// Starts the log of a server: on a terminal sentences, otherwise JSON objects for programs. Spans are sent
/// to `tracer`.
pub(crate) fn start_server(out: &TerminalOutput, tracer: Option<SdkTracer>) {
    let filter = asked_for().or_else(|| (!out.is_quiet()).then(|| OWN_LINES.to_owned()));
    let log = |filter: String| {
        let to = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        match out.keeps_log() {
            true => to.json().with_filter(line_filter(&filter)).boxed(),
            false => to.with_ansi(out.colours_errors()).with_filter(line_filter(&filter)).boxed(),
        }
    };
    let registry = tracing_subscriber::registry();
    // The layers are added one by one, because a layer that is `None` counts as one that wants all spans, and
    // spans would then be made for no reader.
    match (filter, tracer) {
        (Some(filter), Some(tracer)) => registry.with(log(filter)).with(span_layer(tracer)).init(),
        (Some(filter), None) => registry.with(log(filter)).init(),
        (None, Some(tracer)) => registry.with(span_layer(tracer)).init(),
        (None, None) => {}
    }
}

fn asked_for() -> Option<String> {
    Some(std::env::var_os("BELLJAR_LOG")?.to_string_lossy().into_owned())
}

/// Lets through the lines that the operator's filter allows, and no spans.
fn line_filter<S: Subscriber>(filter: &str) -> impl Filter<S> + use<S> {
    let printed = |data: &Metadata<'_>| {
        let said_elsewhere = data.target() == EXPORTER && *data.level() <= Level::INFO
            || data.name() == EXPORT_ERROR;
        data.target() != TRACE_TARGET && !said_elsewhere
    };
    EnvFilter::builder().parse_lossy(filter).and(filter_fn(printed))
}

/// The layer for the collector: only belljar's own spans. Log lines, spans of libraries and positions in the
/// source are left out.
fn span_layer<S>(tracer: SdkTracer) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false)
        .with_context_activation(false)
        .with_filter(filter_fn(|data| data.is_span() && data.target() == TRACE_TARGET))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::trace::SdkTracerProvider;

    /// Returns whether this subscriber gets a span. If not, not even the span's values are evaluated.
    fn is_made(subscriber: impl Subscriber + Send + Sync + 'static) -> bool {
        tracing::subscriber::with_default(subscriber, || {
            let mut looked = false;
            let mut look = || {
                looked = true;
                1
            };
            let span = tracing::info_span!(target: TRACE_TARGET, "one", value = look());
            assert_eq!(looked, !span.is_disabled());
            assert!(tracing::enabled!(tracing::Level::TRACE), "lines are logged");
            !span.is_disabled()
        })
    }

    #[test]
    fn a_span_is_made_only_where_there_is_a_collector() {
        // The filter that lets all lines through.
        let all = || {
            let to = tracing_subscriber::fmt::layer().with_writer(std::io::sink);
            tracing_subscriber::registry().with(to.with_filter(line_filter("trace")))
        };
        assert!(!is_made(all()));
        let provider = SdkTracerProvider::builder().build();
        assert!(is_made(all().with(span_layer(provider.tracer("test")))));
    }
}
