//! `cargo xtask test agent-reader`: compares `belljar agents check` with an independent reader of agent
//! files.
//!
//! The other reader is a Python script with PyYAML, under `tests/oracle`. The script reads the agent files
//! in that folder, and every library of agent files in the directory that `BELLJAR_CORPUS` names (default:
//! `../shared/corpus`, if that directory exists). A second script generates thousands of agent files, each
//! with a restriction in another spelling, and checks that no agent keeps a tool that its restriction takes
//! away. The Python package is installed by `.ci/run`, or by hand: `python3 -m venv target/peers`, then
//! `target/peers/bin/pip install pyyaml`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{build_binary, print_line};

/// The default directory of public libraries of agent files, beside the repository.
const CORPUS: &str = "../shared/corpus";

/// Runs both scripts with the belljar of this tree.
pub(crate) fn run(root: &Path) -> Result<()> {
    let python = root.join("target/peers/bin/python");
    ensure!(
        python.exists(),
        "there is no `target/peers`; make it with `python3 -m venv target/peers`, then \
         `target/peers/bin/pip install pyyaml`"
    );
    let belljar = build_binary(root)?;
    let oracle = root.join("tests/oracle");
    let mut check = Command::new(&python);
    check.arg(oracle.join("check.py")).arg(&belljar).arg(oracle.join("agent-files"));
    let corpus =
        std::env::var_os("BELLJAR_CORPUS").map_or_else(|| root.join(CORPUS), PathBuf::from);
    if corpus.is_dir() {
        check.arg(&corpus);
    } else {
        print_line(&format!(
            "there is no `{}`: only the files kept here are read",
            corpus.display()
        ));
    }
    let status = check.status().context("failed to start the oracle")?;
    ensure!(status.success(), "the two readers disagree");
    let mut spellings = Command::new(&python);
    spellings.arg(oracle.join("spellings.py")).arg(&belljar);
    let status = spellings.status().context("failed to start the oracle's spellings")?;
    ensure!(status.success(), "an agent has more than its file says");
    Ok(())
}
