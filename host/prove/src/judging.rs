//! Runs one attack in an arena, and judges it by all of its effects.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use anyhow::Result;
use async_trait::async_trait;
use futures::FutureExt;

use crate::arena::{Arena, ProcessGrowth};
use crate::attack::{Attack, AttackKind, AttackReport, Escape};
use crate::attacks::list_attacks;
use crate::memory::{GROWTH_BOUND, PEAK_BOUND};
use crate::part::ProvePart;

use crate::suite::Suite;

/// The time after which an attack that still goes on counts as not stopped.
const PATIENCE: Duration = Duration::from_secs(60);

impl Suite {
    /// Runs one attack in a new arena. Only one may run at a time, because time and memory are measured for
    /// the whole process.
    pub async fn run_attack(&self, attack: &Attack<Arena>) -> AttackReport {
        match Arena::new(self).await {
            Ok(arena) => judge_attack(attack, arena).await,
            Err(error) => {
                let why = format!("there is no arena: {error:#}");
                build_report(
                    attack,
                    Duration::ZERO,
                    ProcessGrowth::default(),
                    Default::default(),
                    Err(why),
                )
            }
        }
    }
}

/// The part `sandbox` of `belljar prove`: the attacks that end within about a second.
#[async_trait]
impl ProvePart for Suite {
    fn attack_ids(&self) -> Vec<&'static str> {
        list_attacks().filter(|attack| attack.embedded).map(|attack| attack.id).collect()
    }

    async fn prepare(&self) -> Result<()> {
        Self::prepare(self).await
    }

    /// Runs the attack with the given id; reported as not made if there is none.
    async fn make_attack(&self, id: &'static str) -> AttackReport {
        match list_attacks().find(|attack| attack.id == id) {
            Some(attack) => self.run_attack(attack).await,
            None => AttackReport::for_unmade(id, AttackKind::Component, "there is no such attack"),
        }
    }
}

/// Makes the attack, and collects all of its effects.
async fn judge_attack(attack: &Attack<Arena>, arena: Arena) -> AttackReport {
    let Some(neighbour) = arena.neighbour() else {
        let why = "the neighbour has not moved in".to_owned();
        return build_report(
            attack,
            Duration::ZERO,
            ProcessGrowth::default(),
            Default::default(),
            Err(why),
        );
    };
    let begun = Instant::now();
    let attacking = AssertUnwindSafe((attack.run)(&arena)).catch_unwind();
    // The neighbour makes at least one call during the attack, however short the attack is.
    let (ended, ()) =
        futures::join!(tokio::time::timeout(PATIENCE, attacking), neighbour.ask_once());
    let stopped = match ended {
        Ok(Ok(stopped)) => stopped,
        Ok(Err(_)) => Err(Escape::new("the host panicked")),
        Err(_) => Err(Escape::new(format!("it went on for {} seconds", PATIENCE.as_secs()))),
    };
    let mut faults = arena.close_jars().await;
    let ended = Instant::now();
    neighbour.stop().await;
    let growth = arena.measure_growth();
    faults.extend(arena.list_effects().await);
    faults.extend(growth_fault(growth));
    let seen = neighbour.observe_between(begun, ended);
    if seen.calls == 0 {
        faults.push("the neighbour did not call meanwhile".to_owned());
    }
    faults.extend(neighbour.first_fault().map(|wrong| format!("the neighbour suffered: {wrong}")));
    drop(neighbour);
    if let Err(error) = arena.remove_tree() {
        faults.push(format!("{error:#}"));
    }
    build_report(attack, ended - begun, growth, seen, attack.judge_outcome(stopped, faults))
}

/// A fault if the process has grown more than an attack may make it grow.
fn growth_fault(growth: ProcessGrowth) -> Option<String> {
    if growth.left > GROWTH_BOUND {
        return Some(format!("the process is {} bytes larger than before", growth.left));
    }
    (growth.peak > PEAK_BOUND).then(|| format!("the process grew by {} bytes", growth.peak))
}

/// Collects the measurements and the judgement in a report.
fn build_report(
    attack: &Attack<Arena>,
    elapsed: Duration,
    growth: ProcessGrowth,
    seen: crate::neighbour::NeighbourObservation,
    result: Result<String, String>,
) -> AttackReport {
    AttackReport {
        id: attack.id,
        kind: attack.kind,
        stopped_by: attack.stopped_by,
        elapsed,
        memory_growth_bytes: growth.left,
        memory_peak_bytes: growth.peak,
        neighbour_calls: seen.calls,
        neighbour_median: seen.median,
        neighbour_worst: seen.worst,
        result,
    }
}
