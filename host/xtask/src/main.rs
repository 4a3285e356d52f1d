//! Developer commands: `cargo xtask COMMAND`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod acp;
mod agent_reader;
mod api;
mod check;
mod conformance;
mod dev;
mod dist;
mod duplicate_builds;
mod fuzz;
mod guests;
mod hooks;
mod llama;
mod mcp;
mod metadata;
mod openai;
mod patches;
mod preinit;
mod prose;
mod sdks;
mod supply;
mod tidy;
mod tools;
mod web;

use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of belljar")]
struct XtaskArgs {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Check formatting, lints, documentation, house rules and the committed components
    Check(check::CheckArgs),
    /// Build after each change, and run the tests near the changed files
    Dev(dev::DevArguments),
    /// Check the house rules that no compiler knows
    Tidy,
    /// Measure how the code names things and how its comments refer to them
    Prose,
    /// Check that no dependency is compiled twice for the program and its tests
    DuplicateBuilds,
    /// Check the supply chain with cargo-deny; where it is not installed, without it
    Deny {
        /// Ask the database of advisories too, which takes the internet
        #[arg(long)]
        advisories: bool,
    },
    /// Run the fuzz targets; needs a nightly toolchain and cargo-fuzz
    Fuzz(fuzz::FuzzArgs),
    /// Run tests that need more than cargo: a peer, a browser, a WebAssembly toolchain
    #[command(subcommand)]
    Test(TestCommand),
    /// Rebuild committed files that are built from sources of this tree
    #[command(subcommand)]
    Rebuild(RebuildCommand),
    /// Pack what people install
    #[command(subcommand)]
    Pack(PackCommand),
}

#[derive(Subcommand)]
enum TestCommand {
    /// Hold `belljar acp` against the official TypeScript client and acpx
    Acp,
    /// Hold `belljar agents check` against a reader of agent files that shares no code with it
    AgentReader,
    /// Hold the server against its own OpenAPI document, with schemathesis
    Api,
    /// Run the tests that need a WebAssembly toolchain: changed tools, new tool projects
    Guests(guests::GuestsArgs),
    /// Run the tests against a real llama.cpp server
    Llama,
    /// Hold the MCP door against the official SDKs, the Inspector and the protocol's conformance suite
    Mcp,
    /// Hold the OpenAI wires of `belljar serve` against OpenAI's own packages
    Openai,
    /// Run the tests of the page in a browser: Debian's Chromium, by Playwright
    Page,
    /// Install a release in an empty root directory and use it there
    Release(dist::DistArgs),
}

#[derive(Subcommand)]
enum RebuildCommand {
    /// The component of the hostile suite that needs a WebAssembly toolchain
    AttackGuests,
    /// The components of the conformance suite, one for each language
    Conformance(conformance::ConformanceArgs),
    /// The component of the example hook
    Hooks,
    /// The page that the server shows, `host/server/web/dist`, or check that it is current
    Page(web::WebArgs),
    /// The tool components under `tools/prebuilt`, or check that they are current
    Tools(tools::ToolsArgs),
}

#[derive(Subcommand)]
enum PackCommand {
    /// A release: an archive and a Debian package in `target/dist`
    Release(dist::DistArgs),
    /// The SDKs as their people install them, into `target/sdks`
    Sdks(sdks::SdksArgs),
}

fn main() -> ExitCode {
    let done = match std::env::var_os(check::AS_RUSTDOC) {
        Some(_) => check::run_as_rustdoc(std::env::args_os().skip(1)),
        None => run_command(XtaskArgs::parse().command),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_line(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run_command(command: XtaskCommand) -> Result<()> {
    let root = find_root()?;
    match command {
        XtaskCommand::Check(arguments) => check::run(&root, &arguments),
        XtaskCommand::Dev(arguments) => dev::run(&root, &arguments),
        XtaskCommand::Tidy => tidy::run(&root),
        XtaskCommand::Prose => {
            prose::print_table(&tidy::read_tree(&root)?);
            Ok(())
        }
        XtaskCommand::DuplicateBuilds => duplicate_builds::run(&root),
        XtaskCommand::Deny { advisories } => supply::run_cargo_deny(&root, advisories),
        XtaskCommand::Fuzz(arguments) => fuzz::run(&root, &arguments),
        XtaskCommand::Test(test) => run_test(&root, test),
        XtaskCommand::Rebuild(part) => rebuild_part(&root, part),
        XtaskCommand::Pack(PackCommand::Release(arguments)) => dist::run(&root, &arguments),
        XtaskCommand::Pack(PackCommand::Sdks(arguments)) => sdks::run(&root, &arguments),
    }
}

fn run_test(root: &Path, test: TestCommand) -> Result<()> {
    match test {
        TestCommand::Acp => acp::run(root),
        TestCommand::AgentReader => agent_reader::run(root),
        TestCommand::Api => api::run(root),
        TestCommand::Guests(arguments) => guests::run(root, &arguments),
        TestCommand::Llama => llama::run(root),
        TestCommand::Mcp => mcp::run(root),
        TestCommand::Openai => openai::run(root),
        TestCommand::Page => web::test_page(root),
        TestCommand::Release(arguments) => dist::test(root, &arguments),
    }
}

fn rebuild_part(root: &Path, part: RebuildCommand) -> Result<()> {
    match part {
        RebuildCommand::AttackGuests => {
            [hooks::PROBE, hooks::CALLER].iter().try_for_each(|guest| guest.rebuild_component(root))
        }
        RebuildCommand::Conformance(arguments) => conformance::run(root, &arguments),
        RebuildCommand::Hooks => hooks::HOOK.rebuild_component(root),
        RebuildCommand::Page(arguments) => web::run(root, &arguments),
        RebuildCommand::Tools(arguments) => tools::run(root, &arguments),
    }
}

/// The root of the repository: two levels above this crate.
fn find_root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(Path::to_owned).context("xtask has been moved")
}

/// Prints a line of progress, or a result.
#[expect(clippy::print_stdout, reason = "the verdicts of a developer command")]
fn print_line(line: &str) {
    println!("{line}");
}

/// A `cargo` command without the variables `CARGO_PKG_*` and `CARGO_MANIFEST_*`, which `cargo run` sets for
/// this program. The build script of `ring` depends on these variables, so builds from here and builds from a
/// shell would, in turn, each rebuild `ring` and every crate above it.
pub(crate) fn cargo_command() -> process::Command {
    let mut cargo = process::Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        let told = name.to_string_lossy();
        if told.starts_with("CARGO_PKG_") || told.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo
}

/// Builds the program `belljar`, and returns its path, which is in the directory of the running xtask.
pub(crate) fn build_binary(root: &Path) -> Result<PathBuf> {
    built_binary(root, "belljar")
}

/// Builds a program of this cargo workspace, and returns its path, which is in the directory of the running
/// xtask.
pub(crate) fn built_binary(root: &Path, name: &str) -> Result<PathBuf> {
    let built = cargo_command()
        .args(["build", "--quiet", "--bin", name])
        .current_dir(root)
        .status()
        .context("failed to start cargo")?;
    ensure!(built.success(), "{name} does not build");
    let here = std::env::current_exe().context("failed to find the running program")?;
    Ok(here.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}
