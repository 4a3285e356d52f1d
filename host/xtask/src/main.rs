//! Developer commands: `cargo xtask COMMAND`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[path = "../../cli/src/guest_build.rs"]
mod guest_build;
mod tools;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of belljar")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Rebuild the tool components under `tools/prebuilt`, or check that they are current
    Tools(tools::Arguments),
}

fn main() -> Result<()> {
    let root = root()?;
    match Arguments::parse().command {
        Command::Tools(arguments) => tools::run(&root, &arguments),
    }
}

/// The root of the repository: two levels above this crate.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(Path::to_owned).context("xtask has been moved")
}
