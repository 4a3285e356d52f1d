//! Team files, good and bad: each bad one gets one clear diagnostic with its place.

use crate::show::team;

macro_rules! check {
    ($file:expr, @$expected:literal) => {
        insta::assert_snapshot!(team($file), @$expected)
    };
}

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
", @"");
}

#[test]
fn missing_and_empty_fields_are_named() {
    check!("description: d\nstages: [{agent: a}]", @"");
    check!("name: t\nstages: [{agent: a}]", @"");
    check!("name: t\ndescription: d", @"");
    check!("name: t\ndescription: d\nstages: []", @"");
    check!("name: t\ndescription: d\nstages: scout", @"");
    check!("name: '--'\ndescription: d\nstages: [{agent: a}]", @"");
    check!(stages("- {}"), @"");
    check!(stages("- agent: ' '"), @"");
}

#[test]
fn unknown_keys_are_errors_with_the_likely_word() {
    check!("name: t\ndescription: d\nstage: [{agent: a}]", @"");
    check!(stages("- agnet: a"), @"");
    check!(stages("- agent: a\n  tools: [file_write]"), @"");
    check!(stages("- parallel:\n    - agent: a\n      contxt: x"), @"");
    check!("name: t\ndescription: d\nstages: [{agent: a}]\nbudget: {timeout_seconds: 5, cost: 1}", @"");
}

#[test]
fn stages_of_another_shape_are_told_what_to_write() {
    check!(stages("- scout"), @"");
    check!(stages("- [scout, critic]"), @"");
    check!(stages("- 7"), @"");
    check!(stages("- agent: a\n  parallel: [{agent: b}]"), @"");
    check!(stages("- agent: a\n  join: any"), @"");
    check!(stages("- parallel: []"), @"");
    check!(stages("- parallel: a"), @"");
    check!(stages("- parallel: [{parallel: [{agent: a}]}]"), @"");
    check!(stages("- parallel: [{agent: a}]\n  join: first"), @"");
}

#[test]
fn a_template_with_an_unknown_place_is_refused() {
    check!(stages("- {agent: a, task: 'Sum up {inputs}'}"), @"");
    check!(stages("- {agent: a, task: 'For {name}'}"), @"");
}

#[test]
fn a_later_stage_that_drops_its_input_is_a_warning() {
    check!(stages("- {agent: a, task: 'Look at {task}'}\n- {agent: b, task: 'Now {task}'}"), @"");
}

#[test]
fn budgets_out_of_range_are_named() {
    check!("name: t\ndescription: d\nstages: [{agent: a}]\nbudget: {steps: 0, tokens: many}", @"");
    check!("name: t\ndescription: d\nstages: [{agent: a}]\nbudget: 7", @"");
}

#[test]
fn what_is_no_yaml_or_no_team_is_placed() {
    check!("name: t\ndescription: [\n", @"");
    check!("- a\n- b", @"");
    check!("name: t\nname: u\n", @"");
    check!("name: t\n---\nname: u\n", @"");
    check!(" \n", @"");
    check!(b"name: \xff", @"");
}

#[test]
fn bombs_and_crowds_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..10 {
        let uses = vec![format!("*a{}", n - 1); 9].join(", ");
        bomb += &format!("a{n}: &a{n} [{uses}]\n");
    }
    assert_eq!(team(&bomb).matches("error:").count(), 1, "{}", team(&bomb));
    assert_eq!(team(&format!("a: {}", "[".repeat(30_000))).matches("error:").count(), 1);
    check!(stages(&"- agent: a\n".repeat(33)), @"");
    check!(stages(&format!("- parallel: [{}]", "{agent: a}, ".repeat(40))), @"");
    check!(format!("{}#{}", stages("- agent: a"), "x".repeat(64 << 10)), @"");
}

#[test]
fn foreign_text_is_escaped_in_every_message() {
    let text = team(
        "name: \"\\e[2J\"\ndescription: d\n\"\u{202e}key\": 1\nstages:\n- \"\u{200b}x\"\n- {agent: a, task: \"{x\u{202e}}\", join: \"\\e\"}",
    );
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{text}");
}
