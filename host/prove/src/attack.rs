//! An attack, and the judgement about it.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;

/// The most characters of an answer to the attacker in a report.
const MAX_TOLD: usize = 500;

/// The subject that an attack is aimed at. The attack's name begins with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum AttackKind {
    /// The processor.
    Cpu,
    /// Memory and the host's tables.
    Memory,
    /// The output of a tool.
    Output,
    /// Files.
    Files,
    /// The network.
    Network,
    /// Secrets.
    Secrets,
    /// The component itself: its bytes, its imports, its description.
    Component,
    /// Agents, models, and the messages between them.
    Agents,
    /// A running `belljar serve`.
    Server,
    /// The OS sandbox, from within a process that an attacker has taken over.
    Wall,
    /// The commands that add and update libraries of agents.
    Libraries,
    /// `belljar acp`, attacked by an editor.
    Acp,
    /// An agent's use of tools of an MCP server.
    Mcp,
}

/// One attack. `S` is the type of its surroundings, for example [`Arena`](crate::Arena).
pub struct Attack<S: 'static> {
    /// The unique name: the kind, then the attempt, for example `files-link-to-a-file`.
    pub id: &'static str,
    /// The subject that the attack is aimed at.
    pub kind: AttackKind,
    /// What the attacker does; completes the sentence "the attacker ...".
    pub tries: &'static str,
    /// The mechanism that stops the attack, with its invariant in `host/docs/security/` if there is one.
    pub stopped_by: &'static str,
    /// A text that must occur in the answer to the attacker, see [`Verdict::with_words`].
    pub told: &'static str,
    /// True if the attack needs only this library, and ends within about a second.
    pub embedded: bool,
    /// The function that makes the attack.
    pub run: for<'a> fn(&'a S) -> BoxFuture<'a, Stopped>,
}

impl<S> Clone for Attack<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Attack<S> {}

impl<S> Attack<S> {
    /// Judges the attack. Returns the answer to the attacker if the attack was stopped, the answer contains
    /// [`Self::told`], and there are no `faults`; otherwise an error with everything that went wrong.
    pub(crate) fn judge_outcome(
        &self,
        stopped: Stopped,
        mut faults: Vec<String>,
    ) -> Result<String, String> {
        let cut = |text: &str| text.chars().take(MAX_TOLD).collect::<String>();
        match stopped {
            Ok(verdict) if !verdict.told.contains(self.told) => {
                let told = cut(&verdict.told);
                faults.push(format!("it was told something else than `{}`: {told}", self.told));
            }
            Ok(verdict) if faults.is_empty() => return Ok(cut(&verdict.told)),
            Ok(_) => {}
            Err(Escape(why)) => faults.insert(0, why),
        }
        Err(faults.join("; "))
    }
}

impl<S> fmt::Debug for Attack<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attack").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The result of an attack that was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The answer that the attacker got, unchanged. It may contain a stranger's text.
    pub told: String,
}

/// The result of an attack that was not stopped, had a forbidden effect, or could not be made. The text
/// states which.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Escape(pub String);

/// The result of an attack.
pub type Stopped = Result<Verdict, Escape>;

impl Verdict {
    /// A verdict with the answer that the attacker got.
    pub fn with_words(words: impl Into<String>) -> Self {
        Self { told: words.into() }
    }
}

impl Escape {
    /// An escape for the given reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl From<anyhow::Error> for Escape {
    fn from(error: anyhow::Error) -> Self {
        Self(format!("the attack could not be made: {error:#}"))
    }
}

impl From<std::io::Error> for Escape {
    fn from(error: std::io::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}

/// The report about one attack.
#[derive(Debug, Clone, Serialize)]
pub struct AttackReport {
    /// The attack's name.
    pub id: &'static str,
    /// The subject that the attack was aimed at.
    pub kind: AttackKind,
    /// The mechanism that stopped the attack.
    pub stopped_by: &'static str,
    /// The duration of the attack, with its jars but without the setup of its surroundings.
    #[serde(rename = "elapsed_us", serialize_with = "micros")]
    pub elapsed: Duration,
    /// The bytes by which the process was larger after the attack than before.
    pub memory_growth_bytes: u64,
    /// The largest growth of the process during the attack, in bytes.
    pub memory_peak_bytes: u64,
    /// The number of calls that the neighbour made during the attack.
    pub neighbour_calls: usize,
    /// The median duration of the neighbour's calls.
    #[serde(rename = "neighbour_median_us", serialize_with = "micros")]
    pub neighbour_median: Duration,
    /// The duration of the neighbour's slowest call.
    #[serde(rename = "neighbour_worst_us", serialize_with = "micros")]
    pub neighbour_worst: Duration,
    /// The answer to the attacker; or, as an error, the effects that were not stopped.
    #[serde(serialize_with = "result")]
    pub result: Result<String, String>,
}

impl AttackReport {
    /// The report about an attack that could not be made, for the given reason. It counts as not stopped,
    /// because it proves nothing.
    pub fn for_unmade(id: &'static str, kind: AttackKind, why: impl Into<String>) -> Self {
        Self {
            id,
            kind,
            stopped_by: "",
            elapsed: Duration::ZERO,
            memory_growth_bytes: 0,
            memory_peak_bytes: 0,
            neighbour_calls: 0,
            neighbour_median: Duration::ZERO,
            neighbour_worst: Duration::ZERO,
            result: Err(why.into()),
        }
    }

    /// Returns whether the attack was stopped without any forbidden effect.
    pub fn is_stopped(&self) -> bool {
        self.result.is_ok()
    }
}

fn micros<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

/// Serializes a result as `{"stopped": ...}` or `{"escaped": ...}`.
fn result<S: serde::Serializer>(
    result: &Result<String, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "lowercase")]
    enum SerializedResult<'a> {
        Stopped(&'a str),
        Escaped(&'a str),
    }
    match result {
        Ok(told) => SerializedResult::Stopped(told),
        Err(why) => SerializedResult::Escaped(why),
    }
    .serialize(serializer)
}
