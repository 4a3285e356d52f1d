//! Attacks on a running `belljar serve`: as a stranger, with keys of each scope, and as a tool.
//!
//! A real server with two tenants is started from the program that is proven, below a directory of
//! its own. Around each attack three things are looked at: what the attacker was told; that the
//! other tenant, and where the attack is no owner's right its own, has what it had before, and no
//! answer named a place of the host; and that the neighbour, a member of the other tenant who keeps
//! asking, was given right answers all the while.

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

use self::attacks::attacks;
use self::client::get;
use self::neighbour::{Neighbour, Seen};
pub use self::stage::Setup;
use self::stage::Stage;
use crate::attack::{Attack, Escape, Kind, Report, Stopped};
use crate::part::ProvePart;

/// How long an attack may go on before it counts as not stopped.
const PATIENCE: Duration = Duration::from_secs(60);

/// The attacks on a server. Dropping it ends what it has started, and removes its files.
pub struct ServerPart {
    setup: Setup,
    stage: OnceCell<Stage>,
    /// One attack at a time.
    turn: Mutex<()>,
}

impl ServerPart {
    /// Attacks on servers of this setup.
    pub fn new(setup: Setup) -> Self {
        Self { setup, stage: OnceCell::new(), turn: Mutex::default() }
    }

    async fn stage(&self) -> Result<&Stage> {
        self.stage.get_or_try_init(|| Stage::start(&self.setup)).await
    }
}

#[async_trait]
impl ProvePart for ServerPart {
    fn ids(&self) -> Vec<&'static str> {
        attacks().map(|attack| attack.id).collect()
    }

    async fn prepare(&self) -> Result<()> {
        self.stage().await.map(drop).context("no server to attack")
    }

    async fn make(&self, id: &'static str) -> Report {
        let _turn = self.turn.lock().await;
        let Some((number, attack)) = attacks().enumerate().find(|(_, attack)| attack.id == id)
        else {
            return Report::unmade(id, Kind::Server, "there is no such attack");
        };
        match self.stage().await {
            Ok(stage) => judge(attack, number, stage).await,
            Err(error) => Report::unmade(id, Kind::Server, format!("no server: {error:#}")),
        }
    }
}

async fn judge(attack: &Attack<Stage>, number: usize, stage: &Stage) -> Report {
    stage.next(number);
    match judged(attack, stage).await {
        Ok(report) => report,
        Err(error) => {
            let why = format!("the server could not be looked at: {error:#}");
            Report::unmade(attack.id, Kind::Server, why)
        }
    }
}

async fn judged(attack: &Attack<Stage>, stage: &Stage) -> Result<Report> {
    let before = (stage.state("red").await?, stage.state("blue").await?);
    let neighbour = Neighbour::start(stage).await?;
    let (memory, begun) = (stage.resident().unwrap_or_default(), Instant::now());
    let attacking = AssertUnwindSafe((attack.run)(stage)).catch_unwind();
    let stopped: Stopped = match tokio::time::timeout(PATIENCE, attacking).await {
        Ok(Ok(stopped)) => stopped,
        Ok(Err(_)) => Err(Escape::new("the attack itself panicked")),
        Err(_) => Err(Escape::new(format!("it went on for {} seconds", PATIENCE.as_secs()))),
    };
    let elapsed = begun.elapsed();
    let seen = neighbour.stop().await;
    let grown = stage.resident().unwrap_or_default().saturating_sub(memory);
    let mut faults = faults(stage, before).await?;
    faults.extend(seen.wrong.as_ref().map(|wrong| format!("the neighbour suffered: {wrong}")));
    Ok(report(attack, elapsed, grown, &seen, attack.judge(stopped, faults)))
}

/// The effects of the attack on others, and the things that it should not have learned.
async fn faults(stage: &Stage, before: (Vec<String>, Vec<String>)) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let alive = stage.caller("").send(&get("/healthz")).await;
    if !alive.is_ok_and(|answer| answer.status == 200) {
        faults.push("the server does not answer any more".to_owned());
        return Ok(faults);
    }
    faults.extend(stage.leak());
    let mut compare = |tenant: &str, before: Vec<String>, after: Vec<String>| {
        for (before, after) in before.iter().zip(&after).filter(|(before, after)| before != after) {
            faults.push(format!("{tenant} had {before}, and has {after}"));
        }
    };
    compare("blue", before.1, stage.state("blue").await?);
    if !stage.may_red_change() {
        compare("red", before.0, stage.state("red").await?);
    }
    Ok(faults)
}

fn report(
    attack: &Attack<Stage>,
    elapsed: Duration,
    grown: u64,
    seen: &Seen,
    result: Result<String, String>,
) -> Report {
    Report {
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
        let ids: BTreeSet<_> = attacks().map(|attack| attack.id).collect();
        assert_eq!(ids.len(), attacks().count(), "each name once");
        assert!(ids.len() >= 60, "{}", ids.len());
        for attack in attacks() {
            assert!(attack.id.starts_with("server-"), "{}", attack.id);
            assert_eq!(attack.kind, Kind::Server, "{}", attack.id);
            assert!(attack.stopped_by.contains("(INV-"), "{}", attack.id);
            assert!(!attack.told.is_empty() && !attack.tries.is_empty(), "{}", attack.id);
        }
    }
}
