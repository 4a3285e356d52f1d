//! Tests of the list, in a child's prompt, of files that the parent has read.

use super::{SETTINGS, world_with};
use belljar_kit::world::World;

const READS: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {name: file_read, arguments: {path: a.txt}}
          - {name: file_read, arguments: {path: gone.txt}}
      - calls:
          - {name: spawn_agent, arguments: {agent: scout, task: look}}
          - {name: spawn_agent, arguments: {mode: fork, task: look}}
      - say: done
  - agent: scout
    turns: [{say: found}]
  - agent: boss
    spawn: 1
    turns: [{say: forked}]
"#;

/// The block about files in the first request of an agent.
fn block(world: &World, agent: &str, spawn: u32) -> Option<String> {
    let sent = world.sent_by(agent, spawn);
    let system = &sent.first().expect("it was asked").system;
    system.iter().find(|text| text.starts_with("# Files that your parent")).cloned()
}

#[tokio::test]
async fn a_child_is_told_paths_and_digests_and_no_text_of_what_its_parent_has_read() {
    let world = world_with(READS, SETTINGS);
    let outcome = world.go("boss").await;
    assert_eq!(outcome.output, "done", "{:?}", outcome.error);
    let told = block(&world, "scout", 0).expect("the block");
    let digest = &outcome.receipts[0].receipt.output_digest;
    let line = format!("- `/workspace/a.txt` {}", &digest[..16]);
    assert!(told.lines().any(|it| it == line), "{told}");
    assert!(!told.contains("text of a") && !told.contains("gone.txt"), "{told}");
    assert_eq!(block(&world, "boss", 0), None, "nobody has read for it");
    assert_eq!(block(&world, "boss", 1), None, "a fork has the conversation itself");
}

#[tokio::test]
async fn a_child_that_may_not_read_a_file_is_not_told_of_it_and_its_parent_reads_on() {
    let no_mounts = format!("{SETTINGS}[grants.scout]\nmounts = []\n");
    let no_tools = format!("{SETTINGS}subagents = {{ allowed_tools = [] }}\n");
    for settings in [no_mounts, no_tools] {
        let world = world_with(READS, &settings);
        let outcome = world.go("boss").await;
        assert_eq!(outcome.output, "done", "{:?}", outcome.error);
        let sent = world.sent_by("scout", 0);
        assert!(!format!("{:?}", sent[0]).contains("a.txt"), "not even by name: {settings}");
        assert!(!outcome.receipts[0].receipt.paths_read.is_empty(), "the neighbour is unharmed");
    }
}

#[tokio::test]
async fn a_parent_that_has_read_nothing_leaves_the_prompt_as_it_was() {
    let transcript = READS.replace("          - {name: file_read, arguments: {path: a.txt}}\n", "");
    let world = world_with(&transcript, SETTINGS);
    world.go("boss").await;
    assert_eq!(block(&world, "scout", 0), None);
    assert_eq!(world.sent_by("scout", 0)[0].system.len(), 2);
}
