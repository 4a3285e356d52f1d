//! Zig, for `wasm32-wasi`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::found::{Program, places, run};
use crate::language::Project;

pub(crate) fn toolchain(project: Option<&Path>) -> Result<Program> {
    let own = project.map(|root| root.join(".venv/bin/python"));
    let python = own.into_iter().chain([PathBuf::from("python3")]);
    let modules = python.map(|python| vec![python, "-m".into(), "ziglang".into()]);
    let candidates = places(None, "", "zig").into_iter().chain(modules);
    match Program::first("zig", candidates, &["version"]) {
        Some(program) => Ok(program),
        None => bail!("Zig was not found\nhint: run `pip install ziglang==0.17.0`"),
    }
}

pub(crate) fn build(project: &Project<'_>) -> Result<()> {
    let module = project.out.join("core.wasm");
    let mut emit = std::ffi::OsString::from("-femit-bin=");
    emit.push(&module);
    let mut command = toolchain(Some(project.root))?.command();
    command.args(["build-exe", "-target", "wasm32-wasi", "-O", "ReleaseSmall", "-fstrip"]);
    command.args(["-mexec-model=reactor", "-fno-entry", "-rdynamic", "--stack", "1048576"]);
    command.arg(emit);
    command.args(["--dep", "belljar", "-Mroot=tool.zig", "-Mbelljar=sdk/zig/belljar.zig"]);
    command.arg("--cache-dir").arg(project.out.join("cache"));
    command.current_dir(project.root);
    run(command)?;
    project.finish(&module)
}
