//! The keeper of one hook command: a process between the broker and the shell that adopts whatever
//! the command leaves behind, and ends all of it with the command.

use std::ffi::OsStr;
use std::io;
use std::process::{ExitCode, ExitStatus};

use crate::running::SHELL;

/// The body of a keeper: runs the command by the shell, in the directory and with the environment
/// and the streams that this process was given, and gives its exit code. Before it ends, it ends
/// every process that the command has started, those in sessions of their own included. `SIGTERM`
/// and the end of its parent end the command. A program calls this first thing in `main`.
pub fn keep(command: &OsStr) -> ExitCode {
    crate::process::inherit_nothing();
    crate::process::conceal();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(watch(command))) {
        Ok(status) => like(status),
        Err(_) => ExitCode::FAILURE,
    }
}

/// Ends as the command has ended; by which signal is not told.
fn like(status: ExitStatus) -> ExitCode {
    if status.code().is_none() {
        let own = rustix::process::getpid();
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(target_os = "linux")]
async fn watch(command: &OsStr) -> io::Result<ExitStatus> {
    use rustix::process::{Signal, getpid, set_child_subreaper, set_parent_process_death_signal};
    use tokio::signal::unix::{SignalKind, signal};
    let mut stop = signal(SignalKind::terminate())?;
    set_child_subreaper(Some(getpid()))?;
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let mut shell = tokio::process::Command::new(SHELL).arg("-c").arg(command).spawn()?;
    let status = tokio::select! {
        status = shell.wait() => Some(status?),
        _ = stop.recv() => None,
    };
    super::descendants::end();
    match status {
        Some(status) => Ok(status),
        None => shell.wait().await,
    }
}

#[cfg(not(target_os = "linux"))]
async fn watch(_command: &OsStr) -> io::Result<ExitStatus> {
    Err(io::ErrorKind::Unsupported.into())
}
