//! The child process: sets up the wall (or, for the control, none), makes one attack, and reports the result.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::acts::{ControlProof, list_acts};
use super::raw::Done;
use super::stage::{AttackTargets, CERTIFICATE};

/// A line of a child's report, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ChildLine {
    /// The wall is set up: the landlock version in force, whether system calls are filtered, and which parts
    /// of the wall are missing.
    Stands { landlock: Option<u32>, seccomp: bool, missing: Vec<String> },
    /// The attack failed with this error number.
    Refused(i32),
    /// The attack failed in another way, which proves nothing.
    Failed(String),
    /// The attack succeeded.
    Worked(i64),
    /// The result of the granted acts, which must still work: an error's text, or `None`.
    Granted(Option<String>),
}

/// The `main` of the victim: a process outside the wall.
pub fn be_victim() -> ExitCode {
    super::victim::be_victim()
}

/// The `main` of the child. `targets` is the parent's JSON. `raise` sets up the wall around the home and
/// workspace below a directory, and returns the landlock version in force, whether system calls are filtered,
/// and what is missing. Without both no attack is made, except for the control, which has no wall.
///
/// # Errors
/// When there is no attack with the given name, or the parent's JSON cannot be parsed.
pub fn run_attack(
    id: &str,
    targets: &str,
    raise: impl FnOnce(&Path) -> Result<(Option<u32>, bool, Vec<String>)>,
) -> Result<()> {
    let mut targets: AttackTargets = serde_json::from_str(targets)?;
    let act = list_acts().find(|act| act.id == id).context("there is no such attack")?;
    targets.open_held();
    let run = match act.control {
        ControlProof::Beside(run) if targets.control => run,
        _ if targets.control => return print_line(&line_for(&(act.run)(&targets))),
        _ => act.run,
    };
    let (landlock, seccomp, missing) = raise(&targets.root)?;
    let stands = landlock.is_some() && seccomp;
    print_line(&ChildLine::Stands { landlock, seccomp, missing })?;
    if !stands || landlock.is_some_and(|version| version < act.landlock) {
        return Ok(());
    }
    print_line(&line_for(&run(&targets)))?;
    print_line(&ChildLine::Granted(
        check_granted_acts(&targets).err().map(|error| format!("{error:#}")),
    ))
}

#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn print_line(line: &ChildLine) -> Result<()> {
    println!("{}", serde_json::to_string(line)?);
    Ok(())
}

/// The report about the result of an attack's system call.
fn line_for(came: &Done) -> ChildLine {
    match came {
        Ok(gave) => ChildLine::Worked(*gave),
        Err(error) => match error.raw_os_error() {
            Some(number) => ChildLine::Refused(number),
            None if error.kind() == std::io::ErrorKind::PermissionDenied => {
                ChildLine::Refused(libc::EPERM)
            }
            None => ChildLine::Failed(error.to_string()),
        },
    }
}

/// The acts that must still work behind the wall: on the workspace, the store, and a new thread.
fn check_granted_acts(targets: &AttackTargets) -> Result<()> {
    let note = std::fs::read_to_string(targets.path_at("workspace/note.txt"))?;
    anyhow::ensure!(note == "the workspace's", "the workspace reads otherwise: {note}");
    std::fs::read(targets.path_at(CERTIFICATE)).context("reading a certificate")?;
    for path in ["workspace/own.txt", "home/sessions/store/own.txt"] {
        let path = targets.path_at(path);
        std::fs::write(&path, "own").with_context(|| format!("writing `{}`", path.display()))?;
        std::fs::remove_file(&path)?;
    }
    #[expect(clippy::disallowed_methods, reason = "whether threads can be made is what is tried")]
    let thread = std::thread::spawn(|| ());
    thread.join().map_err(|_| anyhow::anyhow!("no thread is made"))
}
