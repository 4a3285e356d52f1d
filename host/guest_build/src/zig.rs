//! Builds Zig tools: for `wasm32-wasi`, without a C library.

use std::path::Path;

use anyhow::{Result, bail};

use crate::found::{VersionedProgram, candidate_paths, run_command};
use crate::project::ToolProject;

/// Installs the version that the SDK was tested with, because Zig's standard library changes with each
/// version.
const INSTALL: &str = "pip install ziglang==0.17.1";

pub(crate) fn find_toolchain(project: Option<&Path>) -> Result<VersionedProgram> {
    // The package of PyPI names its program differently.
    let packaged = candidate_paths(project, ".venv/bin", "python-zig");
    let found = candidate_paths(project, ".venv/bin", "zig").into_iter().chain(packaged);
    match VersionedProgram::find_first("zig", found, &["version"]) {
        Some(program) => Ok(program),
        None => bail!("Zig was not found, which builds Zig tools\nhint: run `{INSTALL}`"),
    }
}

/// Compiles `tool.zig` with the SDK to a core module, and makes the component from it.
pub(crate) fn build_project(project: &ToolProject<'_>) -> Result<()> {
    let core = project.out.join("core.wasm");
    let mut command = find_toolchain(Some(project.root))?.to_command();
    let module = ["-target", "wasm32-wasi", "-OReleaseSmall", "-fstrip"];
    command.arg("build-exe").args(module).args(["--dep", "belljar", "-Mroot=tool.zig"]);
    command
        .args(module)
        .arg(option_with_path("-Mbelljar=", &project.sdk_path().join("belljar.zig")));
    command.args(["-fno-entry", "-rdynamic", "-mexec-model=reactor", "--stack", "1048576"]);
    command.arg(option_with_path("-femit-bin=", &core));
    command.arg("--cache-dir").arg(project.out.join("zig-cache")).current_dir(project.root);
    run_command(command)?;
    project.finish_component(&core)
}

fn option_with_path(name: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(name);
    argument.push(path);
    argument
}
