//! Tests of children that change files in separate overlays.

use std::fs;
use std::path::PathBuf;

use belljar_agent::{Outcome, RunStatus};
use belljar_kit::world::{Plan, World, agent, results, stock};
use belljar_overlay::{Overlay, OverlayPool, OverlayQuota, SessionLayers};
use belljar_policy::{GuestPath, Mount, MountAccess};
use std::io::Read as _;

const SETTINGS: &str = "[grants.boss]\nmounts = [{ path = '/workspace', access = 'overlay' }]\n\
tools = ['spawn_agent', 'delegate_parallel', 'file_read', 'file_write']\n\
[grants.writer]\nmounts = [{ path = '/workspace', access = 'overlay' }]\n\
tools = ['file_read', 'file_write']\n\
[grants.apart]\nmounts = [{ path = '/workspace', access = 'overlay' }]\n\
tools = ['file_read', 'file_write']\n";

/// A world with `boss` and isolated children.
fn world(transcript: &str) -> World {
    World::new(Plan {
        transcript,
        settings: SETTINGS,
        agents: &[
            ("boss.md", &agent("boss", "")),
            ("writer.md", &agent("writer", "")),
            ("apart.md", &agent("apart", "isolation: worktree\n")),
        ],
        files: &[("both.txt", "old\n")],
        tools: vec![stock("file_read"), stock("file_write")],
        ..Plan::default()
    })
}

/// Runs `boss`; returns the outcome and the overlay of the workspace.
async fn go(world: &World) -> (Outcome, Overlay, PathBuf) {
    let dir = world.home.path().join("layers");
    let none = OverlayQuota { bytes: 0, files: 0 };
    let layers =
        SessionLayers::in_directory(dir.clone(), OverlayPool::new(OverlayQuota::default(), none));
    let mut spec = world.spec("boss", "do it");
    spec.layers = Some(layers.clone());
    let outcome = world.run(spec).await;
    let (guest, host) = (GuestPath::workspace(), world.root());
    let mount = Mount { guest, host, access: MountAccess::Overlay };
    (outcome, layers.overlay(&mount).unwrap(), dir)
}

fn text(overlay: &Overlay, path: &str) -> Option<String> {
    let mut text = String::new();
    overlay.open_file(path).ok()?.read_to_string(&mut text).unwrap();
    Some(text)
}

#[tokio::test]
async fn a_child_whose_call_asks_for_it_is_merged_when_it_concludes() {
    let world = world(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: file_write, arguments: {path: before.txt, content: before}}]
      - calls: [{name: spawn_agent, arguments: {agent: writer, task: write, isolation: worktree}}]
      - expect: {results: [{name: spawn_agent, contains: ["worked in a copy of its own", "2 of its changes"]}]}
        calls: [{name: file_read, arguments: {path: new.txt}}]
      - expect: {results: [{name: file_read, contains: childs}]}
        say: done
  - agent: writer
    turns:
      - calls: [{name: file_read, arguments: {path: before.txt}}]
      - expect: {results: [{name: file_read, contains: before}]}
        calls:
          - {name: file_write, arguments: {path: new.txt, content: childs}}
          - {name: file_write, arguments: {path: both.txt, content: childs}}
      - say: written
"#,
    );
    let (outcome, overlay, dir) = go(&world).await;
    assert_eq!((outcome.status, &*outcome.output), (RunStatus::Completed, "done"));
    assert_eq!(text(&overlay, "both.txt").as_deref(), Some("childs"));
    assert_eq!(fs::read_to_string(world.root().join("both.txt")).unwrap(), "old\n");
    assert!(!world.root().join("new.txt").exists());
    assert!(!dir.join("forks").exists(), "nothing is left of its own layers");
}

#[tokio::test]
async fn several_that_begin_in_the_background_at_once_have_an_id_each() {
    let world = world(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {name: spawn_agent, arguments: {agent: writer, task: one, isolation: worktree, background: true}}
          - {name: spawn_agent, arguments: {agent: writer, task: two, isolation: worktree, background: true}}
          - {name: spawn_agent, arguments: {agent: writer, task: three, isolation: worktree, background: true}}
      - expect: {results: [{name: spawn_agent, contains: "`bg-1`"}, {name: spawn_agent, contains: "`bg-2`"}, {name: spawn_agent, contains: "`bg-3`"}]}
        say: I wait.
      - say: done
  - agent: writer
    turns: [{say: one}]
  - agent: writer
    spawn: 1
    turns: [{say: two}]
  - agent: writer
    spawn: 2
    turns: [{say: three}]
"#,
    );
    let (outcome, _, _) = go(&world).await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let ended = outcome.children.iter().filter(|it| it.outcome.status == RunStatus::Completed);
    assert_eq!(ended.count(), 3);
}

#[tokio::test]
async fn what_two_children_changed_is_kept_twice_and_their_parent_is_told() {
    let world = world(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: delegate_parallel, arguments: {tasks: [{agent: apart, task: one}, {agent: writer, task: two, isolation: worktree}]}}]
      - say: done
  - agent: apart
    turns:
      - calls:
          - {name: file_write, arguments: {path: both.txt, content: "of 0"}}
          - {name: file_write, arguments: {path: zero.txt, content: zero}}
      - say: written
  - agent: writer
    turns:
      - calls:
          - {name: file_write, arguments: {path: both.txt, content: "of 1"}}
          - {name: file_write, arguments: {path: one.txt, content: one}}
      - say: written
"#,
    );
    let (outcome, overlay, _) = go(&world).await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let (first, second) = (text(&overlay, "both.txt"), ["of 0", "of 1"]);
    let first = first.unwrap();
    let other = second.iter().position(|text| *text != first).unwrap();
    assert!(second.contains(&first.as_str()));
    let beside = ["both.txt.from-apart-0", "both.txt.from-writer-0"][other].to_owned();
    assert_eq!(text(&overlay, &beside).as_deref(), Some(second[other]));
    assert_eq!(text(&overlay, "zero.txt").as_deref(), Some("zero"));
    assert_eq!(text(&overlay, "one.txt").as_deref(), Some("one"));
    let sent = world.sent_by("boss", 0);
    let (told, _) = results(&sent[1]).remove(0);
    assert!(told.contains("both of you changed") && told.contains(&beside), "{told}");
}

#[tokio::test]
async fn what_a_child_changed_that_does_not_conclude_is_dropped_and_its_parent_told() {
    let world = world(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: apart, task: write}}]
      - say: done
  - agent: apart
    turns:
      - calls: [{name: file_write, arguments: {path: both.txt, content: childs}}]
      - fail: {status: 401, message: no}
"#,
    );
    let (_, overlay, dir) = go(&world).await;
    let wrote = results(&world.sent_by("apart", 0)[1]);
    assert!(!wrote[0].1, "{wrote:?}");
    assert_eq!(text(&overlay, "both.txt").as_deref(), Some("old\n"));
    assert!(!dir.join("forks").exists());
    let sent = world.sent_by("boss", 0);
    let (told, _) = results(&sent[1]).remove(0);
    assert!(told.contains("was dropped"), "{told}");
}

#[tokio::test]
async fn isolation_is_nothing_but_worktree() {
    let world = world(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: writer, task: x, isolation: remote}}]
      - expect: {results: [{name: spawn_agent, contains: worktree, is_error: true}]}
        say: refused
"#,
    );
    let (outcome, ..) = go(&world).await;
    assert_eq!(outcome.output, "refused");
    assert!(outcome.children.is_empty());
}
