//! `belljar teams run`: runs a team on one task.

use std::sync::Arc;

use belljar_agent::{ResolvedTeam, TeamOutcome, TeamSpec, resolve_team};
use belljar_policy::ShownText;

use crate::args::TeamRunArgs;
use crate::commands::catalogue::agents;
use crate::commands::run::runner::{self, RunWork};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::walls::WallRaiser;
use crate::term::out::TerminalOutput;

/// Runs the command: resolves the team, and runs it.
pub(crate) fn run(
    args: &TeamRunArgs,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    runner::refuse_tenant(&args.nobodys)?;
    runner::warn_of_home(places, out);
    runner::run_command(&args.options, args.task.as_deref(), places, walls, out, |host, task| {
        let team = resolve_team(host, &args.name, &places.workspace).map_err(agents::not_found)?;
        if host.models.is_empty() {
            return Err(runner::no_model(places));
        }
        check_runnable(&team)?;
        let spec = TeamSpec {
            team: Arc::new(team),
            task,
            model: args.model.clone(),
            workspace: places.workspace.clone(),
            limits: args.options.limits_request(),
            budget: None,
            layers: None,
        };
        Ok(RunWork::Team(Box::new(spec)))
    })
}

/// Refuses to run a team with a missing or blocked agent.
pub(crate) fn check_runnable(team: &ResolvedTeam) -> Result<(), Failure> {
    if team.problems.is_empty() {
        return Ok(());
    }
    let exit = if team.is_only_blocked() { CommandExit::NotAllowed } else { CommandExit::Usage };
    let message = format!("team `{}` cannot run; nothing was started", team.id);
    Err(Failure::from_diagnostics(message, team.problems.clone()).with_exit(exit))
}

/// The reason why the team did not complete, and the agent that failed.
pub(crate) fn failure_reason(outcome: &TeamOutcome) -> String {
    let error = runner::error_reason(outcome.error.as_ref());
    match outcome.deciding_member() {
        Some((stage, agent)) => {
            format!("stage {stage}, agent `{}`: {error}", ShownText::new(&agent.path))
        }
        None => error,
    }
}
