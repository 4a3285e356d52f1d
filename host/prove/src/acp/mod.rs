//! Attacks on `belljar acp`, as an editor that is not to be trusted.
//!
//! Each is made on a process of its own, with a scripted model and two sessions: the attacker's, and a
//! neighbour's. Afterwards three things are looked at: what the attacker was told; that no file has
//! changed; and that the neighbour is answered rightly by the same process.

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

/// How long an attack may go on before it counts as not stopped.
const PATIENCE: Duration = Duration::from_secs(60);

/// The attacks of an editor.
pub struct AcpPart {
    program: PathBuf,
    cache: Option<PathBuf>,
}

/// Every attack, in the order in which they are made.
fn list_attacks() -> impl Iterator<Item = &'static Attack<AcpStage>> {
    attacks::ATTACKS.iter().chain(more::ATTACKS)
}

impl AcpPart {
    /// Attacks on this program, which is `belljar`, with this cache of components; without one, each
    /// process has its own.
    pub fn new(program: PathBuf, cache: Option<PathBuf>) -> Self {
        Self { program, cache }
    }

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
