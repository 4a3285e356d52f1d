//! `cargo xtask test openai`: tests the OpenAI-compatible endpoints of `belljar serve` with OpenAI's own
//! client packages.
//!
//! A script under `tests/peers/openai` starts a server and runs the tests in Python and JavaScript. The
//! packages are installed by `.ci/run`, or by hand with the two commands of [`INSTALL`].

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::build_binary;

/// The commands that install the packages, with the versions that the tests were written for.
const INSTALL: &str = "`target/peers/bin/pip install openai==3.57.0` (after `python3 -m venv \
                       target/peers`) and `npm install --prefix target/peers/openai --no-save \
                       openai@7.57.0 node@24.21.0`";

pub(crate) fn run(root: &Path) -> Result<()> {
    let (python, packages) = (root.join("target/peers/bin/python"), "target/peers/openai");
    let packages = root.join(packages);
    let node = packages.join("node_modules/node/bin/node");
    let package = packages.join("node_modules/openai");
    let there = python.exists() && node.exists() && package.exists();
    ensure!(there, "OpenAI's packages are not in `target/peers`; install them with {INSTALL}");
    let belljar = build_binary(root)?;
    let status = Command::new(python)
        .arg(root.join("tests/peers/openai/run.py"))
        .args([&belljar, &node, &packages])
        .status()
        .context("failed to start the checks")?;
    ensure!(status.success(), "OpenAI's packages and the server disagree");
    Ok(())
}
