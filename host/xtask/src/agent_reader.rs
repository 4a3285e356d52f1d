//! `cargo xtask test agent-reader`: holds `belljar agents check` against a second reader of agent files.
//!
//! The reader is a script with PyYAML, under `tests/oracle`. It reads the files kept there, and
//! every library in the directory that `BELLJAR_CORPUS` names, by default `../shared/corpus`
//! where there is one. A second script makes agent files by the thousand, each with a restriction in
//! another spelling, and holds that none leaves its agent what it takes away. The Python package is installed by `.ci/run`, or by hand: `python3 -m venv
//! target/peers`, then `target/peers/bin/pip install pyyaml`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{build_binary, print_line};

/// Public libraries as data, beside the repository.
const CORPUS: &str = "../shared/corpus";

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
