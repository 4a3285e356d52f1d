//! HTTP requests the host itself sends for a call of an agent, in a protocol the host implements for the
//! agent, for example MCP. The requests pass the same gate, and are billed in the same way, as requests of a
//! guest.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use belljar_os_sandbox::Broker;
use belljar_policy::{Budget, DenyCode, HostScope, Limits, Meter, SecretName};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use tokio::task::JoinHandle;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::Sandbox;
use crate::component::bindings::exports::belljar::tool::tools as wit;
use crate::imports::http::{HttpGate, SecretStore, host_gate};
use crate::jar::answer::{accept_output, output_digest};
use crate::jar::output::{CallError, ToolOutput};
use crate::receipt::record::{CallRecord, RecordLists};
use crate::receipt::{Denial, Receipt, withheld};
use crate::{Digest, OutputPart, ProgressSink};

/// The rights and limits of a call's requests.
#[derive(Debug)]
pub struct OutgoingSpec<'a> {
    /// The allowed hosts.
    pub scope: HostScope,
    /// The secrets of the run, with their values.
    pub secrets: &'a SecretStore,
    /// The secrets the gate adds to requests for their bound hosts. Replies are searched for these and for
    /// the run's secrets.
    pub joined: &'a BTreeSet<SecretName>,
    /// The budget that pays for every byte.
    pub budget: &'a Budget,
    /// The limits of concurrent connections and of log lines.
    pub limits: &'a Limits,
}

/// The gate that all requests of a call pass. Redirects are not followed. A reply compressed although the
/// request did not ask for it is decoded, or refused if replies are searched for secrets.
pub struct OutgoingGate {
    gate: Arc<HttpGate>,
    budget: Budget,
    broker: Option<Broker>,
}

/// A reply whose body is read piece by piece. Dropping it closes the connection.
pub struct HttpReply {
    /// The HTTP status. A redirect is returned too, for example 302.
    pub status: StatusCode,
    /// The headers: text of the peer, not escaped.
    pub headers: HeaderMap,
    body: WasiBody,
    connection: JoinHandle<()>,
}

/// Why no reply was received, as a short text for the model. The receipt has the details.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutgoingError(String);

impl OutgoingGate {
    /// A gate for one call.
    pub fn new(sandbox: &Sandbox, spec: OutgoingSpec<'_>) -> Self {
        let record = Arc::new(CallRecord::new(spec.budget.clone(), spec.limits.log_lines));
        Self::with_record(sandbox, spec, record)
    }

    /// A second gate for the same call, with other hosts or secrets. Both gates bill the same budget and
    /// write to the same record.
    #[must_use]
    pub fn sibling_gate(&self, sandbox: &Sandbox, spec: OutgoingSpec<'_>) -> Self {
        Self::with_record(sandbox, spec, Arc::clone(&self.gate.record))
    }

    fn with_record(sandbox: &Sandbox, spec: OutgoingSpec<'_>, record: Arc<CallRecord>) -> Self {
        let OutgoingSpec { scope, secrets, joined, budget, limits } = spec;
        let (secrets, options) = (secrets.allowed_secrets(joined), sandbox.shared.http.clone());
        let gate = host_gate(scope, secrets, limits, record, options);
        let broker = sandbox.shared.broker.clone();
        Self { gate: Arc::new(gate), budget: budget.clone(), broker }
    }

    /// The broker, which starts programs outside of the current process; `None` without an OS sandbox.
    pub fn broker(&self) -> Option<&Broker> {
        self.broker.as_ref()
    }

    /// Bills bytes that will be sent to a local program, for example an MCP server on stdio. Call it before
    /// sending.
    ///
    /// # Errors
    ///
    /// The call may not send that many bytes.
    pub fn bill_sent(&self, bytes: usize) -> Result<(), OutgoingError> {
        self.bill_bytes(Meter::Egress, bytes, "more than may be sent")
    }

    /// Bills bytes a local program returned.
    ///
    /// # Errors
    ///
    /// The call may not receive that many bytes.
    pub fn bill_received(&self, bytes: usize) -> Result<(), OutgoingError> {
        self.bill_bytes(Meter::Ingress, bytes, "more than may be received")
    }

    fn bill_bytes(&self, meter: Meter, bytes: usize, over: &str) -> Result<(), OutgoingError> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.gate.record.bill_bytes(meter, bytes).map_err(|_| OutgoingError(over.to_owned()))
    }

    /// Logs a line of a local program's output that is not an answer, within the call's limit of log lines.
    pub fn log_line(&self, level: &str, line: &str) {
        self.gate.record.add_log_line(level, line);
    }

    /// Records in the receipt that a secret was passed to a local program.
    pub fn secret_used(&self, name: &SecretName) {
        self.gate.record.secret_used(name.as_str());
    }

    /// Sends a request and returns the reply's head. Needs a tokio runtime, on which the connection runs.
    ///
    /// # Errors
    ///
    /// The request is refused, or the peer cannot be reached.
    pub async fn send_request(&self, request: Request<Bytes>) -> Result<HttpReply, OutgoingError> {
        let body = |bytes: Bytes| Full::new(bytes).map_err(|never| match never {}).boxed_unsync();
        let sent = Arc::clone(&self.gate).send_request(request.map(body), None).await;
        let (reply, io) = sent.map_err(|error| format_wasi_error(&error))?;
        let connection = tokio::spawn(async move {
            // The reader of the body gets an error of the connection too.
            let _ = Box::into_pin(io).await;
        });
        let (parts, body) = reply.into_parts();
        Ok(HttpReply { status: parts.status, headers: parts.headers, body, connection })
    }

    /// Records in the receipt that the protocol's own rules refused something.
    pub fn record_denial(&self, code: DenyCode, what: &str, facts: String) {
        self.gate.record.add_denial(Denial::new(code, what, facts));
    }

    /// Checks the output in the same way as a guest's, and bills its size to the budget.
    ///
    /// # Errors
    ///
    /// The output is invalid, or exceeds a limit of the call or of an ancestor.
    pub fn accept_output(&self, parts: Vec<OutputPart>) -> Result<ToolOutput, CallError> {
        let parts = parts.into_iter().map(|part| match part {
            OutputPart::Text(text) => wit::Part::Text(text),
            OutputPart::Json(text) => wit::Part::Json(text),
            OutputPart::Attachment { name, media_type, data } => {
                wit::Part::Attachment(wit::Attachment { name, media_type, data: data.into() })
            }
        });
        accept_output(wit::Output { parts: parts.collect() }, &self.budget)
    }

    /// Wraps a sink of progress reports: a report that contains a secret of the run arrives at `sink` with
    /// the secret replaced.
    #[must_use]
    pub fn filter_progress(&self, sink: ProgressSink) -> ProgressSink {
        withheld::filter_progress(self.gate.secrets.secret_watch(), sink)
    }

    /// Ends the call: adds its effects to the receipt, and withholds an outcome that contains a secret of the
    /// run, as for a guest's call.
    pub fn finish_call(
        self,
        outcome: Result<ToolOutput, CallError>,
        receipt: &mut Receipt,
        took: Duration,
    ) -> Result<ToolOutput, CallError> {
        let (lists, bytes, _) = self.gate.record.drain_lists();
        receipt.bytes = bytes;
        write_lists(lists, receipt);
        let outcome = withheld::filter_outcome(self.gate.secrets.secret_watch(), outcome, receipt);
        if let Ok(output) = &outcome {
            receipt.bytes.output = output.size();
            receipt.output_digest = Digest::from_bytes(output_digest(output)).to_string();
        }
        receipt.times.total = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        receipt.times.waiting = receipt.times.total;
        outcome
    }
}

/// Moves the recorded denials, hosts, secrets and log lines into the receipt.
fn write_lists(lists: RecordLists, receipt: &mut Receipt) {
    receipt.denials = lists.denials;
    receipt.denials_dropped = lists.denials_dropped;
    receipt.hosts = lists.hosts.into_iter().collect();
    receipt.secrets_used = lists.secrets_used.into_iter().collect();
    receipt.logs = lists.logs;
    receipt.logs_dropped = lists.logs_dropped;
}

impl HttpReply {
    /// The next bytes of the body; `None` at its end.
    ///
    /// # Errors
    ///
    /// The connection broke, or the call may not receive that many bytes.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, OutgoingError> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(format_wasi_error(&error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

impl Drop for HttpReply {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// A `wasi:http` error as words, for example `dns timeout`, without any text of the peer.
fn format_wasi_error(error: &Error) -> OutgoingError {
    if let Error::HttpResponseContentCoding(Some(name)) = error {
        // Safe to show, because `name` is short and has only printable characters.
        return OutgoingError(format!("the reply is encoded as `{name}`, which cannot be decoded"));
    }
    let debug = format!("{error:?}");
    let name = debug.split(['(', ' ', '{']).next().unwrap_or_default();
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    OutgoingError(words.trim().to_owned())
}
