//! The receipt: the public record of one tool call's effects.

pub(crate) mod record;
pub(crate) mod withheld;

use belljar_policy::{DenyCode, RequestTarget};
use serde::{Deserialize, Serialize};

use crate::component::wasm::Digest;

/// The version of the receipt's form, stored with saved runs.
pub const RECEIPT_VERSION: u32 = 1;

/// The record of one tool call. Contains no secret values. Foreign text in it is not escaped: escape it
/// before a person sees it (`belljar_policy::ShownText`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The tool's name.
    pub tool: String,
    /// SHA-256 of the component, in hexadecimal.
    pub component: String,
    /// The way the call ended.
    pub ending: CallEnding,
    /// Fuel billed.
    pub fuel: u64,
    /// The time used by each part of the call.
    pub times: CallTimes,
    /// The highest sum of linear memory and tables of the tool's store in this call, in bytes.
    pub peak_memory: u64,
    /// Bytes moved.
    pub bytes: CallBytes,
    /// Calls from the guest into the host's file, network and log functions.
    pub host_calls: u64,
    /// The first `MAX_DENIALS` refusals, in order.
    pub denials: Vec<Denial>,
    /// The count of further refusals.
    pub denials_dropped: u64,
    /// Guest paths of files whose content was read, sorted, bounded.
    pub paths_read: Vec<String>,
    /// Guest paths created, changed, renamed or removed, sorted, bounded.
    pub paths_written: Vec<String>,
    /// The count of further paths.
    pub paths_dropped: u64,
    /// `scheme://host[:port]` of each request sent, sorted, bounded.
    pub hosts: Vec<String>,
    /// Names of secrets that were added to a request.
    pub secrets_used: Vec<String>,
    /// The first lines of `belljar:tool/log`.
    pub logs: Vec<LogLine>,
    /// The count of further log lines and progress reports.
    pub logs_dropped: u64,
    /// The beginning of the guest's stdout.
    pub stdout: String,
    /// The beginning of the guest's stderr.
    pub stderr: String,
    /// The count of further bytes of stdout and stderr.
    pub stdio_dropped: u64,
    /// SHA-256 of the arguments as passed, in hexadecimal.
    pub arguments_digest: String,
    /// SHA-256 of the unchanged output, in hexadecimal; of an empty text if there was no output.
    pub output_digest: String,
}

/// SHA-256 of an empty text.
const EMPTY_DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

impl Receipt {
    /// The receipt of a call that has had no effect yet.
    pub fn for_call(tool: &str, component: &str, arguments: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            component: component.to_owned(),
            ending: CallEnding::HostFault("not ended".to_owned()),
            fuel: 0,
            times: CallTimes::default(),
            peak_memory: 0,
            bytes: CallBytes::default(),
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
            arguments_digest: Digest::hash_bytes(arguments.as_bytes()).to_string(),
            output_digest: EMPTY_DIGEST.to_owned(),
        }
    }
}

/// The way a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "detail")]
pub enum CallEnding {
    /// An output was returned.
    Completed,
    /// The tool returned an error; the detail is its kind in the contract, for example `not-found`.
    ToolError(String),
    /// The guest trapped; the detail is the trap.
    Trapped(String),
    /// The budget of the call or of an ancestor is used up; the detail names it.
    Exhausted(String),
    /// The call exceeded its limit of wall-clock time.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
    /// The output breaks the contract: too large, not JSON, too many parts.
    BadOutput(String),
    /// The call was refused before guest code ran, or its answer contains a secret.
    Refused(String),
    /// The host failed: a bug, or a resource of the machine is used up.
    HostFault(String),
}

impl CallEnding {
    /// The name of the ending in receipts.
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

/// The parts of a call's time, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTimes {
    /// Waiting for the tool's store, behind earlier calls.
    pub queued: u64,
    /// Loading the component and opening the store; 0 in a store already open.
    pub opening: u64,
    /// Guest code running (while the call's future was polled).
    pub guest: u64,
    /// Waiting for the host: files, network, the executor.
    pub waiting: u64,
    /// The time from the request to the answer.
    pub total: u64,
}

/// Bytes that a call moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBytes {
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
    /// The code that the guest got.
    pub code: DenyCode,
    /// The operation: `open`, `rename`, `request`, an interface name.
    pub what: String,
    /// All facts, only for the operator. Foreign text in it is escaped.
    pub facts: String,
    /// The target of a refused request, as `scheme://host[:port]`, which an operator may grant. Parsed from
    /// the guest's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Denial {
    /// A refusal that is not about a request's target.
    pub fn new(code: DenyCode, what: impl Into<String>, facts: impl Into<String>) -> Self {
        Self { code, what: what.into(), facts: facts.into(), target: None }
    }

    /// The same refusal, with the target of the request.
    #[must_use]
    pub fn with_target(self, target: &RequestTarget) -> Self {
        Self { target: Some(target.to_string()), ..self }
    }
}

/// One line of the guest's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// `trace`, `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// The message, truncated at a limit.
    pub message: String,
}
