//! The keeper of a hook command or program: a process between the broker and the command. The keeper becomes
//! the parent of the command's orphans, and ends all descendants of the command.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::process::{Command, ExitCode, ExitStatus};

use super::ITSELF;
use super::scratch::ScratchDir;
use crate::program::Program;
use crate::running::SHELL;

/// The whole life of a hook's keeper: runs the command in the shell, with the directory, environment
/// variables and streams of the current process, and returns its exit code. Before the keeper ends, it ends
/// every descendant of the command, in whatever session. `SIGTERM`, and the end of the keeper's parent, end
/// the command. A program calls this first in `main`.
pub fn keep_hook(command: &OsStr) -> ExitCode {
    let mut shell = Command::new(SHELL);
    shell.arg("-c").arg(command);
    until_its_end(shell, None)
}

/// The whole life of a program's keeper. `text` is the broker's description of the program. The keeper
/// starts belljar with the arguments `confined`, which confines itself and executes the program. If the
/// program exceeds its limit of processes or threads, it is ended too.
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
    // All processes that could write in the directory have ended.
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

/// Ends as the command did: with its exit code, or killed if it was ended by any signal.
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
        // Without its own stdin and stdout, the keeper does not hold the pipes open; so the peer sees at
        // once when the program closes them.
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
