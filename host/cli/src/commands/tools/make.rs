//! `belljar tools build`: builds a project into a component.

use std::path::Path;

use belljar_policy::{ShownPath as _, ShownText};
use belljar_sandbox::Wasm;

use crate::args::tools::ToolBuildArgs;
use crate::commands::tools::install::{self, COMPONENT, ToolInstall};
use crate::commands::tools::projects::{self, check_name};
use crate::setup::below::{DirectoryHandle, FileAudience};
use crate::setup::embedded;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, MAX_COMPONENT_BYTES, read_bounded};
use crate::setup::whose::AgentOwner;
use crate::term::out::TerminalOutput;
use belljar_guest_build::Language;

/// Builds a project, and copies the component beside the project's manifest.
pub(crate) fn build_project(
    args: &ToolBuildArgs,
    places: impl FnOnce() -> Result<HomePaths, Failure>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let dir = args.dir.as_path();
    let Some(language) = Language::from_project(dir) else {
        return Err(Failure::usage(format!("`{}` holds no project of a tool", dir.to_shown()))
            .with_hint("start a tool with `belljar tools new NAME`"));
    };
    // Checked before the build, because a build takes long.
    let to = install_target(args, places)?;
    let manifest = dir.join("tool.toml");
    let manifest = match args.install || manifest.exists() {
        true => install::read_manifest(&manifest)?,
        false => String::new(),
    };
    let toolchain = language.find_toolchain(Some(dir))?;
    out.note(format_args!("building with {}", ShownText::new(&toolchain.description)));
    if let Err(why) = toolchain.reproducible {
        out.note(format_args!("each build gives other bytes: {why}"));
    }
    let built = language.build_project(dir)?;
    let component = dir.join(COMPONENT);
    copy_into_project(&built, dir)?;
    let wasm = read_bounded(&component, MAX_COMPONENT_BYTES).map_err(|error| {
        Failure::new(format!("failed to read `{}`: {error}", component.to_shown()))
    })?;
    let inspection = belljar_sandbox::inspect_component(&wasm)
        .map_err(|error| Failure::new(format!("`{}`: {error}", component.to_shown())))?;
    if inspection.tool_export.is_none() {
        return Err(Failure::new(format!("`{}` is not a belljar tool", component.to_shown()))
            .with_hint(projects::publish_advice(language)));
    }
    out.print_line(format_args!("built {} (sha256:{})", component.to_shown(), inspection.digest));
    let Some((operator, whose)) = to else {
        out.note(format_args!("next: `belljar tools inspect {}`", component.to_shown()));
        return Ok(CommandExit::Completed);
    };
    let name = installed_name(dir)?;
    let wasm = Wasm::new(wasm).with_name(name.as_str());
    let new = ToolInstall { name: &name, wasm, manifest, yes: args.yes, asks: false, of: &args.of };
    install::run(&new, &operator, &whose.places, out)
}

/// The home into which the built tool is installed, and its owner; `None` = it is not installed.
fn install_target(
    args: &ToolBuildArgs,
    places: impl FnOnce() -> Result<HomePaths, Failure>,
) -> Result<Option<(HomePaths, AgentOwner)>, Failure> {
    if args.install {
        let operator = places()?;
        let whose = AgentOwner::to_change(&args.of, &operator)?;
        return Ok(Some((operator, whose)));
    }
    match args.of.is_named() {
        true => Err(Failure::usage("`--tenant` and `--data` say where a tool is installed")
            .with_hint("add `--install`, or leave them out")),
        false => Ok(None),
    }
}

/// The name under which a project's tool is installed: the name of its directory.
fn installed_name(dir: &Path) -> Result<String, Failure> {
    let name = dir.canonicalize().ok();
    let name = name.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    let name = name.unwrap_or_default().replace('-', "_");
    check_name(&name)?;
    if embedded::STOCK_TOOLS.iter().any(|stock| stock.name == name) {
        return Err(Failure::usage(format!("`{name}` is the name of a built-in tool"))
            .with_hint("rename the project's directory"));
    }
    Ok(name)
}

/// Copies the built component into the project. An existing file is replaced, and no link is followed.
fn copy_into_project(from: &Path, dir: &Path) -> Result<(), Failure> {
    let copied = read_bounded(from, MAX_COMPONENT_BYTES).and_then(|bytes| {
        DirectoryHandle::open(dir)?.replace_file(
            Path::new(COMPONENT),
            &bytes,
            FileAudience::Everybody,
        )
    });
    copied.map_err(|error| {
        let to = dir.join(COMPONENT);
        Failure::new(format!(
            "failed to copy `{}` to `{}`: {error}",
            from.to_shown(),
            to.to_shown()
        ))
    })
}
