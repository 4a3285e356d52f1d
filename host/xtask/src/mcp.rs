//! `cargo xtask test-mcp`: holds the MCP door of belljar against the official Python SDK and the
//! conformance suite of the protocol.
//!
//! A script under `tests/peers/mcp` starts a server and runs both. The packages are installed by `.ci/run`,
//! or by hand with the two commands of [`INSTALL`].

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::built;

/// How the packages are installed, with the versions that the checks were written for.
const INSTALL: &str = "`target/peers/bin/pip install mcp==2.3.0` (after `python3 -m venv \
                       target/peers`) and `npm install --prefix target/peers/mcp --no-save \
                       @modelcontextprotocol/conformance@0.2.0-alpha.12 node@24.21.0`";

pub(crate) fn run(root: &Path) -> Result<()> {
    let python = root.join("target/peers/bin/python");
    let packages = root.join("target/peers/mcp");
    let node = packages.join("node_modules/node/bin/node");
    let suite = packages.join("node_modules/@modelcontextprotocol/conformance");
    let there = python.exists() && node.exists() && suite.exists();
    ensure!(there, "MCP's packages are not in `target/peers`; install them with {INSTALL}");
    let belljar = built(root)?;
    let status = Command::new(python)
        .arg(root.join("tests/peers/mcp/run.py"))
        .args([&belljar, &node, &packages])
        .status()
        .context("failed to start the checks")?;
    ensure!(status.success(), "MCP's packages and belljar disagree");
    Ok(())
}
