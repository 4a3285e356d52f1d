//! `belljar tools build`: from a project to a component.

use std::path::Path;

use belljar_policy::{Shown, ShownPath as _};
use belljar_sandbox::Wasm;

use crate::args::tools::ToolBuildArgs;
use crate::commands::tools::install::{self, COMPONENT, New};
use crate::commands::tools::projects::{self, check_name};
use crate::setup::below::{Below, For};
use crate::setup::embedded;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{MAX_COMPONENT_BYTES, Places, read_bounded};
use crate::setup::whose::Whose;
use crate::term::out::Out;
use belljar_guest_build::Language;

/// Builds a project and puts the component beside its manifest.
pub(crate) fn build(
    args: &ToolBuildArgs,
    places: impl FnOnce() -> Result<Places, Failure>,
    out: &Out,
) -> Result<Exit, Failure> {
    let dir = args.dir.as_path();
    let Some(language) = Language::of_project(dir) else {
        return Err(Failure::usage(format!("`{}` holds no project of a tool", dir.shown()))
            .hint("start a tool with `belljar tools new NAME`"));
    };
    // Possible faults are checked before the build, which takes long.
    let to = to(args, places)?;
    let manifest = dir.join("tool.toml");
    let manifest = match args.install || manifest.exists() {
        true => install::manifest(&manifest)?,
        false => String::new(),
    };
    let toolchain = language.toolchain(Some(dir))?;
    out.note(format_args!("building with {}", Shown::new(&toolchain.description)));
    if let Err(why) = toolchain.reproducible {
        out.note(format_args!("each build gives other bytes: {why}"));
    }
    let built = language.build(dir)?;
    let component = dir.join(COMPONENT);
    copy(&built, dir)?;
    let wasm = read_bounded(&component, MAX_COMPONENT_BYTES).map_err(|error| {
        Failure::new(format!("failed to read `{}`: {error}", component.shown()))
    })?;
    let inspection = belljar_sandbox::inspect(&wasm)
        .map_err(|error| Failure::new(format!("`{}`: {error}", component.shown())))?;
    if inspection.tool_export.is_none() {
        return Err(Failure::new(format!("`{}` is not a belljar tool", component.shown()))
            .hint(projects::publishing(language)));
    }
    out.line(format_args!("built {} (sha256:{})", component.shown(), inspection.digest));
    let Some((operator, whose)) = to else {
        out.note(format_args!("next: `belljar tools inspect {}`", component.shown()));
        return Ok(Exit::Completed);
    };
    let name = installed_name(dir)?;
    let wasm = Wasm::new(wasm).named(name.as_str());
    let new = New { name: &name, wasm, manifest, yes: args.yes, asks: false, of: &args.of };
    install::run(&new, &operator, &whose.places, out)
}

/// The place for the build: the operator's places, and the owner of the home; `None` = not installed.
fn to(
    args: &ToolBuildArgs,
    places: impl FnOnce() -> Result<Places, Failure>,
) -> Result<Option<(Places, Whose)>, Failure> {
    if args.install {
        let operator = places()?;
        let whose = Whose::to_change(&args.of, &operator)?;
        return Ok(Some((operator, whose)));
    }
    match args.of.is_named() {
        true => Err(Failure::usage("`--tenant` and `--data` say where a tool is installed")
            .hint("add `--install`, or leave them out")),
        false => Ok(None),
    }
}

/// The name for a project's installation: the directory's.
fn installed_name(dir: &Path) -> Result<String, Failure> {
    let name = dir.canonicalize().ok();
    let name = name.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    let name = name.unwrap_or_default().replace('-', "_");
    check_name(&name)?;
    if embedded::STOCK_TOOLS.iter().any(|stock| stock.name == name) {
        return Err(Failure::usage(format!("`{name}` is the name of a built-in tool"))
            .hint("rename the project's directory"));
    }
    Ok(name)
}

/// Puts what was built into the project, in the place of a file and through no link.
fn copy(from: &Path, dir: &Path) -> Result<(), Failure> {
    let copied = read_bounded(from, MAX_COMPONENT_BYTES)
        .and_then(|bytes| Below::open(dir)?.replace(Path::new(COMPONENT), &bytes, For::Everybody));
    copied.map_err(|error| {
        let to = dir.join(COMPONENT);
        Failure::new(format!("failed to copy `{}` to `{}`: {error}", from.shown(), to.shown()))
    })
}
