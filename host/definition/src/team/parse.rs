//! Parses a team definition from YAML.

use std::path::Path;

use belljar_policy::Shown;

use super::{Join, MAX_TEAM_AGENTS, Member, Stage, TeamBudget, TeamDefinition, Template};
use crate::diagnostic::{Findings, Position};
use crate::fields::{self, Fields, shown};
use crate::yaml::{Key, Node, Value};
use crate::{filed, suggest};

/// The longest name of an agent in a team, in characters; the id of a workspace's agent contains a path.
const MAX_AGENT_NAME: usize = 500;

/// The ranges of a team's budgets. The upper ends only catch typing errors: a week, and more than any default
/// limit of its agents.
const STEPS: (u64, u64) = (1, 1_000_000);
const TOKENS: (u64, u64) = (1, 1_000_000_000_000);
const FUEL: (u64, u64) = (1, 1_000_000_000_000_000);
const SECONDS: (u64, u64) = (1, 604_800);

const TEAM_KEYS: &[&str] = &["name", "description", "stages", "budget"];
const STAGE_KEYS: &[&str] = &["agent", "context", "task", "parallel", "join"];
const MEMBER_KEYS: &[&str] = &["agent", "context", "task"];
const BUDGET_KEYS: &[&str] = &["steps", "tokens", "fuel", "timeoutSeconds"];

pub(super) fn read(path: &Path, text: &str, findings: &mut Findings<'_>) -> Option<TeamDefinition> {
    let start = Position { line: 1, column: 1 };
    let entries = fields::entries(text, 1, "the file", findings)?;
    let mut fields = Fields::new(entries, start, findings).within("to the file");
    let name = required(&mut fields, "name", TEAM_KEYS);
    let at = fields.place("name");
    let name = name.and_then(|name| filed::checked_name(&name, at, fields.findings));
    let description = required(&mut fields, "description", TEAM_KEYS);
    let budget = fields.take("budget").and_then(|(key, node)| budget(&key, node, fields.findings));
    let stages = stages(&mut fields);
    leftovers(fields, "a team", TEAM_KEYS);
    let (name, slug) = name?;
    Some(TeamDefinition {
        name,
        slug,
        description: description?,
        stages: stages?,
        budget: budget.unwrap_or_default(),
        path: path.to_path_buf(),
    })
}

/// A required field; a misspelt one is reported once, among the leftovers.
fn required(fields: &mut Fields<'_, '_>, name: &'static str, known: &[&str]) -> Option<String> {
    if fields.place_of(name).is_none() && fields.misspelt(name, known) {
        return None;
    }
    fields.required_text(name)
}

fn stages(fields: &mut Fields<'_, '_>) -> Option<Vec<Stage>> {
    let Some((key, node)) = fields.take("stages") else {
        if fields.misspelt("stages", TEAM_KEYS) {
            return None;
        }
        let at = fields.place("stages");
        let hint = "add `stages:` with a line `- agent: NAME` for each";
        fields.findings.error_hint(at, "missing-field", "`stages` is missing", hint);
        return None;
    };
    let findings = &mut *fields.findings;
    let Value::List(items) = node.value else {
        let message = format!("`stages` is {}, not a list", node.kind());
        findings.error_hint(key.at, "bad-field", message, "write `- agent: NAME` for each stage");
        return None;
    };
    if items.is_empty() {
        findings.error(key.at, "bad-field", "`stages` is empty");
        return None;
    }
    // All stages are parsed, so that every error is reported at once.
    let stages: Vec<Option<Stage>> = items
        .into_iter()
        .take(MAX_TEAM_AGENTS + 1)
        .enumerate()
        .map(|(index, item)| stage(index, item, findings))
        .collect();
    let stages: Vec<Stage> = stages.into_iter().collect::<Option<_>>()?;
    let agents: usize = stages.iter().map(|stage| stage.members.len()).sum();
    if agents > MAX_TEAM_AGENTS {
        let message = format!("the team has more than {MAX_TEAM_AGENTS} agents");
        findings.error_hint(key.at, "too-many", message, "make two teams of it");
        return None;
    }
    Some(stages)
}

/// Reads a list item as fields.
fn item<'f, 'p>(
    node: Node,
    what: &'static str,
    findings: &'f mut Findings<'p>,
) -> Option<Fields<'f, 'p>> {
    match node.value {
        Value::Map(entries) => Some(Fields::new(entries, node.at, findings).within("to it")),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float => {
            let message = format!("{what} is {}, not fields", node.kind());
            findings.error_hint(node.at, "bad-stage", message, "write `agent: NAME`");
            None
        }
        Value::Text(_) | Value::List(_) => {
            let message = format!("{what} is {}, not fields", shown(&node));
            let hint = match node.text() {
                Some(name) => format!("write `agent: {}`", Shown::clipped(name, 60)),
                None => "write `parallel:` before the list".to_owned(),
            };
            findings.error_hint(node.at, "bad-stage", message, hint);
            None
        }
    }
}

fn stage(index: usize, node: Node, findings: &mut Findings<'_>) -> Option<Stage> {
    let at = node.at;
    let mut fields = item(node, "a stage", findings)?;
    let Some((key, list)) = fields.take("parallel") else {
        if let Some((key, _)) = fields.take("join") {
            let message = "`join` belongs to a stage with `parallel`";
            fields.findings.error(key.at, "bad-stage", message);
        }
        let member = member(index, at, &mut fields);
        leftovers(fields, "a stage", STAGE_KEYS);
        return Some(Stage { members: vec![member?], parallel: false, join: Join::All });
    };
    let join = join(&mut fields);
    for name in MEMBER_KEYS {
        if let Some((key, _)) = fields.take(name) {
            let message = format!("`{name}` stands beside `parallel`");
            let hint = "write it for each agent of the list below `parallel`";
            fields.findings.error_hint(key.at, "bad-stage", message, hint);
        }
    }
    let members = members(index, &key, list, fields.findings);
    leftovers(fields, "a stage", STAGE_KEYS);
    Some(Stage { members: members?, parallel: true, join: join? })
}

fn join(fields: &mut Fields<'_, '_>) -> Option<Join> {
    let Some((key, node)) = fields.take("join") else { return Some(Join::default()) };
    let found = node.text().and_then(|text| Join::ALL.into_iter().find(|j| j.as_str() == text));
    if found.is_none() {
        let message = format!("`join` is {}", shown(&node));
        let hint = "write `all` (none may fail) or `any` (one that does not fail is enough)";
        fields.findings.error_hint(key.at, "bad-field", message, hint);
    }
    found
}

fn members(
    index: usize,
    key: &Key,
    list: Node,
    findings: &mut Findings<'_>,
) -> Option<Vec<Member>> {
    let Value::List(items) = list.value else {
        let message = format!("`parallel` is {}, not a list", list.kind());
        let hint = "write `- agent: NAME` for each agent";
        findings.error_hint(key.at, "bad-stage", message, hint);
        return None;
    };
    if items.is_empty() {
        findings.error(key.at, "bad-stage", "`parallel` is empty");
        return None;
    }
    let members: Vec<Option<Member>> = items
        .into_iter()
        .take(MAX_TEAM_AGENTS + 1)
        .map(|node| {
            let at = node.at;
            let mut fields = item(node, "an agent of `parallel`", findings)?;
            if let Some((key, _)) = fields.take("parallel") {
                let message = "`parallel` stands inside `parallel`";
                let hint = "put all agents into one list, or make two stages";
                fields.findings.error_hint(key.at, "bad-stage", message, hint);
                return None;
            }
            let member = member(index, at, &mut fields);
            leftovers(fields, "an agent of a stage", MEMBER_KEYS);
            member
        })
        .collect();
    members.into_iter().collect()
}

fn member(index: usize, at: Position, fields: &mut Fields<'_, '_>) -> Option<Member> {
    let agent = required(fields, "agent", STAGE_KEYS);
    let agent_at = fields.place("agent");
    let agent = agent.filter(|name| {
        let fits = name.chars().count() <= MAX_AGENT_NAME && !name.chars().any(char::is_control);
        if !fits {
            let message = format!("`agent` has control characters, or more than {MAX_AGENT_NAME}");
            fields.findings.error(agent_at, "bad-field", message);
        }
        fits
    });
    let context = fields.optional_text("context").filter(|text| !text.trim().is_empty());
    let task = task(index, fields);
    Some(Member { agent: agent?.trim().to_owned(), context, task: task?, line: at.line })
}

/// Parses the template; `None` = invalid.
fn task(index: usize, fields: &mut Fields<'_, '_>) -> Option<Option<Template>> {
    let Some(text) = fields.optional_text("task").filter(|text| !text.trim().is_empty()) else {
        return Some(None);
    };
    let at = fields.place("task");
    match Template::parse(&text) {
        Ok(template) => {
            if index > 0 && !template.uses_input() {
                let message = "`task` does not pass on what the stage before says";
                let hint = Some("write `{input}` where it should stand".to_owned());
                fields.findings.warning(at, "input-unused", message, hint);
            }
            Some(Some(template))
        }
        Err((message, hint)) => {
            fields.findings.error_hint(at, "bad-template", message, hint);
            None
        }
    }
}

fn budget(key: &Key, node: Node, findings: &mut Findings<'_>) -> Option<TeamBudget> {
    let kind = node.kind();
    let Value::Map(entries) = node.value else {
        let message = format!("`budget` is {kind}, not fields");
        let hint = "write `budget: { steps: 60, tokens: 400000 }`";
        findings.error_hint(key.at, "bad-field", message, hint);
        return None;
    };
    let mut fields = Fields::new(entries, key.at, findings);
    let budget = TeamBudget {
        steps: fields.number("steps", STEPS),
        tokens: fields.number("tokens", TOKENS),
        fuel: fields.number("fuel", FUEL),
        timeout_seconds: fields.number("timeoutSeconds", SECONDS),
    };
    leftovers(fields, "`budget`", BUDGET_KEYS);
    Some(budget)
}

/// Reports each key that was not read.
fn leftovers(fields: Fields<'_, '_>, of: &str, known: &[&str]) {
    let (left, findings) = fields.into_rest();
    for (key, _) in left {
        let message = format!("`{}` is not a field of {of}", Shown::clipped(&key.text, 64));
        let hint = suggest::did_you_mean(&key.text, known.iter().copied())
            .unwrap_or_else(|| format!("the fields are `{}`", known.join("`, `")));
        findings.error_hint(key.at, "unknown-field", message, hint);
    }
}
