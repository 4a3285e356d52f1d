//! The neighbour of an attack: another subagent in the same process that does honest work during the attack.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use belljar_sandbox::OutputPart;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::arena::Arena;
use crate::jar::OpenJar;
use crate::lock_recovered;
use crate::{guests, memory};

/// The file that the neighbour reads.
const NAME: &str = "notes.txt";
const TEXT: &str = "all is well here\n";

/// The pause between two calls: short enough to notice a stall of some milliseconds, long enough to leave the
/// processor to the attack.
const PACE: Duration = Duration::from_millis(2);

/// The time after which a missing answer counts as a fault.
const PATIENCE: Duration = Duration::from_secs(20);

/// The most calls whose durations are kept.
const MAX_KEPT: usize = 1 << 20;

/// The neighbour: a task that makes calls until it is dropped.
pub(crate) struct JarNeighbour {
    inner: Arc<NeighbourState>,
    task: JoinHandle<()>,
}

struct NeighbourState {
    jar: OpenJar,
    calls: Mutex<Vec<(Instant, Instant)>>,
    wrong: Mutex<Option<String>>,
    peak: AtomicU64,
}

/// The neighbour's measurements over a period.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NeighbourObservation {
    pub(crate) calls: usize,
    pub(crate) median: Duration,
    pub(crate) worst: Duration,
}

impl JarNeighbour {
    /// Starts the neighbour, and returns after its first answer.
    pub(crate) async fn start(arena: &Arena) -> Result<Self> {
        std::fs::write(arena.path("neighbour").join(NAME), TEXT)?;
        let jar = arena.neighbours_jar().await.map_err(|escape| anyhow!(escape.0))?;
        let inner = Arc::new(NeighbourState {
            jar,
            calls: Mutex::default(),
            wrong: Mutex::default(),
            peak: AtomicU64::new(0),
        });
        inner.ask_once().await;
        if let Some(wrong) = inner.first_fault() {
            return Err(anyhow!("the neighbour is not even answered before the attack: {wrong}"));
        }
        let calling = Arc::clone(&inner);
        let task = tokio::spawn(async move {
            let mut pace = interval(PACE);
            pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                pace.tick().await;
                calling.watch_memory();
                calling.ask_once().await;
            }
        });
        Ok(Self { inner, task })
    }

    /// Makes one call in addition to the regular ones.
    pub(crate) async fn ask_once(&self) {
        self.inner.ask_once().await;
    }

    /// The first wrong or missing answer, if there was one.
    pub(crate) fn first_fault(&self) -> Option<String> {
        self.inner.first_fault()
    }

    /// The largest size of the process in bytes since the last [`Self::forget_peak`], as far as the system
    /// reports it.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.inner.watch_memory();
        self.inner.peak.load(Ordering::Relaxed)
    }

    pub(crate) fn forget_peak(&self) {
        self.inner.peak.store(0, Ordering::Relaxed);
    }

    /// The measurements of the calls that overlap with a period.
    pub(crate) fn observe_between(&self, from: Instant, to: Instant) -> NeighbourObservation {
        let calls = lock_recovered(&self.inner.calls);
        let during = calls.iter().filter(|(begun, ended)| *begun <= to && *ended >= from);
        let mut took: Vec<_> = during.map(|(begun, ended)| *ended - *begun).collect();
        took.sort();
        NeighbourObservation {
            calls: took.len(),
            median: took.get(took.len() / 2).copied().unwrap_or_default(),
            worst: took.last().copied().unwrap_or_default(),
        }
    }

    /// Makes a last call, and stops the neighbour.
    pub(crate) async fn stop(&self) {
        self.inner.ask_once().await;
        self.task.abort();
    }
}

impl Drop for JarNeighbour {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl NeighbourState {
    /// Makes one call, and records its duration, and a fault if the answer is wrong or late.
    async fn ask_once(&self) {
        let begun = Instant::now();
        let call = self.jar.call_raw(guests::FILE_READ.name, r#"{"path":"notes.txt"}"#);
        let wrong = match tokio::time::timeout(PATIENCE, call).await {
            Ok(result) => match &result.outcome {
                Ok(output) if matches!(output.parts.as_slice(), [OutputPart::Text(text)] if text.contains(TEXT.trim())) => {
                    None
                }
                other => Some(format!("{other:?}")),
            },
            Err(_) => Some(format!("no answer in {} seconds", PATIENCE.as_secs())),
        };
        if let Some(wrong) = wrong {
            lock_recovered(&self.wrong).get_or_insert(wrong);
        }
        let mut calls = lock_recovered(&self.calls);
        if calls.len() < MAX_KEPT {
            calls.push((begun, Instant::now()));
        }
    }

    fn first_fault(&self) -> Option<String> {
        lock_recovered(&self.wrong).clone()
    }

    fn watch_memory(&self) {
        if let Some(now) = memory::resident_bytes() {
            self.peak.fetch_max(now, Ordering::Relaxed);
        }
    }
}
