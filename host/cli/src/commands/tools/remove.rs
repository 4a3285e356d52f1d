//! `belljar tools remove`: removes an installed tool, after naming the affected grants.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use belljar_policy::{Shown, ShownPath as _, ToolName};
use serde_json::json;

use crate::args::server::TenantArg;
use crate::commands::tools::install::{self, COMPONENT, MANIFEST};
use crate::setup::below;
use crate::setup::embedded::STOCK_TOOLS;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{MAX_COMPONENT_BYTES, Places, read_bounded};
use crate::setup::host;
use crate::setup::pins;
use crate::setup::whose::Whose;
use crate::term::out::Out;

pub(super) fn run(
    name: &str,
    yes: bool,
    of: &TenantArg,
    operator: &Places,
    out: &Out,
) -> Result<Exit, Failure> {
    let whose = Whose::to_change(of, operator)?;
    let places = &whose.places;
    let dir = directory(name, places, of)?;
    let tools = offered(name, &dir, places, out);
    let settings = host::settings(places)?;
    for tool in &tools {
        for section in settings.sections_naming(tool) {
            out.warning(format_args!("{} grants `{tool}`", Shown::new(&section)));
        }
    }
    let question = format!("remove `{name}` from {}?", dir.shown());
    match yes.then_some(true).or_else(|| out.ask(&question)) {
        Some(true) => {}
        Some(false) => {
            out.note("nothing is removed");
            return Ok(Exit::Cancelled);
        }
        None => {
            return Err(Failure::usage("there is nobody to ask, so nothing is removed")
                .hint("repeat the command with `--yes`"));
        }
    }
    delete(&dir, &places.home)?;
    out.line(format_args!("removed {}", dir.shown()));
    if pins::pinned(&settings, name).is_some() {
        let path = places.config();
        out.note(format_args!(
            "{} still pins it under `[tools.{name}]`: only that component counts there, should it \
             be installed again",
            path.shown()
        ));
    }
    let what = ("remove_tool", "the tool is removed");
    of.audit(operator, what, vec![(name.to_owned(), json!({ "tools": tools }))])?;
    Ok(Exit::Completed)
}

/// The directory of a tool that is installed.
fn directory(name: &str, places: &Places, of: &TenantArg) -> Result<std::path::PathBuf, Failure> {
    let shown = Shown::clipped(name, 80);
    if STOCK_TOOLS.iter().any(|stock| stock.name == name) {
        return Err(Failure::usage(format!("`{shown}` is a part of belljar"))
            .hint("an agent has it only if it is granted: `belljar revoke AGENT --tool NAME`"));
    }
    // A name has neither `/` nor `.`, so it leads nowhere else.
    let dir = ToolName::new(name).ok().map(|name| places.tools().join(name.as_str()));
    dir.filter(|dir| dir.is_dir()).ok_or_else(|| {
        let list = of.command("belljar tools list");
        Failure::usage(format!("no tool `{shown}` is installed"))
            .hint(format!("`{list}` shows all tools; this takes the name of its directory"))
    })
}

/// The tools that grants may name: the component's, and its own name.
fn offered(name: &str, dir: &Path, places: &Places, out: &Out) -> BTreeSet<String> {
    let mut tools = BTreeSet::from([name.to_owned()]);
    let described = || -> Result<Vec<String>, Failure> {
        let bytes = read_bounded(&dir.join(COMPONENT), MAX_COMPONENT_BYTES)
            .map_err(|error| Failure::new(error.to_string()))?;
        let manifest = install::manifest(&dir.join(MANIFEST))?;
        let wasm = install::called(belljar_sandbox::Wasm::new(bytes).named(name), &manifest)?;
        let sandbox = host::sandbox(places, out)?;
        let infos = host::small_runtime()?.block_on(sandbox.describe(&wasm));
        let infos = infos.map_err(|error| Failure::new(error.to_string()))?;
        Ok(infos.iter().map(|info| info.name.to_string()).collect())
    };
    // An unreadable component is all the more reason for removal.
    if let Ok(described) = described() {
        tools.extend(described);
    }
    tools
}

/// Removes the two files, and the directory if empty: other files in it are not belljar's.
fn delete(dir: &Path, home: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, error: io::Error| {
        Failure::new(format!("failed to remove `{}`: {error}", path.shown()))
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
