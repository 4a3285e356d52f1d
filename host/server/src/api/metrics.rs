//! Counters of the server, and the page `/metrics` that Prometheus reads. The page is for the operator
//! alone. No label names a session, and at most [`MAX_TENANTS`] tenants are named.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use belljar_session::TurnTally;

use crate::app::App;
use crate::routes::RouteOp;

/// Upper ends of the buckets of the histogram of answer times, in seconds. A long answer, for example a
/// stream, counts in the last bucket.
const BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 600.0];

/// The most tenants with separate series, the first by name, because a collector keeps each series for ever.
/// The turns of other tenants count together, without a name.
const MAX_TENANTS: usize = 500;

/// The counters of one server.
#[derive(Debug, Default)]
pub(crate) struct ServerMetrics {
    /// The number of answers, by route and HTTP status.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    durations: [AtomicU64; BUCKETS.len()],
    duration_count: AtomicU64,
    duration_micros: AtomicU64,
    /// The number of open connections, event streams and WebSockets.
    pub(crate) connections: LiveGauge,
    pub(crate) streams: LiveGauge,
    pub(crate) sockets: LiveGauge,
    /// The number of connections that were closed at once because too many were open.
    pub(crate) refused: AtomicU64,
    /// The number of requests without a valid key.
    strangers: AtomicU64,
}

/// A count that rises and falls, for example of open streams.
#[derive(Debug, Default)]
pub(crate) struct LiveGauge(AtomicI64);

/// Keeps a gauge increased by one until the guard is dropped.
pub(crate) struct GaugeGuard<'a>(&'a AtomicI64);

impl LiveGauge {
    pub(crate) fn count_one(&self) -> GaugeGuard<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        GaugeGuard(&self.0)
    }

    fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServerMetrics {
    /// Counts a request without a valid key.
    pub(crate) fn count_stranger(&self) {
        self.strangers.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an answer and its duration. `route` is `None` for a path that is no route.
    pub(crate) fn count_answer(&self, route: Option<RouteOp>, status: u16, took: Duration) {
        let key = (route.map_or("none", RouteOp::name), status);
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry(key).or_default() += 1;
        drop(requests);
        let seconds = took.as_secs_f64();
        for (bucket, end) in self.durations.iter().zip(BUCKETS) {
            if seconds <= end {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.duration_count.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.duration_micros.fetch_add(micros, Ordering::Relaxed);
    }
}

/// `GET /metrics`: returns the page of counters in Prometheus' text format.
pub(crate) async fn read_metrics(State(app): State<App>) -> Response {
    // Today no label contains a path of the host; if a later label does, the path is masked here.
    let page = app.place_hider().hide_in_text(&metrics_page(&app));
    let mut response = page.into_string().into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Writes the page: first the answers and their times, then the gauges of connections and turns, then
/// the counters of each tenant.
fn metrics_page(app: &App) -> String {
    let metrics = app.metrics();
    let mut page = MetricsPage::default();
    let name = "belljar_http_requests_total";
    page.write_head(name, "counter", "Answers to requests, by route and status.");
    let requests = metrics.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for ((route, status), count) in requests {
        page.write_line(format_args!("{name}{{route=\"{route}\",status=\"{status}\"}} {count}"));
    }
    let name = "belljar_http_request_seconds";
    page.write_head(name, "histogram", "Time to the head of an answer.");
    for (bucket, end) in metrics.durations.iter().zip(BUCKETS) {
        let count = bucket.load(Ordering::Relaxed);
        page.write_line(format_args!("{name}_bucket{{le=\"{end}\"}} {count}"));
    }
    let count = metrics.duration_count.load(Ordering::Relaxed);
    let sum = metrics.duration_micros.load(Ordering::Relaxed) as f64 / 1e6;
    page.write_line(format_args!("{name}_bucket{{le=\"+Inf\"}} {count}"));
    page.write_line(format_args!("{name}_sum {sum}"));
    page.write_line(format_args!("{name}_count {count}"));
    let mut number = |name: &str, kind: &str, help: &str, value: i128| {
        page.write_head(name, kind, help);
        page.write_line(format_args!("{name} {value}"));
    };
    let running: usize =
        app.services().open_services().iter().map(|one| one.running_turns().len()).sum();
    let admission = app.admission();
    let wide = |count: usize| i128::try_from(count).unwrap_or(i128::MAX);
    let gauges = [
        ("belljar_connections", "Open connections.", metrics.connections.get().into()),
        ("belljar_event_streams", "Open streams of events.", metrics.streams.get().into()),
        ("belljar_websockets", "Open WebSockets.", metrics.sockets.get().into()),
        ("belljar_turns_running", "Turns that run.", wide(running)),
        ("belljar_jars_in_use", "Places for turns that are taken.", wide(admission.in_use())),
        ("belljar_jars", "Places for turns.", wide(admission.capacity())),
        ("belljar_turns_waiting", "Turns that wait for a place.", wide(admission.waiting_turns())),
        (
            "belljar_writes_pending",
            "Groups of writes that are not committed yet.",
            wide(app.store().pending_writes()),
        ),
    ];
    for (name, help, value) in gauges {
        number(name, "gauge", help, value);
    }
    let counters = [
        (
            "belljar_connections_refused_total",
            "Connections that were turned away because there were too many.",
            &metrics.refused,
        ),
        (
            "belljar_strangers_total",
            "Refused requests of callers who have proven no key.",
            &metrics.strangers,
        ),
    ];
    for (name, help, value) in counters {
        number(name, "counter", help, value.load(Ordering::Relaxed).into());
    }
    let tallied = app.services().open_services();
    let tallied = tallied.iter().map(|one| (one.store().tenant().to_owned(), one.turn_tally()));
    by_tenant(&mut page, sum_other_tenants(tallied.collect()));
    page.0
}

/// Keeps the counts of the first [`MAX_TENANTS`] tenants, and adds up those of the other tenants under
/// an empty name.
fn sum_other_tenants(mut tallied: BTreeMap<String, TurnTally>) -> BTreeMap<String, TurnTally> {
    let first_other = tallied.keys().nth(MAX_TENANTS).cloned();
    let Some(first_other) = first_other else { return tallied };
    let others = tallied.split_off(&first_other);
    let sum = others.into_values().fold(TurnTally::default(), |sum, one| sum + one);
    tallied.insert(String::new(), sum);
    tallied
}

/// Writes the counts of each tenant's turns. Tenant names contain no letter that a label would have to
/// escape.
fn by_tenant(page: &mut MetricsPage, tallied: BTreeMap<String, TurnTally>) {
    let turns: [Series; 4] = [
        ("completed", |one| one.completed),
        ("partial", |one| one.partial),
        ("failed", |one| one.failed),
        ("cancelled", |one| one.cancelled),
    ];
    let tokens: [Series; 2] =
        [("input", |one| one.input_tokens), ("output", |one| one.output_tokens)];
    let one = |count: fn(&TurnTally) -> u64| [("", count)];
    let families: [(&str, &str, &str, &[Series]); 5] = [
        ("belljar_turns_total", "Turns that have ended.", "status", &turns),
        ("belljar_tokens_total", "Tokens of turns that have ended.", "kind", &tokens),
        ("belljar_tool_calls_total", "Calls of tools.", "", &one(|one| one.tool_calls)),
        ("belljar_denials_total", "What was refused to agents.", "", &one(|one| one.denials)),
        ("belljar_questions_total", "Questions to people.", "", &one(|one| one.questions)),
    ];
    for (name, help, label, series) in families {
        page.write_head(name, "counter", help);
        for (tenant, tallied) in &tallied {
            for (value, count) in series {
                let count = count(tallied);
                match label {
                    "" => page.write_line(format_args!("{name}{{tenant=\"{tenant}\"}} {count}")),
                    label => page.write_line(format_args!(
                        "{name}{{tenant=\"{tenant}\",{label}=\"{value}\"}} {count}"
                    )),
                }
            }
        }
    }
}

/// A label's value, and the function that reads its counter from a tenant's counts.
type Series = (&'static str, fn(&TurnTally) -> u64);

#[derive(Default)]
struct MetricsPage(String);

impl MetricsPage {
    fn write_head(&mut self, name: &str, kind: &str, help: &str) {
        self.write_line(format_args!("# HELP {name} {help}"));
        self.write_line(format_args!("# TYPE {name} {kind}"));
    }

    fn write_line(&mut self, line: std::fmt::Arguments<'_>) {
        // The write cannot fail, because a `String` grows as needed.
        let _ = writeln!(self.0, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_in_every_bucket_that_it_fits() {
        let metrics = ServerMetrics::default();
        metrics.count_answer(Some(RouteOp::Chat), 200, Duration::from_millis(50));
        let counts = metrics.durations.each_ref().map(|bucket| bucket.load(Ordering::Relaxed));
        assert_eq!(counts, [0, 0, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn tenants_without_number_have_so_many_series_and_no_turn_is_lost() {
        let tallied = |completed| TurnTally { completed, ..TurnTally::default() };
        let all = (0..MAX_TENANTS + 7).map(|number| (format!("t{number:05}"), tallied(2)));
        let bounded = sum_other_tenants(all.collect());
        assert_eq!(bounded.len(), MAX_TENANTS + 1);
        assert_eq!((bounded["t00000"], bounded[""]), (tallied(2), tallied(14)));
        let few = BTreeMap::from([("t".to_owned(), tallied(1))]);
        assert_eq!(super::sum_other_tenants(few.clone()), few);
    }

    #[test]
    fn a_gauge_falls_when_its_thing_is_gone() {
        let gauge = LiveGauge::default();
        let one = gauge.count_one();
        assert_eq!(gauge.get(), 1);
        drop(one);
        assert_eq!(gauge.get(), 0);
    }
}
