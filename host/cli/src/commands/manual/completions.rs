//! `belljar completions`: prints a completion script for a shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::CliArgs;
use crate::setup::exit::{CommandExit, Failure};
use crate::term::out::TerminalOutput;

/// Runs the command.
pub(crate) fn run(shell: Shell, out: &TerminalOutput) -> Result<CommandExit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CliArgs::command(), "belljar", &mut script);
    out.print_text(&String::from_utf8_lossy(&script));
    Ok(CommandExit::Completed)
}
