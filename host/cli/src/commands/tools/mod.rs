//! `belljar tools`: the tools that exist.

pub(crate) mod aliases;
pub(crate) mod call;
pub(crate) mod crash;
mod given;
pub(crate) mod inspect;
mod install;
pub(crate) mod make;
pub(crate) mod refused;
pub(crate) mod single;
mod words;

use std::path::{Path, PathBuf};

use belljar_agent::{Host, host_tool_specs};
use belljar_catalogue::{Origin, ToolComponent};
use belljar_definition::HOST_TOOLS;
use belljar_definition::Severity;
use belljar_policy::{Shown, ToolAsk, ToolName};
use belljar_sandbox::{ToolInfo, Wasm};
use serde_json::{Value, json};

use crate::args::ToolsCommand;
use crate::commands::tools::aliases as tools_aliases;
use crate::commands::tools::call as tools_call;
use crate::commands::tools::inspect as tools_inspect;
use crate::commands::tools::make as tools_make;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{MAX_COMPONENT_BYTES, Places, read_bounded};
use crate::setup::host::{self, Assembly};
use crate::setup::walls::{Through, Walls};
use crate::term::out::{Out, Style};
use crate::term::table::{Table, plain, styled};

/// Characters of a description in the list.
const MAX_DESCRIPTION: usize = 70;

pub(crate) fn run(
    command: &ToolsCommand,
    places: &dyn Fn() -> Result<Places, Failure>,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    match command {
        ToolsCommand::List { json } => list(*json, &walls.around(places()?)?, out),
        ToolsCommand::Inspect { component, json } => {
            let places = walls.reading(places()?, files(component))?;
            let wasm = find(component, &places, out)?;
            tools_inspect::run(component, &wasm, *json, &places, out)
        }
        ToolsCommand::Call(args) => {
            let places = places()?;
            // Values of secrets may lie where the OS sandbox lets nobody read.
            let call = tools_call::Call::of(args, &places)?;
            let read = files(&args.component);
            let through = Through { read, workspace: args.allow_write, ..Through::default() };
            walls.up(&places, &through)?;
            tools_call::run(call, &places, out)
        }
        ToolsCommand::Aliases { json, markdown } => tools_aliases::run(*json, *markdown, out),
        ToolsCommand::New { name, dir } => tools_make::new(name, dir.as_deref(), out),
        ToolsCommand::Build { dir, install, yes } => {
            let install = install.then_some(tools_make::Install { yes: *yes });
            tools_make::build(dir, install, places, out)
        }
    }
}

/// What a tool's manifest asks for. Host-provided tools have none and ask for nothing.
pub(crate) fn manifest_of(host: &Host, tool: &str) -> Result<ToolAsk, Failure> {
    match host.tools.owner(tool) {
        Some(component) => Ok(component.manifest.ask.clone()),
        None if HOST_TOOLS.contains(&tool) => Ok(ToolAsk::default()),
        None => Err(no_tool(host, tool)),
    }
}

pub(crate) fn no_tool(host: &Host, tool: &str) -> Failure {
    if HOST_TOOLS.contains(&tool) {
        return Failure::usage(format!("`{tool}` is no component: the host itself provides it"))
            .hint("it acts on the session of an agent, so only an agent can call it");
    }
    let shown = Shown::clipped(tool, 80);
    if host.tools.known().iter().any(|known| known.as_str() == tool) {
        let failure = Failure::usage(format!("the tool `{shown}` is installed and cannot be used"));
        return failure.hint("`belljar tools list` says why, and what to do");
    }
    let failure = Failure::usage(format!("there is no tool `{shown}`"));
    match host.tools.known().suggest(tool) {
        Some(name) => failure.hint(format!("did you mean `{name}`?")),
        None => failure.hint("`belljar tools list` shows all tools"),
    }
}

/// Whether a word names a file rather than a tool.
pub(crate) fn is_path(word: &str) -> bool {
    word.contains(['/', '\\', '.']) || ToolName::new(word).is_err()
}

/// The files that a word names, if it names any: a component and the manifest beside it.
fn files(word: &str) -> Vec<PathBuf> {
    let component = PathBuf::from(word);
    let manifest = component.with_file_name("tool.toml");
    if is_path(word) { vec![component, manifest] } else { Vec::new() }
}

/// Reads a component file.
pub(crate) fn read_component(path: &str) -> Result<Wasm, Failure> {
    let bytes = read_bounded(Path::new(path), MAX_COMPONENT_BYTES).map_err(|error| {
        Failure::usage(format!("failed to read `{}`: {error}", Shown::new(path)))
    })?;
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    Ok(Wasm::new(bytes).named(name))
}

/// A component by its file or by a tool's name.
fn find(word: &str, places: &Places, out: &Out) -> Result<Wasm, Failure> {
    if is_path(word) {
        return read_component(word);
    }
    let host = Assembly::new(places, out)?.host()?;
    match host.tools.owner(word) {
        Some(component) => Ok(component.wasm.clone()),
        None => Err(no_tool(&host, word)),
    }
}

fn list(json: bool, places: &Places, out: &Out) -> Result<Exit, Failure> {
    let host = Assembly::new(places, out)?.host()?;
    let mut rows = Vec::new();
    let mut failed = false;
    let runtime = host::small_runtime()?;
    for component in host.tools.components() {
        match runtime.block_on(component.infos(&host.sandbox)) {
            Ok(infos) => {
                rows.extend(infos.iter().map(|info| (info.clone(), component.clone())));
            }
            Err(error) => {
                failed = true;
                out.warning(format_args!("tool `{}` is left out: {error}", component.name));
            }
        }
    }
    rows.retain(|(info, component)| {
        host.tools.owner(info.name.as_str()).is_some_and(|owner| owner.name == component.name)
    });
    rows.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    if json {
        let mut rows: Vec<Value> =
            rows.iter().map(|(info, component)| as_json(info, component)).collect();
        rows.extend(host_tool_specs().into_iter().map(|spec| {
            json!({
                "name": spec.name,
                "description": spec.description,
                "origin": "host",
                "schema": spec.schema,
            })
        }));
        rows.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
        out.json(&rows)?;
    } else {
        let headings = ["tool", "from", "asks for", "description"];
        let mut table = Table::new(out, &headings).cut(MAX_DESCRIPTION);
        for (info, component) in &rows {
            table.row([
                plain(&info.name),
                plain(origin(component.origin)),
                styled(Style::Dim, words::asks(&component.manifest.ask)),
                plain(Shown::new(&info.description)),
            ]);
        }
        for spec in host_tool_specs() {
            table.row([
                plain(&spec.name),
                plain("host"),
                styled(Style::Dim, "nothing"),
                plain(Shown::new(&spec.description)),
            ]);
        }
        table.print(out);
    }
    for problem in host.tools.problems() {
        failed |= problem.severity == Severity::Error;
        out.diagnostic(problem);
    }
    Ok(if failed { Exit::Failed } else { Exit::Completed })
}

fn as_json(info: &ToolInfo, component: &ToolComponent) -> Value {
    json!({
        "name": info.name,
        "description": info.description,
        "origin": origin(component.origin),
        "component": component.name,
        "digest": format!("sha256:{}", component.wasm.digest()),
        "hints": info.hints,
        "asks": component.manifest.ask,
        "schema": info.schema,
    })
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Stock => "belljar",
        Origin::Home => "home",
    }
}
