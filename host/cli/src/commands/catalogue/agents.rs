//! `belljar agents`: the agents, their rights, and faulty files.

use std::collections::BTreeMap;
use std::path::Path;

use belljar_agent::{
    Host, ResolveError, ResolvedAgent, canonicalize_workspace, resolve_agent, resolve_direct,
};
use belljar_definition::{
    AgentReadiness, AgentScope, CatalogItem, Diagnostic, Dialect, FileRead, Severity,
};
use belljar_model::ModelResolveError;
use belljar_policy::{CallPermission, LIMITS, ShownPath as _, ShownText, ToolName};
use belljar_server::MCP_IDENTITY;
use serde_json::{Value, json};

use super::listing::{AgentListing, ListedAgents};
use super::noticed::note_workspace_agents;
use crate::args::server::TenantArg;
use crate::args::{AgentsArgs, AgentsCommand};
use crate::commands::catalogue::check;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, read_bounded};
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{self, Cell, TextTable, plain_cell, styled_cell};

/// The most characters of a description in the list.
const MAX_DESCRIPTION: usize = 60;

/// The most characters of a list of tool names: two or three names.
const MAX_TOOLS: usize = 36;

/// The divisor of a wide terminal's columns: the tools get a third of them.
const TOOLS_SHARE: usize = 3;

/// Runs the command: lists, shows or checks agents, or changes libraries.
pub(crate) fn run(
    args: &AgentsArgs,
    places: HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let whose = || AgentOwner::behind_wall(&args.of, &places, walls, WallGaps::default());
    match &args.command {
        AgentsCommand::List { verbose, library, json } => {
            let most = if *verbose { usize::MAX } else { MAX_DESCRIPTION };
            let wanted = match library {
                Some(name) => ListedAgents::Library(name),
                None if *json || *verbose => ListedAgents::All,
                None => ListedAgents::Screen,
            };
            list_agents(*json, most, wanted, (&whose()?, &args.of), out)
        }
        AgentsCommand::Show { name, json } => show_agent(name, *json, &whose()?, out),
        AgentsCommand::Check(check) => check::run(check, &args.of, &places, walls, out),
        AgentsCommand::Library(command) => {
            crate::commands::libraries::run(command, &args.of, &places, walls, out)
        }
    }
}

/// The failure for an unknown agent, or for an unusable workspace.
pub(crate) fn not_found(error: ResolveError) -> Failure {
    // The text already ends with a hint.
    Failure::from(anyhow::Error::new(error)).with_exit(CommandExit::Usage)
}

/// Finds the agent `name`. Clients of MCP have rights even without an agent file; a file of a workspace or a
/// library never counts for them.
pub(crate) fn find_agent(
    host: &Host,
    name: &str,
    workspace: &Path,
) -> Result<ResolvedAgent, Failure> {
    let agent = match is_of_clients(name) {
        false => resolve_agent(host, name, workspace),
        true => {
            host.library.refresh();
            canonicalize_workspace(workspace).and_then(|at| resolve_direct(host, MCP_IDENTITY, &at))
        }
    };
    agent.map_err(not_found)
}

/// Returns whether this name stands for the rights of MCP clients.
pub(crate) fn is_of_clients(name: &str) -> bool {
    name.strip_prefix("home/").unwrap_or(name) == MCP_IDENTITY
}

/// Lists the agents, with at most `most` characters of each description. `usize::MAX` = without a limit, and
/// with the names of all tools.
fn list_agents(
    json: bool,
    most: usize,
    wanted: ListedAgents<'_>,
    (whose, of): (&AgentOwner, &TenantArg),
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let host = whose.build_host(out)?;
    let places = &whose.places;
    let listing = AgentListing::from_host(&host, places, wanted).map_err(not_found)?;
    let agents = &listing.agents;
    if let (ListedAgents::Library(name), true) = (wanted, agents.is_empty()) {
        let name = ShownText::clip_line(name, 160);
        let list = of.format_command("belljar agents libraries");
        return Err(Failure::usage(format!("no library `{name}` with agents is installed"))
            .with_hint(format!("`{list}` lists the installed ones")));
    }
    if json {
        let rows: Vec<Value> = agents.iter().map(agent_summary).collect();
        out.print_json(&rows)?;
    } else {
        let headings = ["agent", "scope", "status", "tools", "description"];
        let mut table = TextTable::new(out, &headings).with_cut(most);
        let room = out.terminal_columns().unwrap_or_default() / TOOLS_SHARE;
        let most_tools = if most == usize::MAX { most } else { room.max(MAX_TOOLS) };
        for agent in agents {
            table.push_row([
                plain_cell(&agent.id.slug),
                plain_cell(format_scope(&agent.id.scope)),
                status_cell(&agent.status),
                plain_cell(format_tools(agent, most_tools)),
                plain_cell(ShownText::new(agent.definition.description.trim())),
            ]);
        }
        table.print_to(out);
        listing.print_rest(of, out);
        print_limits(agents, out);
        in_short(agents, out);
        note_workspace_agents(places, out);
    }
    let problems = host.library.problems();
    // One line for each agent, so that the list stays readable with a hundred broken files; `check` shows
    // more. The warnings of an installed library were shown at its installation.
    let libraries = places.libraries_directory();
    let quiet = |problem: &&Diagnostic| {
        problem.severity < Severity::Error && problem.path.starts_with(&libraries)
    };
    problems
        .iter()
        .filter(|problem| !quiet(problem))
        .for_each(|problem| out.print_diagnostic(problem));
    let left = problems.iter().filter(quiet).count();
    if left > 0 {
        let check = format!("belljar agents check {}", libraries.to_shown());
        out.note(format_args!(
            "{left} findings in installed libraries stop no agent: `{}` shows them",
            host.for_its_tenant(&check)
        ));
    }
    Ok(findings_exit(&problems))
}

/// The most names in an agent's list of agents that it may call.
const MAX_CALLED: usize = 20;

/// Prints, for each agent, the fields of its own file that take granted tools away.
fn print_limits(agents: &[ResolvedAgent], out: &TerminalOutput) {
    for agent in agents {
        for line in limit_lines(agent) {
            out.print_line(format_args!("{}: {}", agent.id.slug, ShownText::new(&line)));
        }
    }
}

/// A line for each field of the agent's own file that takes a granted tool away, or makes it ask.
fn limit_lines(agent: &ResolvedAgent) -> Vec<String> {
    let mut by: BTreeMap<(u32, &str), Vec<&str>> = BTreeMap::new();
    for (tool, granted) in &agent.grants.tools {
        let decided = agent.definition.decided_by(tool.as_str());
        if let Some(it) = decided.filter(|it| it.max_permission(tool.as_str()) < *granted) {
            by.entry((it.line, &it.field)).or_default().push(tool.as_str());
        }
    }
    let line = |((line, field), tools): ((u32, &str), Vec<&str>)| {
        let field = ShownText::clip_line(field, 64);
        format!(
            "`{field}` on line {line} of its file withholds, or has asked for: {}",
            tools.join(", ")
        )
    };
    by.into_iter().map(line).collect()
}

/// The reasons why an agent is blocked, or its warnings; `None` = the agent is ready without warnings.
fn block_reasons(agent: &ResolvedAgent) -> Option<(TextStyle, &[String])> {
    match &agent.status {
        AgentReadiness::Ready => None,
        AgentReadiness::ReadyWithWarnings { warnings } => Some((TextStyle::Yellow, warnings)),
        AgentReadiness::Blocked { reasons } => Some((TextStyle::Red, reasons)),
    }
}

/// Prints the first reason of each agent, and one command that helps.
fn in_short(agents: &[ResolvedAgent], out: &TerminalOutput) {
    let found = agents.iter().filter_map(|agent| Some((agent, block_reasons(agent)?)));
    for (at, (agent, (style, lines))) in found.enumerate() {
        if at == 0 {
            out.print_line("");
        }
        let (first, more) = lines.split_first().map_or(("", 0), |(it, rest)| (&**it, rest.len()));
        let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
        let status = out.paint(style, agent.status.as_str());
        out.print_line(format_args!(
            "{}: {status}: {}{more}",
            agent.id.slug,
            ShownText::new(first)
        ));
    }
    let helped = || agents.iter().filter(|agent| !agent.hint.is_empty());
    if let Some(first) = helped().next() {
        let others = if helped().nth(1).is_some() { ", and so the others" } else { "" };
        out.print_line(format_args!(
            "to give `{}` what it asks for: `{}`{others}",
            first.id,
            ShownText::new(&first.hint)
        ));
    }
}

/// Prints all reasons of one agent, and the command that helps.
fn in_full(agent: &ResolvedAgent, out: &TerminalOutput) {
    let Some((style, lines)) = block_reasons(agent) else { return };
    out.print_line("");
    out.print_line(format_args!("{}: {}", agent.id.slug, out.paint(style, agent.status.as_str())));
    for line in lines {
        out.print_line(format_args!("  {}", ShownText::new(line)));
    }
    if !agent.hint.is_empty() {
        out.print_line(format_args!(
            "  to give it what it asks for: `{}`",
            ShownText::new(&agent.hint)
        ));
    }
}

/// Shows one agent: its definition, rights and reasons.
fn show_agent(
    name: &str,
    json: bool,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let host = whose.build_host(out)?;
    let agent = resolve_agent(&host, name, &whose.places.workspace).map_err(not_found)?;
    if json {
        let mut object = agent_summary(&agent);
        let calls = agent.hands_to(&host, &whose.places.workspace);
        if let Some(object) = object.as_object_mut() {
            object.insert("may_call".to_owned(), json!(calls));
            let wait = agent.auto_background.map(|wait| wait.as_secs());
            object.insert("auto_background_seconds".to_owned(), json!(wait));
            object.insert("body".to_owned(), json!(agent.definition.body));
            object.insert("grants".to_owned(), json!(agent.grants));
            object.insert("limits".to_owned(), json!(agent.rights.limits()));
        }
        out.print_json(&object)?;
        return Ok(CommandExit::Completed);
    }
    print_definition(&agent, &host, out);
    print_rights(&agent, &host, out);
    print_delegation(&agent.hands_to(&host, &whose.places.workspace), out);
    if let Some(wait) = agent.auto_background {
        let wait = wait.as_secs();
        out.print_line(format_args!(
            "a subagent that takes longer than {wait} s goes to the background"
        ));
    }
    print_limits(std::slice::from_ref(&agent), out);
    in_full(&agent, out);
    out.print_line("");
    out.print_line(out.paint(TextStyle::Bold, "system prompt"));
    out.print_text(&ShownText::multiline(&agent.definition.body).to_string());
    Ok(CommandExit::Completed)
}

/// The programs for which a file is written, judged by its fields.
pub(crate) fn written_for(dialect: Dialect) -> String {
    match dialect {
        Dialect::Unknown => "any program".to_owned(),
        known => known.to_string(),
    }
}

/// Returns true if the agent's own file names a model that is neither configured in `belljar.toml` nor a
/// role.
pub(crate) fn names_no_model(agent: &ResolvedAgent, host: &Host) -> bool {
    let named = agent.definition.model.as_deref();
    let found = named.map(|model| host.models.resolve_model(model, None));
    matches!(found, Some(Err(ModelResolveError::Unknown { .. })))
}

/// Prints the definition of an agent: its file, status and model.
fn print_definition(agent: &ResolvedAgent, host: &Host, out: &TerminalOutput) {
    let definition = &agent.definition;
    out.print_line(out.paint(TextStyle::Bold, ShownText::new(&definition.name)));
    out.print_line(ShownText::new(definition.description.trim()));
    out.print_line("");
    let mut table = TextTable::new(out, &["", ""]);
    let mut row = |name: &str, value: String| {
        table.push_row([styled_cell(TextStyle::Dim, name), plain_cell(value)])
    };
    row("identity", ShownText::new(&agent.id.to_string()).to_string());
    row("file", ShownText::new(&definition.path.to_string_lossy()).to_string());
    row("written for", written_for(definition.dialect));
    row("visibility", definition.visibility.to_string());
    row("status", agent.status.as_str().to_owned());
    let unknown = if names_no_model(agent, host) {
        " (not configured: `--model NAME` runs it with another)"
    } else {
        ""
    };
    let model = definition.model.as_deref().map_or_else(
        || "main (it names none)".to_owned(),
        |model| format!("{}{unknown}", ShownText::clip_line(model, 100)),
    );
    row("model", model);
    for translated in &definition.translated {
        let tools: Vec<&str> = translated.tools.iter().map(|tool| tool.as_str()).collect();
        let limits = translated.limits.map_or(String::new(), |limits| format!(" ({limits})"));
        let name = ShownText::new(&translated.written);
        row("its tool", format!("{name} is {}{limits}", tools.join(", ")));
    }
    table.print_to(out);
}

/// The table cell with a tool's permission, and a note if its calls cannot have an effect.
pub(crate) fn permission_cell(
    agent: &ResolvedAgent,
    host: &Host,
    tool: &ToolName,
    permission: CallPermission,
) -> Cell {
    match permission {
        _ if agent.reaches_no_host(host, tool.as_str()) => {
            styled_cell(TextStyle::Yellow, format!("{permission}, but no host is granted"))
        }
        CallPermission::Allow => styled_cell(TextStyle::Green, permission),
        CallPermission::Ask | CallPermission::Deny => styled_cell(TextStyle::Yellow, permission),
    }
}

/// Prints the rights of an agent: its tools, mounts, hosts, secrets and limits.
fn print_rights(agent: &ResolvedAgent, host: &Host, out: &TerminalOutput) {
    out.print_line("");
    let mut rights = TextTable::new(out, &["right", "", ""]);
    for (tool, permission) in agent.rights.offered_tools() {
        if !agent.is_offered(tool.as_str()) {
            continue;
        }
        rights.push_row([
            plain_cell("tool"),
            plain_cell(tool),
            permission_cell(agent, host, tool, permission),
        ]);
    }
    for tool in &agent.definition.unavailable {
        let name = ShownText::clip_line(&tool.name, MAX_TOOLS);
        rights.push_row([
            plain_cell("tool"),
            plain_cell(name),
            styled_cell(TextStyle::Red, "missing: nobody has it here"),
        ]);
    }
    for mount in agent.rights.mounts() {
        let host = ShownText::new(&mount.host.to_string_lossy()).to_string();
        rights.push_row([
            plain_cell("mount"),
            plain_cell(&mount.guest),
            plain_cell(format!("{}, {host}", mount.access)),
        ]);
    }
    for list in agent.rights.hosts().lists() {
        let rules: Vec<String> = list.rules.iter().map(ToString::to_string).collect();
        let rules = if rules.is_empty() { "none".to_owned() } else { rules.join(", ") };
        rights.push_row([
            plain_cell("hosts"),
            plain_cell(rules),
            plain_cell(format!("by {}", list.source)),
        ]);
    }
    for secret in agent.rights.secrets() {
        rights.push_row([plain_cell("secret"), plain_cell(secret), plain_cell("")]);
    }
    rights.print_to(out);
    out.print_line("");
    let mut limits = TextTable::new(out, &["limit", ">", "unit"]);
    for row in LIMITS {
        let value = agent.rights.limits().get(row.key).unwrap_or(row.default);
        limits.push_row([
            plain_cell(row.key),
            plain_cell(table::format_count(value)),
            plain_cell(row.unit),
        ]);
    }
    limits.print_to(out);
}

/// Prints the agents that this agent may call.
fn print_delegation(names: &[String], out: &TerminalOutput) {
    out.print_line("");
    let first = names.iter().take(MAX_CALLED).map(|name| ShownText::new(name).to_string());
    let first = first.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_CALLED) {
        _ if names.is_empty() => out.print_line("may call no other agent"),
        0 => out.print_line(format_args!("may call: {first}")),
        more => {
            out.print_line(format_args!("may call: {first} and {more} more; `--json` lists all"))
        }
    }
}

/// A finding as a JSON object.
pub(crate) fn as_json(found: &Diagnostic) -> Value {
    json!({
        "path": found.path,
        "line": found.line,
        "column": found.column,
        "severity": found.severity.to_string(),
        "code": found.code,
        "message": found.message,
        "hint": found.hint,
    })
}

/// A warning for each agent that the settings name, and that does not exist.
pub(crate) fn unknown_agents(host: &Host, workspace: &Path) -> Vec<Diagnostic> {
    let workspace = canonicalize_workspace(workspace).unwrap_or_else(|_| workspace.to_path_buf());
    let (agents, teams) = (host.library.catalog(), host.teams.catalog());
    host.settings.check_agents(&agents, &teams, &workspace)
}

/// Reads a team or a skill from a file in any directory.
pub(crate) fn read_file<D: CatalogItem<Context = ()>>(path: &Path) -> FileRead<D> {
    match read_bounded(path, D::KIND.max_bytes as u64) {
        Ok(bytes) => D::read_file(path, &bytes, &()),
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
            let length = std::fs::metadata(path).map_or(0, |meta| meta.len());
            FileRead::Invalid { diagnostics: D::too_large(path, length) }
        }
        Err(error) => FileRead::Invalid { diagnostics: vec![unreadable_file(path, &error)] },
    }
}

pub(crate) fn unreadable_file(path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::for_file(path, "read", format!("cannot be read: {error}"))
}

/// Returns whether a word on the command line means a file, and no name.
pub(crate) fn is_file<D: CatalogItem>(word: &str) -> bool {
    let path = Path::new(word);
    D::accepts_path(path) || path.is_file()
}

/// Ends a `check`: prints all findings, as JSON or for a person.
pub(crate) fn end_check(
    found: &[Diagnostic],
    json: bool,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    if json {
        out.print_json(&found.iter().map(as_json).collect::<Vec<Value>>())?;
    }
    Ok(report_findings(found, out))
}

/// Prints findings for a person. The exit code says whether one of them is an error.
pub(crate) fn report_findings(found: &[Diagnostic], out: &TerminalOutput) -> CommandExit {
    out.print_diagnostics(found);
    findings_exit(found)
}

/// The exit code for findings: an error means that the files are invalid.
fn findings_exit(found: &[Diagnostic]) -> CommandExit {
    if found.iter().any(|found| found.severity == Severity::Error) {
        CommandExit::Usage
    } else {
        CommandExit::Completed
    }
}

/// An agent as a JSON object, for the list.
fn agent_summary(agent: &ResolvedAgent) -> Value {
    let definition = &agent.definition;
    let reasons = match &agent.status {
        AgentReadiness::Ready => &Vec::new(),
        AgentReadiness::ReadyWithWarnings { warnings } => warnings,
        AgentReadiness::Blocked { reasons } => reasons,
    };
    let tools: serde_json::Map<String, Value> = agent
        .rights
        .offered_tools()
        .map(|(tool, permission)| (tool.to_string(), json!(permission)))
        .collect();
    json!({
        "id": agent.id.to_string(),
        "name": definition.name,
        "description": definition.description,
        "path": definition.path,
        "dialect": definition.dialect,
        "visibility": definition.visibility,
        "model": definition.model,
        "status": agent.status.as_str(),
        "reasons": reasons,
        "limited_by": limit_lines(agent),
        "tools": tools,
    })
}

/// The table cell of an agent's status, coloured.
pub(crate) fn status_cell(status: &AgentReadiness) -> (String, Option<TextStyle>) {
    let style = match status {
        AgentReadiness::Ready => TextStyle::Green,
        AgentReadiness::ReadyWithWarnings { .. } => TextStyle::Yellow,
        AgentReadiness::Blocked { .. } => TextStyle::Red,
    };
    styled_cell(style, status.as_str())
}

/// The scope of an agent as a word: `home`, `library/x` or `workspace`.
pub(crate) fn format_scope(scope: &AgentScope) -> String {
    match scope {
        AgentScope::Home => "home".to_owned(),
        AgentScope::Library(name) => format!("library/{}", ShownText::new(name)),
        AgentScope::Workspace(_) => "workspace".to_owned(),
    }
}

/// The number of tools, and names up to `most` characters, for example `4: file_find, file_list, …`.
fn format_tools(agent: &ResolvedAgent, most: usize) -> String {
    let names = agent.rights.offered_tools().map(|(tool, permission)| match permission {
        CallPermission::Allow | CallPermission::Deny => tool.to_string(),
        CallPermission::Ask => format!("{tool} (ask)"),
    });
    first_names(&names.collect::<Vec<_>>(), most)
}

/// The number of names, and the first of them, up to `most` characters.
fn first_names(names: &[String], most: usize) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let mut text = format!("{}: ", names.len());
    for (at, name) in names.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        // At least one name is shown.
        if at > 0 && text.len() + comma.len() + name.len() > most {
            return text + ", …";
        }
        text.push_str(comma);
        text.push_str(name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_counts_tools_and_names_as_many_as_fit() {
        let names = ["file_find", "file_list", "file_read", "file_search"].map(str::to_owned);
        assert_eq!(
            first_names(&names, usize::MAX),
            "4: file_find, file_list, file_read, file_search"
        );
        assert_eq!(first_names(&names, 30), "4: file_find, file_list, …");
        assert_eq!(first_names(&names, 3), "4: file_find, …");
        assert_eq!(first_names(&[], 3), "none");
    }
}
