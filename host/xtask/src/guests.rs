//! `cargo xtask test guests`: the tests that need a WebAssembly toolchain.
//!
//! Components whose sources changed since they were committed are rebuilt. The tests that `cargo test` runs
//! with the committed components (tool cases, hooks, attacks) then run with the rebuilt ones. The unit tests
//! of the guests run natively. The tool `shell` is compared with bash and dash. At last, the `belljar`
//! binary makes a new tool project, which is built and called like a tool author would do.
//!
//! Guests that need another compiler (for C, or for an interpreter) are not rebuilt; their names are
//! printed.
//!
//! `--all` rebuilds every component, changed or not, including the conformance components of every language
//! whose toolchain is installed, and also runs the unit tests of the shell natively. `--all` takes about
//! twenty minutes, and is for a release.
#![allow(clippy::print_stderr, reason = "progress of a developer command")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{conformance, hooks, tools};
use belljar_guest_build::RustToolchain;

/// The directory of the rebuilt tool components. The test kit reads the components from the directory.
const REBUILT: &str = "target/rebuilt-tools";

/// Tools whose native build takes minutes. A shell, for example, is optimized as one unit.
const SLOW: &[&str] = &["shell"];

#[derive(clap::Args)]
pub(crate) struct GuestsArgs {
    /// Build and test every guest, also those that did not change
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(root: &Path, arguments: &GuestsArgs) -> Result<()> {
    eprintln!("building with {}", RustToolchain::find_installed()?.describe());
    let changed = match arguments.all {
        true => tools::tool_names(root)?,
        false => tools::quick_tools(root, tools::changed_tools(root)?),
    };
    test_natively(root, arguments.all, &changed)?;
    rebuilt_tools(root, &changed)?;
    rebuilt_hook(root, arguments.all)?;
    rebuilt_probe(root, arguments.all)?;
    if arguments.all {
        rebuilt_conformance(root)?;
    }
    run_cargo(
        root,
        &["test", "--test", "tool_projects", "--features", "belljar-cli/other-programs"],
        &[],
    )
}

/// Runs the unit tests of the guests on the local machine's processor.
fn test_natively(root: &Path, all: bool, changed: &[String]) -> Result<()> {
    let slow = |name: &&str| !all && !changed.iter().any(|one| one == *name);
    let left_out: Vec<&str> = SLOW.iter().copied().filter(slow).collect();
    let sdk = ["belljar-guest", "belljar-hook", "belljar-hook-guard"].map(str::to_owned);
    let packages = sdk.into_iter().chain(tools::list_packages(root, &left_out)?);
    let chosen: Vec<String> = packages.flat_map(|package| ["-p".to_owned(), package]).collect();
    if !left_out.is_empty() {
        eprintln!("unchanged, and not tested natively: {}", left_out.join(", "));
    }
    let arguments: Vec<&str> =
        ["test"].into_iter().chain(chosen.iter().map(String::as_str)).collect();
    run_cargo(root, &arguments, &[])
}

/// Runs the tool cases with the rebuilt components, and compares the shell with bash and dash.
fn rebuilt_tools(root: &Path, changed: &[String]) -> Result<()> {
    let compare = ["test", "--test", "shell_compare", "--features", "belljar-kit/reference-shells"];
    if changed.is_empty() {
        eprintln!("no tool changed since its component was committed: none is rebuilt");
        return run_cargo(root, &compare, &[]);
    }
    let rebuilt = root.join(REBUILT);
    tools::build_into(root, &rebuilt, changed)?;
    let directory = rebuilt.to_string_lossy().into_owned();
    let with = [("BELLJAR_TOOLS_DIR", directory.as_str())];
    run_cargo(root, &["test", "--test", "tools"], &with)?;
    run_cargo(root, &compare, &with)
}

fn rebuilt_hook(root: &Path, all: bool) -> Result<()> {
    let Some(hook) = rebuilt_lone(root, &hooks::HOOK, all, "hook_guard.wasm")? else {
        return Ok(());
    };
    let hook = hook.to_string_lossy().into_owned();
    run_cargo(root, &["test", "--test", "hook_components"], &[("BELLJAR_HOOK", hook.as_str())])
}

fn rebuilt_probe(root: &Path, all: bool) -> Result<()> {
    let Some(probe) = rebuilt_lone(root, &hooks::PROBE, all, "probe.wasm")? else {
        return Ok(());
    };
    let probe = probe.to_string_lossy().into_owned();
    run_cargo(root, &["test", "--test", "attacks"], &[("BELLJAR_PROBE", probe.as_str())])
}

/// Runs the conformance suite with rebuilt components of every language whose toolchain is installed.
fn rebuilt_conformance(root: &Path) -> Result<()> {
    let built = conformance::rebuild_components(root)?;
    eprintln!("conformance components built anew: {}", built.join(", "));
    let folder = root.join(conformance::REBUILT).to_string_lossy().into_owned();
    run_cargo(
        root,
        &["test", "--test", "languages"],
        &[("BELLJAR_CONFORMANCE_DIR", folder.as_str())],
    )
}

/// Rebuilds a component if `all` is set or its sources changed. Returns the file, if rebuilt.
fn rebuilt_lone(
    root: &Path,
    lone: &hooks::LoneComponent,
    all: bool,
    name: &str,
) -> Result<Option<PathBuf>> {
    if !all && lone.is_current(root)? {
        eprintln!("`{name}` is as its sources are: it is not rebuilt");
        return Ok(None);
    }
    let target = root.join(REBUILT).join(name);
    lone.build_component(root, &target)?;
    Ok(Some(target))
}

fn run_cargo(root: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let status = crate::cargo_command()
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root)
        .status()
        .context("failed to start cargo")?;
    if !status.success() {
        bail!("`cargo {}` failed", arguments.join(" "));
    }
    Ok(())
}
