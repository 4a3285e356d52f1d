//! `cargo xtask test-guests`: the suite that needs a WebAssembly toolchain.
//!
//! It rebuilds every stock tool from source, runs the guests' native unit tests, and runs
//! the tool cases against the rebuilt components; `cargo test` runs the same cases against
//! the committed ones. Then it makes a new tool project with the `belljar` binary, builds it
//! and calls it, as a tool author would.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tools;

/// Where the rebuilt components go; read by the test kit.
const REBUILT: &str = "target/rebuilt-tools";

pub(crate) fn run(root: &Path) -> Result<()> {
    let rebuilt = root.join(REBUILT);
    tools::build_all(root, &rebuilt)?;
    cargo(root, &["test", "-p", "belljar-guest", "-p", "belljar-tool-*"], &[])?;
    let directory = rebuilt.to_string_lossy().into_owned();
    cargo(root, &["test", "--test", "tools"], &[("BELLJAR_TOOLS_DIR", directory.as_str())])?;
    cargo(
        root,
        &["test", "--test", "tool_projects", "--features", "belljar-cli/guest-toolchain"],
        &[],
    )
}

fn cargo(root: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let status = Command::new("cargo")
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root)
        .status()
        .context("failed to start cargo")?;
    if !status.success() {
        bail!("`cargo {}` failed", arguments.join(" "));
    }
    Ok(())
}
