//! `cargo xtask check`: all checks of a change except the tests.
//!
//! Clippy and rustdoc need metadata of all dependencies, which a normal build does not produce: minutes of
//! compiling. If the tests were compiled with clippy's driver, as in `.ci/run`, every lint was an error in
//! that build. `--linted` then only lints the guests, and documents the libraries from the builds that
//! doctests use.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{metadata, patches, supply, tidy, tools, web};

#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// The tests are built, and were linted while they were: lint and document only the rest
    #[arg(long)]
    linted: bool,
}

/// If this environment variable is set, this program runs in place of rustdoc: see [`run_as_rustdoc`].
pub(crate) const AS_RUSTDOC: &str = "BELLJAR_XTASK_AS_RUSTDOC";

/// The cargo feature with the test suites that need more programs than `cargo test` may require.
const OTHER_PROGRAMS: &str = "belljar-cli/other-programs";

/// Options of `rustdoc --test` that do not exist for making documentation. `true`: a value follows.
const OF_DOCTESTS: &[(&str, bool)] =
    &[("--test", false), ("--test-run-directory", true), ("--no-run", false)];

/// One check of the tree at a root directory.
type Stage = fn(&Path) -> Result<()>;

/// Runs every stage, even after a failed stage, so that one run shows all problems.
pub(crate) fn run(root: &Path, arguments: &CheckArgs) -> Result<()> {
    let (clippy, docs): (Stage, Stage) = match arguments.linted {
        true => (clippy_of_rest, docs_of_built),
        false => (run_clippy, build_docs),
    };
    let stages: [(&str, Stage); 8] = [
        ("fmt", |root| run_cargo(root, &["fmt", "--all", "--check"])),
        ("clippy", clippy),
        ("docs", docs),
        ("tidy", tidy::run),
        ("supply", supply::check_supply),
        ("patches", patches::check_patches),
        ("tools", tools::check_all),
        ("page", web::check_page),
    ];
    let mut failed = Vec::new();
    for (name, stage) in stages {
        let started = Instant::now();
        let verdict = match stage(root) {
            Ok(()) => "ok",
            Err(error) => {
                crate::print_line(&format!("{error:#}"));
                failed.push(name);
                "FAILED"
            }
        };
        crate::print_line(&format!(
            "check {name}: {verdict} ({:.1} s)",
            started.elapsed().as_secs_f64()
        ));
    }
    if !failed.is_empty() {
        bail!("these checks failed: {}", failed.join(", "));
    }
    Ok(())
}

fn run_clippy(root: &Path) -> Result<()> {
    let all = ["clippy", "--workspace", "--all-targets", "--features", OTHER_PROGRAMS];
    run_cargo(root, &[&all[..], &["--", "-D", "warnings"]].concat())
}

/// Lints the suites and the workspace members that `cargo test` does not build.
fn clippy_of_rest(root: &Path) -> Result<()> {
    let suites = ["--test", "peers", "--test", "tool_projects", "--features", OTHER_PROGRAMS];
    run_cargo(root, &[&["test", "--quiet", "--no-run"], &suites[..]].concat())?;
    clippy_of_guests(root)
}

/// Lints the workspace members that `cargo test` does not build by default, for the guests' target.
fn clippy_of_guests(root: &Path) -> Result<()> {
    #[derive(Deserialize)]
    struct WorkspaceMembers {
        packages: Vec<MemberPackage>,
        workspace_default_members: Vec<String>,
    }
    #[derive(Deserialize)]
    struct MemberPackage {
        id: String,
        name: String,
    }
    let WorkspaceMembers { packages, workspace_default_members: tested } =
        metadata::read_metadata(root, belljar_guest_build::TARGET)?;
    let tested = packages.iter().filter(|package| tested.contains(&package.id));
    let left_out = tested.flat_map(|package| ["--exclude", &package.name]);
    let arguments: Vec<_> = ["clippy", "--workspace", "--all-targets"]
        .into_iter()
        .chain(left_out)
        .chain(["--", "-D", "warnings"])
        .collect();
    run_cargo(root, &arguments)
}

/// Documents the libraries as built for tests: runs `cargo test --doc` with this program in place of
/// rustdoc. No doctest runs.
fn docs_of_built(root: &Path) -> Result<()> {
    let mut command = crate::cargo_command();
    let itself = std::env::current_exe().context("failed to find the running program")?;
    command
        .args(["test", "--doc", "--quiet", "--no-fail-fast"])
        .env("RUSTDOC", itself)
        .env(AS_RUSTDOC, "1");
    finish_cargo(root, command)
}

/// Runs in place of rustdoc: if cargo asks for the doctests of a library, makes the library's documentation
/// instead, and a warning is an error. Other calls are passed on to rustdoc.
pub(crate) fn run_as_rustdoc(arguments: impl Iterator<Item = OsString>) -> Result<()> {
    let arguments: Vec<OsString> = arguments.collect();
    let mut command = Command::new("rustdoc");
    if arguments.iter().any(|argument| argument == "--test") {
        let mut rest = arguments.into_iter();
        while let Some(argument) = rest.next() {
            match OF_DOCTESTS.iter().find(|(option, _)| argument == *option) {
                Some((_, true)) => drop(rest.next()),
                Some((_, false)) => {}
                None => drop(command.arg(argument)),
            }
        }
        let written = tempfile::tempdir().context("failed to make a temporary directory")?;
        let done = command.args(["-D", "warnings", "-o"]).arg(written.path()).status();
        return check_rustdoc_status(done.context("failed to start rustdoc")?.success());
    }
    let done = command.args(arguments).status().context("failed to start rustdoc")?;
    check_rustdoc_status(done.success())
}

fn check_rustdoc_status(well: bool) -> Result<()> {
    if !well {
        bail!("rustdoc failed");
    }
    Ok(())
}

fn build_docs(root: &Path) -> Result<()> {
    let mut command = crate::cargo_command();
    command.args(["doc", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
    finish_cargo(root, command)
}

fn run_cargo(root: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = crate::cargo_command();
    command.args(arguments);
    finish_cargo(root, command)
}

fn finish_cargo(root: &Path, mut command: Command) -> Result<()> {
    let status = command.current_dir(root).status().context("failed to start cargo")?;
    if !status.success() {
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        bail!("`cargo {}` failed", words.join(" "));
    }
    Ok(())
}
