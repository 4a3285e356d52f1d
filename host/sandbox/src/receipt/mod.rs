//! The public record of one tool call's effects.

pub(crate) mod record;
pub(crate) mod withheld;

use belljar_policy::{DenyCode, Target};
use serde::{Deserialize, Serialize};

use crate::component::wasm::Digest;

/// The version of the receipt's form, stored with saved runs.
pub const RECEIPT_VERSION: u32 = 1;

/// The record of one tool call. Holds no secret values, and foreign text as it came: escape it
/// before a person sees it (`belljar_policy::Shown`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The tool's name.
    pub tool: String,
    /// SHA-256 of the component, in hexadecimal.
    pub component: String,
    /// How the call ended.
    pub ending: Ending,
    /// Fuel billed.
    pub fuel: u64,
    /// Where the time went.
    pub times: Times,
    /// The highest sum of linear memory and tables of the tool's store in this call, in bytes.
    pub peak_memory: u64,
    /// Bytes moved.
    pub bytes: Bytes,
    /// Calls from the guest into the host's file, network and log functions.
    pub host_calls: u64,
    /// The refusals, in order, the first `MAX_DENIALS` of them.
    pub denials: Vec<Denial>,
    /// Refusals past the bound.
    pub denials_dropped: u64,
    /// Guest paths of files whose content was read, sorted, bounded.
    pub paths_read: Vec<String>,
    /// Guest paths created, changed, renamed or removed, sorted, bounded.
    pub paths_written: Vec<String>,
    /// Paths past the bound.
    pub paths_dropped: u64,
    /// `scheme://host[:port]` of each request sent, sorted, bounded.
    pub hosts: Vec<String>,
    /// Names of secrets that were joined to a request.
    pub secrets_used: Vec<String>,
    /// Lines of `belljar:tool/log`, the first of them.
    pub logs: Vec<LogLine>,
    /// Log lines and progress reports past the bound.
    pub logs_dropped: u64,
    /// The guest's stdout, the first bytes of it.
    pub stdout: String,
    /// The guest's stderr, the first bytes of it.
    pub stderr: String,
    /// Bytes of stdout and stderr past the bound.
    pub stdio_dropped: u64,
    /// SHA-256 of the arguments as they were passed, in hexadecimal.
    pub arguments_digest: String,
    /// SHA-256 of the unchanged output, in hexadecimal; of nothing without output.
    pub output_digest: String,
}

/// SHA-256 of nothing.
const EMPTY_DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

impl Receipt {
    /// The receipt of a call that did nothing yet.
    pub fn empty(tool: &str, component: &str, arguments: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            component: component.to_owned(),
            ending: Ending::HostFault("not ended".to_owned()),
            fuel: 0,
            times: Times::default(),
            peak_memory: 0,
            bytes: Bytes::default(),
            host_calls: 0,
            denials: Vec::new(),
            denials_dropped: 0,
            paths_read: Vec::new(),
            paths_written: Vec::new(),
            paths_dropped: 0,
            hosts: Vec::new(),
            secrets_used: Vec::new(),
            logs: Vec::new(),
            logs_dropped: 0,
            stdout: String::new(),
            stderr: String::new(),
            stdio_dropped: 0,
            arguments_digest: Digest::of(arguments.as_bytes()).to_string(),
            output_digest: EMPTY_DIGEST.to_owned(),
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "detail")]
pub enum Ending {
    /// With an output.
    Completed,
    /// With a tool error; the detail is its kind, as in the contract: `not-found`, ...
    ToolError(String),
    /// The guest trapped; the detail is the trap.
    Trapped(String),
    /// The call or an ancestor's budget is exhausted; the detail names it.
    Exhausted(String),
    /// The wall-clock limit of the call passed.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
    /// The output broke the contract: too large, not JSON, too many parts.
    BadOutput(String),
    /// The call was refused before guest code ran, or its answer holds a secret.
    Refused(String),
    /// The host itself failed: a bug, or the machine is out of something.
    HostFault(String),
}

impl Ending {
    /// One word for it, as receipts spell it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::ToolError(_) => "tool-error",
            Self::Trapped(_) => "trapped",
            Self::Exhausted(_) => "exhausted",
            Self::TimedOut => "timed-out",
            Self::Cancelled => "cancelled",
            Self::BadOutput(_) => "bad-output",
            Self::Refused(_) => "refused",
            Self::HostFault(_) => "host-fault",
        }
    }
}

/// Where the time of a call went, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Waiting for the tool's store, behind earlier calls.
    pub queued: u64,
    /// Loading the component and opening the store; 0 in a store already open.
    pub opening: u64,
    /// Guest code running (while the call's future was polled).
    pub guest: u64,
    /// Waiting for the host: files, network, the executor.
    pub waiting: u64,
    /// From the request to the answer.
    pub total: u64,
}

/// Bytes that a call moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// Read from mounts.
    pub read: u64,
    /// Written to mounts, growth by truncation included.
    pub written: u64,
    /// Sent over the network.
    pub sent: u64,
    /// Received over the network.
    pub received: u64,
    /// Returned by the call.
    pub output: u64,
}

/// One refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The reason that the guest was told.
    pub code: DenyCode,
    /// The operation: `open`, `rename`, `request`, an interface name.
    pub what: String,
    /// The full facts, for the operator only. Foreign text in it is escaped.
    pub facts: String,
    /// The target of a refused request, as `scheme://host[:port]`: what an operator may grant. The guest's
    /// text, checked to be such a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Denial {
    /// A refusal for another reason than a request's target.
    pub fn new(code: DenyCode, what: impl Into<String>, facts: impl Into<String>) -> Self {
        Self { code, what: what.into(), facts: facts.into(), target: None }
    }

    /// The same, of a request that would have gone there.
    #[must_use]
    pub fn to(self, target: &Target) -> Self {
        Self { target: Some(target.to_string()), ..self }
    }
}

/// One line of the guest's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// `trace`, `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// The message, cut at a bound.
    pub message: String,
}
