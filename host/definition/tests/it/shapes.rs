//! Shapes of other programs' files, each with what it may and may not give.

use std::path::Path;

use belljar_definition::{FrontmatterShapes, NotAnAgent, ParsedAgentFile, parse_agent_in};

use crate::show::{agent, agent_at, definition, known};

#[test]
fn patterns_and_other_spellings_take_away() {
    check_field!("disallowedTools: 'web*, WRITE, mcp__x__*'", @r#"
    s (s), unknown, user-facing
    tools: all that is granted
    at most: {"file_write": Deny, "web_fetch": Deny, "web_search": Deny}
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
    check_field!("tools: { 'web*': false, Edit: false }", @r#"
    s (s), OpenCode, user-facing
    tools: all that is granted
    at most: {"file_edit": Deny, "file_write": Deny, "notebook_edit": Deny, "web_fetch": Deny, "web_search": Deny}
    "#);
    check_field!("tools: '*, !Write'", @r#"
    s (s), unknown, user-facing
    tools: all that is granted
    at most: {"file_write": Deny}
    "#);
    check_field!("Tools: Read", @r#"
    s (s), Claude Code, user-facing
    tools: {"file_read"}
    agents/scout.md:4:1: warning: `Tools` is read as `tools`
    "#);
    check_field!("disallowedTools: Wriet", @r#"
    s (s), unknown, user-facing
    tools: {}
    agents/scout.md:4:18: warning: `Wriet` is no tool that is known here, so what is taken away is not known and the agent is blocked
      hint: did you mean `Write`?
    "#);
}

#[test]
fn permissions_of_either_spelling_narrow() {
    check_field!("permissions: { edit: { '**/*': deny }, bash: { '*': deny } }", @r#"
    s (s), OpenCode, user-facing
    tools: all that is granted
    at most: {"file_edit": Deny, "file_write": Deny, "notebook_edit": Deny}
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
    check_field!("permission: { '*': deny, read: allow, 'web*': ask }", @r#"
    s (s), OpenCode, user-facing
    tools: all that is granted
    at most: {"attach_file": Deny, "file_edit": Deny, "file_find": Deny, "file_list": Deny, "file_read": Allow, "file_search": Deny, "file_write": Deny, "notebook_edit": Deny, "spawn_agent": Deny, "web_fetch": Ask, "web_search": Ask}
    others: Deny
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
    check_field!("permission: { write: deny, edit: allow }", @r#"
    s (s), OpenCode, user-facing
    tools: all that is granted
    at most: {"file_edit": Allow, "file_write": Deny}
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
    check_field!("permission: { write: deny, '*': allow }", @r#"
    s (s), OpenCode, user-facing
    tools: all that is granted
    at most: {"file_write": Deny}
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
    check_field!("permission: [read]", @r#"
    s (s), OpenCode, user-facing
    tools: {}
    at most: {"attach_file": Deny, "file_edit": Deny, "file_find": Deny, "file_list": Deny, "file_read": Deny, "file_search": Deny, "file_write": Deny, "notebook_edit": Deny, "spawn_agent": Deny, "web_fetch": Deny, "web_search": Deny}
    others: Deny
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    agents/scout.md:4:1: warning: `permission` is a list, none of `allow`, `ask`, `deny`: denied
    "#);
    check_field!("permission: { external_directory: deny, doom_loop: ask }", @r#"
    s (s), OpenCode, user-facing
    tools: all that is granted
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
}

#[test]
fn items_that_are_no_names_give_nothing_and_say_so() {
    check_field!("tools:\n  - Read\n  - Bash: x\n  - [Write]", @r#"
    s (s), Claude Code, user-facing
    tools: {"file_read"}
    agents/scout.md:6:5: warning: `tools` holds a map, not a name
    agents/scout.md:7:5: warning: `tools` holds a list, not a name
    "#);
    check_field!("disallowedTools:\n  - Write: x", @r#"
    s (s), unknown, user-facing
    tools: {}
    agents/scout.md:5:5: warning: `disallowedTools` holds a map, not a name
    "#);
    check_field!("tools: |\n  - Read\n  - Grep", @r#"
    s (s), unknown, user-facing
    tools: {"file_read", "file_search"}
    "#);
}

#[test]
fn a_stranger_s_odd_values_never_reject_the_file() {
    check_field!("maxTurns: many\nmodel: { a: b }\ntools: true", @r#"
    s (s), Claude Code, user-facing
    tools: {}
    limits: steps = 1
    agents/scout.md:4:1: warning: `maxTurns` is `many`, not a whole number
      hint: write a number from 1 to 1000
    agents/scout.md:5:1: warning: `model` is a map, not a name
    agents/scout.md:6:1: warning: `tools` is `true`, not a list of names
      hint: write `[file_read, file_search]`, or `[]` for none
    "#);
    check_field!("maxTurns: 100000\ntools: Read", @r#"
    s (s), Claude Code, user-facing
    tools: {"file_read"}
    limits: steps = 1000
    agents/scout.md:4:1: warning: `maxTurns` is 100000, out of range
      hint: write a number from 1 to 1000
    "#);
    check_field!("mode: subagent\ndisable: perhaps\nsteps: 0\ntools: Read", @r#"
    s (s), OpenCode, user-facing
    tools: {"file_read"}
    limits: steps = 1
    agents/scout.md:4:1: note: ignored: `mode`
    agents/scout.md:5:1: warning: `disable` is `perhaps`, neither `true` nor `false`
    agents/scout.md:6:1: warning: `steps` is 0, out of range
      hint: write a number from 1 to 1000
    "#);
    insta::assert_snapshot!(agent("---\nname: [a, b]\ndescription: [Draft] it: works\ntools: Read\n---\nb"), @r#"
    scout (scout), Claude Code, user-facing
    tools: {"file_read"}
    agents/scout.md:2:1: warning: `name` is a list, not a text
    agents/scout.md:2:1: warning: it has no `name`; the file's name serves: `scout`
    agents/scout.md:3:22: warning: the frontmatter is not valid YAML, so it was read field by field; `description` is taken as text: while parsing a block mapping, did not find expected key, in `description: [Draft] it: works`
      hint: quote the value of `description`: it holds `: `
    "#);
}

#[test]
fn copilots_agents_are_the_only_ones_it_may_call() {
    let asked = |line: &str| {
        let text = format!("---\nname: s\ndescription: d\nargument-hint: x\n{line}\n---\nbody");
        definition(text).subagents.and_then(|asked| asked.allowed_agents)
    };
    assert_eq!(asked("agents: [scout]"), Some(vec!["scout".to_owned()]));
    assert_eq!(asked("agents: []"), Some(Vec::new()));
    assert_eq!(asked("agents: '*'"), None);
    assert_eq!(asked("agents: { a: b }"), Some(Vec::new()));
    assert_eq!(asked("agents: [a, b]\ntools: ['Agent(b, c)']"), Some(vec!["b".to_owned()]));
}

#[test]
fn names_of_any_letters_are_looked_up_by_a_slug() {
    let slug = |path: &str, name: &str| {
        let text = format!("---\nname: \"{name}\"\ndescription: d\ntools: []\n---\nb");
        let shown = agent_at(path, text);
        shown.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        slug("a.md", "Team: Code/Review er"),
        "Team: Code/Review er (team-code-review-er), unknown, user-facing"
    );
    assert!(slug("\u{4ee3}.md", "\u{7801}").starts_with("\u{7801} (\u{7801})"));
    assert!(slug("Some Plan.agent.md", " ").starts_with("Some Plan (some-plan), Copilot"));
}

const FIELDS: &str = "---\nname: s\ndescription: d\ntools: Read\n---\n";

#[test]
fn unusual_shapes_are_read_only_where_the_operator_says_so() {
    let read =
        |text: &str, shapes| parse_agent_in(Path::new("a/b.md"), text.as_bytes(), &known(), shapes);
    let wrapped = [
        format!("# S\n\n```yaml\n{FIELDS}```\n\nbody\n"),
        format!("```markdown\n{FIELDS}\nbody\n```\n"),
        format!("# S\n\n{FIELDS}\nbody\n"),
    ];
    for text in wrapped {
        let reason = NotAnAgent::Wrapped;
        assert_eq!(
            read(&text, FrontmatterShapes::Ordinary),
            ParsedAgentFile::NotAnAgent { reason },
            "{text}"
        );
        let ParsedAgentFile::Agent { definition, .. } = read(&text, FrontmatterShapes::Lenient)
        else {
            panic!("{text}")
        };
        assert_eq!(definition.body.trim(), "body");
        assert_eq!(definition.asked.tools.map(|tools| tools.len()), Some(1));
    }
    assert!(NotAnAgent::Wrapped.as_str().contains("lenient = true"));
    let nested = "---\nmeta:\n  name: s\n  description: d\n  tools: []\n---\nbody";
    let ParsedAgentFile::Invalid { diagnostics } = read(nested, FrontmatterShapes::Ordinary) else {
        panic!()
    };
    assert!(diagnostics[0].to_string().contains("lenient = true"), "{}", diagnostics[0]);
    let ParsedAgentFile::Agent { definition, .. } = read(nested, FrontmatterShapes::Lenient) else {
        panic!()
    };
    assert_eq!((definition.name.as_str(), definition.asked.tools.map(|t| t.len())), ("s", Some(0)));
    let both = nested.replace("meta:", "tools: [Read]\nmeta:");
    assert!(matches!(read(&both, FrontmatterShapes::Lenient), ParsedAgentFile::Invalid { .. }));
}

#[test]
fn documentation_with_an_example_is_no_agent_in_any_shape() {
    let text = "# How to\n\nWrite a file:\n\n```yaml\n---\ndescription: d\n---\n```\n";
    for shapes in [FrontmatterShapes::Ordinary, FrontmatterShapes::Lenient] {
        let parsed = parse_agent_in(Path::new("a/how.md"), text.as_bytes(), &known(), shapes);
        let reason = NotAnAgent::NoFrontmatter;
        assert_eq!(parsed, ParsedAgentFile::NotAnAgent { reason });
    }
}
