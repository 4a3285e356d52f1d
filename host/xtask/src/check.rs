//! `cargo xtask check`: what has to hold before anything lands, without running tests.
//!
//! Lints and documentation are read from metadata of all dependencies, which no build leaves behind:
//! minutes of compiling. Where the tests have been compiled by clippy's own driver, as `.ci/run`
//! does it, every lint was an error then, and `--linted` takes the rest from what is built: the
//! guests are linted, and rustdoc reads the libraries as it reads them for their doctests.

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

/// Set, and this program stands in for rustdoc: see [`run_as_rustdoc`].
pub(crate) const AS_RUSTDOC: &str = "BELLJAR_XTASK_AS_RUSTDOC";

/// The suites that need more programs than `cargo test` may ask for.
const OTHER_PROGRAMS: &str = "belljar-cli/other-programs";

/// Options of `rustdoc --test` that mean nothing where documentation is made; `true`: a value
/// follows.
const OF_DOCTESTS: &[(&str, bool)] =
    &[("--test", false), ("--test-run-directory", true), ("--no-run", false)];

/// One check of the tree at a root.
type Stage = fn(&Path) -> Result<()>;

/// Runs every stage, even after one has failed, so that one run shows all there is to mend.
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

/// The suites and the members that `cargo test` does not build.
fn clippy_of_rest(root: &Path) -> Result<()> {
    let suites = ["--test", "peers", "--test", "tool_projects", "--features", OTHER_PROGRAMS];
    run_cargo(root, &[&["test", "--quiet", "--no-run"], &suites[..]].concat())?;
    clippy_of_guests(root)
}

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

/// `cargo test --doc`, with this program for rustdoc: the libraries as they are built, and no test.
fn docs_of_built(root: &Path) -> Result<()> {
    let mut command = crate::cargo_command();
    let itself = std::env::current_exe().context("failed to find the running program")?;
    command
        .args(["test", "--doc", "--quiet", "--no-fail-fast"])
        .env("RUSTDOC", itself)
        .env(AS_RUSTDOC, "1");
    finish_cargo(root, command)
}

/// Stands in for rustdoc: where cargo asks for the doctests of a library, its documentation is made,
/// and a warning is an error. Anything else is passed on.
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
