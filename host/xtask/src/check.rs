//! `cargo xtask check`: what has to hold before anything lands, without running tests.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{patches, supply, tidy, tools};

/// One check of the tree at a root.
type Stage = fn(&Path) -> Result<()>;

/// Runs every stage, even after one has failed, so that one run shows all there is to mend.
pub(crate) fn run(root: &Path) -> Result<()> {
    let stages: [(&str, Stage); 7] = [
        ("fmt", |root| cargo(root, &["fmt", "--all", "--check"])),
        ("clippy", |root| {
            cargo(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
        }),
        ("docs", docs),
        ("tidy", tidy::run),
        ("supply", supply::check),
        ("patches", patches::check),
        ("tools", tools::check_all),
    ];
    let mut failed = Vec::new();
    for (name, stage) in stages {
        let started = Instant::now();
        let verdict = match stage(root) {
            Ok(()) => "ok",
            Err(error) => {
                crate::say(&format!("{error:#}"));
                failed.push(name);
                "FAILED"
            }
        };
        crate::say(&format!("check {name}: {verdict} ({:.1} s)", started.elapsed().as_secs_f64()));
    }
    if !failed.is_empty() {
        bail!("these checks failed: {}", failed.join(", "));
    }
    Ok(())
}

fn docs(root: &Path) -> Result<()> {
    let mut command = crate::cargo();
    command.args(["doc", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
    finish(root, command)
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = crate::cargo();
    command.args(arguments);
    finish(root, command)
}

fn finish(root: &Path, mut command: Command) -> Result<()> {
    let status = command.current_dir(root).status().context("failed to start cargo")?;
    if !status.success() {
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        bail!("`cargo {}` failed", words.join(" "));
    }
    Ok(())
}
