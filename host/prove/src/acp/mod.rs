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

use self::stage::Stage;
use crate::attack::{Attack, Escape, Kind, Report};
use crate::part::ProvePart;

/// How long an attack may go on before it counts as not stopped.
const PATIENCE: Duration = Duration::from_secs(60);

/// The attacks of an editor.
pub struct AcpPart {
    program: PathBuf,
    cache: Option<PathBuf>,
}

/// Every attack, in the order in which they are made.
fn attacks() -> impl Iterator<Item = &'static Attack<Stage>> {
    attacks::ATTACKS.iter().chain(more::ATTACKS)
}

impl AcpPart {
    /// Attacks on this program, which is `belljar`, with this cache of components; without one, each
    /// process has its own.
    pub fn new(program: PathBuf, cache: Option<PathBuf>) -> Self {
        Self { program, cache }
    }

    async fn run(&self, attack: &Attack<Stage>) -> anyhow::Result<Report> {
        let stage = Stage::start(&self.program, self.cache.as_deref()).await?;
        let mut report = Report::unmade(attack.id, attack.kind, "");
        report.stopped_by = attack.stopped_by;
        let before = stage.files()?;
        let began = Instant::now();
        let stopped = tokio::time::timeout(PATIENCE, (attack.run)(&stage)).await;
        let stopped = stopped.unwrap_or_else(|_| {
            Err(Escape(format!("it went on for {} seconds", PATIENCE.as_secs())))
        });
        report.elapsed = began.elapsed();
        let mut faults = Vec::new();
        if stage.files()? != before {
            faults.push("files have changed".to_owned());
        }
        match tokio::time::timeout(PATIENCE, stage.neighbour()).await {
            Ok(Ok(())) => report.neighbour_calls = 1,
            Ok(Err(error)) => faults.push(format!("the neighbour suffered: {error:#}")),
            Err(_) => faults.push("the neighbour is not answered any more".to_owned()),
        }
        report.result = attack.judge(stopped, faults);
        Ok(report)
    }
}

#[async_trait]
impl ProvePart for AcpPart {
    fn ids(&self) -> Vec<&'static str> {
        attacks().map(|attack| attack.id).collect()
    }

    async fn prepare(&self) -> anyhow::Result<()> {
        Ok(())
    }

    async fn make(&self, id: &'static str) -> Report {
        let Some(attack) = attacks().find(|attack| attack.id == id) else {
            return Report::unmade(id, Kind::Acp, "there is no such attack");
        };
        match self.run(attack).await {
            Ok(report) => report,
            Err(error) => Report::unmade(id, Kind::Acp, format!("{error:#}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_attack_of_an_editor_says_what_stops_it() {
        let ids: BTreeSet<_> = attacks().map(|attack| attack.id).collect();
        assert_eq!(ids.len(), attacks().count(), "each name once");
        for attack in attacks() {
            assert!(attack.id.starts_with("acp-"), "{}", attack.id);
            assert!(attack.stopped_by.contains("(INV-"), "{}", attack.id);
            assert!(!attack.told.is_empty() && !attack.tries.is_empty(), "{}", attack.id);
        }
    }
}
