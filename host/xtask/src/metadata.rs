//! Reads the output of `cargo metadata` about the crates built for a target.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

/// Runs `cargo metadata`, and reads the parts of the output that `T` has fields for.
pub(crate) fn read_metadata<T: DeserializeOwned>(root: &Path, target: &str) -> Result<T> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", target])
        .current_dir(root)
        .output()
        .context("failed to start cargo")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cargo metadata` failed: {error}");
    serde_json::from_slice(&output.stdout).context("`cargo metadata` is not understood")
}
