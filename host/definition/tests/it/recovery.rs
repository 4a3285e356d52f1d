//! Frontmatter that is no valid YAML: read field by field, and never to more rights.

use belljar_definition::{ParsedAgentFile, TOOL_ALIASES, parse_agent};
use proptest::prelude::*;

use crate::show::{agent, definition, known};

/// An agent with these lines of frontmatter, read.
fn shown(fields: &str) -> String {
    agent(format!("---\n{fields}\n---\nbody"))
}

#[test]
fn an_unquoted_description_keeps_every_word_and_the_fields_around_it() {
    check!("name: s
description: Use it when: always. Examples:\\n
user: \"Do it\"
assistant: 'Yes: now'

  <end>
tools: Read, Grep
model: sonnet
color: red", @r#"
    s (s), Claude Code, user-facing
    tools: {"file_read", "file_search"}
    model: sonnet
    agents/scout.md:3:25: warning: the frontmatter is not valid YAML, so it was read field by field; `description` is taken as text: mapping values are not allowed in this context, in `description: Use it when: always. Examples:\n`
      hint: quote the value of `description`: it holds `: `
    agents/scout.md:10:1: note: ignored: `color`
    "#);
}

#[test]
fn blocks_lists_and_quotes_survive() {
    let text = |description: &str| {
        definition(format!("---\nname: s\n{description}\ntools: Read\n---\nbody")).description
    };
    assert_eq!(text("description: \"a: b\" and c: d"), "\"a: b\" and c: d");
    assert_eq!(text("description: 'it's: so'"), "'it's: so'");
    assert_eq!(text("description: >\nat the margin: yes: so"), "at the margin: yes: so");
    assert_eq!(text("description: |-\n a\nb: c: d"), "a b: c: d");
    assert_eq!(text("description: [draft] a: b"), "[draft] a: b");
    assert_eq!(text("description: a: b\nwhenToUse: c"), "a: b whenToUse: c");
    assert_eq!(text("description: a: b\nname: in prose"), "a: b name: in prose");
    assert_eq!(text("description: a: b # c"), "a: b # c");
}

#[test]
fn a_list_of_names_with_scopes_is_a_list_of_names() {
    for tools in [
        "tools: Read, Bash(git diff: *), Grep",
        "tools: [Read, Bash(git diff: *), 'Grep']",
        "tools:\n  - Read\n  - Bash(git diff: *)\n  - Grep",
    ] {
        let agent = definition(format!("---\ndescription: d\n{tools}\n---\nbody"));
        let tools: Vec<_> = agent.asked.tools.iter().flatten().map(ToString::to_string).collect();
        assert_eq!(tools, ["file_read", "file_search"]);
        assert_eq!(agent.unavailable.len(), 1, "{:?}", agent.unavailable);
    }
}

#[test]
fn a_field_that_narrows_and_repeats_rejects_the_file() {
    check!("description: a: b
tools: Read
Tools: Write", @r#"
    invalid
    agents/scout.md:4:1: error: `tools` stands here again, in frontmatter that is no valid YAML
      hint: one of the two may be prose: correct the YAML, and keep the field that counts
    "#);
    check!("tools: Read
description: Write it like
tools: *
or: like: that", @r#"
    invalid
    agents/scout.md:4:1: error: `tools` stands here again, in frontmatter that is no valid YAML
      hint: one of the two may be prose: correct the YAML, and keep the field that counts
    "#);
    for field in
        ["disallowedTools: Write", "permission: deny", "allowed-tools: Read", "maxTurns: 3"]
    {
        let file = format!("---\ndescription: a: b\n{field}\n{field}\n---\nbody");
        assert!(agent(file).starts_with("invalid"), "{field}");
    }
}

/// A line that would be swallowed as prose may have been meant as a field.
#[test]
fn a_field_that_narrows_and_cannot_be_read_costs_all_tools() {
    check!("description: a: b
  tools: [Read]", @r#"
    scout (scout), unknown, user-facing
    tools: {}
    agents/scout.md:1:1: warning: it has no `name`; the file's name serves: `scout`
    agents/scout.md:2:15: warning: the frontmatter is not valid YAML, so it was read field by field; `description` is taken as text: mapping values are not allowed in this context, in `description: a: b`
      hint: quote the value of `description`: it holds `: `
    agents/scout.md:3:1: warning: `tools` cannot be read here, so the agent gets no tools
      hint: correct the YAML above; every field begins its line
    "#);
    for lines in [
        "tools: [Read, Write",
        "tools: Read # , Write",
        "tools: *all",
        "tools: !Read",
        "disallowedTools: [Write",
        "disallowedTools: *x",
        "permission: { edit: deny",
        "permissions:\n  edit: deny: x",
        "{ tools: [Read] }",
        "? tools\n: [Read]",
        "\"\\x74ools\": [Read]",
        "base: &b { tools: [Read] }\n<<: *b",
        "? \"tools\"\n: [Read]",
        "&a tools: [Read]",
        "!!str tools: [Read]",
        "color: &k tools\n*k : [Read]",
        "\u{200b}tools: [Read]",
        "\u{a0}tools: [Read]",
        "color: red\ncolor: blue\n  tools: [Read]",
        "\ttools: Read",
        "- permission: deny",
    ] {
        let file = format!("---\ndescription: a: b\n{lines}\n---\nbody");
        match parse_agent("a/b.md".as_ref(), file.as_bytes(), &known()) {
            ParsedAgentFile::Agent { definition, diagnostics } => {
                let tools = definition.asked.tools.unwrap_or_else(|| panic!("all of them: {file}"));
                let one = tools.iter().all(|tool| tool.as_str() == "file_read");
                assert!(tools.is_empty() || (one && lines.contains('#')), "{tools:?}: {file}");
                let said = diagnostics.iter().any(|found| found.code == "empty-tools");
                let lost = !definition.unclear.is_empty() || !definition.not_kept.is_empty();
                assert!(tools.len() == 1 || lost || said, "silent: {file}");
            }
            ParsedAgentFile::Invalid { .. } => {}
            ParsedAgentFile::NotAnAgent { .. } => panic!("{file}"),
        }
    }
}

/// A line of prose can only take away: without it, the file has all that is granted.
#[test]
fn prose_that_looks_like_a_field_gives_nothing() {
    let asked = |line: &str| {
        let file = format!("---\nname: s\ndescription: Use it: like\n{line}\n---\nbody");
        definition(file).asked
    };
    let none = asked("this");
    assert_eq!((none.tools.is_none(), none.at_most.len()), (true, 0));
    assert_eq!(asked("tools: *").tools, None);
    assert_eq!(asked("permission: allow"), none);
    assert_eq!(asked("steps: first this, then that"), none);
    assert_eq!(asked("agents: call them"), none);
    assert_eq!(asked("tools: Write").tools.map(|tools| tools.len()), Some(1));
}

#[test]
fn a_canonical_file_is_not_repaired() {
    check!("name: s
description: a: b
visibility: internal", @r#"
    invalid
    agents/scout.md:3:15: error: the frontmatter is not valid YAML: mapping values are not allowed in this context
      hint: quote the value of `description`: it holds `: `
    "#);
}

#[test]
fn what_is_made_to_hurt_or_to_hide_is_not_repaired() {
    for line in ["x: \u{1b}[2J: y: z", "x: a: b\rtools: Write", "a: &a [*a]"] {
        let file = format!("---\nname: s\ndescription: d\n{line}\n---\nbody");
        assert!(agent(file).starts_with("invalid"), "{line:?}");
    }
    let many: String = (0..9_000).map(|_| "name: x\n").collect();
    let file = format!("---\ndescription: a\n{many}b: c: d\n---\nbody");
    assert!(agent(file).starts_with("invalid"));
}

#[test]
fn fields_in_braces_are_not_repaired() {
    let text = agent("---\n{ name: s, tools: [Read],\ndescription: a: b }\n---\nbody");
    assert!(text.starts_with("invalid"), "{text}");
}

#[test]
fn an_indented_file_is_repaired_too() {
    let text = agent("\n  ---\n  name: s\n  description: a: b\n  tools: Read\n  ---\n  body\n");
    assert!(text.contains("tools: {\"file_read\"}"), "{text}");
}

/// Lines that are pieces of frontmatter, broken in many ways.
fn line() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("tools"),
        Just("Tools"),
        Just("\"tools\""),
        Just("allowed-tools"),
        Just("disallowedTools"),
        Just("permission"),
        Just("description"),
        Just("name"),
        Just("model"),
        Just("other"),
    ];
    let value = prop_oneof![
        Just(" Read, Write".to_owned()),
        Just(" [file_read, Grep".to_owned()),
        Just(" *".to_owned()),
        Just("".to_owned()),
        Just(" { edit: deny }".to_owned()),
        Just(" a: b".to_owned()),
        Just("\n- Read\n- Edit".to_owned()),
        " \\PC{0,20}",
    ];
    prop_oneof![3 => (key, value).prop_map(|(key, value)| format!("{key}:{value}")), 1 => "\\PC{0,30}"]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(800) })]

    #[test]
    fn no_tool_comes_out_of_broken_yaml_that_is_not_written_in_it(
        lines in prop::collection::vec(line(), 0..8),
    ) {
        let text = format!("---\ndescription: a: b\n{}\n---\nbody", lines.join("\n"));
        let ParsedAgentFile::Agent { definition, .. } =
            parse_agent("a/b.md".as_ref(), text.as_bytes(), &known())
        else {
            return Ok(());
        };
        let has = |name: &str| text.contains(name);
        match &definition.asked.tools {
            Some(tools) => for tool in tools {
                let alias = |row: &&belljar_definition::ToolAlias| row.canonical.contains(&tool.as_str());
                let named = TOOL_ALIASES.iter().filter(alias).any(|row| has(row.name));
                prop_assert!(named || has(tool.as_str()), "{tool} in {text:?}");
            },
            // All that is granted: only where no line names a field that narrows, or gives all.
            None => {
                let narrows = |line: &str| {
                    let line = line.trim_start().trim_start_matches('"').to_lowercase();
                    (line.starts_with("tools") || line.starts_with("allowed-tools"))
                        && line.contains(':')
                };
                // A map of what is off leaves the rest as granted.
                prop_assert!(has("*") || has("deny }") || !text.lines().any(narrows), "{text:?}");
            }
        }
    }
}
