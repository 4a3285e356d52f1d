//! What a plugin offers, for a person and for a program. At most some 25 lines, whatever the plugin.

use std::collections::BTreeMap;

use belljar_definition::Grantee;
use belljar_definition::plugin::{PluginServer, ServerTransport};
use belljar_definition::suspicion::{RULES, Suspicion};
use belljar_policy::ShownText;
use serde_json::{Value, json};

use super::named::WantedPlugin;
use super::vetting::{PluginText, VettedPlugin};
use crate::commands::libraries::agent_json;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, format_quantity, plain_cell, styled_cell};

/// Characters of a cell with names.
const MAX_NAMES: usize = 160;

/// Lines of one kind: hooks, servers, groups of agents, suspicions, files left out.
const MAX_LINES: usize = 4;

/// Prints who a plugin is and where it comes from.
pub(super) fn print_head(
    vetted: &VettedPlugin,
    source: &str,
    revision: Option<&str>,
    out: &TerminalOutput,
) {
    let manifest = &vetted.manifest;
    let name = out.paint(TextStyle::Bold, &vetted.key);
    let version = manifest
        .version
        .as_deref()
        .map_or(String::new(), |version| format!(" {}", ShownText::clip_line(version, 40)));
    out.print_line(format_args!("plugin {name}{version} from {source} ({})", manifest.format));
    if let Some(revision) = revision {
        out.print_line(format_args!("commit {revision}"));
    }
    if !manifest.description.is_empty() {
        out.print_line(ShownText::clip_line(&manifest.description, 200));
    }
    let author =
        manifest.author.as_deref().map(|author| format!("by {}", ShownText::clip_line(author, 80)));
    let license = manifest
        .license
        .as_deref()
        .map(|license| format!("licence {}", ShownText::clip_line(license, 40)));
    let about: Vec<String> = author.into_iter().chain(license).collect();
    if !about.is_empty() {
        out.print_line(about.join(", "));
    }
}

/// Prints the table of a plugin's parts: every kind with its number and names, the unserved ones with why.
pub(super) fn print_parts(vetted: &VettedPlugin, out: &TerminalOutput) {
    let inventory = &vetted.inventory;
    let mut table = TextTable::new(out, &["part", ">number", "served", "names"]);
    let mut push = |kind: &str, number: usize, served: &str, names: Vec<String>| {
        if number > 0 {
            let style = if served == "yes" { TextStyle::Green } else { TextStyle::Yellow };
            let names = ShownText::clip_line(&names.join(", "), MAX_NAMES).to_string();
            table.push_row([
                plain_cell(kind),
                plain_cell(number),
                styled_cell(style, served),
                plain_cell(names),
            ]);
        }
    };
    let agents = vetted.agents.iter().map(|agent| agent.resolved.id.slug.to_string());
    push("agents", vetted.agents.len(), "yes", agents.collect());
    push("skills", vetted.skills.len(), "yes", names_of(&vetted.skills));
    push("commands", vetted.commands.len(), "yes", names_of(&vetted.commands));
    let mut events: BTreeMap<&str, usize> = BTreeMap::new();
    for hook in &inventory.hooks {
        *events.entry(hook.event.as_str()).or_default() += 1;
    }
    let events = events.iter().map(|(event, number)| match number {
        1 => (*event).to_owned(),
        number => format!("{event} ({number})"),
    });
    push("hooks", inventory.hooks.len(), "no: shown, never run", events.collect());
    let servers = inventory.servers.iter().map(|server| server.name.clone());
    push("MCP servers", inventory.servers.len(), "off until connected", servers.collect());
    for (kind, names) in &inventory.unserved {
        let why = kind.unserved_reason().unwrap_or("no");
        push(&kind.to_string(), names.len(), &format!("no: {why}"), names.clone());
    }
    table.print_to(out);
}

fn names_of(texts: &[PluginText]) -> Vec<String> {
    texts.iter().map(|text| text.name.clone()).collect()
}

/// Prints what the agents ask for and what they get under the present grants, grouped by both.
pub(super) fn print_rights(vetted: &VettedPlugin, out: &TerminalOutput) {
    let mut groups: BTreeMap<[String; 2], Vec<String>> = BTreeMap::new();
    for agent in &vetted.agents {
        let rights = [agent.resolved.list_requests(), agent.resolved.list_rights()];
        let rights = rights.map(|rights| rights.join(", "));
        groups.entry(rights).or_default().push(agent.resolved.id.slug.to_string());
    }
    let mut groups: Vec<([String; 2], Vec<String>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    for ([asks, gets], names) in groups.iter().take(MAX_LINES) {
        let who = match names.as_slice() {
            [one] => format!("agent {one} asks"),
            names => format!("{} ask", format_quantity(names.len() as u64, "agent")),
        };
        let asks = ShownText::clip_line(asks, MAX_NAMES);
        let gets = ShownText::clip_line(gets, MAX_NAMES);
        out.print_line(format_args!("{who} for: {asks}; under the present grants: {gets}"));
    }
    print_rest(groups.len(), "groups of agents", out);
}

/// Warns of rights that `belljar.toml` grants to agents of a plugin before anybody has asked for them.
pub(super) fn warn_of_grants(grantees: &[Grantee], out: &TerminalOutput) {
    if !grantees.is_empty() {
        let names: Vec<String> = grantees.iter().map(|it| format!("`{it}`")).collect();
        out.print_warning(format_args!(
            "`belljar.toml` grants rights to agents of this name already, and they have them once \
             they are in use: {}",
            names.join(", ")
        ));
    }
}

fn print_rest(number: usize, what: &str, out: &TerminalOutput) {
    if number > MAX_LINES {
        out.print_line(format_args!("and {} more {what}; `--json` has all", number - MAX_LINES));
    }
}

/// Prints the hooks and servers, each with what it would run or reach.
pub(super) fn print_outside(vetted: &VettedPlugin, out: &TerminalOutput) {
    for (number, hook) in vetted.inventory.hooks.iter().enumerate().take(MAX_LINES) {
        out.print_line(format_args!("hook {}: {hook}", number + 1));
    }
    print_rest(vetted.inventory.hooks.len(), "hooks", out);
    for server in vetted.inventory.servers.iter().take(MAX_LINES) {
        out.print_line(format_args!("server {server}{}", server_note(server)));
    }
    print_rest(vetted.inventory.servers.len(), "servers", out);
}

/// What a person should know about a server.
fn server_note(server: &PluginServer) -> String {
    let mut notes = Vec::new();
    if let Some(fetched) = server.fetched_package() {
        let package = ShownText::clip_line(&fetched.package, 80);
        let registry = fetched.registry;
        notes.push(match fetched.fixed {
            true => format!("fetches `{package}` from {registry}, whose digest nobody names"),
            false => format!("fetches `{package}` from {registry} in whatever version it has then"),
        });
    }
    let variables: Vec<String> = server.variables().into_iter().collect();
    if !variables.is_empty() {
        let names = ShownText::clip_line(&variables.join(", "), 80).to_string();
        notes.push(format!("wants {names}"));
    }
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

/// Prints suspicions, findings and what is left out. Beside an `old` version, only the suspicions of files
/// that it does not have so.
pub(super) fn print_doubts(
    vetted: &VettedPlugin,
    old: Option<&VettedPlugin>,
    out: &TerminalOutput,
) {
    for found in vetted.findings.iter().take(MAX_LINES) {
        let path = ShownText::new(&found.path.to_string_lossy()).to_string();
        out.print_line(format_args!("{}: {path}: {}", found.severity, found.message));
    }
    print_rest(vetted.findings.len(), "findings", out);
    for file in vetted.left_out.iter().take(MAX_LINES) {
        out.print_line(format_args!("left out: {}: {}", file.path, file.why));
    }
    print_rest(vetted.left_out.len(), "files left out", out);
    let changed = old.map(|old| vetted.changed_paths(old));
    let is_new = |path: &str| changed.as_ref().is_none_or(|changed| changed.contains(path));
    let all: Vec<_> = vetted.suspicions().filter(|(path, _)| is_new(path)).collect();
    if all.is_empty() {
        out.print_line("suspicious: nothing");
        return;
    }
    out.print_line(out.paint(TextStyle::Bold, "suspicious"));
    for rule in RULES {
        let of_rule: Vec<_> = all.iter().filter(|(_, it)| it.rule == rule).collect();
        let Some((path, first)) = of_rule.first() else { continue };
        let (path, name) = (ShownText::new(path), out.paint(TextStyle::Red, rule.name));
        let more = match of_rule.len() {
            1 => String::new(),
            number => format!(", and {} more", number - 1),
        };
        out.print_line(format_args!("  {path}:{}: {name}: {}{more}", first.line, first.found));
    }
}

/// Prints what a plugin asks a person for, and what it needs.
pub(super) fn print_needs(vetted: &VettedPlugin, missing: &[String], out: &TerminalOutput) {
    let options = vetted.manifest.options.iter().map(|option| {
        let secret = if option.sensitive { ", a secret" } else { "" };
        let needed = if option.required { "" } else { ", optional" };
        format!("{} ({}{secret}{needed})", option.key, ShownText::clip_line(&option.kind, 20))
    });
    let options: Vec<String> = options.collect();
    if !options.is_empty() {
        let options = ShownText::clip_line(&options.join(", "), MAX_NAMES).to_string();
        out.print_line(format_args!("asks for settings: {options}"));
    }
    for line in missing.iter().take(MAX_LINES) {
        out.print_line(format_args!("needs {line}"));
    }
    print_rest(missing.len(), "plugins that it needs", out);
}

/// The same for a program.
pub(super) fn to_json(
    vetted: &VettedPlugin,
    wanted: Option<&WantedPlugin>,
    revision: Option<&str>,
    missing: &[String],
    installed: bool,
) -> Value {
    let manifest = &vetted.manifest;
    let text = |it: &PluginText| {
        json!({
            "name": it.name,
            "path": it.path,
            "description": it.description,
            "suspicions": suspicions_json(&it.suspicions),
        })
    };
    let suspects = vetted.suspects.iter();
    let suspects = suspects
        .map(|it| json!({ "path": it.path, "suspicions": suspicions_json(&it.suspicions) }));
    let hooks = vetted.inventory.hooks.iter().enumerate().map(|(number, hook)| {
        json!({
            "number": number + 1,
            "event": hook.event,
            "known_event": hook.known_event().is_some(),
            "matcher": hook.matcher,
            "command": hook.command(),
            "timeout_seconds": hook.timeout,
            "ignored": hook.ignored,
        })
    });
    let servers = vetted.inventory.servers.iter().map(|server| server_json(server, &manifest.name));
    let unserved = vetted.inventory.unserved.iter().map(|(kind, names)| {
        json!({ "part": kind.to_string(), "names": names, "reason": kind.unserved_reason() })
    });
    let left_out =
        vetted.left_out.iter().map(|file| json!({ "path": file.path, "reason": file.why }));
    let options = manifest.options.iter().map(|option| {
        json!({
            "key": option.key,
            "type": option.kind,
            "title": option.title,
            "sensitive": option.sensitive,
            "required": option.required,
        })
    });
    json!({
        "plugin": vetted.key.to_string(),
        "name": manifest.name,
        "version": manifest.version,
        "format": manifest.format.to_string(),
        "description": manifest.description,
        "author": manifest.author,
        "license": manifest.license,
        "source": wanted.map(|wanted| json!(wanted.source.source)),
        "folder": wanted.map(|wanted| wanted.source.folder.clone()),
        "revision": revision,
        "installed": installed,
        "granted": vetted.grantees.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "agents": vetted.agents.iter().map(agent_json).collect::<Vec<_>>(),
        "skills": vetted.skills.iter().map(text).collect::<Vec<_>>(),
        "commands": vetted.commands.iter().map(text).collect::<Vec<_>>(),
        "suspicious_files": suspects.collect::<Vec<_>>(),
        "hooks": hooks.collect::<Vec<_>>(),
        "mcp_servers": servers.collect::<Vec<_>>(),
        "not_served": unserved.collect::<Vec<_>>(),
        "options": options.collect::<Vec<_>>(),
        "needs": missing,
        "unknown_keys": manifest.unknown_keys,
        "findings": vetted.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "left_out": left_out.collect::<Vec<_>>(),
    })
}

fn suspicions_json(suspicions: &[Suspicion]) -> Vec<Value> {
    let list = suspicions.iter();
    list.map(|it| json!({ "line": it.line, "rule": it.rule.name, "found": it.found })).collect()
}

fn server_json(server: &PluginServer, plugin: &str) -> Value {
    let (url, headers) = match &server.transport {
        ServerTransport::Http { url, headers } => {
            (Some(url), headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
        }
        ServerTransport::Program { .. } => (None, Vec::new()),
    };
    json!({
        "name": server.name,
        "tools": server.tool_prefix(plugin),
        "command": server.command_line(),
        "url": url,
        "headers": headers,
        "variables": server.variables(),
        "fetches": server.fetched_package().map(|it| it.package),
    })
}
