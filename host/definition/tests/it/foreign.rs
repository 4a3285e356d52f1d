//! Files written for other programs load as they are, and never get more than they say.

use std::path::Path;

use belljar_definition::{
    AgentDefinition, AgentId, AgentReadiness, Dialect, MissingToolPolicy, ParsedAgentFile,
    Settings, assess_readiness, parse_agent,
};
use belljar_policy::Rights;

use crate::show::{agent as shown, agent_at, definition, known, of_field};

#[test]
fn claude_code_names_are_translated_and_what_is_missing_is_said() {
    check!("---
name: code-reviewer
description: Reviews code.
tools: Read, Grep, Glob, Bash, Task, mcp__github__get_issue, Frobnicate
model: sonnet
color: blue
---
You review.", @r#"
    code-reviewer (code-reviewer), Claude Code, user-facing
    tools: {"file_find", "file_read", "file_search", "spawn_agent"}
    model: sonnet
    agents/scout.md:4:8: warning: tool `Bash` is not available: `shell` is not installed
    agents/scout.md:4:8: warning: tool `mcp__github__get_issue` is not available: it is a tool of an MCP server
    agents/scout.md:4:8: warning: tool `Frobnicate` does not exist
    agents/scout.md:6:1: note: ignored: `color`
    "#);
}

#[test]
fn a_slip_in_a_field_that_takes_something_away_is_never_silent() {
    for (slip, meant) in
        [("tols", "tools"), ("dissalowedTools", "disallowedTools"), ("maxTurn", "maxTurns")]
    {
        let text = of_field(&format!("{slip}: Read"));
        assert!(text.contains(&format!("warning: `{slip}` is not a field")), "{text}");
        assert!(text.contains(&format!("did you mean `{meant}`?")), "{text}");
    }
    assert!(!of_field("color: blue").contains("warning"));
}

#[test]
fn a_missing_name_comes_from_the_file() {
    insta::assert_snapshot!(agent_at("agents/Plan Maker.agent.md", "---\ndescription: d\ntools: ['codebase', 'edit/editFiles', 'problems']\n---\nbody"), @r#"
    Plan Maker (plan-maker), Copilot, user-facing
    tools: {"file_edit", "file_search"}
    agents/Plan Maker.agent.md:1:1: warning: it has no `name`; the file's name serves: `Plan Maker`
    agents/Plan Maker.agent.md:3:39: warning: tool `problems` is not available: it belongs to an editor
    "#);
}

#[test]
fn every_shape_of_tools_is_read() {
    check_field!("tools: Read", @r#"
    s (s), Claude Code, user-facing
    tools: {"file_read"}
    "#);
    check_field!("tools: [Read, 'Grep, Glob']", @r#"
    s (s), Claude Code, user-facing
    tools: {"file_find", "file_read", "file_search"}
    "#);
    check_field!("tools: \"*\"", @r#"
    s (s), unknown, user-facing
    tools: all that is granted
    "#);
    check_field!("tools: ['*']", @r#"
    s (s), unknown, user-facing
    tools: all that is granted
    "#);
    check_field!("tools: []", @r#"
    s (s), unknown, user-facing
    tools: {}
    "#);
    check_field!("tools:", @r#"
    s (s), unknown, user-facing
    tools: {}
    agents/scout.md:4:1: warning: `tools` is empty, which means no tools
      hint: write `[]`, or remove the line to take all that the grants give
    "#);
    check_field!("tools: 7", @r#"
    s (s), unknown, user-facing
    tools: {}
    agents/scout.md:4:1: warning: `tools` is `7`, not a list of names
      hint: write `[file_read, file_search]`, or `[]` for none
    "#);
    check_field!("tools: { read: true, bash: false, write: false }", @r#"
    s (s), OpenCode, user-facing
    tools: {"file_read"}
    at most: {"file_write": Deny}
    "#);
    check_field!("tools: { write: false }", @r#"
    s (s), OpenCode, user-facing
    tools: all that is granted
    at most: {"file_write": Deny}
    "#);
    check_field!("tools: { '*': false, read: true }", @r#"
    s (s), OpenCode, user-facing
    tools: {"file_read"}
    "#);
    check_field!("tools: { read: maybe }", @r#"
    s (s), OpenCode, user-facing
    tools: {}
    at most: {"attach_file": Deny, "file_read": Deny}
    agents/scout.md:4:10: warning: `read` is `maybe`, neither on nor off: off
    "#);
}

#[test]
fn what_is_taken_away_is_taken_away() {
    check_field!("disallowedTools: Write, Edit(src/**)", @r#"
    s (s), unknown, user-facing
    tools: all that is granted
    at most: {"file_edit": Deny, "file_write": Deny, "notebook_edit": Deny}
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    agents/scout.md:4:18: note: `Edit(src/**)` takes all of `file_edit`, `file_write` away: a part of a tool cannot be denied alone
    "#);
    check_field!("tools: [Read, Write]\ndisallowedTools: [Write]", @r#"
    s (s), Claude Code, user-facing
    tools: {"file_read"}
    at most: {"file_write": Deny}
    "#);
    check_field!("disallowedTools: '*'", @r#"
    s (s), unknown, user-facing
    tools: {}
    at most: {"attach_file": Deny, "file_edit": Deny, "file_find": Deny, "file_list": Deny, "file_read": Deny, "file_search": Deny, "file_write": Deny, "notebook_edit": Deny, "spawn_agent": Deny, "web_fetch": Deny, "web_search": Deny}
    others: Deny
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
    check_field!("tools: [Read, Grep]\nallowedTools: [Grep, Glob]", @r#"
    s (s), Claude Code, user-facing
    tools: {"file_search"}
    "#);
}

#[test]
fn opencode_permissions_narrow_and_the_last_match_wins() {
    check_field!("permission: { edit: deny, webfetch: ask }", @r#"
    s (s), OpenCode, user-facing
    tools: all that is granted
    at most: {"file_edit": Deny, "file_write": Deny, "notebook_edit": Deny, "web_fetch": Ask}
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
    check_field!("permission: { edit: { '*': allow, '*.env': deny } }", @r#"
    s (s), OpenCode, user-facing
    tools: all that is granted
    at most: {"file_edit": Deny, "file_write": Deny, "notebook_edit": Deny}
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    agents/scout.md:4:15: warning: the patterns of `edit` are not enforced here, so it is not given at all
    "#);
    check_field!("permission: deny", @r#"
    s (s), OpenCode, user-facing
    tools: {}
    at most: {"attach_file": Deny, "file_edit": Deny, "file_find": Deny, "file_list": Deny, "file_read": Deny, "file_search": Deny, "file_write": Deny, "notebook_edit": Deny, "spawn_agent": Deny, "web_fetch": Deny, "web_search": Deny}
    others: Deny
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
    check_field!("permission: { '*': ask, read: allow }", @r#"
    s (s), OpenCode, user-facing
    tools: all that is granted
    at most: {"attach_file": Ask, "file_edit": Ask, "file_find": Ask, "file_list": Ask, "file_read": Allow, "file_search": Ask, "file_write": Ask, "notebook_edit": Ask, "spawn_agent": Ask, "web_fetch": Ask, "web_search": Ask}
    others: Ask
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
    check_field!("permission: { edit: perhaps }", @r#"
    s (s), OpenCode, user-facing
    tools: all that is granted
    at most: {"file_edit": Deny, "file_write": Deny, "notebook_edit": Deny}
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    agents/scout.md:4:15: warning: `edit` is `perhaps`, none of `allow`, `ask`, `deny`: denied
    "#);
}

#[test]
fn a_permission_gives_back_nothing_that_another_field_takes_away() {
    check_field!("disallowedTools: [Write]\npermission: { write: allow, read: ask }", @r#"
    s (s), OpenCode, user-facing
    tools: all that is granted
    at most: {"attach_file": Ask, "file_read": Ask, "file_write": Deny}
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
    check_field!("tools: { write: false, webfetch: ask }\npermission: { write: allow, webfetch: allow }", @r#"
    s (s), OpenCode, user-facing
    tools: {"web_fetch"}
    at most: {"file_write": Deny, "web_fetch": Ask}
    "#);
}

/// The last entries of a long map are as much taken away as the first.
#[test]
fn a_map_with_more_entries_than_are_read_is_refused() {
    let many = |end: &str| (0..500).map(|n| format!("  x{n}: {end}\n")).collect::<String>();
    let tools = format!("tools:\n{}  write: false", many("false"));
    check_field!(&tools, @r#"
    invalid
    agents/scout.md:4:1: error: `tools` has more than 500 names
    "#);
    let permission = format!("permission:\n{}  write: deny", many("deny"));
    check_field!(&permission, @r#"
    invalid
    agents/scout.md:4:1: error: `permission` has more than 500 names
    "#);
}

#[test]
fn a_scope_becomes_a_limit_or_nothing() {
    check_field!("tools: Read(src/**), Agent(scout, critic), Bash(git:*), Grep(*)", @r#"
    s (s), Claude Code, user-facing
    tools: {"file_search", "spawn_agent"}
    SubagentsAsk { enabled: None, max_depth: None, max_concurrent: None, allowed_agents: Some(["scout", "critic"]), allowed_tools: None }
    agents/scout.md:4:8: warning: tool `Read(src/**)` is not available: the scope `src/**` is not something that belljar enforces
    agents/scout.md:4:8: warning: tool `Bash(git:*)` is not available: `shell` is not installed
    "#);
}

#[test]
fn what_would_be_a_right_or_an_effect_is_not_honoured() {
    check!("---
name: s
description: d
permissionMode: bypassPermissions
hooks: { PreToolUse: [] }
mcpServers: [github]
skills: [x]
maxTurns: '7'
---
body", @r#"
    s (s), Claude Code, user-facing
    tools: all that is granted
    limits: steps = 7
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    agents/scout.md:4:1: warning: `permissionMode` is not honoured: a file grants itself nothing here
    agents/scout.md:5:1: warning: `hooks` is not honoured: a file grants itself nothing here
    agents/scout.md:6:1: warning: `mcpServers` is not honoured: a file grants itself nothing here
    agents/scout.md:7:1: warning: `skills` is not honoured: a file grants itself nothing here
    "#);
}

#[test]
fn a_disabled_agent_says_so() {
    assert!(definition("---\ndescription: d\nmode: subagent\ndisable: true\n---\nb").disabled);
}

#[test]
fn names_that_are_no_identity_fall_back_to_the_file() {
    check!("---\nname: '\u{4ee3}\u{7801}'\ndescription: d\n---\nbody", @r#"
    代码 (代码), unknown, user-facing
    tools: all that is granted
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
    insta::assert_snapshot!(agent_at("\u{4ee3}.md", "---\nname: '?!'\ndescription: d\n---\nbody"), @r#"
    ?! (代), unknown, user-facing
    tools: all that is granted
    代.md:2:1: note: `?!` has no letter or digit; look it up as `代`
    代.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
    check!("---\nname: \"a\\nb\"\ndescription: d\n---\nbody", @r#"
    scout (scout), unknown, user-facing
    tools: all that is granted
    agents/scout.md:2:1: warning: `name` has more than 100 characters, or control characters or others that are not seen; the file's name serves: `scout`
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
}

#[test]
fn a_model_may_be_a_list_or_nothing() {
    let model =
        |line: &str| definition(format!("---\nname: s\ndescription: d\n{line}\n---\nb")).model;
    assert_eq!(model("model: [GPT-5, Claude]").as_deref(), Some("GPT-5"));
    assert_eq!(model("model: 4.10").as_deref(), Some("4.10"));
    assert_eq!(model("model:"), None);
}

#[test]
fn an_agent_is_ready_ready_with_warnings_or_blocked_and_says_why() {
    let judged_with = |overlays: bool, fields: &str, missing: MissingToolPolicy| {
        let text = format!("---\nname: s\ndescription: d\n{fields}\n---\nbody");
        let path = Path::new("agents/scout.md");
        let ParsedAgentFile::Agent { definition, diagnostics } =
            parse_agent(path, text.as_bytes(), &known())
        else {
            panic!("{text}")
        };
        let id = AgentId::in_home(definition.slug.clone());
        let mut settings = Settings::default();
        settings.overlays.by_default = overlays;
        let grants = settings.agent_grants(&id, definition.visibility, Path::new("/ws"));
        let (_, notes) = Rights::intersect_rights(&definition.asked, &grants, None);
        let status = assess_readiness(&definition, &grants, &notes, &diagnostics, missing);
        let lines = match &status {
            AgentReadiness::Ready => &[][..],
            AgentReadiness::ReadyWithWarnings { warnings: lines }
            | AgentReadiness::Blocked { reasons: lines } => lines,
        };
        format!("{}\n{}", status.as_str(), lines.join("\n"))
    };
    let judged = |fields: &str, missing| judged_with(false, fields, missing);
    let status = |fields: &str| judged(fields, MissingToolPolicy::Warns);
    let by_default = judged_with(true, "tools: Read, Write", MissingToolPolicy::Warns);
    insta::assert_snapshot!(by_default, @"ready");
    insta::assert_snapshot!(status("tools: Read"), @"ready");
    insta::assert_snapshot!(status("tools: Read\nmaxTurns: 100\nhooks: {}"), @r#"
    ready with warnings
    `hooks` is not honoured: a file grants itself nothing here
    asks for `steps` = 100; the grants give 30
    "#);
    insta::assert_snapshot!(status("tools: Read, Write, Bash, Frob"), @r#"
    blocked
    tool `file_write` is not given by the operator's grants
    "#);
    insta::assert_snapshot!(status("tools: Read, Bash, Frob, mcp__a__b"), @r#"
    ready with warnings
    tool `Bash` is not available: `shell` is not installed
    tool `Frob` does not exist
    tool `mcp__a__b` is not available: it is a tool of an MCP server
    "#);
    insta::assert_snapshot!(judged("tools: Read, Bash, Frob", MissingToolPolicy::Blocks), @r#"
    blocked
    tool `Frob` does not exist
    tool `Bash` is not available: `shell` is not installed
    "#);
    // Without any tool that it asks for it would be another agent.
    insta::assert_snapshot!(status("tools: mcp__a__b, Frob"), @r#"
    blocked
    tool `Frob` does not exist
    tool `mcp__a__b` is not available: it is a tool of an MCP server
    "#);
    insta::assert_snapshot!(status("tools: Write, Frob"), @r#"
    blocked
    tool `file_write` is not given by the operator's grants
    tool `Frob` does not exist
    "#);
    // What takes tools away has to be understood.
    insta::assert_snapshot!(status("tools: Read\ndisallowedTools: Edit and whatever writes"), @r#"
    blocked
    `Edit and whatever writes` cannot be kept: it names several things, and not all are tools
    "#);
    insta::assert_snapshot!(status("disable: true"), @r#"
    blocked
    its file says `disable: true`
    "#);
    let lost = definition("---\nname: s\ndescription: d\ntools: Bash\n---\nb");
    let none = definition("---\nname: s\ndescription: d\ntools: []\n---\nb");
    assert!(lost.has_lost_all_tools() && !none.has_lost_all_tools());
}

#[test]
fn names_of_tools_tell_gemini_cli_and_pi() {
    let read = |fields: &str| definition(format!("---\nname: s\ndescription: d\n{fields}\n---\nb"));
    let tools = |agent: &AgentDefinition| -> Vec<String> {
        agent.asked.tools.iter().flatten().map(ToString::to_string).collect()
    };
    let gemini = read("kind: local\ntools: [read_file, grep_search, replace, mcp_docs_search]");
    assert_eq!(gemini.dialect, Dialect::GeminiCli);
    assert_eq!(tools(&gemini), ["file_edit", "file_read", "file_search"]);
    let pi = read("tools: read, grep, find, ls");
    assert_eq!(pi.dialect, Dialect::Pi);
    assert_eq!(tools(&pi), ["file_find", "file_list", "file_read", "file_search"]);
    // Names that several programs have tell nothing.
    assert_eq!(read("tools: read, write").dialect, Dialect::Unknown);
    assert_eq!(read("tools: Read, LS").dialect, Dialect::ClaudeCode);
}
