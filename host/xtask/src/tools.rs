//! `cargo xtask rebuild tools`: builds the components of the stock tools from `tools/<name>`.
#![allow(clippy::print_stderr, reason = "progress of a developer command")]

mod manifest;
mod python;
mod settings;
mod sources;

use anyhow::{Context, Result, bail};
use belljar_guest_build::{CSources, PackageBuild, RustToolchain};
use clap::Args;
pub(crate) use manifest::{ComponentManifest, ManifestEntry};
use settings::ToolSettings;
use sha2::{Digest, Sha256};
pub(crate) use sources::{GuestCrate, SDK, ToolSources};
use std::path::{Path, PathBuf};

/// The cargo profile of the root manifest for building guests.
const PROFILE: &str = "guest";

#[derive(Args)]
pub(crate) struct ToolsArgs {
    /// Which tools; all of them when none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Build nothing: fail when a component does not match its manifest or its sources
    #[arg(long, conflicts_with = "out")]
    check: bool,

    /// Build into this directory and leave the committed components alone
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, arguments: &ToolsArgs) -> Result<()> {
    let all = tool_names(root)?;
    for name in &arguments.names {
        if !all.contains(name) {
            bail!("there is no tool `{name}`\nhint: the tools are {}", all.join(", "));
        }
    }
    let chosen = if arguments.names.is_empty() { &all } else { &arguments.names };
    if arguments.check {
        return check_tools(root, &all, chosen);
    }
    build_tools(root, &all, chosen, arguments.out.as_deref())?;
    if arguments.out.is_none() { write_descriptions(root) } else { Ok(()) }
}

/// Writes the descriptions of the committed components to the file that documents them. A test compares that
/// file with the components and, with `BELLJAR_DESCRIBE` set, writes the file.
fn write_descriptions(root: &Path) -> Result<()> {
    let status = crate::cargo_command()
        .args(["test", "--quiet", "--test", "tools", "the_descriptions_that_are_kept"])
        .env("BELLJAR_DESCRIBE", "1")
        .current_dir(root)
        .status()
        .context("failed to start cargo")?;
    if !status.success() {
        bail!("the components could not be asked what they offer");
    }
    Ok(())
}

/// Checks that every committed component matches its manifest entry and its sources.
pub(crate) fn check_all(root: &Path) -> Result<()> {
    let all = tool_names(root)?;
    check_tools(root, &all, &all)
}

/// The cargo packages of all tools in Rust, except the tools in `but`.
pub(crate) fn list_packages(root: &Path, but: &[&str]) -> Result<Vec<String>> {
    let all = tool_names(root)?;
    let built = all.iter().filter(|name| !python::is_python_tool(root, name));
    Ok(built.filter(|name| !but.contains(&name.as_str())).map(|name| package_name(name)).collect())
}

/// Builds the chosen components into `out` and leaves the committed components alone. Copies the committed
/// components of the other tools to `out`.
pub(crate) fn build_into(root: &Path, out: &Path, chosen: &[String]) -> Result<()> {
    let all = tool_names(root)?;
    build_tools(root, &all, chosen, Some(out))?;
    for name in all.iter().filter(|name| !chosen.contains(name)) {
        let from = component_path(root, &prebuilt_directory(root), name);
        std::fs::copy(&from, component_path(root, out, name))
            .with_context(|| format!("failed to copy `{}`", from.display()))?;
    }
    Ok(())
}

/// The tools whose sources changed since their component was committed. A different compiler does not count
/// as a change; for that, `test guests --all` rebuilds every tool.
pub(crate) fn changed_tools(root: &Path) -> Result<Vec<String>> {
    let manifest = ComponentManifest::read(&prebuilt_directory(root))?;
    let sources = ToolSources::read_workspace(root)?;
    let mut changed = Vec::new();
    for name in tool_names(root)? {
        let now = sources.source_digest(&name)?;
        if manifest.get(&name).is_none_or(|entry| entry.sources != now) {
            changed.push(name);
        }
    }
    Ok(changed)
}

/// The tools among `names` that build with the Rust toolchain alone. Prints the names of the others.
pub(crate) fn quick_tools(root: &Path, names: Vec<String>) -> Vec<String> {
    let slow = |name: &String| {
        python::is_python_tool(root, name)
            || ToolSettings::read_settings(root, name).is_ok_and(|it| it.c_header.is_some())
    };
    let (left, quick): (Vec<_>, Vec<_>) = names.into_iter().partition(slow);
    if !left.is_empty() {
        eprintln!("not rebuilt without `--all`: {}", left.join(", "));
    }
    quick
}

fn build_tools(root: &Path, all: &[String], chosen: &[String], out: Option<&Path>) -> Result<()> {
    let toolchain = RustToolchain::find_installed()?;
    let described = toolchain.describe();
    eprintln!("building {} with {described}", chosen.join(", "));
    let prebuilt = prebuilt_directory(root);
    let directory = out.unwrap_or(&prebuilt);
    std::fs::create_dir_all(directory)
        .with_context(|| format!("failed to create `{}`", directory.display()))?;
    let sources = ToolSources::read_workspace(root)?;
    let mut manifest = ComponentManifest::read_or_empty(directory)?;
    manifest.retain_names(all);
    for name in chosen {
        let bytes = build_component(root, name, &toolchain)?;
        let entry = ManifestEntry {
            digest: encode_hex(&Sha256::digest(&bytes)),
            sources: sources.source_digest(name)?,
            bytes: bytes.len() as u64,
            toolchain: match python::is_python_tool(root, name) {
                true => python::VERSION.to_owned(),
                false => described.clone(),
            },
        };
        let target = component_path(root, directory, name);
        let kept = match python::is_python_tool(root, name) {
            true => python::compress_bytes(&bytes)?,
            false => bytes.clone(),
        };
        std::fs::write(&target, &kept)
            .with_context(|| format!("failed to write `{}`", target.display()))?;
        eprintln!("{name}: {} KiB", bytes.len().div_ceil(1024));
        manifest.set_entry(name, entry);
        // Written after each component, so that a failure leaves a manifest that matches the components
        // before.
        manifest.write(directory)?;
    }
    Ok(())
}

/// Builds the component of one tool.
fn build_component(root: &Path, name: &str, toolchain: &RustToolchain) -> Result<Vec<u8>> {
    if python::is_python_tool(root, name) {
        return python::build_component(root, name);
    }
    let settings = ToolSettings::read_settings(root, name)?;
    let header = settings.c_header.map(|header| root.join("tools").join(name).join(header));
    let built = PackageBuild {
        root,
        package: Some(&package_name(name)),
        profile: PROFILE,
        target_dir: &root.join("target/guests"),
        locked: true,
        c: header.as_deref().map(|header| CSources { header }),
    }
    .build_component(toolchain)?;
    let bytes = read_file(&built)?;
    if !settings.preinit {
        return Ok(bytes);
    }
    crate::preinit::preinit_component(&bytes)
        .map_err(|error| anyhow::anyhow!("`{name}` could not be pre-initialised: {error:#}"))
}

/// Compares the chosen components with the manifest: each was built from the present sources and has the
/// recorded digest.
fn check_tools(root: &Path, all: &[String], chosen: &[String]) -> Result<()> {
    let directory = prebuilt_directory(root);
    let manifest = ComponentManifest::read(&directory)?;
    let sources = ToolSources::read_workspace(root)?;
    let mut faults = Vec::new();
    for name in chosen {
        let Some(entry) = manifest.get(name) else {
            faults.push(format!("`{name}` has never been built"));
            continue;
        };
        if sources.source_digest(name)? != entry.sources {
            faults.push(format!("`{name}` has changed since its component was built"));
        }
        let component = component_path(root, &directory, name);
        match read_component(root, name, &component) {
            Ok(bytes) if encode_hex(&Sha256::digest(&bytes)) == entry.digest => {}
            Ok(_) => faults.push(format!(
                "`{}` is not the file that the manifest describes",
                component.display()
            )),
            Err(error) => faults.push(format!("`{}`: {error:#}", component.display())),
        }
    }
    if chosen.len() == all.len() {
        faults.extend(crate::hooks::find_faults(root, &sources)?);
        faults.extend(crate::conformance::find_faults(root)?);
    }
    for name in manifest.tool_names().filter(|name| !all.contains(name)) {
        faults.push(format!("the manifest describes `{name}`, which is not a tool any more"));
    }
    if faults.is_empty() {
        eprintln!("{} tool components match their sources", chosen.len());
        return Ok(());
    }
    bail!(
        "{}\nhint: run `cargo xtask rebuild tools` and commit `tools/prebuilt`",
        faults.join("\n")
    )
}

/// The names of the tools, sorted: each directory under `tools` with a `tool.toml`.
pub(crate) fn tool_names(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root.join("tools")).context("failed to list `tools`")? {
        let entry = entry?;
        if entry.path().join("tool.toml").exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn package_name(name: &str) -> String {
    format!("belljar-tool-{}", name.replace('_', "-"))
}

fn prebuilt_directory(root: &Path) -> PathBuf {
    root.join("tools/prebuilt")
}

fn component_path(root: &Path, directory: &Path, name: &str) -> PathBuf {
    let end = if python::is_python_tool(root, name) { python::COMPRESSED } else { ".wasm" };
    directory.join(format!("{name}{end}"))
}

/// Reads a component from its file, and decompresses the component of a Python tool.
fn read_component(root: &Path, name: &str, file: &Path) -> Result<Vec<u8>> {
    let bytes = read_file(file)?;
    if python::is_python_tool(root, name) { python::decompress_bytes(&bytes) } else { Ok(bytes) }
}

fn read_file(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("failed to read `{}`", path.display()))
}

pub(crate) fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
