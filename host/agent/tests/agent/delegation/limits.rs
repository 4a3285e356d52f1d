//! Tests of limits that agent files state in words of other programs, enforced at calls.

use belljar_agent::RunStatus;
use belljar_policy::MountAccess;

use belljar_kit::world::{Plan, World, agent, results, sandbox, stock, tool_names};

/// The same grants for `boss`, `free` and the subagents of both.
const GRANTS: &str = r#"
[subagents]
max_depth = 4
[grants.boss]
tools = ["spawn_agent", "delegate_parallel", "file_read", "file_write"]
mounts = [{ path = "/workspace", access = "read-write" }]
[grants.free]
tools = ["spawn_agent", "delegate_parallel", "file_read", "file_write"]
mounts = [{ path = "/workspace", access = "read-write" }]
[grants.eager]
tools = ["spawn_agent", "file_read", "file_write"]
mounts = [{ path = "/workspace", access = "read-write" }]
"#;

/// A world in which `boss` has these further fields in the file.
fn limited(transcript: &str, more: &str) -> World {
    World::new(Plan {
        transcript,
        settings: GRANTS,
        agents: &[
            ("boss.md", &agent("boss", more)),
            ("free.md", &agent("free", "")),
            ("eager.md", &agent("eager", "")),
        ],
        files: &[("a.txt", "text of a\n")],
        tools: vec![stock("file_read"), stock("file_write")],
        ..Plan::default()
    })
}

const CALLS: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {name: spawn_agent, arguments: {agent: eager, task: x}}
          - {name: spawn_agent, arguments: {mode: fork, task: x}}
          - {name: delegate_parallel, arguments: {tasks: [{agent: eager, task: x}]}}
          - {name: file_read, arguments: {path: a.txt}}
      - say: done
  - agent: free
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: eager, task: x}}]
      - say: done
  - agent: eager
    turns: [{say: helped}]
"#;

#[tokio::test]
async fn an_agent_whose_file_forbids_children_starts_none_and_its_neighbour_does() {
    for more in [
        "maxSubagentDepth: 0\n",
        "allowSubagents: false\n",
        "max_subagents: 0\n",
        "subagents: { enabled: false }\n",
    ] {
        let world = limited(CALLS, more);
        let outcome = world.go("boss").await;
        assert_eq!(outcome.status, RunStatus::Completed, "{more}: {:?}", outcome.error);
        let boss = world.sent_by("boss", 0);
        assert_eq!(tool_names(&boss[0]), ["file_read", "file_write"], "{more}");
        let answers = results(&boss[1]);
        let refused = |(text, bad): &(String, bool)| *bad && text.starts_with("tool not allowed");
        assert!(answers[..3].iter().all(refused), "{more}: {answers:?}");
        assert!(answers[3].0.contains("text of a"), "the call beside them works: {more}");
        assert!(world.sent_by("eager", 0).is_empty() && outcome.children.is_empty(), "{more}");
        assert_eq!(world.go("free").await.children.len(), 1, "{more}");
    }
}

#[tokio::test]
async fn a_files_depth_holds_for_the_tree_below_it_and_for_no_other() {
    let transcript = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: eager, task: x}}]
      - say: done
  - agent: free
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: eager, task: x}}]
      - say: done
  - agent: eager
    turns:
      - calls:
          - {name: spawn_agent, arguments: {agent: eager, task: y}}
          - {name: file_read, arguments: {path: a.txt}}
      - say: helped
  - agent: eager
    spawn: 1
    turns: [{say: deepest}]
"#;
    let world = limited(transcript, "maxSubagentDepth: 1\n");
    let outcome = world.go("boss").await;
    assert_eq!(outcome.children.len(), 1, "{:?}", outcome.error);
    assert!(outcome.children[0].outcome.children.is_empty());
    let eager = world.sent_by("eager", 0);
    assert_eq!(tool_names(&eager[0]), ["file_read", "file_write"]);
    let answers = results(&eager[1]);
    assert!(answers[0].1 && answers[0].0.starts_with("tool not allowed"), "{answers:?}");
    assert!(answers[1].0.contains("text of a"), "{answers:?}");

    let world = limited(transcript, "maxSubagentDepth: 1\n");
    let outcome = world.go("free").await;
    assert_eq!(outcome.children[0].outcome.children.len(), 1, "{:?}", outcome.error);
}

#[tokio::test]
async fn an_agent_that_only_reads_writes_nothing_itself_or_by_a_child_and_its_neighbour_does() {
    let writes = "[{name: file_write, arguments: {path: NAME, content: x}}]";
    let transcript = format!(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: {}
      - calls: [{{name: spawn_agent, arguments: {{agent: eager, task: x}}}}]
      - say: done
  - agent: eager
    turns:
      - calls: {}
      - say: tried
  - agent: free
    turns:
      - calls: {}
      - say: done
"#,
        writes.replace("NAME", "boss.txt"),
        writes.replace("NAME", "eager.txt"),
        writes.replace("NAME", "free.txt"),
    );
    for more in [
        "readonly: true\n",
        "permissionMode: plan\n",
        "sandbox_mode: read-only\n",
        "read-only: yes\n",
    ] {
        let world = limited(&transcript, more);
        let spec = world.spec("boss", "task");
        assert!(spec.agent.rights.mounts().iter().all(|mount| mount.access == MountAccess::Read));
        assert!(spec.agent.rights.tool("file_write").is_err(), "{more}");
        let outcome = world.run(spec).await;
        assert_eq!(outcome.status, RunStatus::Completed, "{more}: {:?}", outcome.error);
        for name in ["boss", "eager"] {
            let sent = world.sent_by(name, 0);
            assert!(!tool_names(&sent[0]).contains(&"file_write"), "{more}: {name}");
            let (text, bad) = &results(&sent[1])[0];
            assert!(*bad && text.starts_with("tool not allowed"), "{more}: {name}: {text}");
            assert!(!world.workspace.path().join(format!("{name}.txt")).exists());
        }
        world.go("free").await;
        assert!(world.workspace.path().join("free.txt").exists(), "{more}: the neighbour writes");
    }
}

#[tokio::test]
async fn a_limit_that_nobody_understands_blocks_its_agent_and_no_other() {
    let world = limited(CALLS, "sandbox_profile: strict\n");
    let mut spec = world.spec("boss", "task");
    spec.partial = true;
    assert_eq!(spec.agent.rights.offered_tools().count(), 0);
    let reasons = spec.agent.run_warnings().join("\n");
    assert!(reasons.contains("boss.md:5: `sandbox_profile: strict`"), "{reasons}");
    let outcome = world.run(spec).await;
    assert_eq!(outcome.status, RunStatus::Failed);
    assert!(world.sent_by("boss", 0).is_empty());
    assert_eq!(world.go("free").await.status, RunStatus::Completed);
}

#[tokio::test]
async fn the_tools_that_only_read_are_those_whose_hints_say_so() {
    let names = [
        "attach_file",
        "file_edit",
        "file_find",
        "file_list",
        "file_read",
        "file_search",
        "file_write",
        "notebook_edit",
        "shell",
        "web_fetch",
        "web_search",
    ];
    let world =
        World::new(Plan { tools: names.into_iter().map(stock).collect(), ..Plan::default() });
    for component in world.host.tools.components() {
        for info in component.describe_tools(&sandbox()).await.unwrap().iter() {
            let listed = belljar_definition::READING_TOOLS.contains(&info.name.as_str());
            assert_eq!(listed, info.hints.read_only, "{}", info.name);
        }
    }
}
