//! An attack, and its verdict.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;

/// Most characters of an answer to an attacker in a report.
const MAX_TOLD: usize = 500;

/// The target of an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum AttackKind {
    /// The processor.
    Cpu,
    /// Memory and the host's tables.
    Memory,
    /// The words and the results of a tool.
    Output,
    /// Files.
    Files,
    /// The network.
    Network,
    /// Secrets.
    Secrets,
    /// The component itself: its bytes, its imports, its description.
    Component,
    /// Agents, models and what they say to each other.
    Agents,
    /// A running `belljar serve`.
    Server,
    /// The OS sandbox, from inside a process that was taken over.
    Wall,
    /// Adding and updating libraries of agents.
    Libraries,
    /// `belljar acp`, as an editor.
    Acp,
    /// An agent with tools of an MCP server.
    Mcp,
}

/// One attack, on a stage of the type `S`: what it finds there and may use.
pub struct Attack<S: 'static> {
    /// The name: the kind, then the attempt, for example `files-link-to-a-file`. Unique.
    pub id: &'static str,
    /// Its target.
    pub kind: AttackKind,
    /// The attempt; completes "the attacker ...".
    pub tries: &'static str,
    /// The mechanism that stops it, and its invariant in `host/docs/security/`, if it has one.
    pub stopped_by: &'static str,
    /// The answer to the attacker: this text must occur in [`Verdict::with_words`].
    pub told: &'static str,
    /// Whether it needs nothing but this library and ends within about a second.
    pub embedded: bool,
    /// Makes the attack.
    pub run: for<'a> fn(&'a S) -> BoxFuture<'a, Stopped>,
}

impl<S> Clone for Attack<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Attack<S> {}

impl<S> Attack<S> {
    /// The answer to the attacker where the attack was stopped, told so and without a fault;
    /// otherwise all that got through.
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

/// The attack was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The answer to the attacker, in its own words. Foreign text may stand in it.
    pub told: String,
}

/// The attack was not stopped, had an effect, or could not be made. The text says which.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Escape(pub String);

/// How an attack ended.
pub type Stopped = Result<Verdict, Escape>;

impl Verdict {
    /// Stopped, with these words to the attacker.
    pub fn with_words(words: impl Into<String>) -> Self {
        Self { told: words.into() }
    }
}

impl Escape {
    /// Not stopped, for this reason.
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

/// The result of one attack.
#[derive(Debug, Clone, Serialize)]
pub struct AttackReport {
    /// The attack.
    pub id: &'static str,
    /// Its target.
    pub kind: AttackKind,
    /// The mechanism that stopped it.
    pub stopped_by: &'static str,
    /// How long it took, with its jars but without the arena around it.
    #[serde(rename = "elapsed_us", serialize_with = "micros")]
    pub elapsed: Duration,
    /// By how much the process was larger after it than before, in bytes.
    pub memory_growth_bytes: u64,
    /// The largest growth seen while it ran, in bytes.
    pub memory_peak_bytes: u64,
    /// The neighbour's calls while it ran.
    pub neighbour_calls: usize,
    /// Half of the neighbour's calls took no longer.
    #[serde(rename = "neighbour_median_us", serialize_with = "micros")]
    pub neighbour_median: Duration,
    /// The neighbour's slowest call.
    #[serde(rename = "neighbour_worst_us", serialize_with = "micros")]
    pub neighbour_worst: Duration,
    /// The answer to the attacker, or that which got through.
    #[serde(serialize_with = "result")]
    pub result: Result<String, String>,
}

impl AttackReport {
    /// Of an attack that could not be made, for this reason: it counts as one that got through,
    /// since it proves nothing.
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

    /// Whether nothing got through.
    pub fn is_stopped(&self) -> bool {
        self.result.is_ok()
    }
}

fn micros<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

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
