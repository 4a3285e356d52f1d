//! Reads the requests of a definition other than tools: model, time, mounts, hosts, limits, subagents.

use std::collections::BTreeSet;

use belljar_policy::{
    AskedRights, GuestPath, HostRule, LIMITS, LimitsRequest, MountAccess, MountAsk, ShownText,
    ToolName,
};

use super::SubagentsAsk;
use super::says::ValueMeaning;
use super::tool_list::ToolList;
use super::tools::KnownTools;
use crate::diagnostic::FileFindings;
use crate::fields::{UnreadFields, parse_boolean, quote_value};
use crate::yaml::{YamlKey, YamlNode, YamlValue};
use crate::{Dialect, ToolsAs, Visibility, suggest};

/// The range of `timeoutSeconds` and `prefillTimeoutSeconds`. In less than 5 seconds no model answers; more
/// than an hour is for the operator to grant.
const SECONDS: (u64, u64) = (5, 3_600);

/// The range of `maxTurns`.
const TURNS: (u64, u64) = (1, 1_000);

/// The range of `subagents.max_concurrent`.
const CONCURRENT: (u64, u64) = (1, 1_000);

/// The longest name of a model, in characters.
const MAX_MODEL: usize = 200;

/// The most entries of `mounts`, `hosts` and the lists of `subagents`.
const MAX_ENTRIES: usize = 200;

/// The roles that models can have: values of `modelRole` in a definition, keys of `[roles]` in
/// `belljar.toml`.
pub(crate) const MODEL_ROLES: &[&str] = &["main", "fast", "strong", "compaction", "fallback"];

/// Reads all requests except tools.
pub(super) fn read_requests(fields: &mut UnreadFields<'_, '_>, dialect: Dialect) -> AskedRights {
    let mut limits = LimitsRequest {
        timeout_seconds: fields.take_number("timeoutSeconds", SECONDS),
        prefill_timeout_seconds: fields.take_number("prefillTimeoutSeconds", SECONDS),
        steps: fields.take_number("maxTurns", TURNS),
        ..LimitsRequest::default()
    };
    if dialect == Dialect::OpenCode {
        for name in ["steps", "maxSteps"] {
            let steps =
                LimitsRequest { steps: fields.take_number(name, TURNS), ..Default::default() };
            limits = limits.and(&steps);
        }
    }
    if let Some((key, node)) = fields.take_field("limits") {
        limits = limits.and(&read_limits(&key, &node, fields.findings));
    }
    AskedRights {
        mounts: fields
            .take_field("mounts")
            .map(|(key, node)| read_mounts(&key, &node, fields.findings)),
        hosts: fields
            .take_field("hosts")
            .map(|(key, node)| read_hosts(&key, &node, fields.findings)),
        limits,
        ..AskedRights::default()
    }
}

/// `modelRole`, else `model`.
pub(super) fn read_model(fields: &mut UnreadFields<'_, '_>) -> Option<String> {
    let (role_at, model_at) = (fields.field_position("modelRole"), fields.field_position("model"));
    let role = fields.optional_text("modelRole");
    // Some programs accept a list of models in order of preference, so the first is used.
    let listed = match fields.take_field("model") {
        Some((_, YamlNode { value: YamlValue::List(items), .. })) => {
            items.first().and_then(YamlNode::as_text).map(str::to_owned)
        }
        Some((key, node)) if node.as_text().is_none() && node.value != YamlValue::Null => {
            let message = format!("`model` is {}, not a name", node.describe_kind());
            fields.report_fault(key.at, "bad-field", message, None);
            None
        }
        Some((_, node)) => node.as_text().map(str::to_owned),
        None => None,
    };
    let mut model = listed.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let unfit = |model: &mut String| {
        model.chars().count() > MAX_MODEL || model.chars().any(char::is_control)
    };
    // An unusable model is ignored, and the operator's choice applies.
    if model.take_if(unfit).is_some() {
        let message =
            format!("`model` has more than {MAX_MODEL} characters, or control characters");
        fields.report_fault(model_at, "bad-field", message, None);
    }
    let Some(role) = role else { return model };
    let plain = role.trim().to_ascii_lowercase();
    let Some(role) = MODEL_ROLES.iter().find(|known| **known == plain) else {
        let message = format!("`modelRole` is `{}`, not a role", ShownText::clip_line(&role, 60));
        let hint = suggest::did_you_mean(&plain, MODEL_ROLES.iter().copied())
            .unwrap_or_else(|| format!("write one of {}", list_of(MODEL_ROLES)));
        fields.findings.error_hint(role_at, "bad-model-role", message, hint);
        return model;
    };
    if model.is_some() {
        let message = "`model` is ignored, because `modelRole` is there too";
        fields.findings.warning(model_at, "model-and-role", message, None);
    }
    Some((*role).to_owned())
}

/// Reads `visibility`; an unknown value is an error.
pub(super) fn read_visibility(fields: &mut UnreadFields<'_, '_>) -> Visibility {
    let at = fields.field_position("visibility");
    let Some((_, node)) = fields.take_field("visibility") else { return Visibility::default() };
    node.as_text().and_then(Visibility::parse).unwrap_or_else(|| {
        let message = format!("`visibility` is {}", quote_value(&node));
        let hint = "write `user-facing` or `internal`";
        fields.findings.error_hint(at, "bad-visibility", message, hint);
        Visibility::default()
    })
}

/// The form in which tools are to be shown to the agent.
pub(super) fn tools_as(fields: &mut UnreadFields<'_, '_>) -> Option<ToolsAs> {
    let at = fields.field_position("toolsAs");
    let (_, node) = fields.take_field("toolsAs")?;
    let read = node.as_text().and_then(ToolsAs::parse);
    if read.is_none() {
        let message = format!("`toolsAs` is {}", quote_value(&node));
        fields.findings.error_hint(at, "bad-field", message, "write `calls`, `code` or `both`");
    }
    read
}

/// Reads whether the author switched the agent off. An invalid value counts as off.
pub(super) fn read_disabled(fields: &mut UnreadFields<'_, '_>) -> bool {
    fields.place_of("disable").is_some() && fields.take_boolean("disable").unwrap_or(true)
}

/// Copilot's `agents`: the possible subagents. Read in any program's file, because it can only narrow. An
/// invalid value allows no subagent.
fn read_agents(fields: &mut UnreadFields<'_, '_>) -> Option<Vec<String>> {
    let (key, node) = fields.take_field("agents")?;
    match ValueMeaning::from_node(&node) {
        ValueMeaning::Yes => return None,
        // `agents: ''` allows no subagent.
        ValueMeaning::Nothing if node.value != YamlValue::Null => return Some(Vec::new()),
        ValueMeaning::No => return Some(Vec::new()),
        _ => {}
    }
    let items = match &node.value {
        YamlValue::List(items) => items.as_slice(),
        YamlValue::Text(_) => std::slice::from_ref(&node),
        YamlValue::Null
        | YamlValue::Bool(_)
        | YamlValue::Int(_)
        | YamlValue::Float
        | YamlValue::Map(_) => &[],
    };
    let names: Vec<&str> = items.iter().filter_map(YamlNode::as_text).map(str::trim).collect();
    if names.contains(&"*") {
        return None;
    }
    if !matches!(node.value, YamlValue::List(_) | YamlValue::Text(_)) || names.len() < items.len() {
        let message = "`agents` is not a list of names; only what is a name counts".to_owned();
        fields.report_fault(key.at, "bad-field", message, None);
    }
    let names = names.into_iter().flat_map(|name| name.split(',')).map(str::trim);
    Some(names.take(MAX_ENTRIES).map(str::to_owned).collect())
}

/// Reads `subagents`, and the names of agents in `tools` and `agents`; all of them narrow together.
pub(super) fn read_subagents(
    fields: &mut UnreadFields<'_, '_>,
    tools: &ToolList,
    known: &KnownTools,
) -> Option<SubagentsAsk> {
    let listed = read_agents(fields);
    let named = match (tools.agents.clone(), listed) {
        (Some(a), Some(b)) => Some(a.into_iter().filter(|name| b.contains(name)).collect()),
        (a, b) => a.or(b),
    };
    let Some((key, node)) = fields.take_field("subagents") else {
        return named.map(|agents| SubagentsAsk {
            allowed_agents: Some(agents),
            ..SubagentsAsk::default()
        });
    };
    let findings = &mut *fields.findings;
    let YamlValue::Map(entries) = &node.value else {
        let message = format!("`subagents` is {}, not fields", node.describe_kind());
        findings.error(key.at, "bad-field", message);
        return None;
    };
    let mut ask = SubagentsAsk { allowed_agents: named, ..SubagentsAsk::default() };
    for (key, node) in entries {
        subagents_entry(&mut ask, key, node, known, findings);
    }
    Some(ask)
}

/// Reads one key of `subagents`.
fn subagents_entry(
    ask: &mut SubagentsAsk,
    key: &YamlKey,
    node: &YamlNode,
    known: &KnownTools,
    findings: &mut FileFindings<'_>,
) {
    match key.text.as_str() {
        "enabled" => {
            ask.enabled = parse_boolean(node);
            if ask.enabled.is_none() {
                let message =
                    format!("`enabled` is {}, neither `true` nor `false`", quote_value(node));
                findings.error(key.at, "bad-field", message);
            }
        }
        "max_concurrent" => {
            let (low, high) = CONCURRENT;
            let within = |n: &u32| (low..=high).contains(&u64::from(*n));
            let hint = format!("write a number from {low} to {high}");
            ask.max_concurrent = read_number(key, node, within, hint, findings);
        }
        "max_depth" => {
            let hint = "write a number; 0 = it delegates nothing".to_owned();
            ask.max_depth = read_number(key, node, |_| true, hint, findings);
        }
        "allowed_agents" => {
            let listed = read_texts(key, node, findings);
            ask.allowed_agents = Some(match ask.allowed_agents.take() {
                Some(named) => named.into_iter().filter(|name| listed.contains(name)).collect(),
                None => listed,
            });
        }
        "allowed_tools" => ask.allowed_tools = Some(child_tools(key, node, known, findings)),
        _ => {
            let known =
                ["enabled", "max_depth", "max_concurrent", "allowed_agents", "allowed_tools"];
            report_unknown_key(key, "`subagents`", &known, findings);
        }
    }
}

/// A number that `fits` accepts; otherwise an error with the hint.
fn read_number(
    key: &YamlKey,
    node: &YamlNode,
    fits: impl Fn(&u32) -> bool,
    hint: String,
    findings: &mut FileFindings<'_>,
) -> Option<u32> {
    let number = node.as_integer().and_then(|n| u32::try_from(n).ok()).filter(|n| fits(n));
    if number.is_none() {
        let message = format!("`{}` is {}", key.text, quote_value(node));
        findings.error_hint(key.at, "bad-field", message, hint);
    }
    number
}

/// Reads `subagents.allowed_tools`, a list of existing tools.
fn child_tools(
    key: &YamlKey,
    node: &YamlNode,
    known: &KnownTools,
    findings: &mut FileFindings<'_>,
) -> Vec<ToolName> {
    let mut tools = BTreeSet::new();
    for name in read_texts(key, node, findings) {
        match known.get(&name) {
            Some(tool) => {
                tools.insert(tool.clone());
            }
            None => {
                let message = format!("tool `{}` does not exist", ShownText::clip_line(&name, 80));
                let hint = known.suggest_name(&name).map_or_else(
                    || "`belljar tools list` shows all tools".to_owned(),
                    |word| format!("did you mean `{word}`?"),
                );
                findings.error_hint(key.at, "unknown-tool", message, hint);
            }
        }
    }
    tools.into_iter().collect()
}

/// Reads `limits`, a map from a limit's name to its number.
fn read_limits(key: &YamlKey, node: &YamlNode, findings: &mut FileFindings<'_>) -> LimitsRequest {
    let mut limits = LimitsRequest::default();
    let YamlValue::Map(entries) = &node.value else {
        let message = format!("`limits` is {}, not fields", node.describe_kind());
        findings.error_hint(key.at, "bad-field", message, "write `limits: { steps: 10 }`");
        return limits;
    };
    for (key, node) in entries {
        let Some(row) = LIMITS.iter().find(|row| row.key == key.text) else {
            let known: Vec<_> = LIMITS.iter().map(|row| row.key).collect();
            report_unknown_key(key, "`limits`", &known, findings);
            continue;
        };
        match node.as_integer().and_then(|n| u64::try_from(n).ok()) {
            Some(n) => {
                limits.set(row.key, n);
            }
            None => {
                let message = format!(
                    "`{}` is {}, not a whole number of {}",
                    row.key,
                    quote_value(node),
                    row.unit
                );
                findings.error(key.at, "bad-field", message);
            }
        }
    }
    limits
}

/// Reads `mounts`, a list of paths or maps.
fn read_mounts(key: &YamlKey, node: &YamlNode, findings: &mut FileFindings<'_>) -> Vec<MountAsk> {
    const SHAPE: &str = "write `mounts: [{ path: /workspace, access: read }]`, or `[]` for none";
    let YamlValue::List(items) = &node.value else {
        let message = format!("`mounts` is {}, not a list", node.describe_kind());
        findings.error_hint(key.at, "bad-field", message, SHAPE);
        return Vec::new();
    };
    if items.len() > MAX_ENTRIES {
        let message = format!("`mounts` has more than {MAX_ENTRIES} entries");
        findings.error_hint(key.at, "bad-field", message, "name a directory that holds them all");
        return Vec::new();
    }
    let mut mounts: Vec<MountAsk> = Vec::new();
    for item in items {
        let Some(mount) = read_mount(item, findings) else { continue };
        if mounts.iter().any(|other| other.guest == mount.guest) {
            let message = format!("`mounts` names `{}` twice", mount.guest);
            findings.error(item.at, "duplicate-mount", message);
        } else {
            mounts.push(mount);
        }
    }
    mounts
}

/// Parses a mount; a path alone requests reading.
fn read_mount(item: &YamlNode, findings: &mut FileFindings<'_>) -> Option<MountAsk> {
    let mut path = item.as_text().map(|text| (text.to_owned(), item.at));
    let mut access = MountAccess::Read;
    if let YamlValue::Map(entries) = &item.value {
        for (key, node) in entries {
            match key.text.as_str() {
                "path" => path = node.as_text().map(|text| (text.to_owned(), node.at)),
                "access" => match node.as_text().and_then(parse_access) {
                    Some(found) => access = found,
                    None => {
                        let message = format!("`access` is {}", quote_value(node));
                        let hint = "write `read`, `overlay` or `read-write`";
                        findings.error_hint(node.at, "bad-access", message, hint);
                        return None;
                    }
                },
                "host" => {
                    let message = "an agent file has no say about host paths";
                    let hint = "remove `host`; the operator grants directories in `belljar.toml`";
                    findings.error_hint(key.at, "host-path", message, hint);
                    return None;
                }
                _ => {
                    report_unknown_key(key, "a mount", &["path", "access"], findings);
                    return None;
                }
            }
        }
    }
    let Some((path, at)) = path else {
        findings.error_hint(
            item.at,
            "bad-field",
            "a mount has no `path`",
            "write `path: /workspace`",
        );
        return None;
    };
    match GuestPath::new(&path) {
        Ok(guest) => Some(MountAsk { guest, access }),
        Err(error) => {
            findings.error(at, "bad-path", error.to_string());
            None
        }
    }
}

/// Parses `read`, `overlay` or `read-write`, in a few spellings.
pub(crate) fn parse_access(text: &str) -> Option<MountAccess> {
    match text.trim().to_ascii_lowercase().as_str() {
        "read" | "ro" | "read-only" => Some(MountAccess::Read),
        "overlay" => Some(MountAccess::Overlay),
        "read-write" | "read_write" | "rw" => Some(MountAccess::ReadWrite),
        _ => None,
    }
}

/// Parses the host rules of a key. Each invalid rule becomes an error `bad-host`, and is left out.
fn read_hosts(key: &YamlKey, node: &YamlNode, findings: &mut FileFindings<'_>) -> Vec<HostRule> {
    let mut rules = Vec::new();
    for text in read_texts(key, node, findings) {
        match text.parse() {
            Ok(rule) => rules.push(rule),
            Err(error) => {
                let error: belljar_policy::HostRuleError = error;
                findings.error(key.at, "bad-host", error.to_string());
            }
        }
    }
    rules
}

/// Parses a list of texts, or one text.
fn read_texts(key: &YamlKey, node: &YamlNode, findings: &mut FileFindings<'_>) -> Vec<String> {
    let items = match &node.value {
        YamlValue::List(items) if items.len() <= MAX_ENTRIES => items.as_slice(),
        YamlValue::Text(_) => std::slice::from_ref(node),
        _ => {
            let message = format!("`{}` is not a list of at most {MAX_ENTRIES} texts", key.text);
            findings.error_hint(key.at, "bad-field", message, "write `[]` for none");
            return Vec::new();
        }
    };
    let mut texts = Vec::new();
    for item in items {
        match item.as_text() {
            Some(text) => texts.push(text.trim().to_owned()),
            None => {
                let message = format!("`{}` holds {}, not a text", key.text, item.describe_kind());
                findings.error(item.at, "bad-field", message);
            }
        }
    }
    texts
}

/// Reports a key that is not a field of `place`, with the most similar field if there is one.
fn report_unknown_key(key: &YamlKey, place: &str, known: &[&str], findings: &mut FileFindings<'_>) {
    let message = format!("`{}` is not a field of {place}", ShownText::clip_line(&key.text, 60));
    let hint = suggest::did_you_mean(&key.text, known.iter().copied())
        .unwrap_or_else(|| format!("the fields are {}", list_of(known)));
    findings.error_hint(key.at, "unknown-field", message, hint);
}

pub(crate) fn list_of(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
