//! Canonical agent files, good and bad.

use crate::show::{agent as shown, agent_at, definition};

#[test]
fn every_canonical_field_is_read() {
    check!("---
name: Code Scout
description: Finds code.
tools: [file_read, file_search]
modelRole: Main
timeoutSeconds: 120
prefillTimeoutSeconds: 30
maxTurns: 12
visibility: Internal
emitStructuredFindings: true
mounts:
  - /workspace
  - { path: /data, access: read-write }
hosts: [\"https://*.example.org\"]
limits: { steps: 8, tokens: 5000 }
subagents: { enabled: true, max_concurrent: 2, allowed_agents: [critic], allowed_tools: [file_read] }
---
You find code.
", @r#"
Code Scout (code-scout), canonical, internal
tools: {"file_read", "file_search"}
mounts: ["/workspace (read)", "/data (read-write)"]
hosts: ["https://*.example.org"]
limits: steps = 8, timeout_seconds = 120, prefill_timeout_seconds = 30, tokens = 5000
model: main
SubagentsAsk { enabled: Some(true), max_depth: None, max_concurrent: Some(2), allowed_agents: Some(["critic"]), allowed_tools: Some(["file_read"]) }
"#);
}

#[test]
fn the_body_is_kept_byte_for_byte() {
    let body = "\n  You are\u{a0}a scout. \r\n---\nnot a fence\n\n";
    let agent = definition(format!("---\nname: s\ndescription: d\n---\n{body}"));
    assert_eq!(agent.body, body);
    assert_eq!(agent.body_line, 5);
}

#[test]
fn absent_tools_narrow_nothing_and_an_empty_list_leaves_none() {
    let tools = |line: &str| {
        definition(format!("---\nname: s\ndescription: d\n{line}visibility: internal\n---\nb"))
            .asked
            .tools
    };
    assert_eq!(tools(""), None);
    assert_eq!(tools("tools: []\n").unwrap().len(), 0);
    assert_eq!(tools("tools: file_read\n").unwrap().len(), 1);
}

#[test]
fn a_canonical_file_needs_a_name() {
    check!("---\ndescription: d\nvisibility: internal\n---\nbody", @r#"
    invalid
    agents/scout.md:1:1: error: `name` is missing
      hint: add a line `name: ...` between the fences
    "#);
    check!("---\nname: '  '\ndescription: d\nvisibility: internal\n---\nbody", @r#"
    invalid
    agents/scout.md:2:1: error: `name` is empty
    "#);
}

#[test]
fn description_and_body_are_needed_everywhere() {
    check!("---\nname: s\n---\nbody", @r#"
    invalid
    agents/scout.md:1:1: error: `description` is missing
      hint: add a line `description: ...` between the fences
    "#);
    check!("---\nname: s\ndescription: ''\n---\nbody", @r#"
    invalid
    agents/scout.md:3:1: error: `description` is empty
    "#);
    check!("---\nname: s\ndescription: [a]\n---\nbody", @r#"
    s (s), unknown, user-facing
    tools: all that is granted
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    agents/scout.md:3:1: warning: `description` is not a text in YAML; it is taken as it stands there
      hint: quote it
    "#);
    check!("---\nname: s\ndescription: d\n---\n \n", @r#"
    invalid
    agents/scout.md:4:1: error: there is no text after the frontmatter
      hint: write the system prompt below the closing `---`
    "#);
    check!("---\n---\nbody", @r#"
    invalid
    agents/scout.md:1:1: warning: it has no `name`; the file's name serves: `scout`
    agents/scout.md:1:1: error: `description` is missing
      hint: add a line `description: ...` between the fences
    "#);
}

#[test]
fn a_tool_that_exists_nowhere_is_an_error() {
    check!("---
name: s
description: d
tools:
  - file_read
  - file_raed
  - kubernetes
visibility: internal
---
body", @r#"
invalid
agents/scout.md:6:5: error: tool `file_raed` does not exist
  hint: did you mean `file_read`?
agents/scout.md:7:5: error: tool `kubernetes` does not exist
  hint: `belljar tools list` shows all tools
"#);
}

#[test]
fn bad_visibility_timeouts_roles_and_turns_are_named_with_their_line() {
    check!("---
name: s
description: d
visibility: public
timeoutSeconds: 4
prefillTimeoutSeconds: soon
maxTurns: 0
modelRole: Mian
emitStructuredFindings: maybe
---
body", @r#"
invalid
agents/scout.md:4:1: error: `visibility` is `public`
  hint: write `user-facing` or `internal`
agents/scout.md:5:1: error: `timeoutSeconds` is 4, out of range
  hint: write a number from 5 to 3600
agents/scout.md:6:1: error: `prefillTimeoutSeconds` is `soon`, not a whole number
  hint: write a number from 5 to 3600
agents/scout.md:7:1: error: `maxTurns` is 0, out of range
  hint: write a number from 1 to 1000
agents/scout.md:8:1: error: `modelRole` is `Mian`, not a role
  hint: did you mean `main`?
agents/scout.md:9:1: error: `emitStructuredFindings` is `maybe`, neither `true` nor `false`
"#);
}

#[test]
fn bad_requests_are_named_with_their_line() {
    check!("---
name: s
description: d
mounts:
  - workspace
  - { path: /data, access: write }
  - { path: /data, host: /etc }
  - /workspace
  - /workspace/
hosts: [example.org, \"https://ok.example\"]
limits: { step: 3, tokens: many }
subagents: { enable: true, max_concurrent: 0, allowed_tools: [nope] }
---
body", @r#"
invalid
agents/scout.md:5:5: error: `workspace` is not a guest path: write an absolute path such as `/workspace`, without `.` and `..`
agents/scout.md:6:28: error: `access` is `write`
  hint: write `read`, `overlay` or `read-write`
agents/scout.md:7:20: error: an agent file has no say about host paths
  hint: remove `host`; the operator grants directories in `belljar.toml`
agents/scout.md:9:5: error: `mounts` names `/workspace` twice
agents/scout.md:10:1: error: `example.org` is not a host rule: the scheme is missing; write `https://example.org`, `https://*.example.org`, `https://*`, `http://10.0.0.0/8:8080`
agents/scout.md:11:11: error: `step` is not a field of `limits`
  hint: did you mean `steps`?
agents/scout.md:11:20: error: `tokens` is `many`, not a whole number of tokens
agents/scout.md:12:14: error: `enable` is not a field of `subagents`
  hint: did you mean `enabled`?
agents/scout.md:12:28: error: `max_concurrent` is `0`
  hint: write a number from 1 to 1000
agents/scout.md:12:47: error: tool `nope` does not exist
  hint: `belljar tools list` shows all tools
"#);
}

#[test]
fn an_unknown_field_of_a_canonical_file_is_a_warning_with_the_likely_word() {
    check!("---
name: s
description: d
modelRole: main
max_turns: 3
colour: red
color: red
hooks: {}
---
body", @r#"
s (s), canonical, user-facing
tools: all that is granted
limits: steps = 3
model: main
agents/scout.md:6:1: warning: `colour` is not a field of an agent definition
  hint: it is ignored; remove it
agents/scout.md:7:1: note: ignored: `color`
agents/scout.md:8:1: warning: `hooks` is not honoured: a file grants itself nothing here
"#);
}

#[test]
fn a_role_stands_above_a_model() {
    check!("---\nname: s\ndescription: d\nmodel: sonnet\nmodelRole: Fallback\n---\nb", @r#"
    s (s), canonical, user-facing
    tools: all that is granted
    model: fallback
    agents/scout.md:4:1: warning: `model` is ignored, because `modelRole` is there too
    "#);
}

#[test]
fn malformed_frontmatter_is_placed_in_the_file() {
    check!("\n\n---\nname: s\ndescription: Use it: always\n---\nbody", @r#"
    s (s), unknown, user-facing
    tools: all that is granted
    agents/scout.md:4:1: note: it has no `tools`, so it gets those that the grants give by default
    agents/scout.md:5:20: warning: the frontmatter is not valid YAML, so it was read field by field; `description` is taken as text: mapping values are not allowed in this context, in `description: Use it: always`
      hint: quote the value of `description`: it holds `: `
    "#);
    check!("---\nname: s\ntools: *\ndescription: d\n---\nbody", @r#"
    s (s), unknown, user-facing
    tools: all that is granted
    agents/scout.md:3:8: warning: the frontmatter is not valid YAML, so it was read field by field; `tools` is taken as text: while scanning an anchor or alias, did not find expected alphabetic or numeric character, in `tools: *`
      hint: quote the value: `tools: "*"`; a bare `*` is a YAML alias
    "#);
    check!("---\nname: s\ndescription: d\nname: t\n---\nbody", @r#"
    s (s), unknown, user-facing
    tools: all that is granted
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    agents/scout.md:4:1: warning: `name` stands here again; the first one counts
    agents/scout.md:4:1: warning: the frontmatter is not valid YAML, so it was read field by field: a key stands here for the second time, in `name: t`
      hint: keep one of them
    "#);
    check!("---\nname: [s\ndescription: d\n---\nbody", @r#"
    [s (s), unknown, user-facing
    tools: all that is granted
    agents/scout.md:2:1: note: it has no `tools`, so it gets those that the grants give by default
    agents/scout.md:3:12: warning: the frontmatter is not valid YAML, so it was read field by field; `name` is taken as text: illegal placement of ':' indicator, in `description: d`
    "#);
    check!("---\n- a\n- b\n---\nbody", @r#"
    invalid
    agents/scout.md:2:1: error: the frontmatter is a list, not fields
      hint: write `name: ...` and so on, one a line
    "#);
    check!("---\njust text\n---\nbody", @r#"
    invalid
    agents/scout.md:2:1: error: the frontmatter is a text, not fields
      hint: write `name: ...` and so on, one a line
    "#);
    check!("---\nname: s\ndescription: d\n\nbody without a fence", @r#"
    invalid
    agents/scout.md:1:1: error: the frontmatter is never closed
      hint: put a line `---` between the fields and the prompt
    "#);
}

#[test]
fn a_file_without_frontmatter_is_no_agent() {
    check!("# Notes\n\n---\nname: s\n---\n", @"NoFrontmatter: the file does not begin with `---`, so it has no frontmatter");
    check!("", @"Empty: the file is empty");
    insta::assert_snapshot!(agent_at("agents/README.md", "# Agents"), @"Documentation: the file is documentation");
    insta::assert_snapshot!(agent_at("agents/sub/CHANGELOG-2.md", "# Agents"), @"Documentation: the file is documentation");
}

#[test]
fn marks_blank_lines_crlf_and_long_fences_load() {
    check!("\u{feff}\r\n---\r\nname: s\r\ndescription: d\r\n-----\r\nbody", @r#"
    s (s), unknown, user-facing
    tools: all that is granted
    agents/scout.md:3:1: note: it has no `tools`, so it gets those that the grants give by default
    "#);
}

#[test]
fn foreign_text_is_escaped_in_every_message() {
    let text = shown(
        "---\nname: s\ndescription: d\nvisibility: \"\\e[2J\u{202e}\"\n\"\u{202e}key\": 1\ntools: [\"\u{200b}x\"]\n---\nb",
    );
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{text}");
}
