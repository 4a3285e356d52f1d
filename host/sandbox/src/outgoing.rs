//! The host's own requests for one call of an agent, in a protocol that the host implements for the agent,
//! for example MCP. They pass the same gate as a guest's requests, and are billed in the same way.

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

/// The limits of one call's requests.
#[derive(Debug)]
pub struct OutgoingSpec<'a> {
    /// The allowed hosts.
    pub scope: HostScope,
    /// The secrets of the run, with their values.
    pub secrets: &'a SecretStore,
    /// The secrets that are added to requests for their bound hosts. Replies are searched for these too,
    /// beside the run's secrets.
    pub joined: &'a BTreeSet<SecretName>,
    /// The budget that pays for every byte.
    pub budget: &'a Budget,
    /// The limits of connections and log lines.
    pub limits: &'a Limits,
}

/// The gate of one call. Redirects are not followed. A reply that is compressed without a request for it is
/// decoded, or refused if secrets are searched for.
pub struct OutgoingGate {
    gate: Arc<HttpGate>,
    budget: Budget,
    broker: Option<Broker>,
}

/// A reply, read piece by piece. Dropping the reply closes the connection.
pub struct HttpReply {
    /// The status, redirections included.
    pub status: StatusCode,
    /// The headers, which are foreign text.
    pub headers: HeaderMap,
    body: WasiBody,
    connection: JoinHandle<()>,
}

/// Why no reply was received: a short text for the model. The receipt has the facts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutgoingError(String);

impl OutgoingGate {
    /// A gate for one call.
    pub fn new(sandbox: &Sandbox, spec: OutgoingSpec<'_>) -> Self {
        let record = Arc::new(CallRecord::new(spec.budget.clone(), spec.limits.log_lines));
        Self::with_record(sandbox, spec, record)
    }

    /// A gate with other hosts or secrets in the same call, with common billing and records.
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

    /// The broker for programs outside of this process; absent without an OS sandbox.
    pub fn broker(&self) -> Option<&Broker> {
        self.broker.as_ref()
    }

    /// Bills bytes to a program, before they are sent.
    ///
    /// # Errors
    ///
    /// The call may not send that many bytes.
    pub fn bill_sent(&self, bytes: usize) -> Result<(), OutgoingError> {
        self.bill_bytes(Meter::Egress, bytes, "more than may be sent")
    }

    /// Bills bytes that a program returned.
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

    /// Logs a line of a program's output that is not an answer, within the limits of log lines.
    pub fn log_line(&self, level: &str, line: &str) {
        self.gate.record.add_log_line(level, line);
    }

    /// Records that a secret was passed to a program.
    pub fn secret_used(&self, name: &SecretName) {
        self.gate.record.secret_used(name.as_str());
    }

    /// Sends a request. Needs a tokio runtime, on which the connection runs.
    ///
    /// # Errors
    ///
    /// The request is refused, or the peer cannot be reached.
    pub async fn send_request(&self, request: Request<Bytes>) -> Result<HttpReply, OutgoingError> {
        let body = |bytes: Bytes| Full::new(bytes).map_err(|never| match never {}).boxed_unsync();
        let sent = Arc::clone(&self.gate).send_request(request.map(body), None).await;
        let (reply, io) = sent.map_err(|error| format_wasi_error(&error))?;
        let connection = tokio::spawn(async move {
            // An error of the connection also reaches the reader of the body.
            let _ = Box::into_pin(io).await;
        });
        let (parts, body) = reply.into_parts();
        Ok(HttpReply { status: parts.status, headers: parts.headers, body, connection })
    }

    /// Records a refusal by the protocol's own rules.
    pub fn record_denial(&self, code: DenyCode, what: &str, facts: String) {
        self.gate.record.add_denial(Denial::new(code, what, facts));
    }

    /// Checks the output like a guest's, and bills its size to the budget.
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

    /// A sink that gets each report with a secret of the run replaced.
    #[must_use]
    pub fn filter_progress(&self, sink: ProgressSink) -> ProgressSink {
        withheld::filter_progress(self.gate.secrets.secret_watch(), sink)
    }

    /// Ends the call: the effects are added to the receipt, and an outcome with a secret of the run is
    /// withheld, like a guest's.
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

fn write_lists(lists: RecordLists, receipt: &mut Receipt) {
    receipt.denials = lists.denials;
    receipt.denials_dropped = lists.denials_dropped;
    receipt.hosts = lists.hosts.into_iter().collect();
    receipt.secrets_used = lists.secrets_used.into_iter().collect();
    receipt.logs = lists.logs;
    receipt.logs_dropped = lists.logs_dropped;
}

impl HttpReply {
    /// The next bytes; `None` = the end of the reply.
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

/// The name of a `wasi:http` error, without the peer's text.
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
