//! `belljar completions`: a script for the user's shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::CliArgs;
use crate::setup::exit::{CommandExit, Failure};
use crate::term::out::TerminalOutput;

pub(crate) fn run(shell: Shell, out: &TerminalOutput) -> Result<CommandExit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CliArgs::command(), "belljar", &mut script);
    out.print_text(&String::from_utf8_lossy(&script));
    Ok(CommandExit::Completed)
}
