//! The child: behind the wall, or for the control without one, it makes one attack, and reports
//! the result.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::acts::{Control, all};
use super::raw::Done;
use super::stage::{CERTIFICATE, Targets};

/// The report of a child, a line of JSON each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
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
pub fn attack(
    id: &str,
    targets: &str,
    raise: impl FnOnce(&Path) -> Result<(Option<u32>, bool, Vec<String>)>,
) -> Result<()> {
    let mut targets: Targets = serde_json::from_str(targets)?;
    let act = all().find(|act| act.id == id).context("there is no such attack")?;
    targets.hold();
    let run = match act.control {
        Control::Beside(run) if targets.control => run,
        _ if targets.control => return say(&line(&(act.run)(&targets))),
        _ => act.run,
    };
    let (landlock, seccomp, missing) = raise(&targets.root)?;
    let stands = landlock.is_some() && seccomp;
    say(&Line::Stands { landlock, seccomp, missing })?;
    if !stands || landlock.is_some_and(|version| version < act.landlock) {
        return Ok(());
    }
    say(&line(&run(&targets)))?;
    say(&Line::Granted(granted(&targets).err().map(|error| format!("{error:#}"))))
}

#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn say(line: &Line) -> Result<()> {
    println!("{}", serde_json::to_string(line)?);
    Ok(())
}

fn line(came: &Done) -> Line {
    match came {
        Ok(gave) => Line::Worked(*gave),
        Err(error) => match error.raw_os_error() {
            Some(number) => Line::Refused(number),
            None if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Line::Refused(libc::EPERM)
            }
            None => Line::Failed(error.to_string()),
        },
    }
}

/// The acts that still have to work: on the workspace, the store, a thread of this process's own.
fn granted(targets: &Targets) -> Result<()> {
    let note = std::fs::read_to_string(targets.at("workspace/note.txt"))?;
    anyhow::ensure!(note == "the workspace's", "the workspace reads otherwise: {note}");
    std::fs::read(targets.at(CERTIFICATE)).context("reading a certificate")?;
    for path in ["workspace/own.txt", "home/sessions/store/own.txt"] {
        let path = targets.at(path);
        std::fs::write(&path, "own").with_context(|| format!("writing `{}`", path.display()))?;
        std::fs::remove_file(&path)?;
    }
    #[expect(clippy::disallowed_methods, reason = "whether threads can be made is what is tried")]
    let thread = std::thread::spawn(|| ());
    thread.join().map_err(|_| anyhow::anyhow!("no thread is made"))
}
