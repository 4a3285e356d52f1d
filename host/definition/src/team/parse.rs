//! Parses a team definition from YAML.

use std::path::Path;

use belljar_policy::ShownText;

use super::{
    MAX_TEAM_AGENTS, StageJoin, TaskTemplate, TeamBudget, TeamDefinition, TeamMember, TeamStage,
};
use crate::diagnostic::{FileFindings, FilePosition};
use crate::fields::{self, UnreadFields, quote_value};
use crate::yaml::{YamlKey, YamlNode, YamlValue};
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

/// Reads a team from the text of a file.
pub(super) fn read_team(
    path: &Path,
    text: &str,
    findings: &mut FileFindings<'_>,
) -> Option<TeamDefinition> {
    let start = FilePosition { line: 1, column: 1 };
    let entries = fields::parse_fields(text, 1, "the file", findings)?;
    let mut fields = UnreadFields::new(entries, start, findings).with_location("to the file");
    let name = read_required(&mut fields, "name", TEAM_KEYS);
    let at = fields.field_position("name");
    let name = name.and_then(|name| filed::checked_name(&name, at, fields.findings));
    let description = read_required(&mut fields, "description", TEAM_KEYS);
    let budget = fields
        .take_field("budget")
        .and_then(|(key, node)| read_budget(&key, node, fields.findings));
    let stages = read_stages(&mut fields);
    report_unknown_fields(fields, "a team", TEAM_KEYS);
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
fn read_required(
    fields: &mut UnreadFields<'_, '_>,
    name: &'static str,
    known: &[&str],
) -> Option<String> {
    if fields.place_of(name).is_none() && fields.has_misspelling(name, known) {
        return None;
    }
    fields.required_text(name)
}

/// Reads the list `stages`.
fn read_stages(fields: &mut UnreadFields<'_, '_>) -> Option<Vec<TeamStage>> {
    let Some((key, node)) = fields.take_field("stages") else {
        if fields.has_misspelling("stages", TEAM_KEYS) {
            return None;
        }
        let at = fields.field_position("stages");
        let hint = "add `stages:` with a line `- agent: NAME` for each";
        fields.findings.error_hint(at, "missing-field", "`stages` is missing", hint);
        return None;
    };
    let findings = &mut *fields.findings;
    let YamlValue::List(items) = node.value else {
        let message = format!("`stages` is {}, not a list", node.describe_kind());
        findings.error_hint(key.at, "bad-field", message, "write `- agent: NAME` for each stage");
        return None;
    };
    if items.is_empty() {
        findings.error(key.at, "bad-field", "`stages` is empty");
        return None;
    }
    // All stages are parsed, so that every error is reported at once.
    let stages: Vec<Option<TeamStage>> = items
        .into_iter()
        .take(MAX_TEAM_AGENTS + 1)
        .enumerate()
        .map(|(index, item)| read_stage(index, item, findings))
        .collect();
    let stages: Vec<TeamStage> = stages.into_iter().collect::<Option<_>>()?;
    let agents: usize = stages.iter().map(|stage| stage.members.len()).sum();
    if agents > MAX_TEAM_AGENTS {
        let message = format!("the team has more than {MAX_TEAM_AGENTS} agents");
        findings.error_hint(key.at, "too-many", message, "make two teams of it");
        return None;
    }
    Some(stages)
}

/// Reads a list item as fields.
fn item_fields<'f, 'p>(
    node: YamlNode,
    what: &'static str,
    findings: &'f mut FileFindings<'p>,
) -> Option<UnreadFields<'f, 'p>> {
    match node.value {
        YamlValue::Map(entries) => {
            Some(UnreadFields::new(entries, node.at, findings).with_location("to it"))
        }
        YamlValue::Null | YamlValue::Bool(_) | YamlValue::Int(_) | YamlValue::Float => {
            let message = format!("{what} is {}, not fields", node.describe_kind());
            findings.error_hint(node.at, "bad-stage", message, "write `agent: NAME`");
            None
        }
        YamlValue::Text(_) | YamlValue::List(_) => {
            let message = format!("{what} is {}, not fields", quote_value(&node));
            let hint = match node.as_text() {
                Some(name) => format!("write `agent: {}`", ShownText::clip_line(name, 60)),
                None => "write `parallel:` before the list".to_owned(),
            };
            findings.error_hint(node.at, "bad-stage", message, hint);
            None
        }
    }
}

/// Reads one stage: a single agent, or a list under `parallel`.
fn read_stage(index: usize, node: YamlNode, findings: &mut FileFindings<'_>) -> Option<TeamStage> {
    let at = node.at;
    let mut fields = item_fields(node, "a stage", findings)?;
    let Some((key, list)) = fields.take_field("parallel") else {
        if let Some((key, _)) = fields.take_field("join") {
            let message = "`join` belongs to a stage with `parallel`";
            fields.findings.error(key.at, "bad-stage", message);
        }
        let member = read_member(index, at, &mut fields);
        report_unknown_fields(fields, "a stage", STAGE_KEYS);
        return Some(TeamStage { members: vec![member?], parallel: false, join: StageJoin::All });
    };
    let join = read_join(&mut fields);
    for name in MEMBER_KEYS {
        if let Some((key, _)) = fields.take_field(name) {
            let message = format!("`{name}` stands beside `parallel`");
            let hint = "write it for each agent of the list below `parallel`";
            fields.findings.error_hint(key.at, "bad-stage", message, hint);
        }
    }
    let members = read_members(index, &key, list, fields.findings);
    report_unknown_fields(fields, "a stage", STAGE_KEYS);
    Some(TeamStage { members: members?, parallel: true, join: join? })
}

/// Reads `join`; without the field, the default.
fn read_join(fields: &mut UnreadFields<'_, '_>) -> Option<StageJoin> {
    let Some((key, node)) = fields.take_field("join") else { return Some(StageJoin::default()) };
    let found =
        node.as_text().and_then(|text| StageJoin::ALL.into_iter().find(|j| j.as_str() == text));
    if found.is_none() {
        let message = format!("`join` is {}", quote_value(&node));
        let hint = "write `all` (none may fail) or `any` (one that does not fail is enough)";
        fields.findings.error_hint(key.at, "bad-field", message, hint);
    }
    found
}

/// Reads the agents of a parallel stage.
fn read_members(
    index: usize,
    key: &YamlKey,
    list: YamlNode,
    findings: &mut FileFindings<'_>,
) -> Option<Vec<TeamMember>> {
    let YamlValue::List(items) = list.value else {
        let message = format!("`parallel` is {}, not a list", list.describe_kind());
        let hint = "write `- agent: NAME` for each agent";
        findings.error_hint(key.at, "bad-stage", message, hint);
        return None;
    };
    if items.is_empty() {
        findings.error(key.at, "bad-stage", "`parallel` is empty");
        return None;
    }
    let members: Vec<Option<TeamMember>> = items
        .into_iter()
        .take(MAX_TEAM_AGENTS + 1)
        .map(|node| {
            let at = node.at;
            let mut fields = item_fields(node, "an agent of `parallel`", findings)?;
            if let Some((key, _)) = fields.take_field("parallel") {
                let message = "`parallel` stands inside `parallel`";
                let hint = "put all agents into one list, or make two stages";
                fields.findings.error_hint(key.at, "bad-stage", message, hint);
                return None;
            }
            let member = read_member(index, at, &mut fields);
            report_unknown_fields(fields, "an agent of a stage", MEMBER_KEYS);
            member
        })
        .collect();
    members.into_iter().collect()
}

/// Reads one agent of a stage: name, context and task.
fn read_member(
    index: usize,
    at: FilePosition,
    fields: &mut UnreadFields<'_, '_>,
) -> Option<TeamMember> {
    let agent = read_required(fields, "agent", STAGE_KEYS);
    let agent_at = fields.field_position("agent");
    let agent = agent.filter(|name| {
        let fits = name.chars().count() <= MAX_AGENT_NAME && !name.chars().any(char::is_control);
        if !fits {
            let message = format!("`agent` has control characters, or more than {MAX_AGENT_NAME}");
            fields.findings.error(agent_at, "bad-field", message);
        }
        fits
    });
    let context = fields.optional_text("context").filter(|text| !text.trim().is_empty());
    let task = read_task(index, fields);
    Some(TeamMember { agent: agent?.trim().to_owned(), context, task: task?, line: at.line })
}

/// Parses the template; `None` = invalid.
fn read_task(index: usize, fields: &mut UnreadFields<'_, '_>) -> Option<Option<TaskTemplate>> {
    let Some(text) = fields.optional_text("task").filter(|text| !text.trim().is_empty()) else {
        return Some(None);
    };
    let at = fields.field_position("task");
    match TaskTemplate::parse(&text) {
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

/// Reads `budget`, a map of limits.
fn read_budget(
    key: &YamlKey,
    node: YamlNode,
    findings: &mut FileFindings<'_>,
) -> Option<TeamBudget> {
    let kind = node.describe_kind();
    let YamlValue::Map(entries) = node.value else {
        let message = format!("`budget` is {kind}, not fields");
        let hint = "write `budget: { steps: 60, tokens: 400000 }`";
        findings.error_hint(key.at, "bad-field", message, hint);
        return None;
    };
    let mut fields = UnreadFields::new(entries, key.at, findings);
    let budget = TeamBudget {
        steps: fields.take_number("steps", STEPS),
        tokens: fields.take_number("tokens", TOKENS),
        fuel: fields.take_number("fuel", FUEL),
        timeout_seconds: fields.take_number("timeoutSeconds", SECONDS),
    };
    report_unknown_fields(fields, "`budget`", BUDGET_KEYS);
    Some(budget)
}

/// Reports each key that was not read.
fn report_unknown_fields(fields: UnreadFields<'_, '_>, of: &str, known: &[&str]) {
    let (left, findings) = fields.into_rest();
    for (key, _) in left {
        let message = format!("`{}` is not a field of {of}", ShownText::clip_line(&key.text, 64));
        let hint = suggest::did_you_mean(&key.text, known.iter().copied())
            .unwrap_or_else(|| format!("the fields are `{}`", known.join("`, `")));
        findings.error_hint(key.at, "unknown-field", message, hint);
    }
}
