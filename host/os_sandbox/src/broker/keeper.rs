//! The keeper of one hook command or program: a process between the broker and the command. A keeper adopts
//! orphans of the command and ends all descendants together.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::process::{Command, ExitCode, ExitStatus};

use super::ITSELF;
use super::scratch::ScratchDir;
use crate::program::Program;
use crate::running::SHELL;

/// Runs a keeper: runs the command in the shell, with this process's directory, environment and streams, and
/// returns the exit code. Before a keeper ends, it ends every descendant of the command, in whatever session.
/// `SIGTERM` and the end of its parent end the command. A program calls this function first in `main`.
pub fn keep_hook(command: &OsStr) -> ExitCode {
    let mut shell = Command::new(SHELL);
    shell.arg("-c").arg(command);
    until_its_end(shell, None)
}

/// Runs the keeper of a program from the broker's description: belljar, started with the arguments
/// `confined`, executes the program. A program that exceeds its limit of processes or threads is ended too.
pub fn keep_program(text: &OsStr, confined: &[OsString]) -> ExitCode {
    let described = text.to_str().and_then(|text| serde_json::from_str::<Program>(text).ok());
    let Some(mut program) = described else { return ExitCode::FAILURE };
    let scratch = match ScratchDir::create_new() {
        Ok(scratch) => scratch,
        Err(error) => {
            let _ =
                writeln!(io::stderr(), "belljar: not started: its temporary directory: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut command = Command::new(ITSELF);
    scratch.grant_to(&mut program, &mut command);
    let Ok(text) = serde_json::to_string(&program) else { return ExitCode::FAILURE };
    command.args(confined).arg(text);
    let code = until_its_end(command, Some(program.processes));
    // Every process that could write there has ended.
    drop(scratch);
    code
}

fn until_its_end(command: Command, processes: Option<u32>) -> ExitCode {
    crate::process::inherit_nothing();
    crate::process::conceal_process();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(watch_command(command, processes))) {
        Ok(status) => exit_like(status),
        Err(_) => ExitCode::FAILURE,
    }
}

/// Ends like the command; the number of a fatal signal is not passed on.
fn exit_like(status: ExitStatus) -> ExitCode {
    if status.code().is_none() {
        let own = rustix::process::getpid();
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(target_os = "linux")]
async fn watch_command(command: Command, processes: Option<u32>) -> io::Result<ExitStatus> {
    use super::births::BirthLimit;
    use rustix::process::{Signal, getpid, set_child_subreaper, set_parent_process_death_signal};
    use tokio::signal::unix::{SignalKind, signal};
    let mut stop = signal(SignalKind::terminate())?;
    set_child_subreaper(Some(getpid()))?;
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let most = processes.map(|besides| usize::try_from(besides).unwrap_or(usize::MAX));
    let births =
        most.map(|besides| BirthLimit::count_births(besides.saturating_add(1))).transpose();
    let births = births.inspect_err(|error| {
        let _ = writeln!(io::stderr(), "belljar: not started: counting its processes: {error}");
    })?;
    let mut child = tokio::process::Command::from(command).spawn()?;
    if births.is_some() {
        // A peer of the program can then see at once when the program closes its ends.
        let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
    }
    let too_many = async {
        match &births {
            Some(births) => births.too_many().await,
            None => std::future::pending().await,
        }
    };
    let status = tokio::select! {
        status = child.wait() => Some(status?),
        _ = stop.recv() => None,
        () = too_many => None,
    };
    if let Some(births) = &births {
        births.close_births();
    }
    super::descendants::kill_all();
    match status {
        Some(status) => Ok(status),
        None => child.wait().await,
    }
}

#[cfg(not(target_os = "linux"))]
async fn watch_command(_command: Command, _processes: Option<u32>) -> io::Result<ExitStatus> {
    Err(io::ErrorKind::Unsupported.into())
}
