//! The findings about a source, for a person and for a program.

use std::collections::BTreeSet;

use belljar_agent::Host;
use belljar_definition::builtin_tools::SPAWN_AGENT;
use belljar_definition::suspicion::RULES;
use belljar_definition::{AgentReadiness, BUILTIN_TOOLS};
use belljar_policy::{CallPermission, ShownText};
use serde_json::{Value, json};

use super::vetting::{SourceAgent, VettedSource};
use crate::commands::catalogue::agents::{names_no_model, status_cell};
use crate::libraries::LibrarySource;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{self, TextTable, plain_cell, styled_cell};

/// Characters of one cell of asks, gets or missing.
const MAX_CELL: usize = 120;

/// Characters of a model's name that is shown.
const MAX_MODEL: usize = 60;

/// Models that are named one by one.
const MAX_MODELS: usize = 8;

/// Files left out that a person is shown one by one.
const MAX_SHOWN: usize = 30;

/// The requests, future rights and missing rights of each agent.
pub(super) fn print_agents<'a>(
    agents: impl IntoIterator<Item = &'a SourceAgent>,
    out: &TerminalOutput,
) {
    let mut table = TextTable::new(out, &["agent", "status", "asks", "gets", "missing"]);
    for agent in agents {
        let missing = agent.resolved.list_denials();
        let style = if missing.is_empty() { TextStyle::Dim } else { TextStyle::Yellow };
        table.push_row([
            plain_cell(&agent.resolved.id.slug),
            status_cell(&agent.resolved.status),
            plain_cell(format_cell(&agent.resolved.list_requests())),
            plain_cell(format_cell(&without_own(agent.resolved.list_rights()))),
            styled_cell(
                style,
                if missing.is_empty() { "-".to_owned() } else { format_cell(&missing) },
            ),
        ]);
    }
    table.print_to(out);
}

/// Suspicious signs, for a person to check before agreeing. Each rule is explained once.
pub(super) fn print_suspicions<'a>(
    agents: impl IntoIterator<Item = &'a SourceAgent>,
    out: &TerminalOutput,
) {
    let agents: Vec<&SourceAgent> = agents.into_iter().collect();
    let all = || agents.iter().flat_map(|agent| &agent.suspicions);
    if all().next().is_none() {
        out.print_line("suspicious: nothing");
        return;
    }
    out.print_line(out.paint(TextStyle::Bold, "suspicious"));
    for agent in &agents {
        for it in &agent.suspicions {
            let rule = out.paint(TextStyle::Red, it.rule.name);
            let path = ShownText::new(&agent.file.path);
            out.print_line(format_args!("  {path}:{}: {rule}: {}", it.line, it.found));
        }
    }
    for rule in RULES.iter().filter(|rule| all().any(|it| it.rule == *rule)) {
        out.print_line(format_args!("  {}: {}", rule.name, rule.why));
    }
}

/// The parts of the source that are not installed, and why.
pub(super) fn left_out(vetted: &VettedSource, out: &TerminalOutput) {
    let number = vetted.left_out.len() + vetted.unnamed;
    if number > 0 {
        out.print_line("");
        out.print_line(out.paint(TextStyle::Bold, "left out"));
        for file in vetted.left_out.iter().take(MAX_SHOWN) {
            out.print_line(format_args!("  {}: {}", file.path, file.why));
        }
        if number > MAX_SHOWN {
            out.print_line(format_args!("  and {} more; `--json` names them", number - MAX_SHOWN));
        }
    }
    if !vetted.documents.is_empty() {
        let number = table::format_quantity(vetted.documents.len() as u64, "file");
        out.print_line(format_args!("no agents, for lack of frontmatter: {number}"));
    }
    if !vetted.folders.is_empty() {
        let folders: Vec<String> = vetted.folders.iter().map(|name| format!("{name}/")).collect();
        let folders = folders.join(", ");
        out.print_line(format_args!("not installed, as only agents are: {folders}"));
    }
}

/// Models that agents name and that nobody has configured: their runs fail without another one.
pub(super) fn print_models<'a>(
    agents: impl IntoIterator<Item = &'a SourceAgent>,
    host: &Host,
    out: &TerminalOutput,
) {
    let without = agents.into_iter().filter(|agent| names_no_model(&agent.resolved, host));
    let named: Vec<&str> =
        without.filter_map(|agent| agent.resolved.definition.model.as_deref()).collect();
    if named.is_empty() {
        return;
    }
    let number = table::format_quantity(named.len() as u64, "agent");
    let named: BTreeSet<String> =
        named.iter().map(|model| format!("`{}`", ShownText::clip_line(model, MAX_MODEL))).collect();
    let shown: Vec<&str> = named.iter().take(MAX_MODELS).map(String::as_str).collect();
    let more = if named.len() > MAX_MODELS { ", …" } else { "" };
    out.print_warning(format_args!(
        "{number} of it cannot run as written, for lack of the models {}{more}: `--model NAME` runs one \
         with another, and a section `[models.NAME]` in `belljar.toml` gives the name a meaning",
        shown.join(", ")
    ));
}

/// The same for a program.
pub(super) fn library_json(
    vetted: &VettedSource,
    source: &LibrarySource,
    revision: Option<&str>,
    installed: bool,
) -> Value {
    let left_out = vetted.left_out.iter();
    let left_out: Vec<Value> =
        left_out.map(|file| json!({ "path": file.path, "reason": file.why })).collect();
    json!({
        "library": vetted.name.as_str(),
        "source": source,
        "revision": revision,
        "installed": installed,
        "agents": vetted.agents.iter().map(agent_json).collect::<Vec<_>>(),
        "left_out": left_out,
        "left_out_unnamed": vetted.unnamed,
        "documents": vetted.documents,
        "other_folders": vetted.folders,
    })
}

/// One agent for a program.
pub(in crate::commands) fn agent_json(agent: &SourceAgent) -> Value {
    let definition = &agent.resolved.definition;
    let tools: serde_json::Map<String, Value> = agent
        .resolved
        .rights
        .offered_tools()
        .map(|(tool, permission): (_, CallPermission)| (tool.to_string(), json!(permission)))
        .collect();
    let suspicions = agent.suspicions.iter().map(|it| {
        json!({ "line": it.line, "rule": it.rule.name, "found": it.found, "why": it.rule.why })
    });
    json!({
        "id": agent.resolved.id.to_string(),
        "name": definition.name,
        "description": definition.description,
        "path": agent.file.path,
        "dialect": definition.dialect,
        "visibility": definition.visibility,
        "model": definition.model,
        "status": agent.resolved.status.as_str(),
        "reasons": agent.resolved.status_reasons(),
        "asks": agent.resolved.list_requests(),
        "gets": agent.resolved.list_rights(),
        "missing": agent.resolved.list_denials(),
        "tools": tools,
        "suspicions": suspicions.collect::<Vec<_>>(),
    })
}

/// The number of agents with each status, for example `12 agents: 3 ready, 9 blocked`.
pub(super) fn count_statuses(vetted: &VettedSource) -> String {
    let number = |wanted: fn(&AgentReadiness) -> bool| {
        vetted.agents.iter().filter(|agent| wanted(&agent.resolved.status)).count()
    };
    let counts = [
        (number(|status| matches!(status, AgentReadiness::Ready)), "ready"),
        (
            number(|status| matches!(status, AgentReadiness::ReadyWithWarnings { .. })),
            "with warnings",
        ),
        (number(|status| matches!(status, AgentReadiness::Blocked { .. })), "blocked"),
        (vetted.count_suspicious(), "suspicious"),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    let agents = table::format_quantity(vetted.agents.len() as u64, "agent");
    format!("{agents}: {}", counts.join(", "))
}

/// The tools that act on the world one by one, and the tools for the session alone as a number, because a
/// person must not overlook the first kind.
fn without_own(mut gets: Vec<String>) -> Vec<String> {
    let before = gets.len();
    gets.retain(|item| item == SPAWN_AGENT || !BUILTIN_TOOLS.contains(&item.as_str()));
    let own = before - gets.len();
    if own > 0 {
        gets.push(format!("{own} of the session's own"));
    }
    gets
}

fn format_cell(items: &[String]) -> String {
    ShownText::clip_line(&items.join(", "), MAX_CELL).to_string()
}
