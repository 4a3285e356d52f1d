//! Builds Python tools: CPython in a component, by componentize-py.

use std::path::Path;

use anyhow::{Result, bail};

use crate::found::{VersionedProgram, candidate_paths, run_command};
use crate::project::ToolProject;

/// Installs the version that the SDK was tested with.
const INSTALL: &str = "pip install componentize-py==0.25.1";

pub(crate) fn find_toolchain(project: Option<&Path>) -> Result<VersionedProgram> {
    let found = candidate_paths(project, ".venv/bin", "componentize-py");
    match VersionedProgram::find_first("componentize-py", found, &["--version"]) {
        Some(program) => Ok(program),
        None => {
            bail!("componentize-py was not found, which builds Python tools\nhint: run `{INSTALL}`")
        }
    }
}

/// Builds the component. Modules come from the project, from its directory `vendor` (`pip install --target
/// vendor NAME`), and from the SDK.
pub(crate) fn build_project(project: &ToolProject<'_>) -> Result<()> {
    let mut command = find_toolchain(Some(project.root))?.to_command();
    command.arg("-d").arg(project.wit_path()).args(["-w", "tool", "componentize", "-p"]);
    command.arg(project.root);
    let vendor = project.root.join("vendor");
    if vendor.is_dir() {
        command.arg("-p").arg(vendor);
    }
    command.arg("-p").arg(project.sdk_path().join("src"));
    command.args(["belljar.component", "-o"]).arg(project.component_path());
    // The seed of hashes becomes part of the built memory.
    command.env("PYTHONHASHSEED", "0").current_dir(project.out);
    run_command(command)
}
