//! Attacks on a running `belljar serve`: by strangers, with keys of each scope, and by a tool.
//!
//! A real server with two tenants is started from the program under test, in a separate directory. After each
//! attack three things are checked: what the attacker was answered; that the other tenant, and, unless the
//! attack may change it, the attacker's own tenant, have the same data as before, and no answer contained a
//! path of the host; and that the neighbour, a member of the other tenant who sends requests all the while,
//! got correct answers.

mod attacks;
mod client;
mod neighbour;
mod stage;
mod witness;

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use async_trait::async_trait;
use futures::FutureExt as _;
use tokio::sync::{Mutex, OnceCell};

use self::attacks::list_attacks;
use self::client::get_request;
use self::neighbour::{TenantNeighbour, TenantObservation};
pub use self::stage::ServerSetup;
use self::stage::ServerStage;
use crate::attack::{Attack, AttackKind, AttackReport, Escape, Stopped};
use crate::part::ProvePart;

/// The time after which an attack that still goes on counts as not stopped.
const PATIENCE: Duration = Duration::from_secs(60);

/// The part of `belljar prove` with the attacks on a server. Dropping it ends the server and removes its
/// files.
pub struct ServerPart {
    setup: ServerSetup,
    stage: OnceCell<ServerStage>,
    /// A lock that lets one attack run at a time.
    turn: Mutex<()>,
}

impl ServerPart {
    /// Creates the attacks on servers that are started in this way.
    pub fn new(setup: ServerSetup) -> Self {
        Self { setup, stage: OnceCell::new(), turn: Mutex::default() }
    }

    async fn get_stage(&self) -> Result<&ServerStage> {
        self.stage.get_or_try_init(|| ServerStage::start(&self.setup)).await
    }
}

#[async_trait]
impl ProvePart for ServerPart {
    fn attack_ids(&self) -> Vec<&'static str> {
        list_attacks().map(|attack| attack.id).collect()
    }

    async fn prepare(&self) -> Result<()> {
        self.get_stage().await.map(drop).context("no server to attack")
    }

    /// Makes the attack with the given name on the shared server; an error of the server is reported as an
    /// attack that could not be made.
    async fn make_attack(&self, id: &'static str) -> AttackReport {
        let _turn = self.turn.lock().await;
        let Some((number, attack)) = list_attacks().enumerate().find(|(_, attack)| attack.id == id)
        else {
            return AttackReport::for_unmade(id, AttackKind::Server, "there is no such attack");
        };
        match self.get_stage().await {
            Ok(stage) => judge_attack(attack, number, stage).await,
            Err(error) => {
                AttackReport::for_unmade(id, AttackKind::Server, format!("no server: {error:#}"))
            }
        }
    }
}

/// Prepares the stage for one attack, makes the attack, and judges it.
async fn judge_attack(
    attack: &Attack<ServerStage>,
    number: usize,
    stage: &ServerStage,
) -> AttackReport {
    stage.set_client_address(number);
    match judge_on_stage(attack, stage).await {
        Ok(report) => report,
        Err(error) => {
            let why = format!("the server could not be looked at: {error:#}");
            AttackReport::for_unmade(attack.id, AttackKind::Server, why)
        }
    }
}

/// Makes one attack while the neighbour sends requests, and judges it by its answer, its effects and the
/// server's growth.
async fn judge_on_stage(attack: &Attack<ServerStage>, stage: &ServerStage) -> Result<AttackReport> {
    let before = (stage.tenant_state("red").await?, stage.tenant_state("blue").await?);
    let neighbour = TenantNeighbour::start(stage).await?;
    let (memory, begun) = (stage.resident_bytes().unwrap_or_default(), Instant::now());
    let attacking = AssertUnwindSafe((attack.run)(stage)).catch_unwind();
    let stopped: Stopped = match tokio::time::timeout(PATIENCE, attacking).await {
        Ok(Ok(stopped)) => stopped,
        Ok(Err(_)) => Err(Escape::new("the attack itself panicked")),
        Err(_) => Err(Escape::new(format!("it went on for {} seconds", PATIENCE.as_secs()))),
    };
    let elapsed = begun.elapsed();
    let seen = neighbour.stop().await;
    let grown = stage.resident_bytes().unwrap_or_default().saturating_sub(memory);
    let mut faults = find_faults(stage, before).await?;
    faults.extend(seen.wrong.as_ref().map(|wrong| format!("the neighbour suffered: {wrong}")));
    Ok(build_report(attack, elapsed, grown, &seen, attack.judge_outcome(stopped, faults)))
}

/// The forbidden effects of the attack: changed data, and paths of the host in answers.
async fn find_faults(
    stage: &ServerStage,
    before: (Vec<String>, Vec<String>),
) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let alive = stage.client_for("").send(&get_request("/healthz")).await;
    if !alive.is_ok_and(|answer| answer.status == 200) {
        faults.push("the server does not answer any more".to_owned());
        return Ok(faults);
    }
    faults.extend(stage.take_leak());
    let mut compare = |tenant: &str, before: Vec<String>, after: Vec<String>| {
        for (before, after) in before.iter().zip(&after).filter(|(before, after)| before != after) {
            faults.push(format!("{tenant} had {before}, and has {after}"));
        }
    };
    compare("blue", before.1, stage.tenant_state("blue").await?);
    if !stage.may_red_change() {
        compare("red", before.0, stage.tenant_state("red").await?);
    }
    Ok(faults)
}

/// Collects the measurements and the judgement in a report.
fn build_report(
    attack: &Attack<ServerStage>,
    elapsed: Duration,
    grown: u64,
    seen: &TenantObservation,
    result: Result<String, String>,
) -> AttackReport {
    AttackReport {
        id: attack.id,
        kind: attack.kind,
        stopped_by: attack.stopped_by,
        elapsed,
        memory_growth_bytes: grown,
        memory_peak_bytes: grown,
        neighbour_calls: seen.calls,
        neighbour_median: seen.median,
        neighbour_worst: seen.worst,
        result,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_many_attacks_and_each_says_what_stops_it() {
        let ids: BTreeSet<_> = list_attacks().map(|attack| attack.id).collect();
        assert_eq!(ids.len(), list_attacks().count(), "each name once");
        assert!(ids.len() >= 60, "{}", ids.len());
        for attack in list_attacks() {
            assert!(attack.id.starts_with("server-"), "{}", attack.id);
            assert_eq!(attack.kind, AttackKind::Server, "{}", attack.id);
            assert!(attack.stopped_by.contains("(INV-"), "{}", attack.id);
            assert!(!attack.told.is_empty() && !attack.tries.is_empty(), "{}", attack.id);
        }
    }
}
