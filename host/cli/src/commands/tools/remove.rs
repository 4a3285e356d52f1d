//! `belljar tools remove`: removes an installed tool, after naming the grants that have it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use belljar_policy::{ShownPath as _, ShownText, ToolName};
use serde_json::json;

use crate::args::server::TenantArg;
use crate::commands::tools::install::{self, COMPONENT, MANIFEST};
use crate::setup::below;
use crate::setup::embedded::STOCK_TOOLS;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, MAX_COMPONENT_BYTES, read_bounded};
use crate::setup::host;
use crate::setup::pins;
use crate::setup::whose::AgentOwner;
use crate::term::out::TerminalOutput;

/// Runs the command: names the affected grants, asks, deletes the files, and writes a line of the audit log.
pub(super) fn run(
    name: &str,
    yes: bool,
    of: &TenantArg,
    operator: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let whose = AgentOwner::to_change(of, operator)?;
    let places = &whose.places;
    let dir = installed_directory(name, places, of)?;
    let tools = grantable_tools(name, &dir, places, out);
    let settings = host::read_settings(places)?;
    for tool in &tools {
        for section in settings.sections_naming(tool) {
            out.print_warning(format_args!("{} grants `{tool}`", ShownText::new(&section)));
        }
    }
    let question = format!("remove `{name}` from {}?", dir.to_shown());
    match yes.then_some(true).or_else(|| out.ask(&question)) {
        Some(true) => {}
        Some(false) => {
            out.note("nothing is removed");
            return Ok(CommandExit::Cancelled);
        }
        None => {
            return Err(Failure::usage("there is nobody to ask, so nothing is removed")
                .with_hint("repeat the command with `--yes`"));
        }
    }
    delete_tool(&dir, &places.home)?;
    out.print_line(format_args!("removed {}", dir.to_shown()));
    if pins::pinned_digest(&settings, name).is_some() {
        let path = places.config_path();
        out.note(format_args!(
            "{} still pins it under `[tools.{name}]`: only that component counts there, should it \
             be installed again",
            path.to_shown()
        ));
    }
    let what = ("remove_tool", "the tool is removed");
    of.audit_action(operator, what, vec![(name.to_owned(), json!({ "tools": tools }))])?;
    Ok(CommandExit::Completed)
}

/// The directory of an installed tool; an error if there is none of this name.
fn installed_directory(
    name: &str,
    places: &HomePaths,
    of: &TenantArg,
) -> Result<std::path::PathBuf, Failure> {
    let shown = ShownText::clip_line(name, 80);
    if STOCK_TOOLS.iter().any(|stock| stock.name == name) {
        return Err(Failure::usage(format!("`{shown}` is a part of belljar")).with_hint(
            "an agent has it only if it is granted: `belljar revoke AGENT --tool NAME`",
        ));
    }
    // A valid name has neither `/` nor `.`, so the path cannot lead elsewhere.
    let dir = ToolName::new(name).ok().map(|name| places.tools_directory().join(name.as_str()));
    dir.filter(|dir| dir.is_dir()).ok_or_else(|| {
        let list = of.format_command("belljar tools list");
        Failure::usage(format!("no tool `{shown}` is installed"))
            .with_hint(format!("`{list}` shows all tools; this takes the name of its directory"))
    })
}

/// The names by which grants may name the tool: those that the component offers, and the installed name.
fn grantable_tools(
    name: &str,
    dir: &Path,
    places: &HomePaths,
    out: &TerminalOutput,
) -> BTreeSet<String> {
    let mut tools = BTreeSet::from([name.to_owned()]);
    let described = || -> Result<Vec<String>, Failure> {
        let bytes = read_bounded(&dir.join(COMPONENT), MAX_COMPONENT_BYTES)
            .map_err(|error| Failure::new(error.to_string()))?;
        let manifest = install::read_manifest(&dir.join(MANIFEST))?;
        let wasm =
            install::call_as_command(belljar_sandbox::Wasm::new(bytes).with_name(name), &manifest)?;
        let sandbox = host::make_sandbox(places, out)?;
        let infos = host::small_runtime()?.block_on(sandbox.describe_tools(&wasm));
        let infos = infos.map_err(|error| Failure::new(error.to_string()))?;
        Ok(infos.iter().map(|info| info.name.to_string()).collect())
    };
    // An unreadable component can be removed too, so its error is ignored.
    if let Ok(described) = described() {
        tools.extend(described);
    }
    tools
}

/// Deletes the component and the manifest, and the directory if it is then empty. Other files in it are not
/// belljar's.
fn delete_tool(dir: &Path, home: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, error: io::Error| {
        Failure::new(format!("failed to remove `{}`: {error}", path.to_shown()))
    };
    below::in_home(home, dir).map_err(|error| failed(dir, error))?;
    for file in [COMPONENT, MANIFEST] {
        let path = dir.join(file);
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path, error)),
        }
    }
    fs::remove_dir(dir).map_err(|error| failed(dir, error))
}
