//! Limits in the words of other programs: kept, or the agent is blocked.

use std::path::Path;

use belljar_definition::{AgentDefinition, KnownTools, ParsedAgentFile, parse_agent};
use belljar_policy::{
    AskedRights, CallPermission, Grants, GuestPath, Limits, Mount, MountAccess, Rights, ToolName,
    WriteScope,
};
use proptest::prelude::*;

use crate::show::{agent, definition, known};

/// Lines that take something away.
pub(crate) const NARROWING: &[&str] = &[
    "readonly: true",
    "read_only: yes",
    "permissionMode: plan",
    "sandbox_mode: read-only",
    "sandbox: workspace-write",
    "approval_policy: untrusted",
    "approval: always",
    "network: false",
    "offline: true",
    "allowSubagents: false",
    "maxSubagentDepth: 0",
    "maxSubagentDepth: 2",
    "max_concurrent_subagents: 1",
    "max_turns: 3",
    "maxIterations: 9",
    "timeout_mins: 2",
    "timeout: 30s",
    "run_config: { max_turns: 4, max_time_minutes: 1 }",
    "token_budget: 1000",
    "denied_tools: [Read]",
    "exclude-tools: [WebFetch]",
    "permission: { '*': deny, read: allow }",
    "permission: { 'web*': deny }",
    "permission: { task: { '*': deny, scout: allow } }",
    "disallowedTools: [later_tool]",
    "sandbox_profile: strict",
    "max_tool_calls: 3",
    "readonly: perhaps",
    "permissions: { deny: [Bash] }",
    "permissions: { ask: [Bash], deny: ['Write(src/**)'] }",
    "permissions: { allow: [Read, 'Bash(git diff)'] }",
    "permissions: { defaultMode: plan }",
    "permissions: { something: [Read] }",
    "disallowedTools: Bash Write",
    "disallowedTools: all",
    "tools: {}",
];

/// The tools of these tests and some that are installed later.
pub(crate) fn known_later() -> KnownTools {
    let later = ["later_tool", "web_later"];
    let later = later.into_iter().map(|name| ToolName::new(name).unwrap());
    known().iter().cloned().chain(later).collect()
}

fn with(fields: &str) -> AgentDefinition {
    definition(format!("---\nname: s\ndescription: d\n{fields}\n---\nbody"))
}

fn shown(fields: &str) -> String {
    agent(format!("---\nname: s\ndescription: d\n{fields}\n---\nbody"))
}

/// All that an operator can give.
fn rights(asked: &AskedRights) -> Rights {
    let mount = |guest: &str| Mount {
        guest: GuestPath::new(guest).unwrap(),
        host: "/srv".into(),
        access: MountAccess::ReadWrite,
    };
    let parallel = ToolName::new("delegate_parallel").unwrap();
    let tools = known_later().iter().cloned().chain([parallel]).collect::<Vec<_>>();
    let grants = Grants {
        tools: tools.into_iter().map(|tool| (tool, CallPermission::Allow)).collect(),
        mounts: vec![mount("/workspace"), mount("/out")],
        hosts: vec![vec!["https://*".parse().unwrap()]],
        limits: Limits::default(),
        ..Grants::none()
    };
    Rights::intersect_rights(asked, &grants, None).0
}

#[test]
fn read_only_in_any_programs_words_leaves_tools_that_read_and_no_mount_to_write_to() {
    for line in [
        "readonly: true",
        "readOnly: 'true'",
        "read-only: on",
        "permissionMode: plan",
        "permission_mode: Plan",
        "sandbox_mode: read-only",
        "sandbox: readonly",
    ] {
        let rights = rights(&with(&format!("{line}\ntools: '*'")).asked);
        let tools: Vec<_> = rights.offered_tools().map(|(tool, _)| tool.to_string()).collect();
        let reading = [
            "attach_file",
            "delegate_parallel",
            "file_find",
            "file_list",
            "file_read",
            "file_search",
            "spawn_agent",
            "web_fetch",
            "web_search",
        ];
        assert_eq!(tools, reading, "{line}");
        assert!(rights.mounts().iter().all(|mount| mount.access == MountAccess::Read), "{line}");
    }
    for line in ["readonly: false", "permissionMode: acceptEdits", "sandbox: danger-full-access"] {
        let definition = with(line);
        assert_eq!(rights(&definition.asked), rights(&AskedRights::default()), "{line}");
        assert!(definition.not_kept.is_empty(), "{line}");
    }
}

#[test]
fn the_permissions_of_a_programs_settings_are_kept_or_block() {
    let allowed = |fields: &str| {
        let definition = with(fields);
        assert!(definition.unclear.is_empty(), "{fields}: {:?}", definition.unclear);
        move |tool: &str| definition.asked.highest_permission(tool)
    };
    use CallPermission::{Allow, Ask, Deny};
    let denied = allowed("permissions: { deny: [WebFetch, 'Write(src/**)'] }");
    assert_eq!(["web_fetch", "file_write", "file_read"].map(denied), [Deny, Deny, Allow]);
    let asked = allowed("permissions: { ask: WebFetch }");
    assert_eq!(["web_fetch", "file_read"].map(asked), [Ask, Allow]);
    let some = allowed("permissions: { allow: [Write, 'Edit(src/**)'] }");
    let tools = ["file_write", "notebook_edit", "file_read", "later_tool"];
    assert_eq!(tools.map(some), [Allow, Ask, Allow, Ask]);
    let plan = rights(&with("permissions: { defaultMode: plan }").asked);
    assert!(plan.tool("file_write").is_err() && plan.tool("file_read").is_ok());
    assert!(plan.mounts().iter().all(|mount| mount.access == MountAccess::Read));
    let widened = with("permissions: { defaultMode: bypassPermissions }");
    assert_eq!(rights(&widened.asked), rights(&AskedRights::default()));
    for line in
        ["defaultMode: careful", "defaultMode: [plan]", "never: [Bash]", "paths: { a: deny }"]
    {
        let definition = with(&format!("permissions: {{ {line} }}"));
        assert!(!definition.unclear.is_empty(), "{line}");
    }
}

#[test]
fn names_to_take_away_may_stand_side_by_side_or_be_a_word_for_all() {
    let most = |line: &str, tool: &str| with(line).asked.highest_permission(tool);
    for line in ["disallowedTools: WebFetch Write", "disallowed-tools: 'WebFetch(a b) Write'"] {
        assert_eq!(most(line, "web_fetch"), CallPermission::Deny, "{line}");
        assert_eq!(most(line, "file_write"), CallPermission::Deny, "{line}");
        assert_eq!(most(line, "file_read"), CallPermission::Allow, "{line}");
    }
    for line in ["disallowedTools: all", "permissions: { deny: [Everything] }", "tools: {}"] {
        assert_eq!(rights(&with(line).asked).offered_tools().count(), 0, "{line}");
    }
    assert!(!with("disallowedTools: Edit and whatever writes").unclear.is_empty());
}

#[test]
fn a_sandbox_of_the_workspace_leaves_other_mounts_to_be_read() {
    let definition = with("sandbox_mode: workspace-write");
    assert_eq!(definition.asked.writes, WriteScope::Workspace);
    let rights = rights(&definition.asked);
    let access = |guest: &str| {
        rights.mounts().iter().find(|mount| mount.guest.as_str() == guest).unwrap().access
    };
    assert_eq!((access("/workspace"), access("/out")), (MountAccess::ReadWrite, MountAccess::Read));
}

#[test]
fn times_and_turns_of_other_programs_are_kept() {
    let limits = |fields: &str| {
        let limits = with(fields).asked.limits;
        (limits.get("steps"), limits.get("timeout_seconds"))
    };
    for line in ["max_turns: 7", "maxTurns: 7", "max-steps: 7", "maxIterations: '7'"] {
        assert_eq!(limits(line).0, Some(7), "{line}");
    }
    for line in ["timeout_mins: 3", "timeoutMs: 180000", "timeout: 3m", "timeout-seconds: 180"] {
        assert_eq!(limits(line).1, Some(180), "{line}");
    }
    let nested = limits("run_config:\n  max_turns: 4\n  max_time_minutes: 1");
    assert_eq!(nested, (Some(4), Some(60)));
    assert_eq!(limits("max_turns: 9\nmaxTurns: 4").0, Some(4), "the lower one counts");
}

#[test]
fn an_agent_that_may_not_delegate_has_no_tool_for_it() {
    for line in [
        "maxSubagentDepth: 0",
        "allowSubagents: false",
        "allow_delegation: false",
        "max_subagents: 0",
        "disable_subagents: true",
    ] {
        let definition = with(line);
        let rights = rights(&definition.asked);
        for tool in ["spawn_agent", "delegate_parallel"] {
            assert!(rights.tool(tool).is_err(), "{line}: {tool}");
            assert_eq!(definition.decided_by(tool).unwrap().line, 4, "{line}");
        }
        assert!(rights.tool("file_write").is_ok(), "{line}");
    }
    let deep = with("max_subagent_depth: 2");
    assert_eq!(deep.subagents.unwrap().max_depth, Some(2));
    assert!(rights(&deep.asked).tool("spawn_agent").is_ok());
}

#[test]
fn a_tool_that_is_installed_later_stays_denied_where_all_are_by_default() {
    let definition = with("permission: { '*': deny, read: allow }");
    let rights = rights(&definition.asked);
    assert!(rights.tool("later_tool").is_err() && rights.tool("file_read").is_ok());
    let asks = with("permission: { '*': ask, read: allow }");
    assert_eq!(asks.asked.highest_permission("later_tool"), CallPermission::Ask);
}

#[test]
fn patterns_that_say_the_same_of_everything_are_kept_and_others_take_the_tool_away() {
    for (line, most) in [
        ("read: { '*': allow, 'mcp:*': deny }", CallPermission::Allow),
        ("read: { 'mcp:*': deny }", CallPermission::Allow),
        ("read: { '**': deny }", CallPermission::Deny),
        ("read: { '*': ask, '*.env': ask }", CallPermission::Ask),
    ] {
        let definition = with(&format!("permission: {{ {line} }}"));
        assert_eq!(definition.asked.highest_permission("file_read"), most, "{line}");
        assert!(definition.unavailable.is_empty(), "{line}");
    }
    for line in [
        "read: { '*': allow, '*.env': deny }",
        "read: { '*.env': deny }",
        "'*': deny, read: { 'src/**': allow }",
        "edit: { 'docs/**': ask }",
    ] {
        let definition = with(&format!("permission: {{ {line} }}"));
        assert_eq!(definition.unavailable.len(), 1, "{line}");
        assert!(
            definition.asked.highest_permission("file_read") < CallPermission::Allow
                || line.contains("edit")
        );
    }
    let named = with("permission: { task: { '*': deny, scout: allow, critic: allow } }");
    assert_eq!(named.subagents.unwrap().allowed_agents.unwrap(), ["critic", "scout"]);
    assert!(named.unavailable.is_empty());
    let some = with("permission: { task: { '*': allow, scout: deny } }");
    assert_eq!(
        (some.unavailable.len(), some.asked.highest_permission("spawn_agent")),
        (1, CallPermission::Deny)
    );
}

#[test]
fn a_limit_that_is_not_understood_is_shown_with_its_line_and_blocks() {
    insta::assert_snapshot!(shown("tools: Read\nsandbox_profile: strict\nsettings: { security: { level: restricted } }\nmax_tokens: 99\nreadonly: perhaps"), @r#"
    s (s), Claude Code, user-facing
    tools: {}
    agents/scout.md:5:1: warning: `sandbox_profile: strict` speaks of a limit that is not understood, so the agent is blocked
      hint: take the line out if it limits nothing, or say it in a field that is kept: `tools`, `disallowedTools`, `permission`, `readonly`, `maxTurns`, `timeout`, `maxSubagentDepth`
    agents/scout.md:6:25: warning: `settings.security.level: restricted` speaks of a limit that is not understood, so the agent is blocked
      hint: take the line out if it limits nothing, or say it in a field that is kept: `tools`, `disallowedTools`, `permission`, `readonly`, `maxTurns`, `timeout`, `maxSubagentDepth`
    agents/scout.md:7:1: note: ignored: `max_tokens`
    agents/scout.md:8:1: warning: `readonly: perhaps` speaks of a limit that is not understood, so the agent is blocked
      hint: take the line out if it limits nothing, or say it in a field that is kept: `tools`, `disallowedTools`, `permission`, `readonly`, `maxTurns`, `timeout`, `maxSubagentDepth`
    "#);
}

#[test]
fn a_limit_in_broken_yaml_is_kept_or_costs_all_tools() {
    let broken = |line: &str| {
        definition(format!("---\nname: s\ndescription: it: is broken\n{line}\n---\nbody"))
    };
    assert_eq!(broken("readonly: true").asked.writes, WriteScope::Nowhere);
    assert_eq!(broken("max_turns: 3").asked.limits.get("steps"), Some(3));
    let lines = [
        "sandbox_profile: strict",
        "no-network: sometimes",
        "  readonly: true",
        "restricted: true",
        "sandboxed: yes",
        "deny: [Write, Bash]",
        "forbidden:\n  - Write",
    ];
    for line in lines {
        let definition = broken(line);
        assert_eq!(rights(&definition.asked).offered_tools().count(), 0, "{line}");
        assert!(definition.has_lost_all_tools(), "{line}");
    }
    // Prose says more than a word.
    for line in ["Restricted: nothing is written here", "Denied: what nobody asked for"] {
        assert!(!broken(line).has_lost_all_tools(), "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// One line more about a limit takes away or leaves as it is, whatever stands beside it.
    #[test]
    fn a_line_that_narrows_never_widens(
        before in prop::collection::btree_set(prop::sample::select(NARROWING), 0..4),
        line in prop::sample::select(NARROWING),
    ) {
        let key = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
        let mut lines: Vec<&str> = Vec::new();
        for it in before {
            // A key that stands twice is no YAML.
            if key(it) != key(line) && lines.iter().all(|other| key(other) != key(it)) {
                lines.push(it);
            }
        }
        let read = |lines: &[&str]| {
            let text = format!("---\nname: s\ndescription: d\n{}\n---\nbody", lines.join("\n"));
            match parse_agent(Path::new("a/s.md"), text.as_bytes(), &known()) {
                ParsedAgentFile::Agent { definition, .. } => *definition,
                other => panic!("{text}: {other:?}"),
            }
        };
        let wide = read(&lines);
        lines.push(line);
        let narrow = read(&lines);
        let (own, above) = (rights(&narrow.asked), rights(&wide.asked));
        prop_assert!(own.is_within(&above), "{lines:?}: {own:?} not in {above:?}");
        prop_assert!(own.is_within(&rights(&AskedRights::default())));
        let depth = |it: &AgentDefinition| {
            it.subagents.as_ref().and_then(|asked| asked.max_depth).unwrap_or(u32::MAX)
        };
        prop_assert!(depth(&narrow) <= depth(&wide));
        prop_assert!(narrow.not_kept.len() >= wide.not_kept.len());
    }
}

#[test]
fn an_agent_that_only_reads_has_no_worktree_whatever_it_names() {
    for fields in ["readonly: true", "tools: [Read, EnterWorktree]\npermissionMode: plan"] {
        let asked = with(fields).asked;
        let worktree = ToolName::new("worktree").unwrap();
        let grants =
            Grants { tools: [(worktree.clone(), CallPermission::Allow)].into(), ..Grants::none() };
        let (rights, _) = Rights::intersect_rights(&asked, &grants, None);
        assert!(rights.tool(worktree.as_str()).is_err(), "{fields}");
    }
}

#[test]
fn a_word_of_restriction_that_is_not_understood_blocks_wherever_it_stands() {
    let blocked = |fields: &str| {
        let definition = with(fields);
        assert!(definition.has_lost_all_tools(), "{fields}: {definition:?}");
        assert_eq!(rights(&definition.asked).offered_tools().count(), 0, "{fields}");
    };
    for fields in [
        "disallowedTools: Wrte",
        "permission: { wirte: deny }",
        "tools: alle sauf que Bash, Write",
        "tools: all tools (read-only)",
        "tools: Read, no Bash, Write",
        "groups: [read]",
        "policies: [read-only]",
        "scope: read",
        "description2: x\ntools:Read, Grep",
        "model: x\ntools = Read",
        "write_path: docs",
    ] {
        blocked(fields);
    }
    // Its neighbour without such a word has what it is granted.
    assert_eq!(
        rights(&with("scope: project\ngroups: [engineering]").asked),
        rights(&AskedRights::default())
    );
}

#[test]
fn a_word_of_restriction_whose_meaning_is_certain_is_kept() {
    let may = |fields: &str, tool: &str| rights(&with(fields).asked).tool(tool).is_ok();
    for fields in
        ["writable: false", "write_paths: []", "planMode: true", "fs: ro", "no_writes: yes"]
    {
        assert!(!may(fields, "file_write") && may(fields, "file_read"), "{fields}");
    }
    for fields in ["spawning: false", "agents: none", "nested: false", "leaf: true"] {
        assert!(!may(fields, "spawn_agent") && may(fields, "file_write"), "{fields}");
    }
    for fields in
        ["online: false", "web_access: none", "airgapped: true", "disallowedTools: browser*"]
    {
        assert!(!may(fields, "web_fetch") && may(fields, "file_write"), "{fields}");
    }
    for fields in ["available_tools: [Read]", "includeTools: Read", "t\u{43e}ols: [Read]"] {
        assert!(!may(fields, "file_write") && may(fields, "file_read"), "{fields}");
    }
    for fields in [
        "tools: All tools except Edit, Write",
        "tools: '*, except Bash, Write'",
        "unavailableTools: [Write]",
        "skip_tools: Write",
        "disallowedTools: fs_write",
        "disallowedTools: [Create, ApplyPatch]",
        "disallowedTools: str_replace_based_edit_tool",
        "disallowedTools: write_to_file",
    ] {
        assert!(!may(fields, "file_write") && may(fields, "web_fetch"), "{fields}");
    }
}

#[test]
fn the_same_words_that_restrict_nothing_take_nothing_away() {
    for fields in [
        "writable: true",
        "spawning: yes",
        "leaf: false",
        "online: on",
        "tools: all tools",
        "disallowedTools: none",
        "max_cost: unlimited",
        "fs: rw",
        "tool_choice: auto",
        "# tools: Read",
    ] {
        let definition = with(fields);
        assert_eq!(rights(&definition.asked), rights(&AskedRights::default()), "{fields}");
        assert!(definition.not_kept.is_empty() && definition.unclear.is_empty(), "{fields}");
    }
}

fn blocks(fields: &str) {
    let definition = with(fields);
    assert!(definition.has_lost_all_tools(), "{fields}: {definition:?}");
    assert_eq!(rights(&definition.asked).offered_tools().count(), 0, "{fields}");
}

#[test]
fn a_key_that_nobody_knows_blocks_where_it_is_off_or_says_what_may_be_read() {
    for fields in [
        "connected: false",
        "outgoing: none",
        "swarm: off",
        "workers: 0",
        "teammates: []",
        "functions: none",
        "w: false",
        "storage: ro",
        "iam: viewer",
        "persona: read-only",
        "verbs: [read]",
        "operations: [read, list]",
        "groups: [read, [edit, { fileRegex: x }]]",
        "firewall: deny-all",
        "mode: 0444",
        "gets: [Read]",
        "Werkzeuge: Read",
        "schreibgesch\u{fc}tzt: ja",
        "\u{441}\u{435}\u{442}\u{44c}: \u{43d}\u{435}\u{442}",
        "solo_lectura: s\u{ed}",
        "quarantined: yes",
        "works_alone: true",
        "write_free: true",
        "'!write': yes",
        "raedonly: true",
        "tool_choice: none",
        "agents: ''",
    ] {
        match fields {
            // It is kept as what it says.
            "agents: ''" => {
                let asked = rights(&with(fields).asked);
                assert!(asked.offered_tools().all(|(tool, _)| tool.as_str() != "spawn_agent"));
            }
            _ => blocks(fields),
        }
    }
    for fields in [
        "streaming: false",
        "memory: false",
        "seed: 0",
        "tool_choice: auto",
        "repository: https://example.org",
        "beta: true",
        "ban_write: false",
        "testing: true",
    ] {
        assert_eq!(rights(&with(fields).asked), rights(&AskedRights::default()), "{fields}");
    }
}

#[test]
fn an_entry_beside_a_word_for_all_takes_away_or_blocks() {
    for fields in [
        "tools: '*, Bash \u{2717}'",
        "tools: '*, bash disabled'",
        "tools: '*, bash_off'",
        "tools: '*, except(Bash)'",
        "tools: ['*', except, Bash]",
        "tools: [all, [except, Bash]]",
        "tools: [all, { except: Bash }]",
        "tools: no, Bash",
        "tools: Bash hari\u{e7}",
    ] {
        blocks(fields);
    }
    for fields in [
        "tools: 'all tools except: Edit, Write'",
        "tools: '*, excluded: Write'",
        "tools: '*, nicht Write'",
        "tools: ['*', - Write]",
        "tools: '*, \u{2716} Write'",
        "disallowedTools: Edit/Write",
        "disallowedTools: 'Write:*'",
        "disallowedTools: Edit\u{3001}Write",
    ] {
        let definition = with(fields);
        let asked = rights(&definition.asked);
        let writes = asked.offered_tools().any(|(tool, _)| tool.as_str() == "file_write");
        assert!(!writes, "{fields}: {definition:?}");
    }
    // A name of a server's is no restriction.
    assert!(!with("tools: ['*', context7, 'github/*']").has_lost_all_tools());
}

#[test]
fn what_stands_behind_a_tag_is_not_read_without_it() {
    for fields in ["tools: ['*', !Write]", "tools: !except [Bash]", "disallowedTools: !Bash"] {
        blocks(fields);
    }
    let plain = rights(&with("disallowedTools: !!str Write").asked);
    assert!(
        plain.offered_tools().all(|(tool, _)| tool.as_str() != "file_write")
            && plain.offered_tools().count() > 0
    );
}

#[test]
fn a_part_of_a_tool_of_any_program_takes_the_whole_away_and_says_so() {
    for name in ["Write(a.md)", "write_to_file(a.md)", "ApplyPatch(a)", "FetchUrl(x)"] {
        let shown = shown(&format!("disallowedTools: ['{name}']"));
        assert!(shown.contains(&format!("`{name}` takes all of `")), "{shown}");
    }
}
