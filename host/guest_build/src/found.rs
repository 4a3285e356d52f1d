//! Finds the programs of toolchains, and runs them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The most lines of a failed program's output to show: the last ones, which say why.
const MAX_LINES: usize = 60;

/// A program that was found and printed its version.
#[derive(Debug)]
pub(crate) struct VersionedProgram {
    /// The program's path, and arguments to put before all others.
    command: Vec<PathBuf>,
    /// Name and version, for example `clang 19`.
    pub(crate) description: String,
}

impl VersionedProgram {
    /// Finds the first of these commands that runs with the arguments `version`.
    pub(crate) fn find_first(
        name: &str,
        candidates: impl IntoIterator<Item = Vec<PathBuf>>,
        version: &[&str],
    ) -> Option<VersionedProgram> {
        candidates.into_iter().find_map(|command| {
            let (program, before) = command.split_first()?;
            let done = Command::new(program)
                .args(before)
                .args(version)
                .stderr(Stdio::null())
                .stdin(Stdio::null())
                .output()
                .ok()?;
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            let line = text.lines().next().unwrap_or_default().trim().to_owned();
            let line = if line.contains(name) { line } else { format!("{name} {line}") };
            done.status.success().then_some(VersionedProgram { command, description: line })
        })
    }

    /// The program as a command, to which arguments can be added.
    pub(crate) fn to_command(&self) -> Command {
        let mut command =
            Command::new(self.command.first().map_or(OsStr::new(""), |one| one.as_os_str()));
        command.args(self.command.iter().skip(1)).stdin(Stdio::null());
        command
    }
}

/// Where to look for the program `name`: in the directory `below` of the project, then on the `PATH`.
pub(crate) fn candidate_paths(
    project: Option<&Path>,
    below: &str,
    name: &str,
) -> Vec<Vec<PathBuf>> {
    let own = project.map(|root| root.join(below).join(name));
    own.into_iter().chain([PathBuf::from(name)]).map(|path| vec![path]).collect()
}

/// Runs a command. If it fails, the error shows the end of its output.
pub(crate) fn run_command(mut command: Command) -> Result<()> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let done = command.output().with_context(|| format!("failed to start `{shown}`"))?;
    if done.status.success() {
        return Ok(());
    }
    let text = [done.stdout, done.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(MAX_LINES);
    bail!("`{shown}` failed:\n{}", lines.get(from..).unwrap_or_default().join("\n"))
}
