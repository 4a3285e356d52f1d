//! `belljar run`: runs one agent on one task.

use std::sync::Arc;

use belljar_agent::commands::{self, CommandCall};
use belljar_agent::{BlockedAgent, CallerInput, RunSpec, resolve_agent};
use belljar_policy::ShownText;

use crate::args::RunArgs;
use crate::commands::catalogue::agents;
use crate::commands::run::runner::{self, RunWork};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::walls::WallRaiser;
use crate::term::out::TerminalOutput;

/// The agent that runs if the command names none; it is part of belljar.
pub(crate) const DEFAULT_AGENT: &str = "general-purpose";

/// Runs the command: resolves the agent, and runs it.
pub(crate) fn run(
    args: &RunArgs,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    runner::refuse_tenant(&args.nobodys)?;
    runner::warn_of_home(places, out);
    // The task is not read from stdin where a command needs none.
    let given = match (&args.command, args.task.as_deref()) {
        (Some(name), task) => Some(format!("/{name} {}", task.unwrap_or_default().trim())),
        (None, task) => task.map(str::to_owned),
    };
    let given = given.as_deref().map(str::trim_end);
    runner::run_command(&args.options, given, places, walls, out, |host, task| {
        let name = args.agent.as_deref().unwrap_or(DEFAULT_AGENT);
        let agent = resolve_agent(host, name, &places.workspace).map_err(agents::not_found)?;
        if host.models.is_empty() {
            return Err(runner::no_model(places));
        }
        agent.check_runnable(args.partial)?;
        let command = args.command.as_ref().and_then(|_| CommandCall::from_line(&task));
        if let Some(call) = &command {
            commands::command_message(&host.commands, call).map_err(unknown_command)?;
        }
        let spec = RunSpec {
            context: args.context.clone(),
            model: args.model.clone(),
            limits: args.options.limits_request(),
            partial: args.partial,
            brought: CallerInput { command, ..CallerInput::default() },
            ..RunSpec::new(Arc::new(agent), task, places.workspace.clone())
        };
        Ok(RunWork::Agent(Box::new(spec)))
    })
}

/// The failure of a call of a command.
pub(crate) fn unknown_command(why: String) -> Failure {
    Failure::usage(why).with_hint("`belljar commands list` shows them")
}

impl From<BlockedAgent> for Failure {
    fn from(blocked: BlockedAgent) -> Self {
        let mut failure = Self::new(ShownText::new(&blocked.to_string()).to_string())
            .with_exit(CommandExit::NotAllowed);
        for (number, remedy) in blocked.remedies.into_iter().enumerate() {
            let or = if number == 0 || blocked.lacks_directory { "" } else { "or " };
            failure = failure.with_hint(format!("{or}{remedy}"));
        }
        if failure.hints.is_empty() {
            let name = blocked.agent.grant_key();
            failure = failure
                .with_hint(format!("`belljar agents check {name}` shows why, with the line"));
        }
        failure
    }
}
