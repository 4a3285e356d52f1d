//! The `belljar` binary: parses the command line, runs one command, and returns an exit code.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod commands;
mod libraries;
mod setup;
mod term;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use args::CliArgs;
use term::out::TerminalOutput;

/// Runs a hidden role in a child process, or parses the command line and runs a command.
fn main() -> ExitCode {
    // Concealed first, because the environment has keys, which are soon in memory.
    belljar_os_sandbox::conceal_process();
    // Checked before any setup: the first argument may make this process a child with a hidden role.
    let mut words = std::env::args_os().skip(1);
    match words.next() {
        Some(first) if first == setup::walls::COMPILE_CHILD => {
            let walled = words.next().is_none_or(|word| word != setup::walls::NO_WALL);
            return belljar_sandbox::compile_child(walled);
        }
        Some(first) if first == setup::walls::DESCRIBE_CHILD => {
            return belljar_sandbox::describe_child();
        }
        Some(first) if first == setup::walls::BROKER => return setup::walls::be_broker(),
        #[cfg(target_os = "linux")]
        Some(first) if first == setup::walls::VICTIM => return belljar_prove::wall::be_victim(),
        #[cfg(target_os = "linux")]
        Some(first) if first == setup::walls::ATTACK => return commands::attack_the_wall(words),
        Some(first) if first == setup::walls::HELPER => return libraries::serve_helper(words),
        Some(first) if first == setup::walls::KEEPER => {
            return belljar_os_sandbox::keep_hook(&words.next().unwrap_or_default());
        }
        Some(first) if first == setup::walls::PROGRAM_KEEPER => {
            let program = words.next().unwrap_or_default();
            return belljar_os_sandbox::keep_program(&program, &[setup::walls::PROGRAM.into()]);
        }
        Some(first) if first == setup::walls::PROGRAM => {
            let program = words.next().unwrap_or_default();
            return belljar_os_sandbox::become_program(&program, words);
        }
        Some(_) | None => {}
    }
    setup::embedded::open_what_lies_beside();
    let matches = match CliArgs::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => return refuse_command_line(&error),
        Err(help) => help.exit(),
    };
    let args = match CliArgs::from_arg_matches(&matches) {
        Ok(args) => args,
        Err(error) => return refuse_command_line(&error),
    };
    let out = TerminalOutput::new(args.global.quiet, wants_json(&matches));
    // A server starts its log later, with its runtime and behind the OS sandbox.
    if !matches!(args.command, args::CliCommand::Serve(_)) {
        setup::log::start_log(&out);
    }
    let exit = match commands::run(&args, &out) {
        Ok(exit) => exit,
        Err(failure) => {
            out.print_failure(&failure);
            failure.exit
        }
    };
    ExitCode::from(out.finish_exit(exit).code())
}

/// Prints the error for an invalid command line, escaped, because it may contain names of a stranger's files.
fn refuse_command_line(error: &clap::Error) -> ExitCode {
    let out = TerminalOutput::new(false, false);
    let text = error.render();
    let text = if out.colours_errors() { text.ansi().to_string() } else { text.to_string() };
    out.note(text.trim_end());
    ExitCode::from(setup::exit::CommandExit::Usage.code())
}

/// Returns whether the command has the option `--json`.
fn wants_json(matches: &ArgMatches) -> bool {
    let here = matches.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or(false);
    here || matches.subcommand().is_some_and(|(_, below)| wants_json(below))
}
