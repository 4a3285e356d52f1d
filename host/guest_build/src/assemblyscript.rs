//! AssemblyScript, by asc. Its modules use WASI through the SDK alone.

use std::path::Path;

use anyhow::{Result, bail};

use crate::found::{Program, places, run};
use crate::language::Project;

pub(crate) fn toolchain(project: Option<&Path>) -> Result<Program> {
    match Program::first("asc", places(project, "node_modules/.bin", "asc"), &["--version"]) {
        Some(program) => Ok(program),
        None => bail!(
            "asc was not found, which builds AssemblyScript tools\n\
             hint: run `npm install` in the project, or `npm install --global assemblyscript@0.28.20`"
        ),
    }
}

pub(crate) fn build(project: &Project<'_>) -> Result<()> {
    let module = project.out.join("core.wasm");
    let mut command = toolchain(Some(project.root))?.command();
    command.args(["assembly/index.ts", "--optimize", "--runtime", "incremental"]);
    command.args(["--exportRuntime", "--use", "abort=sdk/assemblyscript/abort/abort"]);
    command.arg("--outFile").arg(&module).current_dir(project.root);
    run(command)?;
    project.finish(&module)
}
