//! The findings about a source, for a person and for a program.

use std::collections::BTreeSet;

use belljar_agent::Host;
use belljar_definition::builtin_tools::SPAWN_AGENT;
use belljar_definition::suspicion::RULES;
use belljar_definition::{AgentReadiness, BUILTIN_TOOLS};
use belljar_policy::{Permission, Shown};
use serde_json::{Value, json};

use super::vetting::{Agent, Vetted};
use crate::commands::catalogue::agents::{names_no_model, status_cell};
use crate::libraries::Source;
use crate::term::out::{Out, Style};
use crate::term::table::{self, Table, plain, styled};

/// Characters of one cell of asks, gets or missing.
const MAX_CELL: usize = 120;

/// Characters of a model's name that is shown.
const MAX_MODEL: usize = 60;

/// Models that are named one by one.
const MAX_MODELS: usize = 8;

/// Files left out that a person is shown one by one.
const MAX_SHOWN: usize = 30;

/// The requests, future rights and missing rights of each agent.
pub(super) fn agents<'a>(agents: impl IntoIterator<Item = &'a Agent>, out: &Out) {
    let mut table = Table::new(out, &["agent", "status", "asks", "gets", "missing"]);
    for agent in agents {
        let missing = agent.resolved.lacks();
        let style = if missing.is_empty() { Style::Dim } else { Style::Yellow };
        table.row([
            plain(&agent.resolved.id.slug),
            status_cell(&agent.resolved.status),
            plain(cell(&agent.resolved.asks())),
            plain(cell(&without_own(agent.resolved.gets()))),
            styled(style, if missing.is_empty() { "-".to_owned() } else { cell(&missing) }),
        ]);
    }
    table.print(out);
}

/// Suspicious signs, for a person to check before agreeing. Each rule is explained once.
pub(super) fn suspicions<'a>(agents: impl IntoIterator<Item = &'a Agent>, out: &Out) {
    let agents: Vec<&Agent> = agents.into_iter().collect();
    let all = || agents.iter().flat_map(|agent| &agent.suspicions);
    if all().next().is_none() {
        out.line("suspicious: nothing");
        return;
    }
    out.line(out.paint(Style::Bold, "suspicious"));
    for agent in &agents {
        for it in &agent.suspicions {
            let rule = out.paint(Style::Red, it.rule.name);
            let path = Shown::new(&agent.file.path);
            out.line(format_args!("  {path}:{}: {rule}: {}", it.line, it.found));
        }
    }
    for rule in RULES.iter().filter(|rule| all().any(|it| it.rule == *rule)) {
        out.line(format_args!("  {}: {}", rule.name, rule.why));
    }
}

/// The parts of the source that are not installed, and why.
pub(super) fn left_out(vetted: &Vetted, out: &Out) {
    let number = vetted.left_out.len() + vetted.unnamed;
    if number > 0 {
        out.line("");
        out.line(out.paint(Style::Bold, "left out"));
        for file in vetted.left_out.iter().take(MAX_SHOWN) {
            out.line(format_args!("  {}: {}", file.path, file.why));
        }
        if number > MAX_SHOWN {
            out.line(format_args!("  and {} more; `--json` names them", number - MAX_SHOWN));
        }
    }
    if !vetted.documents.is_empty() {
        let number = table::some(vetted.documents.len() as u64, "file");
        out.line(format_args!("no agents, for lack of frontmatter: {number}"));
    }
    if !vetted.folders.is_empty() {
        let folders: Vec<String> = vetted.folders.iter().map(|name| format!("{name}/")).collect();
        let folders = folders.join(", ");
        out.line(format_args!("not installed, as only agents are: {folders}"));
    }
}

/// Models that agents name and that nobody has configured: their runs fail without another one.
pub(super) fn models<'a>(agents: impl IntoIterator<Item = &'a Agent>, host: &Host, out: &Out) {
    let without = agents.into_iter().filter(|agent| names_no_model(&agent.resolved, host));
    let named: Vec<&str> =
        without.filter_map(|agent| agent.resolved.definition.model.as_deref()).collect();
    if named.is_empty() {
        return;
    }
    let number = table::some(named.len() as u64, "agent");
    let named: BTreeSet<String> =
        named.iter().map(|model| format!("`{}`", Shown::clipped(model, MAX_MODEL))).collect();
    let shown: Vec<&str> = named.iter().take(MAX_MODELS).map(String::as_str).collect();
    let more = if named.len() > MAX_MODELS { ", …" } else { "" };
    out.warning(format_args!(
        "{number} of it cannot run as written, for lack of the models {}{more}: `--model NAME` runs one \
         with another, and a section `[models.NAME]` in `belljar.toml` gives the name a meaning",
        shown.join(", ")
    ));
}

/// The same for a program.
pub(super) fn json(
    vetted: &Vetted,
    source: &Source,
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
        "agents": vetted.agents.iter().map(agent).collect::<Vec<_>>(),
        "left_out": left_out,
        "left_out_unnamed": vetted.unnamed,
        "documents": vetted.documents,
        "other_folders": vetted.folders,
    })
}

/// One agent for a program.
pub(super) fn agent(agent: &Agent) -> Value {
    let definition = &agent.resolved.definition;
    let tools: serde_json::Map<String, Value> = agent
        .resolved
        .rights
        .tools()
        .map(|(tool, permission): (_, Permission)| (tool.to_string(), json!(permission)))
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
        "reasons": agent.resolved.reasons(),
        "asks": agent.resolved.asks(),
        "gets": agent.resolved.gets(),
        "missing": agent.resolved.lacks(),
        "tools": tools,
        "suspicions": suspicions.collect::<Vec<_>>(),
    })
}

/// The number of agents with each status, for example `12 agents: 3 ready, 9 blocked`.
pub(super) fn count(vetted: &Vetted) -> String {
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
        (vetted.suspicious(), "suspicious"),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    let agents = table::some(vetted.agents.len() as u64, "agent");
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

fn cell(items: &[String]) -> String {
    Shown::clipped(&items.join(", "), MAX_CELL).to_string()
}
