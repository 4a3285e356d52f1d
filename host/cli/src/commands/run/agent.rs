//! `belljar run`: one agent, one task.

use std::sync::Arc;

use belljar_agent::{MAKE_IT, ResolvedAgent, RunSpec, resolve};
use belljar_definition::AgentReadiness;
use belljar_policy::Shown;

use crate::args::RunArgs;
use crate::commands::catalogue::agents;
use crate::commands::run::runner::{self, Work};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::walls::Walls;
use crate::term::out::Out;

/// The stock agent that runs where none is named.
pub(crate) const DEFAULT_AGENT: &str = "general-purpose";

pub(crate) fn run(
    args: &RunArgs,
    places: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    runner::nobodys(&args.nobodys)?;
    runner::warn_of_home(places, out);
    runner::run(&args.options, args.task.as_deref(), places, walls, out, |host, task| {
        let name = args.agent.as_deref().unwrap_or(DEFAULT_AGENT);
        let agent = resolve(host, name, &places.workspace).map_err(agents::not_found)?;
        if host.models.is_empty() {
            return Err(runner::no_model(places));
        }
        runnable(&agent, args.partial)?;
        let spec = RunSpec {
            context: args.context.clone(),
            model: args.model.clone(),
            limits: args.options.limits(),
            partial: args.partial,
            ..RunSpec::new(Arc::new(agent), task, places.workspace.clone())
        };
        Ok(Work::Agent(Box::new(spec)))
    })
}

/// Blocked agents run only with `--partial`.
pub(crate) fn runnable(agent: &ResolvedAgent, partial: bool) -> Result<(), Failure> {
    let AgentReadiness::Blocked { reasons } = &agent.status else { return Ok(()) };
    if partial && agent.may_be_partial() {
        return Ok(());
    }
    let reasons = Shown::new(&reasons.join("; ")).to_string();
    let mut failure =
        Failure::new(format!("agent `{}` is blocked: {reasons}", agent.id)).exit(Exit::NotAllowed);
    if !agent.hint.is_empty() {
        failure = failure.hint(format!("give it what it asks for: `{}`", agent.hint));
    }
    if agent.lacks_directory {
        failure = failure.hint(MAKE_IT);
    }
    if agent.may_be_partial() {
        let or = if agent.hint.is_empty() { "" } else { "or " };
        failure = failure.hint(format!("{or}run it with what it is given: `--partial`"));
    }
    if failure.hints.is_empty() {
        let name = agent.id.grant_key();
        failure = failure.hint(format!("`belljar agents check {name}` shows why, with the line"));
    }
    Err(failure)
}
