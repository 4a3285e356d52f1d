//! Attacks on `belljar agents add`, `update` and `remove`: sources that name what is not theirs, that are
//! shown as something else than they are, or that cost more than they are worth.
//!
//! Each is made in a separate directory, and the real program runs on it with a separate home in which an
//! honest library is installed. Of each is asked: was it refused, or only its honest part taken, with these
//! words; is nothing of outside installed, nothing outside the home written, nothing run, and no more memory
//! or time used than the bounds below say; and is the honest library's agent still there, during and after.

mod archives;
mod folders;
mod names;
mod plugins;
mod repositories;
mod stage;
mod tarball;
mod words;
mod workspaces;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::OnceCell;

use self::stage::{LibraryStage, StageTemplate};
use crate::attack::{Attack, AttackKind, AttackReport, Stopped};
use crate::part::ProvePart;

/// The most bytes of memory that the program may use at any time. An honest library takes a fifth of it; the
/// bomb for which this limit was made took 2.8 GiB.
const MEMORY_BOUND: u64 = 512 << 20;

/// The time limit of one run of the program. The slowest attack is one that the program reads up to a limit.
const TIME_BOUND: Duration = Duration::from_secs(20);

/// The part of `belljar prove` with the attacks on libraries.
pub struct LibrariesPart {
    program: PathBuf,
    template: OnceCell<StageTemplate>,
}

impl LibrariesPart {
    /// Creates the attacks on the program `belljar` at the given path.
    pub fn new(program: PathBuf) -> Self {
        Self { program, template: OnceCell::new() }
    }

    async fn get_template(&self) -> anyhow::Result<&StageTemplate> {
        self.template.get_or_try_init(|| StageTemplate::new(&self.program)).await
    }

    /// Makes one attack on a new stage, then checks its effects; an attack that needs git is left out where
    /// git is not installed.
    async fn run_attack(&self, attack: &Attack<LibraryStage>) -> anyhow::Result<AttackReport> {
        let template = self.get_template().await?;
        let mut report = AttackReport::for_unmade(attack.id, attack.kind, "");
        if !attack.embedded && !template.has_git() {
            report.stopped_by = "not made: `git` is not installed";
            report.result = Ok("not made: `git` is not installed here".to_owned());
            return Ok(report);
        }
        let stage = template.new_stage()?;
        let began = Instant::now();
        let stopped = (attack.run)(&stage).await;
        report.elapsed = began.elapsed();
        report.stopped_by = attack.stopped_by;
        let faults = stage.find_faults(began.elapsed()).await;
        let seen = stage.measurements();
        report.memory_peak_bytes = seen.peak;
        report.neighbour_calls = seen.calls.len();
        let mut calls = seen.calls;
        calls.sort();
        report.neighbour_median = calls.get(calls.len() / 2).copied().unwrap_or_default();
        report.neighbour_worst = calls.last().copied().unwrap_or_default();
        report.result = attack.judge_outcome(stopped, faults);
        Ok(report)
    }
}

#[async_trait]
impl ProvePart for LibrariesPart {
    fn attack_ids(&self) -> Vec<&'static str> {
        list_attacks().map(|attack| attack.id).collect()
    }

    async fn prepare(&self) -> anyhow::Result<()> {
        self.get_template().await.map(drop)
    }

    /// Makes the attack with the given name; an error of the stage is reported as an attack that could not be
    /// made.
    async fn make_attack(&self, id: &'static str) -> AttackReport {
        let Some(attack) = list_attacks().find(|attack| attack.id == id) else {
            return AttackReport::for_unmade(id, AttackKind::Libraries, "there is no such attack");
        };
        match self.run_attack(&attack).await {
            Ok(report) => report,
            Err(error) => AttackReport::for_unmade(id, AttackKind::Libraries, format!("{error:#}")),
        }
    }
}

/// Every attack, in the order in which they are made.
fn list_attacks() -> impl Iterator<Item = Attack<LibraryStage>> {
    [
        repositories::ATTACKS,
        archives::ATTACKS,
        folders::ATTACKS,
        names::ATTACKS,
        plugins::ATTACKS,
        workspaces::ATTACKS,
        words::ATTACKS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Makes a row of a table. `git` is true if the attack needs git.
const fn attack_row(
    id: &'static str,
    tries: &'static str,
    stopped_by: &'static str,
    told: &'static str,
    git: bool,
    run: for<'a> fn(&'a LibraryStage) -> futures::future::BoxFuture<'a, Stopped>,
) -> Attack<LibraryStage> {
    Attack { id, kind: AttackKind::Libraries, tries, stopped_by, told, embedded: !git, run }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_enough_attacks_and_each_has_its_own_name() {
        let mut ids: Vec<_> = list_attacks().map(|attack| attack.id).collect();
        assert!(ids.len() >= 30, "{}", ids.len());
        assert!(ids.iter().all(|id| id.starts_with("libraries-")));
        assert!(list_attacks().all(|attack| !attack.told.is_empty() && !attack.tries.is_empty()));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), list_attacks().count());
    }
}
