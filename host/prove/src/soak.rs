//! Tens of thousands of hostile calls in one process: memory must not grow with their number.

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

/// The jars that attack at the same time.
const JARS: usize = 8;

/// The calls after which a jar is closed and replaced, as subagents come and go.
const CALLS_PER_JAR: u64 = 100;

/// The calls made before memory is measured, so pool slots, thread stacks and caches are in use.
const WARM_UP: u64 = 2_000;

/// The result of a soak.
#[derive(Debug, Clone, Serialize)]
pub struct SoakReport {
    /// The calls made, without those of the warm-up.
    pub calls: u64,
    /// The first calls that were not stopped as expected, as texts.
    pub escapes: Vec<String>,
    /// The calls that failed because of a fault of the host.
    pub host_faults: u64,
    /// The bytes by which the process was larger at the end than after the warm-up.
    pub memory_growth_bytes: u64,
    /// The neighbour's number of calls, with the median and the slowest duration in microseconds.
    pub neighbour: (usize, u64, u64),
    /// The duration of the soak.
    pub seconds: f64,
}

/// One kind of hostile call: cheap, and stopped in the same way each time.
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
    /// Makes `calls` hostile calls, in eight jars at a time, each replaced after some calls.
    ///
    /// # Errors
    /// When the arena cannot be made.
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

/// The counts of a running soak.
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

    /// Opens one jar after the other, until all calls were made.
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

    /// Opens a jar with the hostile guests and small limits.
    async fn open_jar(&self, arena: &Arena) -> Result<OpenJar> {
        let guests = [guests::ENDLESS_LOOP, guests::DEEP_RECURSION, guests::PROBE];
        let limits = |limits: &mut Limits| {
            limits.fuel_per_call = 20_000_000;
            limits.memory_bytes = 32 << 20;
        };
        let jar = arena.jar_builder(&guests).with_limits(limits).open_unremembered().await;
        jar.map_err(|escape| anyhow!(escape.0))
    }

    /// Makes one hostile call, and counts it; a call that was not stopped as expected is kept as a text.
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
            // The first few show what is wrong; a list of all could be very long.
            if escapes.len() < 10 {
                escapes.push(format!("{}: {:?}", volley.guest.name, result.outcome));
            }
        }
    }
}
