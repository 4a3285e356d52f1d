//! `cargo xtask test acp`: tests `belljar acp` with the official TypeScript client and with `acpx`.
//!
//! A script under `tests/peers/acp` starts both. The packages are installed by `.ci/run`, or by hand with
//! the command of [`INSTALL`].

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::build_binary;

/// The command that installs the packages, with the versions that the tests were written for.
const INSTALL: &str = "`npm install --prefix target/peers/acp --no-save \
                       @agentclientprotocol/sdk@2.4.0 acpx@0.19.1 node@24.21.0`";

pub(crate) fn run(root: &Path) -> Result<()> {
    let packages = root.join("target/peers/acp");
    let node = packages.join("node_modules/node/bin/node");
    let there = node.exists() && packages.join("node_modules/acpx").exists();
    ensure!(there, "the editors' packages are not in `target/peers`; install them with {INSTALL}");
    let belljar = build_binary(root)?;
    let status = Command::new("python3")
        .arg(root.join("tests/peers/acp/run.py"))
        .args([&belljar, &node, &packages])
        .status()
        .context("failed to start the checks")?;
    ensure!(status.success(), "the editors' code and the agent disagree");
    Ok(())
}
