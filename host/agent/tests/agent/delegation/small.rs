//! Tests of subagents of a small model: `profile = "small"`.

use std::sync::Arc;

use belljar_agent::{EventKind, Outcome, RunError, RunStatus};
use belljar_kit::world::{Plan, World, agent};
use belljar_model::{ChatMessage, ChatRequest, ModelRegistry};
use belljar_policy::Meter;

const GRANTS: &str = "[grants.boss]\ntools = [\"spawn_agent\", \"file_read\"]\nlimits = { steps = 100 }\n\
                      [grants.scout]\ntools = [\"file_read\"]\n";

const SMALL: &str = "[agents]\nprofile = \"small\"\n";

/// A world with this transcript, these settings and this file of `scout`.
fn world(transcript: &str, settings: &str, scout: &str) -> World {
    World::new(Plan {
        transcript,
        settings,
        agents: &[("boss.md", &agent("boss", "")), ("scout.md", scout)],
        files: &[("a.txt", "text of a\n")],
        ..Plan::default()
    })
}

/// A transcript of a boss whose scout reads as long as possible, billed `tokens` for each step.
fn reads(tokens: u64) -> String {
    let read = "calls: [{name: file_read, arguments: {path: a.txt}}]";
    let step = format!("      - {{{read}, say: so far, usage: {{input: {tokens}, output: 0}}}}\n");
    let spawn = "calls: [{name: spawn_agent, arguments: {agent: scout, task: look}}]";
    format!(
        "transcript: 1\nagents:\n  - agent: boss\n    turns:\n      - {{{spawn}}}\n      - {{say: done}}\n  \
         - agent: scout\n    turns:\n{}",
        step.repeat(40),
    )
}

/// The used-up budget that ended the scout.
fn used_up(outcome: &Outcome) -> (Meter, u64) {
    let child = &outcome.children[0].outcome;
    assert_eq!(child.status, RunStatus::Partial, "{:?}", child.error);
    let Some(RunError::Budget { exhausted }) = &child.error else { panic!("{child:?}") };
    (exhausted.meter, exhausted.limit)
}

/// The budget that ends the scout under these settings.
async fn limit(settings: &str, tokens: u64) -> (Meter, u64) {
    let world = world(&reads(tokens), settings, &agent("scout", "tools: [file_read]\n"));
    let outcome = world.go("boss").await;
    assert_eq!(
        (outcome.status, &*outcome.output),
        (RunStatus::Completed, "done"),
        "its parent goes on"
    );
    used_up(&outcome)
}

#[tokio::test]
async fn a_small_subagent_has_fifteen_steps_and_eight_thousand_tokens() {
    let small = format!("{SMALL}{GRANTS}");
    assert_eq!(limit(&small, 10).await, (Meter::Steps, 15));
    assert_eq!(limit(&small, 3_000).await, (Meter::Tokens, 8_000));
    assert_eq!(limit(GRANTS, 10).await, (Meter::Steps, 30), "without the profile");
}

#[tokio::test]
async fn a_limit_that_the_grant_states_goes_before_the_profile() {
    let small = format!("{SMALL}{GRANTS}limits = {{ steps = 20, tokens = 9000 }}\n");
    assert_eq!(limit(&small, 10).await, (Meter::Steps, 20));
    assert_eq!(limit(&small, 4_000).await, (Meter::Tokens, 9_000));
}

#[tokio::test]
async fn the_tokens_are_three_tenths_of_a_small_context() {
    let settings = format!("{SMALL}{GRANTS}");
    let mut world = world(&reads(1_000), &settings, &agent("scout", "tools: [file_read]\n"));
    world.host.models = Arc::new(ModelRegistry::from_single(world.model.clone()).that_reads(8_192));
    assert_eq!(used_up(&world.go("boss").await), (Meter::Tokens, 2_457));
}

const FORKS: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {name: spawn_agent, arguments: {agent: scout, task: TASK, context: CONTEXT}}
          - {name: spawn_agent, arguments: {mode: fork, task: TASK}}
      - say: done
  - agent: scout
    turns: [{say: found}]
  - agent: boss
    spawn: 1
    turns: [{say: forked}]
"#;

/// The task in a request.
fn task_of(request: &ChatRequest) -> String {
    match request.messages.last() {
        Some(ChatMessage::User { text, .. }) => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_prompt_of_a_small_subagent_is_cut_with_a_mark_and_the_person_is_told() {
    let long = |word: &str| word.repeat(5_000 / word.len());
    let transcript = FORKS
        .replace("task: TASK, context", &format!("task: {}, context", long("tide ")))
        .replace("CONTEXT", &long("wave "))
        .replace("TASK", &long("ebb "));
    let scout = format!("{}{}\n", agent("scout", "tools: [file_read]\n"), long("moon "));
    let whole = world(&transcript, GRANTS, &scout);
    whole.go("boss").await;
    let sent = whole.sent_by("scout", 0);
    assert!(sent[0].system[0].ends_with("moon \n") && !task_of(&sent[0]).contains("[cut:"));

    let small = world(&transcript, &format!("{SMALL}{GRANTS}"), &scout);
    let outcome = small.go("boss").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let sent = small.sent_by("scout", 0);
    let system = &sent[0].system[0];
    assert!(system.len() < 4_050 && system.contains("\n[cut: 1"), "{system}");
    assert!(sent[0].system[1].starts_with("You are a subagent."), "the contract stays whole");
    let task = task_of(&sent[0]);
    let (context, task) = task.split_once("\n\nTask:\n").unwrap();
    assert!(
        context.starts_with("Context:\nwave ") && context.ends_with(" bytes more]"),
        "{context}"
    );
    assert!(task.starts_with("tide ") && task.ends_with("[cut: 999 bytes more]"), "{task}");
    let told = |what: &str| {
        let is = |kind: &EventKind| matches!(kind, EventKind::Warning { message } if message.contains(what));
        small.kinds().iter().filter(|kind| is(kind)).count()
    };
    for what in ["instructions", "task", "context"] {
        assert_eq!(told(&format!("its {what} of ")), 1, "{what}");
    }
    // A fork has the parent's whole prompt, and the whole task.
    let fork = small.sent_by("boss", 1);
    assert_eq!(fork[0].system, small.sent_by("boss", 0)[0].system);
    assert!(task_of(&fork[0]).ends_with("ebb") && !task_of(&fork[0]).contains("[cut:"));
}
