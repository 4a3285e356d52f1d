//! Team files, good and bad: each bad one gets one clear diagnostic with its place.

use crate::show::team as shown;

/// A team whose stages are these lines.
fn stages(lines: &str) -> String {
    format!("name: t\ndescription: d\nstages:\n{lines}\n")
}

#[test]
fn every_field_is_read() {
    check!("
name: Research Report
description: Gathers, checks, writes.
stages:
  - agent: gatherer
    context: Sources first.
  - parallel:
      - { agent: critic, task: 'Check this: {input}' }
      - agent: home/scout
    join: any
  - agent: writer
    task: |
      Answer {task} from
      {input}
budget: { steps: 40, tokens: 100000, fuel: 5, timeoutSeconds: 600 }
", @r#"
    Research Report (research-report): Gathers, checks, writes.
    stage, one
      gatherer on line 5, Some("Sources first."), None
    stage, any
      critic on line 8, None, Some("Check this: <INPUT>")
      home/scout on line 9, None, None
    stage, one
      writer on line 11, None, Some("Answer <TASK> from\n<INPUT>\n")
    TeamBudget { steps: Some(40), tokens: Some(100000), fuel: Some(5), timeout_seconds: Some(600) }
    "#);
}

#[test]
fn missing_and_empty_fields_are_named() {
    check!("description: d\nstages: [{agent: a}]", @r#"
    invalid
    teams/t.yaml:1:1: error: `name` is missing
      hint: add a line `name: ...` to the file
    "#);
    check!("name: t\nstages: [{agent: a}]", @r#"
    invalid
    teams/t.yaml:1:1: error: `description` is missing
      hint: add a line `description: ...` to the file
    "#);
    check!("name: t\ndescription: d", @r#"
    invalid
    teams/t.yaml:1:1: error: `stages` is missing
      hint: add `stages:` with a line `- agent: NAME` for each
    "#);
    check!("name: t\ndescription: d\nstages: []", @r#"
    invalid
    teams/t.yaml:3:1: error: `stages` is empty
    "#);
    check!("name: t\ndescription: d\nstages: scout", @r#"
    invalid
    teams/t.yaml:3:1: error: `stages` is a text, not a list
      hint: write `- agent: NAME` for each stage
    "#);
    check!("name: '--'\ndescription: d\nstages: [{agent: a}]", @r#"
    invalid
    teams/t.yaml:1:1: error: `--` gives no identity
      hint: give `name` at least one letter or digit
    "#);
    check!(stages("- {}"), @r#"
    invalid
    teams/t.yaml:4:3: error: `agent` is missing
      hint: add a line `agent: ...` to it
    "#);
    check!(stages("- agent: ' '"), @r#"
    invalid
    teams/t.yaml:4:3: error: `agent` is empty
    "#);
}

#[test]
fn unknown_keys_are_errors_with_the_likely_word() {
    check!("name: t\ndescription: d\nstage: [{agent: a}]", @r#"
    invalid
    teams/t.yaml:3:1: error: `stage` is not a field of a team
      hint: did you mean `stages`?
    "#);
    check!(stages("- agnet: a"), @r#"
    invalid
    teams/t.yaml:4:3: error: `agnet` is not a field of a stage
      hint: did you mean `agent`?
    "#);
    check!(stages("- agent: a\n  tools: [file_write]"), @r#"
    invalid
    teams/t.yaml:5:3: error: `tools` is not a field of a stage
      hint: the fields are `agent`, `context`, `task`, `parallel`, `join`
    "#);
    check!(stages("- parallel:\n    - agent: a\n      contxt: x"), @r#"
    invalid
    teams/t.yaml:6:7: error: `contxt` is not a field of an agent of a stage
      hint: did you mean `context`?
    "#);
    check!("name: t\ndescription: d\nstages: [{agent: a}]\nbudget: {timeout_seconds: 5, cost: 1}", @r#"
    invalid
    teams/t.yaml:4:10: error: `timeout_seconds` is not a field of `budget`
      hint: did you mean `timeoutSeconds`?
    teams/t.yaml:4:30: error: `cost` is not a field of `budget`
      hint: the fields are `steps`, `tokens`, `fuel`, `timeoutSeconds`
    "#);
}

#[test]
fn stages_of_another_shape_are_told_what_to_write() {
    check!(stages("- scout"), @r#"
    invalid
    teams/t.yaml:4:3: error: a stage is `scout`, not fields
      hint: write `agent: scout`
    "#);
    check!(stages("- [scout, critic]"), @r#"
    invalid
    teams/t.yaml:4:3: error: a stage is a list, not fields
      hint: write `parallel:` before the list
    "#);
    check!(stages("- 7"), @r#"
    invalid
    teams/t.yaml:4:3: error: a stage is a number, not fields
      hint: write `agent: NAME`
    "#);
    check!(stages("- agent: a\n  parallel: [{agent: b}]"), @r#"
    invalid
    teams/t.yaml:4:3: error: `agent` stands beside `parallel`
      hint: write it for each agent of the list below `parallel`
    "#);
    check!(stages("- agent: a\n  join: any"), @r#"
    invalid
    teams/t.yaml:5:3: error: `join` belongs to a stage with `parallel`
    "#);
    check!(stages("- parallel: []"), @r#"
    invalid
    teams/t.yaml:4:3: error: `parallel` is empty
    "#);
    check!(stages("- parallel: a"), @r#"
    invalid
    teams/t.yaml:4:3: error: `parallel` is a text, not a list
      hint: write `- agent: NAME` for each agent
    "#);
    check!(stages("- parallel: [{parallel: [{agent: a}]}]"), @r#"
    invalid
    teams/t.yaml:4:15: error: `parallel` stands inside `parallel`
      hint: put all agents into one list, or make two stages
    "#);
    check!(stages("- parallel: [{agent: a}]\n  join: first"), @r#"
    invalid
    teams/t.yaml:5:3: error: `join` is `first`
      hint: write `all` (none may fail) or `any` (one that does not fail is enough)
    "#);
}

#[test]
fn a_template_with_an_unknown_place_is_refused() {
    check!(stages("- {agent: a, task: 'Sum up {inputs}'}"), @r#"
    invalid
    teams/t.yaml:4:14: error: `{inputs}` is not a place that is filled in
      hint: did you mean `{input}`?
    "#);
    check!(stages("- {agent: a, task: 'For {name}'}"), @r#"
    invalid
    teams/t.yaml:4:14: error: `{name}` is not a place that is filled in
      hint: write `{input}` or `{task}`; for the text itself, `{{name}}`
    "#);
}

#[test]
fn a_later_stage_that_drops_its_input_is_a_warning() {
    check!(stages("- {agent: a, task: 'Look at {task}'}\n- {agent: b, task: 'Now {task}'}"), @r#"
    t (t): d
    stage, one
      a on line 4, None, Some("Look at <TASK>")
    stage, one
      b on line 5, None, Some("Now <TASK>")
    TeamBudget { steps: None, tokens: None, fuel: None, timeout_seconds: None }
    teams/t.yaml:5:14: warning: `task` does not pass on what the stage before says
      hint: write `{input}` where it should stand
    "#);
}

#[test]
fn budgets_out_of_range_are_named() {
    check!("name: t\ndescription: d\nstages: [{agent: a}]\nbudget: {steps: 0, tokens: many}", @r#"
    invalid
    teams/t.yaml:4:10: error: `steps` is 0, out of range
      hint: write a number from 1 to 1000000
    teams/t.yaml:4:20: error: `tokens` is `many`, not a whole number
      hint: write a number from 1 to 1000000000000
    "#);
    check!("name: t\ndescription: d\nstages: [{agent: a}]\nbudget: 7", @r#"
    invalid
    teams/t.yaml:4:1: error: `budget` is a number, not fields
      hint: write `budget: { steps: 60, tokens: 400000 }`
    "#);
}

#[test]
fn what_is_no_yaml_or_no_team_is_placed() {
    check!("name: t\ndescription: [\n", @r#"
    invalid
    teams/t.yaml:2:14: error: the file is not valid YAML: unclosed bracket '['
      hint: close the list, `[a, b]`; quote a text that begins so
    "#);
    check!("- a\n- b", @r#"
    invalid
    teams/t.yaml:1:1: error: the file is a list, not fields
      hint: write `name: ...` and so on, one a line
    "#);
    check!("name: t\nname: u\n", @r#"
    invalid
    teams/t.yaml:2:1: error: the file is not valid YAML: a key stands here for the second time
      hint: keep one of them
    "#);
    check!("name: t\n---\nname: u\n", @r#"
    invalid
    teams/t.yaml:2:1: error: the file is not valid YAML: more than one YAML document
      hint: keep one of them
    "#);
    check!(" \n", @r#"Empty: the file is empty"#);
    check!(b"name: \xff", @r#"
    invalid
    teams/t.yaml:1:7: error: the file is not UTF-8 from here on
      hint: save it as UTF-8
    "#);
}

#[test]
fn bombs_and_crowds_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..10 {
        let uses = vec![format!("*a{}", n - 1); 9].join(", ");
        bomb += &format!("a{n}: &a{n} [{uses}]\n");
    }
    assert_eq!(shown(&bomb).matches("error:").count(), 1, "{}", shown(&bomb));
    assert_eq!(shown(format!("a: {}", "[".repeat(30_000))).matches("error:").count(), 1);
    check!(stages(&"- agent: a\n".repeat(33)), @r#"
    invalid
    teams/t.yaml:3:1: error: the team has more than 32 agents
      hint: make two teams of it
    "#);
    check!(stages(&format!("- parallel: [{}]", "{agent: a}, ".repeat(40))), @r#"
    invalid
    teams/t.yaml:3:1: error: the team has more than 32 agents
      hint: make two teams of it
    "#);
    check!(format!("{}#{}", stages("- agent: a"), "x".repeat(64 << 10)), @r#"
    invalid
    teams/t.yaml: error: the file has 65579 bytes; a team has at most 65536
    "#);
}

#[test]
fn foreign_text_is_escaped_in_every_message() {
    let text = shown(
        "name: \"\\e[2J\"\ndescription: d\n\"\u{202e}key\": 1\nstages:\n- \"\u{200b}x\"\n- {agent: a, task: \"{x\u{202e}}\", join: \"\\e\"}",
    );
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{text}");
}
