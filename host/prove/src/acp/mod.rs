//! Attacks on `belljar acp` by an editor that is hostile.
//!
//! Each attack is made on a separate process, with a scripted model and two sessions: the attacker's, and a
//! neighbour's. Afterwards three things are checked: what the attacker was answered; that no file has
//! changed; and that the same process answers the neighbour correctly.

mod attacks;
mod more;
mod peer;
mod stage;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use self::stage::AcpStage;
use crate::attack::{Attack, AttackKind, AttackReport, Escape};
use crate::part::ProvePart;

/// The time after which an attack that still goes on counts as not stopped.
const PATIENCE: Duration = Duration::from_secs(60);

/// The part of `belljar prove` with the attacks by an editor.
pub struct AcpPart {
    program: PathBuf,
    cache: Option<PathBuf>,
}

/// Every attack, in the order in which they are made.
fn list_attacks() -> impl Iterator<Item = &'static Attack<AcpStage>> {
    attacks::ATTACKS.iter().chain(more::ATTACKS)
}

impl AcpPart {
    /// Creates the attacks on the program `belljar` at the given path. `cache` is a directory of compiled
    /// components; without one, each process compiles its own.
    pub fn new(program: PathBuf, cache: Option<PathBuf>) -> Self {
        Self { program, cache }
    }

    /// Makes one attack on a new process, then checks the files and the neighbour, and judges the attack by
    /// all of this.
    async fn run_attack(&self, attack: &Attack<AcpStage>) -> anyhow::Result<AttackReport> {
        let stage = AcpStage::start(&self.program, self.cache.as_deref()).await?;
        let mut report = AttackReport::for_unmade(attack.id, attack.kind, "");
        report.stopped_by = attack.stopped_by;
        let before = stage.list_files()?;
        let began = Instant::now();
        let stopped = tokio::time::timeout(PATIENCE, (attack.run)(&stage)).await;
        let stopped = stopped.unwrap_or_else(|_| {
            Err(Escape(format!("it went on for {} seconds", PATIENCE.as_secs())))
        });
        report.elapsed = began.elapsed();
        let mut faults = Vec::new();
        if stage.list_files()? != before {
            faults.push("files have changed".to_owned());
        }
        match tokio::time::timeout(PATIENCE, stage.ask_neighbour()).await {
            Ok(Ok(())) => report.neighbour_calls = 1,
            Ok(Err(error)) => faults.push(format!("the neighbour suffered: {error:#}")),
            Err(_) => faults.push("the neighbour is not answered any more".to_owned()),
        }
        report.result = attack.judge_outcome(stopped, faults);
        Ok(report)
    }
}

#[async_trait]
impl ProvePart for AcpPart {
    fn attack_ids(&self) -> Vec<&'static str> {
        list_attacks().map(|attack| attack.id).collect()
    }

    async fn prepare(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Makes the attack with the given name; an error of the stage is reported as an attack that could not be
    /// made.
    async fn make_attack(&self, id: &'static str) -> AttackReport {
        let Some(attack) = list_attacks().find(|attack| attack.id == id) else {
            return AttackReport::for_unmade(id, AttackKind::Acp, "there is no such attack");
        };
        match self.run_attack(attack).await {
            Ok(report) => report,
            Err(error) => AttackReport::for_unmade(id, AttackKind::Acp, format!("{error:#}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_attack_of_an_editor_says_what_stops_it() {
        let ids: BTreeSet<_> = list_attacks().map(|attack| attack.id).collect();
        assert_eq!(ids.len(), list_attacks().count(), "each name once");
        for attack in list_attacks() {
            assert!(attack.id.starts_with("acp-"), "{}", attack.id);
            assert!(attack.stopped_by.contains("(INV-"), "{}", attack.id);
            assert!(!attack.told.is_empty() && !attack.tries.is_empty(), "{}", attack.id);
        }
    }
}
