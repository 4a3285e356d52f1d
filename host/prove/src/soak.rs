//! Hostile calls by the ten thousand in one process: nothing may add up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use belljar_policy::Limits;
use belljar_sandbox::{CallEnding, CallError};
use futures::future::join_all;
use serde::Serialize;
use serde_json::{Value, json};

use crate::arena::Arena;
use crate::guests::{self, Guest};
use crate::jar::OpenJar;
use crate::memory;
use crate::suite::Suite;

/// Jars that attack at the same time.
const JARS: usize = 8;

/// Calls after which a jar is closed and another takes its place, as subagents come and go.
const CALLS_PER_JAR: u64 = 100;

/// Calls made before memory is measured: pool slots, thread stacks and caches are in use then.
const WARM_UP: u64 = 2_000;

/// The result of a soak.
#[derive(Debug, Clone, Serialize)]
pub struct SoakReport {
    /// Calls made, without those of the warm-up.
    pub calls: u64,
    /// Calls that were not stopped as expected: the first of them, in words.
    pub escapes: Vec<String>,
    /// Calls that met a fault of the host.
    pub host_faults: u64,
    /// By how much the process was larger at the end than after the warm-up, in bytes.
    pub memory_growth_bytes: u64,
    /// The neighbour's calls, with the median and the slowest in microseconds.
    pub neighbour: (usize, u64, u64),
    /// How long it took.
    pub seconds: f64,
}

/// One kind of hostile call: cheap, and stopped the same way each time.
struct HostileVolley {
    guest: Guest,
    arguments: fn() -> Value,
    stopped: fn(&Result<belljar_sandbox::ToolOutput, CallError>) -> bool,
}

const VOLLEYS: &[HostileVolley] = &[
    HostileVolley {
        guest: guests::ENDLESS_LOOP,
        arguments: || json!({}),
        stopped: |outcome| matches!(outcome, Err(CallError::Exhausted(_))),
    },
    HostileVolley {
        guest: guests::DEEP_RECURSION,
        arguments: || json!({}),
        stopped: |outcome| matches!(outcome, Err(CallError::Trapped(_) | CallError::Exhausted(_))),
    },
    HostileVolley {
        guest: guests::PROBE,
        arguments: || json!({ "steps": [{ "do": "allocate", "bytes": 40_000_000 }] }),
        stopped: |outcome| matches!(outcome, Err(CallError::Trapped(_) | CallError::Exhausted(_))),
    },
    HostileVolley {
        guest: guests::PROBE,
        arguments: || json!({ "steps": [{ "do": "answer-json", "text": "{" }] }),
        stopped: |outcome| matches!(outcome, Err(CallError::BadOutput(_))),
    },
    HostileVolley {
        guest: guests::PROBE,
        arguments: || json!({ "steps": [{ "do": "read-file", "place": { "path": "../outside/canary.txt" } }] }),
        stopped: |outcome| matches!(outcome, Ok(output) if format!("{output:?}").contains("error")),
    },
];

impl Suite {
    /// Makes so many hostile calls, eight jars at a time, each replaced after
    /// some calls.
    ///
    /// # Errors
    ///
    /// When the surroundings cannot be made.
    pub async fn run_soak(&self, calls: u64) -> Result<SoakReport> {
        let arena = Arena::new(self).await?;
        let neighbour = arena.neighbour().ok_or_else(|| anyhow!("the neighbour is missing"))?;
        let tally = SoakTally::default();
        tally.run_attackers(&arena, WARM_UP.min(calls)).await?;
        let (before, begun) = (memory::resident_bytes(), Instant::now());
        let tally = SoakTally { escapes: tally.escapes, ..SoakTally::default() };
        tally.run_attackers(&arena, calls).await?;
        let ended = Instant::now();
        neighbour.stop().await;
        let after = memory::resident_bytes();
        let seen = neighbour.observe_between(begun, ended);
        let mut escapes = tally.escapes.into_inner().unwrap_or_default();
        escapes.extend(arena.list_effects().await);
        escapes.extend(
            neighbour.first_fault().map(|wrong| format!("the neighbour suffered: {wrong}")),
        );
        let growth = after.unwrap_or_default().saturating_sub(before.unwrap_or_default());
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Ok(SoakReport {
            calls: tally.made.load(Ordering::Relaxed),
            escapes,
            host_faults: tally.host_faults.load(Ordering::Relaxed),
            memory_growth_bytes: growth,
            neighbour: (seen.calls, micros(seen.median), micros(seen.worst)),
            seconds: (ended - begun).as_secs_f64(),
        })
    }
}

/// The counts.
#[derive(Default)]
struct SoakTally {
    asked: AtomicU64,
    made: AtomicU64,
    host_faults: AtomicU64,
    escapes: std::sync::Mutex<Vec<String>>,
}

impl SoakTally {
    async fn run_attackers(&self, arena: &Arena, calls: u64) -> Result<()> {
        let all = join_all((0..JARS).map(|_| self.run_attacker(arena, calls))).await;
        all.into_iter().collect()
    }

    /// Opens jar after jar until all calls are asked for.
    async fn run_attacker(&self, arena: &Arena, calls: u64) -> Result<()> {
        loop {
            let jar = self.open_jar(arena).await?;
            for _ in 0..CALLS_PER_JAR {
                let turn = self.asked.fetch_add(1, Ordering::Relaxed);
                if turn >= calls {
                    return jar.close().await.map_err(|escape| anyhow!(escape.0));
                }
                self.make_call(&jar, turn).await;
            }
            jar.close().await.map_err(|escape| anyhow!(escape.0))?;
        }
    }

    async fn open_jar(&self, arena: &Arena) -> Result<OpenJar> {
        let guests = [guests::ENDLESS_LOOP, guests::DEEP_RECURSION, guests::PROBE];
        let limits = |limits: &mut Limits| {
            limits.fuel_per_call = 20_000_000;
            limits.memory_bytes = 32 << 20;
        };
        let jar = arena.jar_builder(&guests).with_limits(limits).open_unremembered().await;
        jar.map_err(|escape| anyhow!(escape.0))
    }

    async fn make_call(&self, jar: &OpenJar, turn: u64) {
        let at = usize::try_from(turn).unwrap_or_default() % VOLLEYS.len();
        let Some(volley) = VOLLEYS.get(at) else { return };
        let result = jar.call_raw(volley.guest.name, &(volley.arguments)().to_string()).await;
        self.made.fetch_add(1, Ordering::Relaxed);
        if matches!(result.receipt.ending, CallEnding::HostFault(_)) {
            self.host_faults.fetch_add(1, Ordering::Relaxed);
        }
        if !(volley.stopped)(&result.outcome) {
            let mut escapes =
                self.escapes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            // The first few tell what is wrong; a list of all would be a flood of its own.
            if escapes.len() < 10 {
                escapes.push(format!("{}: {:?}", volley.guest.name, result.outcome));
            }
        }
    }
}
