//! Zig, for `wasm32-wasi`, without a C library.

use std::path::Path;

use anyhow::{Result, bail};

use crate::found::{Program, places, run};
use crate::project::Project;

/// The version that the SDK was tried with: Zig's standard library is another in each.
const INSTALL: &str = "pip install ziglang==0.17.1";

pub(crate) fn toolchain(project: Option<&Path>) -> Result<Program> {
    // The package of PyPI has a program of its own name.
    let packaged = places(project, ".venv/bin", "python-zig");
    let found = places(project, ".venv/bin", "zig").into_iter().chain(packaged);
    match Program::first("zig", found, &["version"]) {
        Some(program) => Ok(program),
        None => bail!("Zig was not found, which builds Zig tools\nhint: run `{INSTALL}`"),
    }
}

pub(crate) fn build(project: &Project<'_>) -> Result<()> {
    let core = project.out.join("core.wasm");
    let mut command = toolchain(Some(project.root))?.command();
    let module = ["-target", "wasm32-wasi", "-OReleaseSmall", "-fstrip"];
    command.arg("build-exe").args(module).args(["--dep", "belljar", "-Mroot=tool.zig"]);
    command.args(module).arg(named("-Mbelljar=", &project.sdk().join("belljar.zig")));
    command.args(["-fno-entry", "-rdynamic", "-mexec-model=reactor", "--stack", "1048576"]);
    command.arg(named("-femit-bin=", &core));
    command.arg("--cache-dir").arg(project.out.join("zig-cache")).current_dir(project.root);
    run(command)?;
    project.finish(&core)
}

fn named(name: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(name);
    argument.push(path);
    argument
}
