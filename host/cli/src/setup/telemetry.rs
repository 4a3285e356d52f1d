//! Sends the spans of `belljar serve` to the operator's collector: OTLP over HTTP, as protobuf.
//!
//! A slow, broken or absent collector affects only its reader: spans wait in a bounded queue, further ones
//! are dropped and counted, and each request has a time limit.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use belljar_definition::ServerSetting;
use belljar_policy::ShownText;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response, ResponseBodyTooLarge};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider,
};
use reqwest::Url;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::setup::exit::Failure;

/// The name of the setting with the collector's address, for messages.
const SETTING: &str = "`otlp_endpoint` under `[server]`";

/// The standard variable with the collector's address for traces, with the whole path.
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// The standard variable with the collector's address for all signals, without the path.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The standard variables with headers of each request, as `name=value,name=value`, for example credentials.
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];

/// The standard variables with the protocol; only protobuf over HTTP is supported.
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
/// The only supported value of these variables.
const PROTOCOL: &str = "http/protobuf";

/// The path that is appended to an address for all signals, for example to `http://127.0.0.1:4318`.
const TRACES_PATH: &str = "v1/traces";

/// The default name of the service in spans.
const SERVICE: &str = "belljar";

/// The default of `OTEL_BSP_MAX_QUEUE_SIZE`: as many spans as some hundred turns have that end in the same
/// second, a few megabytes.
const MAX_WAITING: usize = 8_192;

/// The time limit of one request to the collector.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit of sending the waiting spans when the server stops.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Most bytes of a collector's answer, which contains only the number of refused spans.
const MAX_ANSWER: usize = 64 << 10;

/// An answer up to this length means that all spans were accepted: the field for refused ones is absent or
/// empty.
const ALL_TAKEN: usize = 2;

/// The shortest time between two log lines about a collector that accepts nothing.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// The address of the operator's collector.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SpanCollector(Url);

/// Sends spans until `stop_sending` is called.
#[derive(Debug)]
pub(crate) struct Telemetry(SdkTracerProvider);

/// The HTTP client of the exporter, whose own thread is outside of the runtime.
#[derive(Debug)]
struct ExporterClient {
    client: reqwest::Client,
    runtime: Handle,
    troubles: Mutex<BatchFailures>,
}

/// The failures since the last log line. The exporter's library repeats each batch a few times.
#[derive(Debug, Default)]
struct BatchFailures {
    /// The time of the last log line about a failure; `None` = no failure since the last success.
    said: Option<Instant>,
    /// The number of failures after that line.
    unsaid: u64,
}

impl SpanCollector {
    /// The collector named in the environment, otherwise in `belljar.toml`; `None` = no spans are sent. `env`
    /// returns a variable's value.
    pub(crate) fn find_configured(
        server: &ServerSetting,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Failure> {
        let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        let is = |name: &str, word: &str| {
            env(name).is_some_and(|value| value.trim().eq_ignore_ascii_case(word))
        };
        if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
            return Ok(None);
        }
        let found = env(TRACES_ENDPOINT)
            .map(|text| (text, TRACES_ENDPOINT, false))
            .or_else(|| env(ENDPOINT).map(|text| (text, ENDPOINT, true)))
            .or_else(|| server.otlp_endpoint.clone().map(|text| (text, SETTING, true)));
        let Some((text, from, whole)) = found else { return Ok(None) };
        let protocol = PROTOCOLS.into_iter().find_map(|name| Some((name, env(name)?)));
        if let Some((name, other)) = protocol.filter(|(_, value)| value.trim() != PROTOCOL) {
            let other = ShownText::clip_line(&other, 40);
            return Err(Failure::usage(format!(
                "{name} is `{other}`, which belljar does not send"
            ))
            .with_hint(format!("set it to `{PROTOCOL}`; collectors take it at port 4318")));
        }
        if let Some(name) = HEADERS.into_iter().find(|name| !env(name).is_none_or(is_header_list)) {
            return Err(Failure::usage(format!("{name} is not a list of headers"))
                .with_hint("write it as `name=value,name=value`, values percent-encoded"));
        }
        let url = parse_address(text.trim(), whole).map_err(|why| {
            Failure::usage(format!("the address of the collector in {from} {why}"))
                .with_hint("write it as `http://127.0.0.1:4318`")
        })?;
        Ok(Some(Self(url)))
    }

    /// The collector's host, for messages, because the rest of the address may contain a secret.
    pub(crate) fn display_host(&self) -> String {
        self.0.origin().ascii_serialization()
    }
}

/// Parses a collector's address for traces. The error describes the fault without the address, which may
/// contain a password. `whole` = the address has its path.
fn parse_address(text: &str, whole: bool) -> Result<Url, &'static str> {
    let wrong = "is not one that spans can be sent to: it must begin with `http://` or `https://`";
    let mut url: Url = text.parse().map_err(|_| wrong)?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password; use OTEL_EXPORTER_OTLP_HEADERS");
    }
    if url.fragment().is_some() {
        return Err("must not contain `#`");
    }
    if whole && let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(TRACES_PATH.split('/'));
    }
    Ok(url)
}

/// Returns whether each part of the text is a valid header, because the exporter's library skips invalid
/// ones.
fn is_header_list(headers: String) -> bool {
    headers.split(',').filter(|part| !part.trim().is_empty()).all(|part| {
        let Some((name, value)) = part.split_once('=') else { return false };
        let value = value.trim();
        name.trim().parse::<reqwest::header::HeaderName>().is_ok()
            && !value.is_empty()
            && reqwest::header::HeaderValue::from_str(value).is_ok()
    })
}

impl Telemetry {
    /// Starts sending spans, in tasks of this runtime. Returns the tracer that makes them.
    pub(crate) fn start_sending(
        collector: &SpanCollector,
        runtime: &Handle,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<(Self, SdkTracer), Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(format!(
                "traces cannot be sent to `{}`: {error}",
                collector.display_host()
            ))
        };
        let client = belljar_model::http_client(collector.0.scheme() == "https");
        let sender = ExporterClient {
            client: client.map_err(|error| failed(&error))?,
            runtime: runtime.clone(),
            troubles: Mutex::default(),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(sender)
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_endpoint(collector.0.as_str())
            .build()
            .map_err(|error| failed(&error))?;
        let mut batches = BatchConfigBuilder::default();
        if env("OTEL_BSP_MAX_QUEUE_SIZE").is_none() {
            batches = batches.with_max_queue_size(MAX_WAITING);
        }
        let processor =
            BatchSpanProcessor::builder(exporter).with_batch_config(batches.build()).build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_resource(sender_resource(env))
            .build();
        let tracer = provider.tracer(SERVICE);
        Ok((Self(provider), tracer))
    }

    /// Sends the waiting spans, up to a time limit, and stops. Blocks: must be called outside of the runtime,
    /// while the runtime still exists.
    pub(crate) fn stop_sending(self) {
        if let Err(error) = self.0.shutdown_with_timeout(FLUSH_TIMEOUT) {
            tracing::warn!(%error, "not all traces were sent before the end");
        }
    }
}

/// The service's name and attributes in spans: from the standard variables, otherwise `belljar`.
fn sender_resource(env: impl Fn(&str) -> Option<String>) -> Resource {
    let named = env("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty())
        || env("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|list| list.contains("service.name="));
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_attribute(version);
    if named { resource.build() } else { resource.with_service_name(SERVICE).build() }
}

#[async_trait]
impl HttpClient for ExporterClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let sending =
            AbortOnDropHandle::new(self.runtime.spawn(send_request(self.client.clone(), request)));
        let sent = match sending.await {
            Ok(sent) => sent,
            Err(error) => Err(error.into()),
        };
        match &sent {
            Ok(answer) if !answer.status().is_success() => {
                self.log_failure(&format!("the collector answered HTTP {}", answer.status()));
            }
            Ok(answer) if answer.body().len() > ALL_TAKEN => {
                self.log_failure("the collector did not take all spans of a batch");
            }
            Ok(_) => self.log_recovery(),
            Err(error) => self.log_failure(&format_error_chain(&**error)),
        }
        sent
    }
}

/// Sends one request to the collector, with a time limit, and returns its bounded answer.
async fn send_request(
    client: reqwest::Client,
    mut request: reqwest::Request,
) -> Result<Response<Bytes>, HttpError> {
    *request.timeout_mut() = Some(SEND_TIMEOUT);
    let mut answer = client.execute(request).await.map_err(reqwest::Error::without_url)?;
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
        if body.len() + part.len() > MAX_ANSWER {
            return Err(ResponseBodyTooLarge::default().into());
        }
        body.extend_from_slice(&part);
    }
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = answer.status();
    Ok(response)
}

impl ExporterClient {
    /// Logs that a batch was not accepted; only counts it if the last log line is recent.
    fn log_failure(&self, why: &str) {
        let times = {
            let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
            troubles.unsaid += 1;
            if troubles.said.is_some_and(|said| said.elapsed() < SAY_EVERY) {
                return;
            }
            troubles.said = Some(Instant::now());
            std::mem::take(&mut troubles.unsaid)
        };
        let why = ShownText::clip_line(why, 300).to_string();
        tracing::warn!(
            times,
            why,
            "the collector does not take traces: what it takes too late is lost"
        );
    }

    /// Logs that the collector accepts spans again, if a failure was logged.
    fn log_recovery(&self) {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        let BatchFailures { said, unsaid } = std::mem::take(&mut *troubles);
        drop(troubles);
        if said.is_some() {
            tracing::info!(times = unsaid, "the collector takes traces again");
        }
    }
}

/// An error with its causes, because the message of a client's error rarely has the reason.
fn format_error_chain(error: &(dyn Error + 'static)) -> String {
    anyhow::Chain::new(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The collector's address for this setting and environment.
    fn find(setting: Option<&str>, env: &[(&str, &str)]) -> Result<Option<String>, String> {
        let server =
            ServerSetting { otlp_endpoint: setting.map(str::to_owned), ..Default::default() };
        let env: BTreeMap<&str, &str> = env.iter().copied().collect();
        let found =
            SpanCollector::find_configured(&server, |name| env.get(name).map(ToString::to_string));
        found
            .map(|found| found.map(|collector| collector.0.to_string()))
            .map_err(|failure| failure.message)
    }

    #[test]
    fn spans_go_where_the_environment_says_else_where_the_settings_say_else_nowhere() {
        let ok = |url: &str| Ok(Some(url.to_owned()));
        let set = Some("http://127.0.0.1:4318");
        assert_eq!(find(None, &[]), Ok(None));
        assert_eq!(find(set, &[]), ok("http://127.0.0.1:4318/v1/traces"));
        assert_eq!(find(set, &[(ENDPOINT, "")]), ok("http://127.0.0.1:4318/v1/traces"));
        assert_eq!(find(set, &[(ENDPOINT, "https://c.test/a/")]), ok("https://c.test/a/v1/traces"));
        let both = [(ENDPOINT, "https://c.test"), (TRACES_ENDPOINT, "https://t.test/x")];
        assert_eq!(find(set, &both), ok("https://t.test/x"));
        assert_eq!(find(set, &[("OTEL_SDK_DISABLED", "True")]), Ok(None));
        assert_eq!(find(set, &[("OTEL_TRACES_EXPORTER", "none")]), Ok(None));
    }

    #[test]
    fn what_cannot_be_sent_to_is_one_clear_error() {
        for (text, why) in [
            ("127.0.0.1:4318", "must begin with `http://`"),
            ("grpc://c.test", "must begin with `http://`"),
            ("nonsense", "must begin with `http://`"),
            ("http://me:hunter2@c.test", "must not contain a user name"),
            ("http://c.test#x", "must not contain `#`"),
        ] {
            let error = find(Some(text), &[]).unwrap_err();
            assert!(error.contains(why) && error.contains("`otlp_endpoint`"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
            assert!(find(None, &[(ENDPOINT, text)]).unwrap_err().contains(ENDPOINT));
        }
        let set = Some("http://127.0.0.1:4318");
        let grpc = find(set, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err();
        assert!(grpc.contains("`grpc`"), "{grpc}");
        assert!(find(set, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]).is_ok());
        for bad in ["hunter2", "a b=hunter2", "a="] {
            let error = find(set, &[("OTEL_EXPORTER_OTLP_HEADERS", bad)]).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert!(find(set, &[("OTEL_EXPORTER_OTLP_HEADERS", "a=b%20c, x-key=d")]).is_ok());
    }

    #[tokio::test]
    async fn the_log_hears_of_a_collector_that_is_gone_now_and_then() {
        let client = belljar_model::http_client(false).unwrap();
        let sender =
            ExporterClient { client, runtime: Handle::current(), troubles: Mutex::default() };
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        for round in 0..3 {
            let url = format!("http://{closed}/v1/traces");
            let request = Request::post(url).body(Bytes::from_static(b"x")).unwrap();
            assert!(sender.send_bytes(request).await.is_err());
            let troubles = sender.troubles.lock().unwrap();
            assert_eq!((troubles.said.is_some(), troubles.unsaid), (true, round));
        }
        sender.log_recovery();
        assert!(sender.troubles.lock().unwrap().said.is_none());
    }
}
