//! Golden test of `--help` for every command.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::CliArgs;

/// Columns of the terminal.
const WIDTH: usize = 100;

/// Appends the help of a command and of its subcommands to `into`.
fn write_help(command: &mut Command, into: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    writeln!(into, "$ {name} --help\n{}", command.render_long_help()).unwrap();
    for below in command.get_subcommands_mut().filter(|below| below.get_name() != "help") {
        write_help(below, into);
    }
}

/// There is one file for `belljar` itself, and one for each command with its subcommands.
#[test]
fn golden_help_is_as_reviewed() {
    let mut command = CliArgs::command().term_width(WIDTH);
    command.build();
    let own = command.render_long_help().to_string();
    belljar_kit::golden!("help", own);
    for below in command.get_subcommands_mut().filter(|below| below.get_name() != "help") {
        let mut text = String::new();
        write_help(below, &mut text);
        belljar_kit::golden!(format!("help-{}", below.get_name()), text);
    }
}
