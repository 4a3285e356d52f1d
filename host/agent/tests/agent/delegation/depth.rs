//! Tests of which tools an agent is offered at a depth, and which agents may be called.

use belljar_agent::{EventKind, EventSink, RunStatus, run};
use tokio_util::sync::CancellationToken;

use super::{SETTINGS, world_with};
use belljar_kit::world::{Plan, World, agent, results, tool_names};

const DEEP: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: stuck, task: go}}]
      - say: ok
  - agent: stuck
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: deeper}}]
      - say: middle
  - agent: scout
    turns: [{say: bottom, hang: true}]
"#;

#[tokio::test]
async fn a_tree_of_depth_three_is_cancelled_and_does_nothing_more() {
    let world = world_with(DEEP, &format!("[subagents]\nmax_depth = 2\n{SETTINGS}"));
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let sink = EventSink::with_listener(move |event| {
        let heard = matches!(&event.kind, EventKind::TextDelta { .. });
        if heard && &*event.agent == "boss/stuck#0/scout#0" {
            token.cancel();
        }
    });
    let outcome = run(&world.host, world.spec("boss", "t"), sink, cancel).await;
    assert_eq!(outcome.status, RunStatus::Cancelled);
    let middle = &outcome.children[0].outcome;
    let bottom = &middle.children[0].outcome;
    assert_eq!((middle.status, bottom.status), (RunStatus::Cancelled, RunStatus::Cancelled));
    assert_eq!((bottom.output.as_str(), outcome.unfinished.len()), ("bottom", 0));
    assert_eq!(world.sent().len(), 3);
    // The contract tells the subagent what is allowed at each depth.
    assert!(world.sent_by("stuck", 0)[0].system[1].contains("You may hand parts"));
    assert!(world.sent_by("scout", 0)[0].system[1].contains("you cannot hand work on"));
}

#[tokio::test]
async fn a_child_is_offered_no_built_in_tool_although_its_grants_name_them() {
    let world = World::new(Plan {
        transcript: r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: eager, task: x}}]
      - say: ok
  - agent: eager
    turns:
      - calls:
          - {name: clarify, arguments: {question: may I?}}
          - {name: todo_write, arguments: {todos: []}}
          - {name: file_read, arguments: {path: a.txt}}
      - say: alone
"#,
        agents: &[("boss.md", &agent("boss", "")), ("eager.md", &agent("eager", ""))],
        files: &[("a.txt", "text of a\n")],
        ..Plan::default()
    });
    let outcome = world.go("boss").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let top = &world.sent_by("boss", 0)[0];
    for name in ["spawn_agent", "delegate_parallel", "agent_status", "todo_write", "clarify"] {
        assert!(tool_names(top).contains(&name), "{name}");
    }
    assert_eq!(tool_names(&world.sent_by("eager", 0)[0]), ["file_read"]);
    let answers = results(&world.sent_by("eager", 0)[1]);
    assert!(answers[..2].iter().all(|(text, bad)| *bad && text.starts_with("tool not allowed")));
    assert!(answers[2].0.contains("text of a"), "the call beside them works");
}

/// Whether `boss` was refused to delegate under these settings, and the refusal's text.
async fn refused(settings: &str, more: &str) -> (bool, String) {
    let world = World::new(Plan {
        transcript: r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: x}}]
      - say: ok
  - agent: scout
    turns: [{say: found}]
"#,
        settings,
        agents: &[
            ("boss.md", &agent("boss", more)),
            ("scout.md", &agent("scout", "tools: [file_read]\n")),
            ("other.md", &agent("other", "tools: [file_read]\n")),
        ],
        ..Plan::default()
    });
    world.go("boss").await;
    let (text, is_error) = results(&world.sent_by("boss", 0)[1])[0].clone();
    (is_error, text)
}

#[tokio::test]
async fn the_operator_says_who_may_be_called_and_the_agents_file_only_narrows_it() {
    let granted = |list: &str| format!("{SETTINGS}subagents = {{ allowed_agents = {list} }}\n");
    let (bad, text) = refused(&granted("[\"scout\"]"), "").await;
    assert!(!bad && text.contains("found"), "{text}");
    let (bad, text) = refused(&granted("[\"home/scout\"]"), "").await;
    assert!(!bad, "an identity means its agent: {text}");
    let (bad, _) = refused(&granted("[\"library/x/scout\"]"), "").await;
    assert!(bad, "a namesake is not meant");
    let (bad, text) = refused(&granted("[\"other\"]"), "").await;
    assert!(bad && text.ends_with("the available agents are `other`"), "{text}");
    let wider = "subagents: {allowed_agents: [scout, other]}\n";
    let (bad, text) = refused(&granted("[\"other\"]"), wider).await;
    assert!(bad && text.ends_with("the available agents are `other`"), "{text}");
    let (bad, text) = refused(&granted("[]"), "").await;
    assert!(bad && text.starts_with("tool not allowed"), "nothing to call with: {text}");
    let off = format!("{SETTINGS}subagents = {{ enabled = false }}\n");
    assert!(refused(&off, "").await.0);
}

#[tokio::test]
async fn an_agent_that_is_blocked_for_everybody_is_called_by_nobody() {
    let settings = format!("[subagents]\nblocked_agents = [\"scout\"]\n{SETTINGS}");
    let (bad, text) = refused(&settings, "").await;
    assert!(bad && text.ends_with("the available agents are `boss`, `other`"), "{text}");
    let (bad, _) = refused(&format!("[subagents]\nmax_depth = 0\n{SETTINGS}"), "").await;
    assert!(bad, "no depth, no subagents");
}

#[tokio::test]
async fn a_tool_that_is_blocked_for_subagents_is_neither_shown_nor_called() {
    let world = world_with(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {name: spawn_agent, arguments: {agent: scout, task: x}}
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - say: ok
  - agent: scout
    turns:
      - expect: {no_tools: true}
        calls: [{name: file_read, arguments: {path: a.txt}}]
      - say: could not
"#,
        &format!("[subagents]\nblocked_tools = [\"file_read\"]\n{SETTINGS}"),
    );
    let outcome = world.go("boss").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    assert!(results(&world.sent_by("scout", 0)[1])[0].1);
    assert!(outcome.children[0].outcome.paths_read().is_empty());
    assert!(results(&world.sent_by("boss", 0)[2])[0].0.contains("text of a"), "its parent may");
}
