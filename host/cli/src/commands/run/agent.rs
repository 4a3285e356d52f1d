//! `belljar run`: one agent, one task.

use std::sync::Arc;

use belljar_agent::{BlockedAgent, RunSpec, resolve};
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
        agent.runnable(args.partial)?;
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

impl From<BlockedAgent> for Failure {
    fn from(blocked: BlockedAgent) -> Self {
        let mut failure =
            Self::new(Shown::new(&blocked.to_string()).to_string()).exit(Exit::NotAllowed);
        for (number, remedy) in blocked.remedies.into_iter().enumerate() {
            let or = if number == 0 || blocked.lacks_directory { "" } else { "or " };
            failure = failure.hint(format!("{or}{remedy}"));
        }
        if failure.hints.is_empty() {
            let name = blocked.agent.grant_key();
            failure =
                failure.hint(format!("`belljar agents check {name}` shows why, with the line"));
        }
        failure
    }
}
