//! Python: CPython in a component, made by componentize-py.

use std::path::Path;

use anyhow::{Result, bail};

use crate::found::{Program, places, run};
use crate::project::Project;

/// The version that the SDK was tried with.
const INSTALL: &str = "pip install componentize-py==0.25.1";

pub(crate) fn toolchain(project: Option<&Path>) -> Result<Program> {
    let found = places(project, ".venv/bin", "componentize-py");
    match Program::first("componentize-py", found, &["--version"]) {
        Some(program) => Ok(program),
        None => {
            bail!("componentize-py was not found, which builds Python tools\nhint: run `{INSTALL}`")
        }
    }
}

/// Modules come from the project, its folder `vendor` (`pip install --target vendor NAME`) and the SDK.
pub(crate) fn build(project: &Project<'_>) -> Result<()> {
    let mut command = toolchain(Some(project.root))?.command();
    command.arg("-d").arg(project.wit()).args(["-w", "tool", "componentize", "-p"]);
    command.arg(project.root);
    let vendor = project.root.join("vendor");
    if vendor.is_dir() {
        command.arg("-p").arg(vendor);
    }
    command.arg("-p").arg(project.sdk().join("src"));
    command.args(["belljar.component", "-o"]).arg(project.component());
    // Hash seeds are part of the image.
    command.env("PYTHONHASHSEED", "0").current_dir(project.out);
    run(command)
}
