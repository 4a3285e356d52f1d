//! Files of other programs in belljar's own form: the same agent, and no right more.

use belljar_definition::{NoCanonicalForm, ParsedAgentFile, canonical_form, parse_agent};
use belljar_policy::{CallPermission, ToolName};
use proptest::prelude::*;

use crate::show::{definition, known};

fn form(text: &str) -> Result<String, NoCanonicalForm> {
    canonical_form(&definition(text), &known()).map(|form| form.text)
}

#[test]
fn the_form_has_belljars_names_and_the_body_byte_for_byte() {
    let text = "---\r\nname: Code Reviewer\r\ndescription: 'a: \"b\" # c'\r\ntools: Read, Task, Agent(x y), Bash\r\nmodel: sonnet\r\nmaxTurns: 7\r\n---\r\n\r\n  body \r\n---\r\nend";
    insta::assert_snapshot!(form(text).unwrap().replace('\r', "<CR>"), @r#"
    ---
    name: "Code Reviewer"
    description: "a: \"b\" # c"
    tools: [file_read, spawn_agent]
    model: "sonnet"
    maxTurns: 7
    subagents: { allowed_agents: ["x y"] }
    visibility: user-facing
    ---
    <CR>
      body <CR>
    ---<CR>
    end
    "#);
    let left = canonical_form(&definition(text), &known()).unwrap().left_out;
    assert_eq!(left, ["Bash"]);
}

#[test]
fn what_was_taken_away_or_asked_for_stays_so() {
    insta::assert_snapshot!(form("---\ndescription: d\npermission: { edit: deny, webfetch: ask }\n---\nb").unwrap(), @r#"
    ---
    name: "scout"
    description: "d"
    disallowedTools: [file_edit, file_write, notebook_edit]
    permission: { web_fetch: ask }
    visibility: user-facing
    ---
    b
    "#);
}

#[test]
fn what_is_denied_by_default_is_denied_by_default_in_the_form() {
    insta::assert_snapshot!(form("---\ndescription: d\npermission: { '*': deny, read: allow, webfetch: ask }\n---\nb").unwrap(), @r#"
    ---
    name: "scout"
    description: "d"
    permission: { "*": deny, file_read: allow, web_fetch: ask }
    visibility: user-facing
    ---
    b
    "#);
    insta::assert_snapshot!(form("---\nname: s\ndescription: d\npermission: { 'web*': deny }\nmax_turns: 5\ntimeout_mins: 2\nmaxSubagentDepth: 1\nnetwork: false\n---\nb").unwrap(), @r#"
    ---
    name: "s"
    description: "d"
    disallowedTools: [web_fetch, web_search, "web*"]
    maxTurns: 5
    limits: { timeout_seconds: 120 }
    hosts: []
    subagents: { max_depth: 1 }
    visibility: user-facing
    ---
    b
    "#);
}

#[test]
fn an_agent_that_would_become_another_has_no_form() {
    let form = |fields: &str| form(&format!("---\ndescription: d\n{fields}\n---\nb")).unwrap_err();
    assert_eq!(form("tools: Bash, Frob"), NoCanonicalForm::NoTools);
    assert_eq!(form("sandbox_profile: strict"), NoCanonicalForm::NoTools);
    let unclear = form("tools: Read\ndisallowedTools: Edit and whatever writes");
    assert_eq!(unclear, NoCanonicalForm::Unclear);
    assert_eq!(form("mode: all\ndisable: true"), NoCanonicalForm::Disabled);
    assert_eq!(form("name: s\nvisibility: internal"), NoCanonicalForm::Already);
}

/// A field about tools, in all shapes.
fn field() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "Read",
        "Write",
        "Edit",
        "Bash",
        "*",
        "edit",
        "web*",
        "WebFetch",
        "Task(a, b)",
        "file_read",
        "Frob",
        "mcp__a__b",
        "search/codebase",
    ]);
    let names = prop::collection::vec(name.clone(), 0..5);
    let word = prop::sample::select(vec!["allow", "ask", "deny", "true", "false"]);
    let words = prop::collection::btree_map(name, word, 0..5);
    let map = |words: &std::collections::BTreeMap<&str, &str>| {
        let entries: Vec<_> = words.iter().map(|(k, v)| format!("'{k}': {v}")).collect();
        format!("{{ {} }}", entries.join(", "))
    };
    prop_oneof![
        names.clone().prop_map(|names| format!("tools: '{}'", names.join(", "))),
        names.prop_map(|names| format!("disallowedTools: ['{}']", names.join("', '"))),
        words.clone().prop_map(move |words| format!("permission: {}", map(&words))),
        words.prop_map(move |words| format!("tools: {}", map(&words))),
        Just("mode: subagent".to_owned()),
        prop::sample::select(crate::limits::NARROWING).prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn the_form_gives_the_same_tools_and_text(
        fields in prop::collection::vec(field(), 0..3),
        description in "\\PC{1,40}",
        body in "\\PC{1,40}",
    ) {
        let description = serde_json::to_string(&description).unwrap();
        let text = format!("---\nname: s\ndescription: {description}\n{}\n---\nx{body}", fields.join("\n"));
        let parsed = parse_agent("a/b.md".as_ref(), text.as_bytes(), &known());
        let ParsedAgentFile::Agent { definition: before, .. } = parsed else { return Ok(()) };
        let Ok(form) = canonical_form(&before, &known()) else { return Ok(()) };
        let again = parse_agent("a/b.md".as_ref(), form.text.as_bytes(), &known());
        let ParsedAgentFile::Agent { definition: after, .. } = again else { panic!("{}", form.text) };
        prop_assert_eq!(&before.body, &after.body);
        prop_assert_eq!(&before.description, &after.description);
        let may = |agent: &belljar_definition::AgentDefinition, tool: &ToolName| {
            match &agent.asked.tools {
                Some(tools) if !tools.contains(tool) => CallPermission::Deny,
                _ => agent.asked.highest_permission(tool.as_str()),
            }
        };
        for tool in known().iter() {
            prop_assert_eq!(may(&before, tool), may(&after, tool), "{} in {}", tool, form.text);
        }
        prop_assert_eq!(&before.asked.limits, &after.asked.limits);
        prop_assert_eq!(&before.asked.hosts, &after.asked.hosts);
        prop_assert_eq!(before.asked.writes, after.asked.writes);
        let delegates = |agent: &belljar_definition::AgentDefinition| {
            let asked = agent.subagents.clone().unwrap_or_default();
            (asked.allowed_agents, asked.enabled, asked.max_depth, asked.max_concurrent)
        };
        prop_assert_eq!(delegates(&before), delegates(&after));
        // Both as they are read once more tools are installed: the copy has none more.
        let later = crate::limits::known_later();
        let again = |text: &str| match parse_agent("a/b.md".as_ref(), text.as_bytes(), &later) {
            ParsedAgentFile::Agent { definition, .. } => definition,
            other => panic!("{other:?}"),
        };
        let (original, copy) = (again(&text), again(&form.text));
        for tool in later.iter() {
            prop_assert!(may(&copy, tool) <= may(&original, tool), "{} in {}", tool, form.text);
        }
    }
}
