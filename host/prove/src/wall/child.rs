//! The child: behind the wall, or for the control without one, it makes one attack, and reports
//! the result.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::acts::{ControlProof, list_acts};
use super::raw::Done;
use super::stage::{AttackTargets, CERTIFICATE};

/// The report of a child, a line of JSON each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ChildLine {
    /// The version of landlock that is in force, and what is missing of the whole wall.
    Stands { landlock: Option<u32>, seccomp: bool, missing: Vec<String> },
    /// The attack failed, with this error's number.
    Refused(i32),
    /// It failed otherwise, so that it proves nothing.
    Failed(String),
    /// It worked.
    Worked(i64),
    /// The result of the granted acts, which have to work: an error's text, or nothing.
    Granted(Option<String>),
}

/// The body of the process outside.
pub fn be_victim() -> ExitCode {
    super::victim::be_victim()
}

/// The body of the child: `targets` is what the parent wrote for it, `raise` puts up the wall
/// around the home and workspace below this directory, and gives the version of landlock in force,
/// whether system calls are held, and what is missing. Without both nothing is attacked, but for
/// the control that has no wall.
///
/// # Errors
///
/// When there is no such attack, or the parent's words cannot be understood.
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

/// The acts that still have to work: on the workspace, the store, a thread of this process's own.
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
