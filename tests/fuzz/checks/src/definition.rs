//! Files of strangers: agents, teams and skills. Every input is read as each of them.

use std::path::Path;

use belljar_definition::suspicion::{MAX_PER_RULE, RULES, Suspicion, find_suspicions};
use belljar_definition::{
    AgentDefinition, BUILTIN_TOOLS, CatalogItem, Diagnostic, Dialect, FileRead, KnownTools,
    MAX_DIAGNOSTICS, MAX_TEAM_AGENTS, ParsedAgentFile, Severity, SkillDefinition, TOOL_ALIASES,
    TeamDefinition, parse_agent,
};
use belljar_policy::{
    CallPermission, Grants, GuestPath, HostRule, Limits, Mount, MountAccess, Rights, SecretName,
    ToolName,
};

use crate::is_safe_to_show;

/// The tools that exist here, apart from those of the host.
const TOOLS: &[&str] = &[
    "attach_file",
    "file_edit",
    "file_find",
    "file_list",
    "file_read",
    "file_search",
    "file_write",
    "notebook_edit",
    "web_fetch",
    "web_search",
];

/// Checks the readers of agents, teams and skills.
pub fn definition(data: &[u8]) {
    agent(data);
    team(data);
    skill(data);
}

fn agent(data: &[u8]) {
    let known = known();
    // One of the dialects is known by the path alone.
    for path in ["agents/a.md", "agents/a.agent.md"] {
        let path = Path::new(path);
        let parsed = parse_agent(path, data, &known);
        assert_eq!(parsed, parse_agent(path, data, &known), "two readings of the same bytes");
        match &parsed {
            ParsedAgentFile::Agent { definition, diagnostics } => {
                findings(diagnostics, data, false);
                assert!(!definition.body.trim().is_empty());
                assert!(data.ends_with(definition.body.as_bytes()), "the body, byte for byte");
                assert!(!definition.description.trim().is_empty());
                asks_no_more_than_it_names(definition, &known);
                narrows(definition, &known);
                suspects(definition, data);
                taking_away_takes_away(path, data, &known);
            }
            ParsedAgentFile::Invalid { diagnostics } => findings(diagnostics, data, true),
            ParsedAgentFile::NotAnAgent { .. } => {}
        }
    }
}

/// Suspicions are bounded, safe to show, on a line that there is; and a hidden character put into a
/// file is found.
fn suspects(definition: &AgentDefinition, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let found = find_suspicions(text, definition);
    assert!(found.len() <= RULES.len() * MAX_PER_RULE);
    let lines = text.split('\n').count();
    for it in &found {
        assert!(is_safe_to_show(&it.found), "{:?}", it.found);
        assert!(it.line >= 1 && it.line as usize <= lines, "line {} of {lines}", it.line);
    }
    let more = format!("{text}\nhidden\u{202e}");
    let is_hidden = |it: &Suspicion| it.rule.name == "hidden-character";
    assert!(find_suspicions(&more, definition).iter().any(is_hidden));
}

/// Every tool that it asks for stands in its list, under its own name or one that means it.
fn asks_no_more_than_it_names(definition: &AgentDefinition, known: &KnownTools) {
    let asked = &definition.asked;
    let written = definition.tools_as_written.as_deref().unwrap_or_default();
    let names: Vec<_> =
        written.iter().map(|name| name.split('(').next().unwrap_or_default().trim()).collect();
    match &asked.tools {
        Some(tools) => {
            for tool in tools {
                assert!(known.contains(tool.as_str()), "`{tool}` does not exist");
                assert_ne!(
                    asked.highest_permission(tool.as_str()),
                    CallPermission::Deny,
                    "`{tool}`"
                );
                let means = |name: &&str| {
                    let row = |row: &&belljar_definition::ToolAlias| row.name == *name;
                    *name == tool.as_str()
                        || TOOL_ALIASES
                            .iter()
                            .filter(row)
                            .any(|row| row.canonical.contains(&tool.as_str()))
                };
                assert!(names.iter().any(means), "`{tool}` is not in {names:?}");
            }
        }
        // A list without `*` never means all that is granted.
        None => assert!(written.is_empty() || names.contains(&"*"), "{written:?} became all"),
    }
    if definition.dialect == Dialect::Canonical {
        assert_eq!(definition.unknown_tools, Vec::<String>::new());
    }
    if let Some(tools) = definition.subagents.as_ref().and_then(|it| it.allowed_tools.as_ref()) {
        assert!(tools.iter().all(|tool| known.contains(tool.as_str())));
    }
}

/// Its requests give it nothing that the grants alone would not give.
fn narrows(definition: &AgentDefinition, known: &KnownTools) {
    let grants = grants(known);
    let (given, _) = Rights::intersect_rights(&definition.asked, &grants, None);
    let (all, _) = Rights::intersect_rights(&belljar_policy::AskedRights::default(), &grants, None);
    assert!(given.is_within(&all), "{:?}", definition.asked);
    for (tool, permission) in given.offered_tools() {
        assert!(permission <= definition.asked.highest_permission(tool.as_str()), "`{tool}`");
    }
    // A limit that nobody understood leaves nothing, rather than all but that limit.
    assert!(definition.not_kept.is_empty() || given.offered_tools().next().is_none());
}

/// With a line that takes a tool away, the same file does not have that tool.
fn taking_away_takes_away(path: &Path, data: &[u8], known: &KnownTools) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some((fence, rest)) = text.split_once("---\n").filter(|(before, _)| before.is_empty())
    else {
        return;
    };
    let less = format!("{fence}---\ndisallowedTools: [file_read]\n{rest}");
    let ParsedAgentFile::Agent { definition, .. } = parse_agent(path, less.as_bytes(), known)
    else {
        return;
    };
    // Where the first line opens a document of its own, or a flow map, it is another file.
    let ParsedAgentFile::Agent { definition: before, .. } = parse_agent(path, data, known) else {
        return;
    };
    if before.description != definition.description {
        return;
    }
    let (given, _) = Rights::intersect_rights(&definition.asked, &grants(known), None);
    assert_eq!(given.tool_permission("file_read"), CallPermission::Deny, "{less:?}");
}

fn team(data: &[u8]) {
    let read = || TeamDefinition::read_file(Path::new("teams/t.yaml"), data, &());
    match read() {
        FileRead::Item { item, diagnostics } => {
            findings(&diagnostics, data, false);
            assert!((1..=MAX_TEAM_AGENTS).contains(&item.members().count()));
            assert!(item.stages.iter().all(|stage| !stage.members.is_empty()));
            for task in item.members().filter_map(|member| member.task.as_ref()) {
                // What is put in is put in as it is: it opens no place of its own.
                let filled = task.fill("{task}", "{input}");
                assert!(filled.len() <= data.len().saturating_mul(8));
            }
            let again = read();
            let same = matches!(&again, FileRead::Item { item: again, .. } if *again == item);
            assert!(same, "two readings of the same bytes: {again:?}");
        }
        FileRead::Invalid { diagnostics } => findings(&diagnostics, data, true),
        FileRead::Other { .. } => {}
    }
}

fn skill(data: &[u8]) {
    match SkillDefinition::read_file(Path::new("skills/s/SKILL.md"), data, &()) {
        FileRead::Item { item, diagnostics } => {
            findings(&diagnostics, data, false);
            assert!(!item.body.trim().is_empty() && data.ends_with(item.body.as_bytes()));
        }
        FileRead::Invalid { diagnostics } => findings(&diagnostics, data, true),
        FileRead::Other { .. } => {}
    }
}

/// Findings are few, safe to show, about lines that are there, and of the right weight.
fn findings(diagnostics: &[Diagnostic], data: &[u8], refused: bool) {
    let worst = diagnostics.iter().map(|found| found.severity).max();
    assert_eq!(worst == Some(Severity::Error), refused, "{diagnostics:?}");
    assert!(diagnostics.len() <= MAX_DIAGNOSTICS + 1);
    let text = String::from_utf8_lossy(data);
    let lines = data.iter().filter(|byte| **byte == b'\n').count() + 2;
    for found in diagnostics {
        assert!(is_safe_to_show(&found.to_string()), "{found:?}");
        assert!(found.line as usize <= lines, "{found:?} of {lines} lines");
        if let Some(snippet) = found.snippet(&text) {
            let shown = format!("{snippet:?}");
            assert!(is_safe_to_show(&shown));
        }
    }
}

fn known() -> KnownTools {
    let names = TOOLS.iter().copied().chain(BUILTIN_TOOLS.iter().copied());
    names.filter_map(|name| ToolName::new(name).ok()).collect()
}

/// A generous operator: whatever is still missing was taken away by the definition.
fn grants(known: &KnownTools) -> Grants {
    let mount = |guest: &str, access| {
        let guest = GuestPath::new(guest).ok()?;
        Some(Mount { guest, host: "/srv".into(), access })
    };
    let rule = |text: &str| text.parse::<HostRule>().ok();
    let mounts = [("/workspace", MountAccess::ReadWrite), ("/data", MountAccess::Read)];
    Grants {
        tools: known.iter().map(|tool| (tool.clone(), CallPermission::Allow)).collect(),
        mounts: mounts.into_iter().filter_map(|(guest, access)| mount(guest, access)).collect(),
        hosts: vec![["https://*", "http://10.0.0.0/8"].into_iter().filter_map(rule).collect()],
        secrets: SecretName::new("s").into_iter().collect(),
        limits: Limits::default(),
    }
}
