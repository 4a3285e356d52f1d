//! `cargo xtask hooks`: the example hook, built from `guest-sdk/examples/hook-guard`.

use std::path::Path;

use anyhow::{Context, Result};

use crate::guest_build::{Build, Toolchain};

const PACKAGE: &str = "belljar-hook-guard";

/// The committed component, which the tests run.
const COMMITTED: &str = "guest-sdk/examples/hook-guard/hook_guard.wasm";

/// Builds the component and replaces the committed one.
pub(crate) fn run(root: &Path) -> Result<()> {
    build(root, &root.join(COMMITTED))
}

/// Builds the component into a file.
pub(crate) fn build(root: &Path, target: &Path) -> Result<()> {
    let component = Build {
        root,
        package: Some(PACKAGE),
        profile: "guest",
        target_dir: &root.join("target/guests"),
        locked: true,
    }
    .run(&Toolchain::detect()?)?;
    std::fs::copy(&component, target)
        .with_context(|| format!("failed to write `{}`", target.display()))?;
    Ok(())
}
