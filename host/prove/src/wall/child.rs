//! The child: behind the wall it makes one attack, and reports the result.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::acts::all;
use super::stage::Targets;

/// What a child says, a line of JSON each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    /// The version of landlock that is in force, and what is missing of the whole wall.
    Stands { landlock: Option<u32>, seccomp: bool, missing: Vec<String> },
    /// The attack was refused, with this error's number.
    Refused(i32),
    /// It failed otherwise, so that it proves nothing.
    Failed(String),
    /// It worked.
    Worked(i64),
    /// What the child was granted: an error's text, or nothing.
    Granted(Option<String>),
}

/// The body of the process outside.
pub fn be_victim() -> ExitCode {
    super::stage::be_victim()
}

/// The body of the child: `targets` is what the parent wrote for it, `raise` puts up the wall
/// around the home and workspace below this directory, and gives the version of landlock in force,
/// whether system calls are held, and what is missing. Without both nothing is attacked.
///
/// # Errors
///
/// When there is no such attack, or the parent's words cannot be understood.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
pub fn attack(
    id: &str,
    targets: &str,
    raise: impl FnOnce(&Path) -> Result<(Option<u32>, bool, Vec<String>)>,
) -> Result<()> {
    let targets: Targets = serde_json::from_str(targets)?;
    let act = all().find(|act| act.id == id).context("there is no such attack")?;
    let (landlock, seccomp, missing) = raise(&targets.root)?;
    let stands = landlock.is_some() && seccomp;
    println!("{}", serde_json::to_string(&Line::Stands { landlock, seccomp, missing })?);
    if !stands || landlock.is_some_and(|version| version < act.landlock) {
        return Ok(());
    }
    let came = match (act.run)(&targets) {
        Ok(gave) => Line::Worked(gave),
        Err(error) => match error.raw_os_error() {
            Some(number) => Line::Refused(number),
            None if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Line::Refused(libc::EPERM)
            }
            None => Line::Failed(error.to_string()),
        },
    };
    println!("{}", serde_json::to_string(&came)?);
    let granted = granted(&targets).err().map(|error| format!("{error:#}"));
    println!("{}", serde_json::to_string(&Line::Granted(granted))?);
    Ok(())
}

/// What goes on to work: the workspace, the store, another connection of this process's own.
fn granted(targets: &Targets) -> Result<()> {
    let note = std::fs::read_to_string(targets.at("workspace/note.txt"))?;
    anyhow::ensure!(note == "the workspace's", "the workspace reads otherwise: {note}");
    for path in ["workspace/own.txt", "home/sessions/store/own.txt"] {
        let path = targets.at(path);
        std::fs::write(&path, "own").with_context(|| format!("writing `{}`", path.display()))?;
        std::fs::remove_file(&path)?;
    }
    std::thread::spawn(|| ()).join().map_err(|_| anyhow::anyhow!("no thread is made"))
}
