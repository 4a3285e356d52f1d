//! Tests of children that take longer than the grant lets the parent wait.

use std::time::Duration;

use async_trait::async_trait;
use belljar_agent::{Approval, ApprovalQuestion, Asker, EventKind, RunStatus};
use belljar_kit::world::results;

use super::{ALL, world_with};

const SLOW: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: look}}]
      - expect: {results: [{name: spawn_agent, contains: "runs on in the background as `bg-1`", is_error: false}]}
        say: I went on.
      - expect: {last_user_contains: ["`bg-1` in the background has ended", so far]}
        say: And the scout is done too.
  - agent: scout
    turns: [{say: so far, hang: true}]
"#;

/// Settings and agents: a boss that waits for five seconds, and a scout that takes `takes` seconds.
fn settings(takes: u64) -> String {
    format!(
        "{ALL}subagents = {{ auto_background = \"5s\" }}\n\
         [grants.scout]\nlimits = {{ timeout_seconds = {takes} }}\n"
    )
}

#[tokio::test(start_paused = true)]
async fn a_child_that_takes_longer_runs_on_in_the_background_and_its_parent_is_told() {
    let world = world_with(SLOW, &settings(20));
    let outcome = world.go("boss").await;
    assert_eq!(outcome.output, "And the scout is done too.", "{:?}", outcome.error);
    assert_eq!(outcome.children.len(), 1);
    let child = &outcome.children[0].outcome;
    assert_eq!((child.status, child.output.as_str()), (RunStatus::Partial, "so far"));
    let kinds = world.kinds();
    let left = kinds
        .iter()
        .filter(|kind| matches!(kind, EventKind::SubagentBackground { id, .. } if id == "bg-1"));
    assert_eq!(left.count(), 1, "whoever watches is told once");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_ends_in_time_is_waited_for() {
    let in_time = SLOW
        .replace("runs on in the background as `bg-1`", "status=\\\"partial\\\"")
        .replace("say: I went on.", "say: I have it.");
    let world = world_with(&in_time, &settings(4));
    let outcome = world.go("boss").await;
    assert_eq!(outcome.output, "I have it.", "{:?}", outcome.error);
    let left = |kind: &EventKind| matches!(kind, EventKind::SubagentBackground { .. });
    assert!(!world.kinds().iter().any(left));
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_waited_for_however_long_it_takes() {
    let batch = SLOW
        .replace(
            "{name: spawn_agent, arguments: {agent: scout, task: look}}",
            "{name: delegate_parallel, arguments: {tasks: [{agent: scout, task: look}]}}",
        )
        .replace(
            "name: spawn_agent, contains: \"runs on in the background as `bg-1`\"",
            "name: delegate_parallel, contains: so far",
        );
    let outcome = world_with(&batch, &settings(20)).go("boss").await;
    assert_eq!(outcome.output, "I went on.", "{:?}", outcome.error);
}

/// A model that answers after this many seconds.
struct Thinks(u64);

#[async_trait]
impl Asker for Thinks {
    async fn ask_approval(&self, _question: ApprovalQuestion<'_>) -> Approval {
        tokio::time::advance(Duration::from_secs(self.0)).await;
        Approval::Yes
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_person_takes_to_answer_sends_nobody_to_the_background() {
    let asks = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: look}}]
      - expect: {results: [{name: spawn_agent, contains: read it, is_error: false}]}
        say: I have it.
  - agent: scout
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - say: read it
"#;
    let settings = settings(20)
        .replace("[grants.scout]\n", "[grants.scout]\ntools = { file_read = \"ask\" }\n");
    let mut world = world_with(asks, &settings);
    world.host.asker = std::sync::Arc::new(Thinks(60));
    let outcome = world.go("boss").await;
    assert_eq!(outcome.output, "I have it.", "{:?}", outcome.error);
}

#[tokio::test(start_paused = true)]
async fn one_that_was_left_is_listed_and_cancelled_like_any_other() {
    let cancels = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {name: spawn_agent, arguments: {agent: scout, task: first}}
          - {name: spawn_agent, arguments: {agent: scout, task: second, background: true}}
      - calls:
          - {name: agent_status, arguments: {}}
          - {name: agent_cancel, arguments: {id: bg-2}}
          - {name: agent_result, arguments: {id: bg-1}}
      - say: enough
  - agent: scout
    turns: [{say: half of it, hang: true}]
  - agent: scout
    spawn: 1
    turns: [{say: the neighbour}]
"#;
    let world = world_with(cancels, &settings(60));
    let outcome = world.go("boss").await;
    assert_eq!(outcome.output, "enough", "{:?}", outcome.error);
    let sent = world.sent_by("boss", 0);
    let answers = results(&sent[2]);
    assert!(answers[0].0.contains("bg-2 `scout` running: first"), "{answers:?}");
    assert!(answers[1].0.contains("status=\"cancelled\""), "{answers:?}");
    assert!(answers[2].0.contains("the neighbour"), "{answers:?}");
}
