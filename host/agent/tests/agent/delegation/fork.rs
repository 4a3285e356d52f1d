//! Tests of a child that continues the parent's own conversation.

use belljar_agent::RunStatus;
use belljar_agent::frame::FORK_PLACEHOLDER;
use belljar_model::{ChatMessage, ChatRequest};

use super::{world, world_with};
use belljar_kit::world::{World, results};

const FORKS: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - say: I will look twice.
        calls:
          - {name: spawn_agent, arguments: {task: look at a, mode: fork}}
          - {name: spawn_agent, arguments: {task: look at b, context: it is short, mode: fork}}
      - expect: {results: [{name: spawn_agent, contains: a was seen}, {name: spawn_agent, contains: b was seen}]}
        say: both seen
  - agent: boss
    spawn: 1
    turns: [{say: a was seen}]
  - agent: boss
    spawn: 2
    turns: [{say: b was seen}]
"#;

/// The request as sent to a provider, whose prefix cache compares bytes.
fn bytes(request: &ChatRequest) -> (String, String, Vec<String>) {
    let text = |value: &ChatMessage| serde_json::to_string(value).unwrap();
    (
        serde_json::to_string(&request.system).unwrap(),
        serde_json::to_string(&request.tools).unwrap(),
        request.messages.iter().map(text).collect(),
    )
}

/// A finished run in which `boss` starts forks.
async fn forked() -> World {
    let world = world(FORKS);
    let outcome = world.go("boss").await;
    assert_eq!((outcome.status, &*outcome.output), (RunStatus::Completed, "both seen"));
    world
}

#[tokio::test]
async fn a_fork_is_sent_its_parents_bytes_and_then_its_task() {
    let world = forked().await;
    let parent = world.sent_by("boss", 0);
    let (system, tools, messages) = bytes(&parent[1]);
    for (spawn, task) in [(1, "look at a"), (2, "Context:\nit is short\n\nTask:\nlook at b")] {
        let fork = &world.sent_by("boss", spawn)[0];
        let (own_system, own_tools, own_messages) = bytes(fork);
        assert_eq!((own_system, own_tools), (system.clone(), tools.clone()));
        // The pending assistant message is kept; the messages after it are the fork's own.
        assert_eq!(own_messages[..2], messages[..2]);
        let ChatMessage::Tool { results } = &fork.messages[2] else { panic!("{fork:?}") };
        assert!(results.iter().all(|result| result.content == FORK_PLACEHOLDER));
        assert_eq!(results.len(), 2);
        let ChatMessage::User { text, .. } = &fork.messages[3] else { panic!("{fork:?}") };
        assert!(text.starts_with("<system_notice>") && text.ends_with(task), "{text}");
        assert_eq!(fork.messages.len(), 4);
    }
    // Both forks share every byte before the tasks.
    let (_, _, one) = bytes(&world.sent_by("boss", 1)[0]);
    let (_, _, other) = bytes(&world.sent_by("boss", 2)[0]);
    assert_eq!(one[..3], other[..3]);
}

#[tokio::test]
async fn a_forks_prefix_has_its_parents_thinking_byte_for_byte() {
    let thinking = "reasoning: {model: m, blocks: [{block: {type: thinking, thinking: 'twice, \"so\"', \
                    signature: c2ln+/=}}, {text: 3, block: {type: redacted_thinking, data: ZGF0YQ==}}]}";
    let script = FORKS.replacen(
        "      - say: I will",
        &format!("      - {thinking}\n        say: I will"),
        1,
    );
    let world = world(&script);
    let outcome = world.go("boss").await;
    assert_eq!((outcome.status, &*outcome.output), (RunStatus::Completed, "both seen"));
    let (_, _, parent) = bytes(&world.sent_by("boss", 0)[1]);
    for spawn in [1, 2] {
        let (_, _, fork) = bytes(&world.sent_by("boss", spawn)[0]);
        assert_eq!(fork[..2], parent[..2]);
        for part in ["c2ln+/=", "ZGF0YQ==", "redacted_thinking", r#"twice, \"so\""#] {
            assert!(fork[1].contains(part), "{part}: {}", fork[1]);
        }
    }
}

#[tokio::test]
async fn a_fork_is_shown_its_parents_tools_and_those_it_may_not_use_are_refused() {
    let world = world(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {task: go on, mode: fork}}]
      - say: ok
  - agent: boss
    spawn: 1
    turns:
      - expect: {tools: [file_read, spawn_agent]}
        calls:
          - {name: spawn_agent, arguments: {task: deeper, mode: fork}}
          - {name: spawn_agent, arguments: {agent: scout, task: deeper}}
          - {name: file_read, arguments: {path: b.txt}}
      - say: alone
"#,
    );
    let outcome = world.go("boss").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let answers = results(&world.sent_by("boss", 1)[1]);
    let refused = "tool not allowed: the available tools are `file_read`";
    assert_eq!(answers[..2], [(refused.to_owned(), true), (refused.to_owned(), true)]);
    assert!(answers[2].0.contains("text of b"), "the call beside them works");
    assert!(outcome.children[0].outcome.children.is_empty());
    assert!(world.sent_by("scout", 0).is_empty());
}

#[tokio::test]
async fn where_depth_allows_a_fork_hands_work_on_and_still_cannot_fork() {
    let world = world_with(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {task: go on, mode: fork}}]
      - say: ok
  - agent: boss
    spawn: 1
    turns:
      - calls:
          - {name: spawn_agent, arguments: {task: deeper, mode: fork}}
          - {name: spawn_agent, arguments: {agent: scout, task: deeper}}
      - say: handed on
  - agent: scout
    turns: [{say: found}]
"#,
        &format!("[subagents]\nmax_depth = 2\n{}", super::SETTINGS),
    );
    let outcome = world.go("boss").await;
    let answers = results(&world.sent_by("boss", 1)[1]);
    assert!(answers[0].1 && answers[0].0.starts_with("a fork cannot fork again"), "{answers:?}");
    assert!(!answers[1].1 && answers[1].0.contains("found"), "{answers:?}");
    assert_eq!(outcome.children[0].outcome.children.len(), 1);
}

#[tokio::test]
async fn what_the_operator_keeps_from_children_is_kept_from_a_fork() {
    let world = world_with(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {task: go on, mode: fork}}]
      - calls: [{name: file_read, arguments: {path: b.txt}}]
      - say: ok
  - agent: boss
    spawn: 1
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - say: could not
"#,
        &format!("{}subagents = {{ allowed_tools = [] }}\n", super::SETTINGS),
    );
    let outcome = world.go("boss").await;
    let refused = results(&world.sent_by("boss", 1)[1])[0].clone();
    assert_eq!(refused, ("tool not allowed: no tools are available".to_owned(), true));
    assert!(outcome.children[0].outcome.paths_read().is_empty());
    assert_eq!(outcome.paths_read(), ["/workspace/b.txt"], "its parent may");
}

#[tokio::test]
async fn a_fork_has_a_jar_and_a_budget_of_its_own_below_its_parents() {
    let world = world_with(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {task: go on, mode: fork}}]
        usage: {input: 100, output: 0}
  - agent: boss
    spawn: 1
    turns:
      - say: as far as I came
        calls: [{name: file_read, arguments: {path: a.txt}}]
        usage: {input: 950, output: 0}
"#,
        &format!("{}limits = {{ tokens = 1000 }}\n", super::SETTINGS),
    );
    let outcome = world.go("boss").await;
    assert_eq!(outcome.status, RunStatus::Partial);
    let fork = &outcome.children[0].outcome;
    assert_eq!((fork.status, fork.output.as_str()), (RunStatus::Partial, "as far as I came"));
    assert_eq!(outcome.total.input_tokens, 1050);
}
