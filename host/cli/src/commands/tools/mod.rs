//! `belljar tools`: lists, inspects, calls, makes, installs and removes tools.

mod add;
pub(crate) mod aliases;
pub(crate) mod call;
pub(crate) mod crash;
mod given;
pub(crate) mod inspect;
mod install;
pub(crate) mod make;
mod projects;
pub(crate) mod refused;
mod remove;
pub(crate) mod single;
mod test;
mod words;

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_agent::{Host, builtin_tool_specs};
use belljar_catalogue::{ComponentOrigin, ToolComponent, UNPINNED};
use belljar_definition::{BUILTIN_TOOLS, Diagnostic, Severity};
use belljar_mcp::ListedTool;
use belljar_policy::{ShownPath as _, ShownText, ToolAsk, ToolName};
use belljar_sandbox::{ToolInfo, Wasm};
use serde_json::{Value, json};

use crate::args::tools::{ToolCallArgs, ToolsCommand};
use crate::commands::tools::aliases as tools_aliases;
use crate::commands::tools::call as tools_call;
use crate::commands::tools::inspect as tools_inspect;
use crate::commands::tools::make as tools_make;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, MAX_COMPONENT_BYTES, read_bounded};
use crate::setup::host;
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell, styled_cell};

/// The most characters of a description in the list.
const MAX_DESCRIPTION: usize = 70;

/// Runs one of the commands.
pub(crate) fn run(
    command: &ToolsCommand,
    places: &dyn Fn() -> Result<HomePaths, Failure>,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    match command {
        ToolsCommand::List { of, json } => list_tools(
            *json,
            &AgentOwner::behind_wall(of, &places()?, walls, WallGaps::default())?,
            out,
        ),
        ToolsCommand::Inspect { component, of, json } => {
            let through = WallGaps { read: component_files(component), ..WallGaps::default() };
            let whose = AgentOwner::behind_wall(of, &places()?, walls, through)?;
            let wasm = find_component(component, &whose, out)?;
            tools_inspect::run(component, &wasm, *json, &whose.places, out)
        }
        ToolsCommand::Call(args) => call_tool(args, &places()?, walls, out),
        ToolsCommand::Aliases { json, markdown, nobodys } => {
            nobodys.refuse_tenant("the table is the same for all", "leave it out")?;
            tools_aliases::run(*json, *markdown, out)
        }
        ToolsCommand::New { name, lang, dir, nobodys } => {
            nobodys.refuse_tenant(
                "a project is a directory, and nobody's until it is installed",
                "`belljar tools build DIR --install --tenant NAME` installs it",
            )?;
            projects::new(name, lang, dir.as_deref(), out)
        }
        ToolsCommand::Build(args) => tools_make::build_project(args, places, out),
        ToolsCommand::Test { component, nobodys, json } => {
            nobodys.refuse_tenant("the suite is the same for all", "leave it out")?;
            test::run(component, *json, &places()?, walls, out)
        }
        ToolsCommand::Add(args) => add::run(args, &places()?, out),
        ToolsCommand::Remove { name, yes, of } => remove::run(name, *yes, of, &places()?, out),
    }
}

/// Runs `tools call`: reads secrets and rules first, raises the OS sandbox, and calls the tool.
fn call_tool(
    args: &ToolCallArgs,
    operator: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    // Read before the OS sandbox is raised, because behind it the values of secrets may be unreadable.
    let whose = AgentOwner::for_tenant(&args.of, operator)?;
    let call = tools_call::ToolCallCommand::from_args(args, &whose.places)?;
    let mut through = WallGaps { read: component_files(&args.component), ..WallGaps::default() };
    if args.of.is_named() {
        through.read.extend(args.of.wall_gaps(operator)?.read);
    }
    if args.allow_write {
        through.write.push(whose.places.workspace.clone());
    }
    walls.raise_for(operator, &through)?;
    tools_call::run(call, &whose, out)
}

/// The requests in a tool's manifest. A tool of the host or of an MCP server has no manifest, and requests
/// nothing.
pub(crate) fn manifest_of(host: &Host, tool: &str) -> Result<ToolAsk, Failure> {
    match host.tools.find_component(tool) {
        Some(component) => Ok(component.manifest.ask.clone()),
        None if BUILTIN_TOOLS.contains(&tool) || host.tools.find_remote(tool).is_some() => {
            Ok(ToolAsk::default())
        }
        None => Err(no_tool(host, tool)),
    }
}

/// The failure for a name that is no callable component, with the reason: a tool of the host, of an MCP
/// server, withheld, broken or missing.
pub(crate) fn no_tool(host: &Host, tool: &str) -> Failure {
    if BUILTIN_TOOLS.contains(&tool) {
        return Failure::usage(format!("`{tool}` is no component: the host itself provides it"))
            .with_hint("it acts on the session of an agent, so only an agent can call it");
    }
    if let Some((server, _)) = host.tools.find_remote(tool) {
        let name = server.name();
        return Failure::usage(format!("`{tool}` is no component: the MCP server `{name}` has it"))
            .with_hint(format!("`belljar mcp review {name}` shows it; only an agent can call it"));
    }
    let shown = ShownText::clip_line(tool, 80);
    if let Some(why) = host.tools.withheld_reason(tool) {
        return withheld_failure(host, why);
    }
    if host.tools.known_tools().iter().any(|known| known.as_str() == tool) {
        let failure = Failure::usage(format!("the tool `{shown}` is installed and cannot be used"));
        let list = host.for_its_tenant("belljar tools list");
        return failure.with_hint(format!("`{list}` says why, and what to do"));
    }
    if let Some(why) = first_error(host, tool) {
        let at = match why.line {
            0 => why.path.to_shown().to_string(),
            line => format!("{}:{line}:{}", why.path.to_shown(), why.column),
        };
        let message = &why.message;
        let text = format!("the tool `{shown}` is installed and cannot be used: {at}: {message}");
        return why.hint.iter().fold(Failure::usage(text), |failure, hint| failure.with_hint(hint));
    }
    let failure = Failure::usage(format!("there is no tool `{shown}`"));
    match host.tools.known_tools().suggest_name(tool) {
        Some(name) => failure.with_hint(format!("did you mean `{name}`?")),
        None => {
            let list = host.for_its_tenant("belljar tools list");
            failure.with_hint(format!("`{list}` shows all tools"))
        }
    }
}

/// The first error in the files of an installed tool.
fn first_error<'h>(host: &'h Host, tool: &str) -> Option<&'h Diagnostic> {
    let is_its = |path: &Path| path.parent().and_then(Path::file_name) == Some(OsStr::new(tool));
    let mut errors = host.tools.problems().iter();
    errors.find(|found| found.severity == Severity::Error && is_its(&found.path))
}

/// The failure for an installed tool that no agent can use, with the reason and a hint.
fn withheld_failure(host: &Host, why: String) -> Failure {
    let problems = host.tools.problems().iter();
    let about = problems.into_iter().find(|problem| problem.message == why);
    let failure = Failure::usage(why);
    let Some(about) = about else { return failure };
    let path = about.path.to_shown();
    let failure = about.hint.iter().fold(failure, |failure, hint| failure.with_hint(hint));
    failure.with_hint(format!(
        "`belljar tools inspect {path}` shows what it is, `belljar tools call {path} ARGUMENTS` calls \
         it once as it is"
    ))
}

/// Returns whether a word on the command line means a file, and no tool's name.
pub(crate) fn is_path(word: &str) -> bool {
    word.contains(['/', '\\', '.']) || ToolName::new(word).is_err()
}

/// The files that a word on the command line names: a component, and the manifest beside it.
fn component_files(word: &str) -> Vec<PathBuf> {
    let component = PathBuf::from(word);
    let manifest = component.with_file_name("tool.toml");
    if is_path(word) { vec![component, manifest] } else { Vec::new() }
}

/// Reads a component file.
pub(crate) fn read_component(path: &str) -> Result<Wasm, Failure> {
    let bytes = read_bounded(Path::new(path), MAX_COMPONENT_BYTES).map_err(|error| {
        let failure = Failure::usage(format!("failed to read `{}`: {error}", ShownText::new(path)));
        match error.kind() {
            ErrorKind::NotFound => failure
                .with_hint("`belljar tools build PROJECT` makes `PROJECT/tool.wasm`")
                .with_hint("`belljar tools list` shows the tools that go by a name"),
            _ => failure,
        }
    })?;
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    Ok(Wasm::new(bytes).with_name(name))
}

/// Finds a component by its file or by the name of one of its tools.
fn find_component(word: &str, whose: &AgentOwner, out: &TerminalOutput) -> Result<Wasm, Failure> {
    if is_path(word) {
        return read_component(word);
    }
    let host = whose.build_host(out)?;
    match host.tools.find_component(word) {
        Some(component) => Ok(component.wasm.clone()),
        None => Err(no_tool(&host, word)),
    }
}

/// Lists all tools: of components, of the host, and of MCP servers.
fn list_tools(
    json: bool,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let host = whose.build_host(out)?;
    let mut rows = Vec::new();
    let mut failed = false;
    let runtime = host::small_runtime()?;
    for component in host.tools.components() {
        match runtime.block_on(component.describe_tools(&host.sandbox)) {
            Ok(infos) => {
                rows.extend(infos.iter().map(|info| (info.clone(), component.clone())));
            }
            Err(error) => {
                failed = true;
                out.print_warning(format_args!("tool `{}` is left out: {error}", component.name));
            }
        }
    }
    rows.retain(|(info, component)| {
        host.tools
            .find_component(info.name.as_str())
            .is_some_and(|owner| owner.name == component.name)
    });
    rows.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    match json {
        true => out.print_json(&all_as_json(&host, &rows))?,
        false => print_all(&host, &rows, out),
    }
    for problem in host.tools.problems() {
        failed |= problem.severity == Severity::Error;
        match problem.code {
            // The remedy is the same for all unpinned tools, so it is printed once, elsewhere.
            UNPINNED => out.print_diagnostic(&Diagnostic { hint: None, ..problem.clone() }),
            _ => out.print_diagnostic(problem),
        }
    }
    if host.tools.problems().iter().any(|problem| problem.code == UNPINNED) {
        let grant = host.for_its_tenant("belljar grant AGENT --tool TOOL");
        out.note(format_args!(
            "  {} no agent is offered a tool that is not pinned; if you trust one, `{grant}` pins it \
             and lets an agent call it",
            out.paint_err(TextStyle::Cyan, "hint:")
        ));
    }
    Ok(if failed { CommandExit::Failed } else { CommandExit::Completed })
}

/// All tools as JSON, sorted by name.
fn all_as_json(host: &Host, rows: &[(ToolInfo, Arc<ToolComponent>)]) -> Vec<Value> {
    let mut all: Vec<Value> =
        rows.iter().map(|(info, component)| as_json(info, component)).collect();
    all.extend(builtin_tool_specs().into_iter().map(|spec| {
        json!({
            "name": spec.name,
            "description": spec.description,
            "origin": "host",
            "schema": spec.schema,
        })
    }));
    all.extend(server_tools(host).map(|(server, name, tool)| {
        json!({
            "name": name,
            "description": tool.description,
            "origin": "mcp",
            "server": server,
            "schema": tool.schema,
        })
    }));
    all.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    all
}

/// Prints a table of all tools.
fn print_all(host: &Host, rows: &[(ToolInfo, Arc<ToolComponent>)], out: &TerminalOutput) {
    let headings = ["tool", "from", "asks for", "description"];
    let mut table = TextTable::new(out, &headings).with_cut(MAX_DESCRIPTION);
    let mut row = |name: &str, from: &str, asks: &str, description: &str| {
        let description = plain_cell(ShownText::new(description));
        table.push_row([
            plain_cell(name),
            plain_cell(from),
            styled_cell(TextStyle::Dim, asks),
            description,
        ]);
    };
    for (info, component) in rows {
        let asks = words::format_requests(&component.manifest.ask);
        row(info.name.as_str(), format_origin(component.origin), &asks, &info.description);
    }
    for spec in builtin_tool_specs() {
        row(&spec.name, "host", "nothing", &spec.description);
    }
    for (server, name, tool) in server_tools(host) {
        row(name.as_str(), &format!("mcp {server}"), "nothing", &tool.description);
    }
    table.print_to(out);
}

/// The accepted tools of MCP servers, each with its server's name.
fn server_tools(host: &Host) -> impl Iterator<Item = (&str, &ToolName, &ListedTool)> {
    let servers = host.tools.servers().iter();
    servers.flat_map(|it| it.tools().iter().map(|(name, tool)| (it.name(), name, tool)))
}

/// A component's tool as a JSON object.
fn as_json(info: &ToolInfo, component: &ToolComponent) -> Value {
    json!({
        "name": info.name,
        "description": info.description,
        "origin": format_origin(component.origin),
        "component": component.name,
        "digest": format!("sha256:{}", component.wasm.digest()),
        "hints": info.hints,
        "asks": component.manifest.ask,
        "schema": info.schema,
    })
}

/// The origin of a component as a word.
fn format_origin(origin: ComponentOrigin) -> &'static str {
    match origin {
        ComponentOrigin::Stock => "belljar",
        ComponentOrigin::Home => "home",
    }
}
