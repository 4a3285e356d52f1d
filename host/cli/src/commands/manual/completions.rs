//! `belljar completions`: a script for the user's shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Args;
use crate::setup::exit::{Exit, Failure};
use crate::term::out::Out;

pub(crate) fn run(shell: Shell, out: &Out) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "belljar", &mut script);
    out.text(&String::from_utf8_lossy(&script));
    Ok(Exit::Completed)
}
