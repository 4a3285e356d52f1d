//! The receipt: the record of a tool call's effects that the caller gets.

pub(crate) mod record;
pub(crate) mod withheld;

use belljar_policy::{DenyCode, RequestTarget};
use serde::{Deserialize, Serialize};

use belljar_overlay::Digest;

/// The version of the receipt's JSON, stored with saved runs.
pub const RECEIPT_VERSION: u32 = 1;

/// The record of a tool call. It contains no value of a secret. Foreign text in it is not escaped: escape
/// before display (`belljar_policy::ShownText`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The tool's name.
    pub tool: String,
    /// SHA-256 of the component, in hexadecimal.
    pub component: String,
    /// How the call ended.
    pub ending: CallEnding,
    /// The fuel billed for the call.
    pub fuel: u64,
    /// The time of each part of the call.
    pub times: CallTimes,
    /// The most bytes of linear memory and tables the tool's store had at a time during the call.
    pub peak_memory: u64,
    /// The bytes the call moved.
    pub bytes: CallBytes,
    /// The number of calls from the guest into the host's file, network and log functions.
    pub host_calls: u64,
    /// The first `MAX_DENIALS` refusals, in order.
    pub denials: Vec<Denial>,
    /// The number of refusals after the first `MAX_DENIALS`.
    pub denials_dropped: u64,
    /// The guest paths of files whose content was read, sorted, at most `MAX_PATHS`.
    pub paths_read: Vec<String>,
    /// The guest paths created, changed, renamed or removed, sorted, at most `MAX_PATHS`.
    pub paths_written: Vec<String>,
    /// The number of paths and hosts not listed, because the lists were full.
    pub paths_dropped: u64,
    /// The target of each request sent, as `scheme://host[:port]`, sorted, at most `MAX_PATHS`.
    pub hosts: Vec<String>,
    /// The names of secrets that were added to a request.
    pub secrets_used: Vec<String>,
    /// The first lines the guest logged.
    pub logs: Vec<LogLine>,
    /// The number of log lines and progress reports beyond the limit.
    pub logs_dropped: u64,
    /// The first bytes of the guest's stdout.
    pub stdout: String,
    /// The first bytes of the guest's stderr.
    pub stderr: String,
    /// The number of bytes of stdout and stderr not stored.
    pub stdio_dropped: u64,
    /// The SHA-256 of the arguments as the caller passed them, in hexadecimal.
    pub arguments_digest: String,
    /// The SHA-256 of the output, in hexadecimal; of an empty text if there was none.
    pub output_digest: String,
}

/// The SHA-256 of an empty text, in hexadecimal.
const EMPTY_DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

impl Receipt {
    /// Makes the receipt of a call that has had no effect yet.
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

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "detail")]
pub enum CallEnding {
    /// The tool returned an output.
    Completed,
    /// The tool returned an error; the detail is its kind in the contract, for example `not-found`.
    ToolError(String),
    /// The guest trapped; the detail describes the trap.
    Trapped(String),
    /// The budget of the call, or of an ancestor, is used up; the detail names the budget.
    Exhausted(String),
    /// The call took longer than its limit of wall time.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
    /// The output breaks the contract, for example because it is too large; the detail says how.
    BadOutput(String),
    /// The call was refused before guest code ran, or its answer contains a secret; the detail has the
    /// reason.
    Refused(String),
    /// The host failed, by a bug or because a resource of the machine is used up; the detail says more.
    HostFault(String),
}

impl CallEnding {
    /// The name of the ending, as in the receipt's JSON.
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
    /// The wait for the tool's store, behind earlier calls.
    pub queued: u64,
    /// Loading the component and opening the store; 0 if the store was open.
    pub opening: u64,
    /// The time in which guest code ran, which is while the call's future was polled.
    pub guest: u64,
    /// The wait for the host: files, network, other tasks.
    pub waiting: u64,
    /// The time from the request to the answer.
    pub total: u64,
}

/// The bytes a call moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBytes {
    /// Bytes read from mounts.
    pub read: u64,
    /// Bytes written to mounts, with the growth of files that were only lengthened.
    pub written: u64,
    /// Bytes sent over the network.
    pub sent: u64,
    /// Bytes received over the network.
    pub received: u64,
    /// Bytes of the output.
    pub output: u64,
}

/// A refusal during a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The code that the guest got.
    pub code: DenyCode,
    /// The refused operation, for example `open`, `rename`, `request`, or the name of an interface.
    pub what: String,
    /// The details, for the operator only. Foreign text in them is escaped.
    pub facts: String,
    /// If a request was refused because of its target: the target as `scheme://host[:port]`, which an
    /// operator may grant. It comes from the guest's text, parsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Denial {
    /// Makes a refusal without target.
    pub fn new(code: DenyCode, what: impl Into<String>, facts: impl Into<String>) -> Self {
        Self { code, what: what.into(), facts: facts.into(), target: None }
    }

    /// Returns the refusal with the target of the request.
    #[must_use]
    pub fn with_target(self, target: &RequestTarget) -> Self {
        Self { target: Some(target.to_string()), ..self }
    }
}

/// A line of the guest's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// `trace`, `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// The message, cut at a limit.
    pub message: String,
}
