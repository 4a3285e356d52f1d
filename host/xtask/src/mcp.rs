//! `cargo xtask test mcp`: tests belljar's MCP server with the official SDKs in Python and TypeScript, the
//! command line of the Inspector and the conformance suite of the protocol; and tests belljar's MCP client
//! with two public servers.
//!
//! A script under `tests/peers/mcp` starts the servers and runs all tests. The packages are installed by
//! `.ci/run`, or by hand with the two commands of [`INSTALL`]. The suite writes its reports to
//! `target/mcp-conformance`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{build_binary, built_binary};

/// The commands that install the packages, with the versions that the tests were written for.
const INSTALL: &str = "`target/peers/bin/pip install mcp==2.3.0 mcp-server-time==2026.10.19` (after `python3 -m venv \
                       target/peers`) and `npm install --prefix target/peers/mcp --no-save \
                       @modelcontextprotocol/conformance@0.2.0-alpha.12 \
                       @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/inspector@2.12.0 \
                       @modelcontextprotocol/server-filesystem@2026.8.31 \
                       node@24.21.0`";

/// The packages of the MCP project.
const PACKAGES: [&str; 4] = ["conformance", "sdk", "inspector", "server-filesystem"];

pub(crate) fn run(root: &Path) -> Result<()> {
    let python = root.join("target/peers/bin/python");
    let packages = root.join("target/peers/mcp");
    let node = packages.join("node_modules/node/bin/node");
    let official = packages.join("node_modules/@modelcontextprotocol");
    let there = PACKAGES.iter().all(|package| official.join(package).exists());
    let there = there && python.exists() && node.exists();
    ensure!(there, "MCP's packages are not in `target/peers`; install them with {INSTALL}");
    let belljar = build_binary(root)?;
    let fixture = built_binary(root, "belljar-mcp-fixture")?;
    let status = Command::new(python)
        .arg(root.join("tests/peers/mcp/run.py"))
        .args([&belljar, &fixture, &node, &packages, &root.join("target/mcp-conformance")])
        .status()
        .context("failed to start the checks")?;
    ensure!(status.success(), "MCP's packages and belljar disagree");
    Ok(())
}
