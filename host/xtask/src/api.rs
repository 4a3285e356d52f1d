//! `cargo xtask test api`: tests `belljar serve` with requests generated from its own OpenAPI document.
//!
//! A script under `tests/peers/api` starts a server, and schemathesis sends requests the document allows and
//! requests the document forbids. The Python package is installed by `.ci/run`, or by hand: `python3 -m venv
//! target/peers`, then `target/peers/bin/pip install schemathesis`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::build_binary;

pub(crate) fn run(root: &Path) -> Result<()> {
    let tool = root.join("target/peers/bin/schemathesis");
    ensure!(
        tool.exists(),
        "there is no schemathesis in `target/peers`; make it with `python3 -m venv target/peers`, \
         then `target/peers/bin/pip install schemathesis`"
    );
    let belljar = build_binary(root)?;
    let status = Command::new(tool.with_file_name("python"))
        .arg(root.join("tests/peers/api/check.py"))
        .arg(&belljar)
        .status()
        .context("failed to start the check")?;
    ensure!(status.success(), "the server and its document disagree");
    Ok(())
}
