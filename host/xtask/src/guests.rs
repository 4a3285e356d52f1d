//! `cargo xtask test-guests`: the suite that needs a WebAssembly toolchain.
//!
//! It rebuilds every stock tool, the example hook and the hostile suite's probe from source,
//! runs the guests' native unit tests, and runs the tool cases and the attacks against the
//! rebuilt components; `cargo test` runs the same against the committed ones. The tool `shell` is
//! compared with bash and dash, natively and as a component. Then it makes a new tool project with
//! the `belljar` binary, builds it and calls it, as a tool author would.
//!
//! With `BELLJAR_GUESTS_QUICK=1`, as in CI, tools that take minutes to build are tested as they are
//! committed, and not natively; `cargo xtask check` holds those against their sources.
#![allow(clippy::print_stderr, reason = "progress of a developer command")]

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{hooks, tools};

/// Where the rebuilt components go; read by the test kit.
const REBUILT: &str = "target/rebuilt-tools";

/// Tools whose build takes minutes: the whole of a shell is optimised in one piece.
const SLOW: &[&str] = &["shell"];

pub(crate) fn run(root: &Path) -> Result<()> {
    let rebuilt = root.join(REBUILT);
    let quick = std::env::var_os("BELLJAR_GUESTS_QUICK").is_some();
    let committed = if quick { SLOW } else { &[] };
    tools::build_all_but(root, &rebuilt, committed)?;
    if quick {
        eprintln!("quick: not rebuilt but tested as committed: {}", committed.join(", "));
    }
    let hook = rebuilt.join("hook_guard.wasm");
    hooks::HOOK.build(root, &hook)?;
    let probe = rebuilt.join("probe.wasm");
    hooks::PROBE.build(root, &probe)?;
    let sdk = ["belljar-guest", "belljar-hook", "belljar-hook-guard"].map(str::to_owned);
    let tools = tools::packages(root, committed)?;
    let packages: Vec<String> =
        sdk.into_iter().chain(tools).flat_map(|package| ["-p".to_owned(), package]).collect();
    cargo(
        root,
        &["test"].into_iter().chain(packages.iter().map(String::as_str)).collect::<Vec<_>>(),
        &[],
    )?;
    let directory = rebuilt.to_string_lossy().into_owned();
    cargo(root, &["test", "--test", "tools"], &[("BELLJAR_TOOLS_DIR", directory.as_str())])?;
    cargo(
        root,
        &["test", "--test", "shell_compare", "--features", "belljar-kit/reference-shells"],
        &[("BELLJAR_TOOLS_DIR", directory.as_str())],
    )?;
    let hook = hook.to_string_lossy().into_owned();
    cargo(root, &["test", "--test", "hook_components"], &[("BELLJAR_HOOK", hook.as_str())])?;
    let probe = probe.to_string_lossy().into_owned();
    cargo(root, &["test", "--test", "attacks"], &[("BELLJAR_PROBE", probe.as_str())])?;
    cargo(
        root,
        &["test", "--test", "tool_projects", "--features", "belljar-cli/guest-toolchain"],
        &[],
    )
}

fn cargo(root: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let status = Command::new("cargo")
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
