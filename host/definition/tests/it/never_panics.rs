//! Arbitrary and damaged files: any answer is fine, a panic is not, and what comes out keeps
//! the promises of its type.

use std::path::Path;

use belljar_definition::{
    AgentId, CatalogItem, FileRead, GrantChange, MAX_TEAM_AGENTS, ParsedAgentFile, Settings,
    SkillDefinition, Slug, TeamDefinition, ToolManifest, Visibility, apply_grant, parse_agent,
};
use belljar_policy::{CallPermission, ToolName};
use proptest::prelude::*;

use crate::show::known;

const AGENT: &str = "---
name: Code Scout
description: >
  Finds code.
tools: [Read, 'Bash(git:*)', file_search]
permission: { edit: deny, '*': ask }
mounts: [{ path: /data, access: read-write }]
hosts: [\"https://*.example.org\"]
limits: &l { steps: 8 }
timeoutSeconds: 60
---
You find code.
";

const TEAM: &str = "name: Report
description: >
  Gathers and writes.
stages:
  - agent: scout
    task: 'Look at {task}, not {{input}}'
  - parallel:
      - { agent: critic, context: c }
      - &m { agent: scout }
      - *m
    join: any
  - { agent: writer, task: 'Write {input} for {task}' }
budget: { steps: 40, timeoutSeconds: 60 }
";

const SKILL: &str = "---
name: Tides
description: How tides are written.
triggers: [tide table, 'high water']
allowed-tools: [Read, 'Bash(git:*)']
---
In metres.
";

const SETTINGS: &str = "project_override = true
[models.a]
kind = 'openai'
model = 'm'
[roles]
main = 'a'
[secrets.s]
host = 'https://x.example'
header = 'X'
env = 'E'
[grants.scout]
tools = { file_read = 'allow' }
mounts = [{ path = '/data', host = '~/data', access = 'read' }]
limits = { steps = 1 }
";

/// A text with a few stretches replaced by something else.
fn damaged(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("---\n".to_owned()),
        Just("\u{feff}".to_owned()),
        "[\\[\\]{}:,&*!|>'\"%@`#?\n\r\t -]{0,12}",
        "\\PC{0,8}",
    ];
    let cuts = prop::collection::vec((any::<prop::sample::Index>(), 0..20_usize, piece), 1..6);
    cuts.prop_map(move |cuts| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, length, piece) in cuts {
            let at = at.index(bytes.len() + 1);
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, piece.into_bytes());
        }
        bytes
    })
}

/// Parses a team from any bytes, and checks the promises of a valid team.
fn read_team(bytes: &[u8]) {
    if let FileRead::Item { item, diagnostics } =
        TeamDefinition::read_file("a/t.yaml".as_ref(), bytes, &())
    {
        assert!((1..=MAX_TEAM_AGENTS).contains(&item.members().count()));
        assert!(item.stages.iter().all(|stage| !stage.members.is_empty()));
        assert!(diagnostics.iter().all(|d| d.severity < belljar_definition::Severity::Error));
        for task in item.members().filter_map(|member| member.task.as_ref()) {
            task.fill("\u{2003}", "");
        }
    }
}

/// Parses a skill from any bytes, and checks the promises of a valid skill.
fn read_skill(bytes: &[u8]) {
    if let FileRead::Item { item, .. } =
        SkillDefinition::read_file("a/SKILL.md".as_ref(), bytes, &())
    {
        assert!(!item.body.trim().is_empty() && bytes.ends_with(item.body.as_bytes()));
    }
}

/// Parses an agent from any bytes, and checks the promises of each result.
fn read_agent(bytes: &[u8]) {
    match parse_agent(Path::new("a/b.md"), bytes, &known()) {
        ParsedAgentFile::Agent { definition, diagnostics } => {
            assert!(!definition.body.trim().is_empty());
            assert!(bytes.ends_with(definition.body.as_bytes()));
            assert!(diagnostics.iter().all(|d| d.severity < belljar_definition::Severity::Error));
            let lines = bytes.split(|b| *b == b'\n').count() + 1;
            assert!(diagnostics.iter().all(|d| d.line as usize <= lines));
        }
        ParsedAgentFile::Invalid { diagnostics } => {
            assert!(diagnostics.iter().any(|d| d.severity == belljar_definition::Severity::Error));
            for found in diagnostics {
                let text = found.to_string();
                assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']), "{text:?}");
            }
        }
        ParsedAgentFile::NotAnAgent { .. } => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn damaged_teams_and_skills_are_read_or_refused(team in damaged(TEAM), skill in damaged(SKILL)) {
        read_team(&team);
        read_skill(&skill);
    }

    #[test]
    fn arbitrary_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_agent(&bytes);
        let mut fenced = b"---\n".to_vec();
        fenced.extend_from_slice(&bytes);
        fenced.extend_from_slice(b"\n---\nbody");
        read_agent(&fenced);
        let text = String::from_utf8_lossy(&bytes);
        let _ = Settings::parse(Some((Path::new("a"), &text)), Some((Path::new("b"), &text)), None);
        let _ = ToolManifest::parse(Path::new("a"), &text);
    }

    #[test]
    fn damaged_agents_are_read(bytes in damaged(AGENT)) {
        read_agent(&bytes);
    }

    #[test]
    fn damaged_settings_are_read_and_an_edit_of_them_holds(bytes in damaged(SETTINGS)) {
        let text = String::from_utf8_lossy(&bytes);
        let path = Path::new("belljar.toml");
        let settings = Settings::parse(Some((path, &text)), None, Some(Path::new("/h")));
        let _ = Settings::parse(None, Some((path, &text)), None);
        let id: AgentId = "scout".parse().unwrap();
        let tool = ToolName::new("file_write").unwrap();
        let change = GrantChange { tools: vec![(tool, CallPermission::Ask)], ..GrantChange::default() };
        let edited = apply_grant(
            path, &text, Some(Path::new("/h")), &id, Visibility::UserFacing, &change,
        );
        prop_assert_eq!(settings.is_ok(), edited.is_ok(), "{}", text);
        if let Ok(edited) = edited {
            let after = Settings::parse(Some((path, &edited)), None, Some(Path::new("/h"))).unwrap();
            let given = after.agent_grants(&id, Visibility::UserFacing, Path::new("/w"));
            prop_assert_eq!(given.tool_permission("file_write"), CallPermission::Ask);
        }
    }

    #[test]
    fn slugs_are_their_own_slugs(name in "\\PC{0,80}") {
        if let Some(slug) = Slug::from_name(&name) {
            prop_assert_eq!(Slug::from_name(slug.as_str()), Some(slug.clone()));
            prop_assert_eq!(slug.as_str().parse::<AgentId>().unwrap(), AgentId::in_home(slug));
        }
    }
}
