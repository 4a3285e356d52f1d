//! `belljar teams run`: a team, one task.

use std::sync::Arc;

use belljar_agent::{ResolvedTeam, TeamOutcome, TeamSpec, resolve_team};
use belljar_policy::Shown;

use crate::args::TeamRunArgs;
use crate::commands::catalogue::agents;
use crate::commands::run::runner::{self, Work};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::walls::Walls;
use crate::term::out::Out;

pub(crate) fn run(
    args: &TeamRunArgs,
    places: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    runner::nobodys(&args.nobodys)?;
    runner::warn_of_home(places, out);
    runner::run(&args.options, args.task.as_deref(), places, walls, out, |host, task| {
        let team = resolve_team(host, &args.name, &places.workspace).map_err(agents::not_found)?;
        if host.models.is_empty() {
            return Err(runner::no_model(places));
        }
        runnable(&team)?;
        let spec = TeamSpec {
            team: Arc::new(team),
            task,
            model: args.model.clone(),
            workspace: places.workspace.clone(),
            limits: args.options.limits(),
            budget: None,
            layers: None,
        };
        Ok(Work::Team(Box::new(spec)))
    })
}

/// A team whose agents are not all there, or not all allowed, does not begin.
pub(crate) fn runnable(team: &ResolvedTeam) -> Result<(), Failure> {
    if team.problems.is_empty() {
        return Ok(());
    }
    let exit = if team.is_only_blocked() { Exit::NotAllowed } else { Exit::Usage };
    let message = format!("team `{}` cannot run; nothing was started", team.id);
    Err(Failure::diagnostics(message, team.problems.clone()).exit(exit))
}

/// Why the team did not complete, and the responsible agent.
pub(crate) fn why(outcome: &TeamOutcome) -> String {
    let error = runner::reason(outcome.error.as_ref());
    match outcome.culprit() {
        Some((stage, agent)) => {
            format!("stage {stage}, agent `{}`: {error}", Shown::new(&agent.path))
        }
        None => error,
    }
}
