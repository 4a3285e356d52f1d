//! Shapes of other programs' files, each with what it may and may not give.

use std::path::Path;

use belljar_definition::{NotAnAgent, Parsed, Shapes, parse_agent_in};

use crate::show::{agent, agent_at, definition, known};

fn tools(field: &str) -> String {
    agent(format!("---\nname: s\ndescription: d\n{field}\n---\nbody"))
}

macro_rules! tools {
    ($field:expr, @$expected:literal) => {
        insta::assert_snapshot!(tools($field), @$expected)
    };
}

#[test]
fn patterns_and_other_spellings_take_away() {
    tools!("disallowedTools: 'web*, WRITE, mcp__x__*'", @"");
    tools!("tools: { 'web*': false, Edit: false }", @"");
    tools!("tools: '*, !Write'", @"");
    tools!("Tools: Read", @"");
    tools!("disallowedTools: Wriet", @"");
}

#[test]
fn permissions_of_either_spelling_narrow() {
    tools!("permissions: { edit: { '**/*': deny }, bash: { '*': deny } }", @"");
    tools!("permission: { '*': deny, read: allow, 'web*': ask }", @"");
    tools!("permission: { write: deny, edit: allow }", @"");
    tools!("permission: { write: deny, '*': allow }", @"");
    tools!("permission: [read]", @"");
    tools!("permission: { external_directory: deny, doom_loop: ask }", @"");
}

#[test]
fn items_that_are_no_names_give_nothing_and_say_so() {
    tools!("tools:\n  - Read\n  - Bash(git diff: *)\n  - [Write]", @"");
    tools!("disallowedTools:\n  - Write: x", @"");
    tools!("tools: |\n  - Read\n  - Grep", @"");
}

#[test]
fn a_stranger_s_odd_values_never_reject_the_file() {
    tools!("maxTurns: many\nmodel: { a: b }\ntools: true", @"");
    tools!("maxTurns: 100000\ntools: Read", @"");
    tools!("mode: subagent\ndisable: perhaps\nsteps: 0\ntools: Read", @"");
    insta::assert_snapshot!(agent("---\nname: [a, b]\ndescription: [Draft] it: works\ntools: Read\n---\nb"), @"");
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
    assert_eq!(slug("a.md", "Team: Code/Review er"), "Team: Code/Review er (team-code-review-er), unknown, user-facing");
    assert!(slug("\u{4ee3}.md", "\u{7801}").starts_with("\u{7801} (u7801)"));
    assert!(slug("Some Plan.agent.md", " ").starts_with("Some Plan (some-plan), Copilot"));
}

const FIELDS: &str = "---\nname: s\ndescription: d\ntools: Read\n---\n";

#[test]
fn unusual_shapes_are_read_only_where_the_operator_says_so() {
    let read = |text: &str, shapes| {
        parse_agent_in(Path::new("a/b.md"), text.as_bytes(), &known(), shapes)
    };
    let wrapped = [
        format!("# S\n\n```yaml\n{FIELDS}```\n\nbody\n"),
        format!("```markdown\n{FIELDS}\nbody\n```\n"),
        format!("# S\n\n{FIELDS}\nbody\n"),
    ];
    for text in wrapped {
        let reason = NotAnAgent::Wrapped;
        assert_eq!(read(&text, Shapes::Ordinary), Parsed::NotAnAgent { reason }, "{text}");
        let Parsed::Agent { definition, .. } = read(&text, Shapes::Lenient) else {
            panic!("{text}")
        };
        assert_eq!(definition.body.trim(), "body");
        assert_eq!(definition.asked.tools.map(|tools| tools.len()), Some(1));
    }
    assert!(NotAnAgent::Wrapped.as_str().contains("lenient = true"));
    let nested = "---\nmeta:\n  name: s\n  description: d\n  tools: []\n---\nbody";
    let Parsed::Invalid { diagnostics } = read(nested, Shapes::Ordinary) else { panic!() };
    assert!(diagnostics[0].to_string().contains("lenient = true"), "{}", diagnostics[0]);
    let Parsed::Agent { definition, .. } = read(nested, Shapes::Lenient) else { panic!() };
    assert_eq!((definition.name.as_str(), definition.asked.tools.map(|t| t.len())), ("s", Some(0)));
    let both = nested.replace("meta:", "tools: [Read]\nmeta:");
    assert!(matches!(read(&both, Shapes::Lenient), Parsed::Invalid { .. }));
}

#[test]
fn documentation_with_an_example_is_no_agent_in_any_shape() {
    let text = "# How to\n\nWrite a file:\n\n```yaml\n---\ndescription: d\n---\n```\n";
    for shapes in [Shapes::Ordinary, Shapes::Lenient] {
        let parsed = parse_agent_in(Path::new("a/how.md"), text.as_bytes(), &known(), shapes);
        let reason = NotAnAgent::NoFrontmatter;
        assert_eq!(parsed, Parsed::NotAnAgent { reason });
    }
}
