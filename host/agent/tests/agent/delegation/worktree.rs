//! Tests of agents that enter and leave a worktree.

use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use belljar_agent::{
    ChildSummary, Journal, Outcome, QueuedChild, ReplayLog, RunId, RunStatus, StepEntry, StepKind,
};
use belljar_kit::world::{Plan, World, agent, results, stock, tool_names};
use belljar_overlay::{Overlay, OverlayPool, OverlayQuota, SessionLayers};
use belljar_policy::{GuestPath, Mount, MountAccess};
use tokio::sync::Notify;

const SETTINGS: &str = "\
[grants.boss]\nmounts = [{ path = '/workspace', access = 'overlay' }]\n\
tools = ['spawn_agent', 'agent_result', 'agent_cancel', 'file_read', 'file_write', 'worktree']\n\
[grants.scribe]\nmounts = [{ path = '/workspace', access = 'overlay' }]\n\
tools = ['file_read', 'file_write', 'worktree']\n\
[grants.direct]\nmounts = [{ path = '/workspace', access = 'read-write' }]\n\
tools = ['file_read', 'file_write', 'worktree']\n";

const TOOLS: &str =
    "tools: [spawn_agent, agent_result, agent_cancel, file_read, file_write, worktree]\n";

/// A world with the agent `boss` and a scripted model with these turns.
fn world(turns: &str) -> World {
    let transcript = format!("transcript: 1\neach_run: true\nagents:\n{turns}");
    World::new(Plan {
        transcript: &transcript,
        settings: SETTINGS,
        agents: &[
            ("boss.md", &agent("boss", TOOLS)),
            ("scribe.md", &agent("scribe", "tools: [file_read, file_write, worktree]\n")),
            ("direct.md", &agent("direct", "tools: [file_read, file_write, worktree]\n")),
        ],
        files: &[("both.txt", "old\n")],
        tools: vec![stock("file_read"), stock("file_write")],
        ..Plan::default()
    })
}

fn layers(world: &World) -> (SessionLayers, PathBuf) {
    let dir = world.home.path().join("layers");
    let none = OverlayQuota { bytes: 0, files: 0 };
    (SessionLayers::in_directory(dir.clone(), OverlayPool::new(OverlayQuota::default(), none)), dir)
}

fn overlay(world: &World, layers: &SessionLayers) -> Overlay {
    let (guest, host) = (GuestPath::workspace(), world.root());
    layers.overlay(&Mount { guest, host, access: MountAccess::Overlay }).unwrap()
}

/// Runs `boss`; returns the outcome and the overlay of the workspace.
async fn go(world: &World) -> (Outcome, Overlay) {
    let (layers, dir) = layers(world);
    let mut spec = world.spec("boss", "do it");
    spec.layers = Some(layers.clone());
    let outcome = world.run(spec).await;
    assert!(!dir.join("forks").exists(), "nothing is left of a worktree");
    assert_eq!(fs::read_to_string(world.root().join("both.txt")).unwrap(), "old\n");
    (outcome, overlay(world, &layers))
}

fn text(overlay: &Overlay, path: &str) -> Option<String> {
    let mut text = String::new();
    overlay.open_file(path).ok()?.read_to_string(&mut text).unwrap();
    Some(text)
}

/// The tool results in the requests of `agent`, in order.
fn told(world: &World, agent: &str, spawn: u32) -> Vec<(String, bool)> {
    world.sent_by(agent, spawn).iter().skip(1).flat_map(results).collect()
}

#[tokio::test]
async fn what_is_changed_in_a_worktree_is_kept_when_it_is_left_so() {
    let world = world(
        r#"
  - agent: boss
    turns:
      - calls: [{name: file_write, arguments: {path: before.txt, content: before}}]
      - calls: [{name: worktree, arguments: {action: enter, name: try-it}}]
      - calls:
          - {name: file_write, arguments: {path: new.txt, content: new}}
          - {name: file_write, arguments: {path: both.txt, content: changed}}
      - calls: [{name: worktree, arguments: {action: remove}}]
      - calls: [{name: file_read, arguments: {path: before.txt}}]
      - calls: [{name: worktree, arguments: {action: keep}}]
      - calls: [{name: file_read, arguments: {path: new.txt}}]
      - say: done
"#,
    );
    let (outcome, overlay) = go(&world).await;
    assert_eq!((outcome.status, &*outcome.output), (RunStatus::Completed, "done"));
    let told = told(&world, "boss", 0);
    assert!(told[1].0.starts_with("You work in a worktree now"), "{told:?}");
    let (refused, is_error) = &told[4];
    assert!(*is_error && refused.contains("/workspace/both.txt"), "{refused}");
    assert!(refused.contains("/workspace/new.txt") && !refused.contains("before.txt"), "{refused}");
    assert!(told[5].0.contains("before"));
    assert!(!told[6].1 && told[6].0.contains("2 of its changes are in your files"), "{told:?}");
    assert!(told[7].0.contains("new"));
    assert_eq!(text(&overlay, "both.txt").as_deref(), Some("changed"));
    assert_eq!(text(&overlay, "new.txt").as_deref(), Some("new"));
}

#[tokio::test]
async fn what_is_dropped_with_a_worktree_is_nowhere_and_no_open_store_writes_there_again() {
    let world = world(
        r#"
  - agent: boss
    turns:
      - calls: [{name: file_write, arguments: {path: a.txt, content: outside}}]
      - calls: [{name: worktree, arguments: {action: enter}}]
      - calls:
          - {name: file_write, arguments: {path: a.txt, content: inside}}
          - {name: file_write, arguments: {path: both.txt, content: inside}}
      - calls: [{name: worktree, arguments: {action: remove, discard_changes: true}}]
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - calls: [{name: file_write, arguments: {path: b.txt, content: after}}]
      - calls: [{name: worktree, arguments: {action: enter}}]
      - calls: [{name: worktree, arguments: {action: remove}}]
      - say: done
"#,
    );
    let (outcome, overlay) = go(&world).await;
    assert_eq!(outcome.output, "done");
    let told = told(&world, "boss", 0);
    assert!(told.iter().all(|(_, is_error)| !is_error), "{told:?}");
    assert!(told[5].0.contains("outside"), "{told:?}");
    assert_eq!(text(&overlay, "a.txt").as_deref(), Some("outside"));
    assert_eq!(text(&overlay, "b.txt").as_deref(), Some("after"));
    assert_eq!(text(&overlay, "both.txt").as_deref(), Some("old\n"));
}

#[tokio::test]
async fn entering_twice_and_leaving_without_entering_are_answered_and_do_nothing() {
    let world = world(
        r#"
  - agent: boss
    turns:
      - calls: [{name: worktree, arguments: {action: keep}}]
      - calls: [{name: worktree, arguments: {action: enter}}]
      - calls: [{name: file_write, arguments: {path: a.txt, content: inside}}]
      - calls: [{name: worktree, arguments: {action: enter, name: another}}]
      - calls: [{name: worktree, arguments: {action: keep}}]
      - calls: [{name: worktree, arguments: {action: remove, discard_changes: true}}]
      - say: done
"#,
    );
    let (_, overlay) = go(&world).await;
    let errors: Vec<bool> = told(&world, "boss", 0).iter().map(|(_, error)| *error).collect();
    assert_eq!(errors, [true, false, false, true, false, true]);
    assert_eq!(text(&overlay, "a.txt").as_deref(), Some("inside"));
}

#[tokio::test]
async fn who_has_no_overlay_or_does_not_ask_for_it_is_offered_no_worktree() {
    let world = world("  - agent: direct\n    turns: [{say: done}]\n");
    let (layers, _) = layers(&world);
    let mut spec = world.spec("direct", "do it");
    spec.layers = Some(layers);
    let outcome = world.run(spec).await;
    assert_eq!(outcome.status, RunStatus::Completed);
    assert_eq!(tool_names(&world.sent_by("direct", 0)[0]), ["file_read", "file_write"]);
}

#[tokio::test]
async fn an_agent_without_a_place_for_overlays_is_told_and_writes_nowhere() {
    let world = world(
        r#"
  - agent: boss
    turns:
      - calls: [{name: worktree, arguments: {action: enter}}]
      - say: done
"#,
    );
    // A run whose spec has no overlays.
    let outcome = world.run(world.spec("boss", "do it")).await;
    assert_eq!(outcome.output, "done");
    let (answer, is_error) = told(&world, "boss", 0).remove(0);
    assert!(is_error && answer.contains("tool not allowed"), "{answer}");
}

#[tokio::test]
async fn what_changed_on_both_sides_of_a_worktree_is_kept_twice_and_named() {
    let world = world(
        r#"
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: scribe, task: write, background: true}}]
      - calls: [{name: worktree, arguments: {action: enter, name: mine}}]
      - calls: [{name: file_write, arguments: {path: both.txt, content: inside}}]
      - calls: [{name: agent_result, arguments: {id: bg-1}}]
      - calls: [{name: worktree, arguments: {action: keep}}]
      - say: done
  - agent: scribe
    turns:
      - calls: [{name: file_write, arguments: {path: both.txt, content: outside}}]
      - calls: [{name: file_write, arguments: {path: own.txt, content: own}}]
      - say: written
"#,
    );
    let (_, overlay) = go(&world).await;
    assert_eq!(text(&overlay, "own.txt").as_deref(), Some("own"));
    let kept = told(&world, "boss", 0).into_iter().find(|(text, _)| text.contains("is left"));
    let (kept, is_error) = kept.unwrap();
    assert!(!is_error);
    // If the file was written before the worktree began, the two sides do not conflict.
    match text(&overlay, "both.txt.from-mine") {
        Some(beside) => {
            assert_eq!(beside, "inside");
            assert_eq!(text(&overlay, "both.txt").as_deref(), Some("outside"));
            assert!(kept.contains("`both.txt` (the worktree's version is `both.txt.from-mine`)"));
        }
        None => assert_eq!(text(&overlay, "both.txt").as_deref(), Some("inside")),
    }
}

#[tokio::test]
async fn subagents_work_in_the_worktree_in_which_they_were_started() {
    let world = world(
        r#"
  - agent: boss
    turns:
      - calls: [{name: worktree, arguments: {action: enter}}]
      - calls: [{name: file_write, arguments: {path: a.txt, content: of boss}}]
      - calls: [{name: spawn_agent, arguments: {agent: scribe, task: write}}]
      - calls: [{name: spawn_agent, arguments: {agent: scribe, task: write, isolation: worktree}}]
      - calls: [{name: file_read, arguments: {path: two.txt}}]
      - calls: [{name: worktree, arguments: {action: remove, discard_changes: true}}]
      - calls: [{name: file_read, arguments: {path: one.txt}}]
      - say: done
  - agent: scribe
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - expect: {results: [{name: file_read, contains: of boss}]}
        calls: [{name: file_write, arguments: {path: one.txt, content: one}}]
      - say: written
  - agent: scribe
    spawn: 1
    turns:
      - calls: [{name: file_read, arguments: {path: one.txt}}]
      - expect: {results: [{name: file_read, contains: one}]}
        calls: [{name: file_write, arguments: {path: two.txt, content: two}}]
      - say: written
"#,
    );
    let (outcome, overlay) = go(&world).await;
    assert_eq!(outcome.output, "done", "{:?}", outcome.error);
    let told = told(&world, "boss", 0);
    assert!(told[4].0.contains("two") && !told[4].1, "{told:?}");
    assert!(told[6].1, "{told:?}");
    for name in ["a.txt", "one.txt", "two.txt"] {
        assert_eq!(text(&overlay, name), None, "{name}");
    }
}

#[tokio::test]
async fn a_subagent_that_enters_one_keeps_it_only_if_it_concludes() {
    let world = world(
        r#"
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: scribe, task: write}}]
      - calls: [{name: spawn_agent, arguments: {agent: scribe, task: write}}]
      - say: done
  - agent: scribe
    turns:
      - calls: [{name: worktree, arguments: {action: enter}}]
      - calls: [{name: file_write, arguments: {path: one.txt, content: one}}]
      - say: written
  - agent: scribe
    spawn: 1
    turns:
      - calls: [{name: worktree, arguments: {action: enter}}]
      - calls: [{name: file_write, arguments: {path: two.txt, content: two}}]
      - fail: {status: 401, message: no}
"#,
    );
    let (_, overlay) = go(&world).await;
    assert_eq!(text(&overlay, "one.txt").as_deref(), Some("one"));
    assert_eq!(text(&overlay, "two.txt"), None);
    let told = told(&world, "boss", 0);
    assert!(told[0].0.contains("1 of its changes are in your files"), "{told:?}");
    assert!(told[1].0.contains("what was changed in it was dropped"), "{told:?}");
}

#[tokio::test]
async fn a_turn_that_ends_inside_keeps_what_was_changed_even_if_it_fails() {
    for end in ["say: done", "fail: {status: 401, message: no}"] {
        let world = world(&format!(
            r#"
  - agent: boss
    turns:
      - calls: [{{name: worktree, arguments: {{action: enter}}}}]
      - calls: [{{name: file_write, arguments: {{path: a.txt, content: inside}}}}]
      - {end}
"#,
        ));
        let (outcome, overlay) = go(&world).await;
        assert_eq!(text(&overlay, "a.txt").as_deref(), Some("inside"), "{end}");
        let warned = outcome.warnings.iter().any(|line| line.starts_with("worktree `worktree`: "));
        assert!(warned, "{:?}", outcome.warnings);
    }
}

#[tokio::test]
async fn a_worktree_is_not_left_while_subagents_work_in_it() {
    let world = world(
        r#"
  - agent: boss
    turns:
      - calls: [{name: worktree, arguments: {action: enter}}]
      - calls:
          - {name: spawn_agent, arguments: {agent: scribe, task: write, background: true}}
          - {name: worktree, arguments: {action: remove, discard_changes: true}}
      - calls: [{name: agent_cancel, arguments: {id: bg-1}}]
      - calls: [{name: file_write, arguments: {path: two.txt, content: two}}]
      - calls: [{name: worktree, arguments: {action: keep}}]
      - say: done
  - agent: scribe
    turns:
      - hang: true
"#,
    );
    let (outcome, overlay) = go(&world).await;
    assert_eq!(outcome.output, "done", "{:?}", outcome.error);
    let told = told(&world, "boss", 0);
    assert!(told[2].1 && told[2].0.contains("`bg-1`"), "{told:?}");
    assert_eq!(text(&overlay, "two.txt").as_deref(), Some("two"));
}

/// A journal of a run whose process dies after a number of entries.
struct Dying {
    kept: Mutex<Vec<StepEntry>>,
    /// How many more entries are stored, and whether the last one is lost.
    left: Mutex<usize>,
    loses: bool,
    dead: Notify,
}

#[async_trait]
impl Journal for Dying {
    async fn subagents_queued(
        &self,
        _run: &RunId,
        _children: &[QueuedChild],
        _with: Option<StepEntry>,
    ) -> io::Result<()> {
        Ok(())
    }

    async fn subagent_ended(
        &self,
        _run: &RunId,
        _child: &ChildSummary,
        _with: Option<StepEntry>,
    ) -> io::Result<()> {
        Ok(())
    }

    async fn store_step(&self, _run: &RunId, entry: StepEntry) -> io::Result<()> {
        let dies = {
            let mut left = self.left.lock().unwrap();
            *left = left.saturating_sub(1);
            *left == 0
        };
        if !(dies && self.loses) {
            self.kept.lock().unwrap().push(entry);
        }
        if dies {
            self.dead.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    fn persists_steps(&self) -> bool {
        true
    }
}

/// Runs `boss`, resumed from `kept`, until the process dies or the run ends.
async fn until(
    world: &mut World,
    kept: &[StepEntry],
    left: usize,
    loses: bool,
) -> (Option<Outcome>, Vec<StepEntry>) {
    let (kept_now, dead) = (Mutex::new(kept.to_vec()), Notify::new());
    let journal = Arc::new(Dying { kept: kept_now, left: Mutex::new(left), loses, dead });
    world.host.journal = Arc::clone(&journal) as Arc<dyn Journal>;
    let mut spec = world.spec("boss", "do it");
    spec.run = Some(RunId::from("20261120T100000000Z-00000000".to_owned()));
    spec.replay = Some(Arc::new(ReplayLog::from_entries(kept.to_vec())));
    spec.layers = Some(layers(world).0);
    let outcome = tokio::select! {
        outcome = world.run(spec) => Some(outcome),
        () = journal.dead.notified() => None,
    };
    let kept = journal.kept.lock().unwrap().clone();
    (outcome, kept)
}

const IN_AND_OUT: &str = r#"
  - agent: boss
    turns:
      - calls: [{name: file_write, arguments: {path: a.txt, content: outside}}]
      - calls: [{name: worktree, arguments: {action: enter}}]
      - calls: [{name: file_write, arguments: {path: b.txt, content: kept}}]
      - calls: [{name: worktree, arguments: {action: keep}}]
      - calls: [{name: worktree, arguments: {action: enter}}]
      - calls: [{name: file_write, arguments: {path: a.txt, content: lost}}]
      - calls: [{name: worktree, arguments: {action: remove, discard_changes: true}}]
      - calls: [{name: file_write, arguments: {path: c.txt, content: after}}]
      - calls: [{name: worktree, arguments: {action: enter}}]
      - calls: [{name: file_write, arguments: {path: d.txt, content: last}}]
      - say: done
"#;

/// Whether a begun call has no result.
fn is_half(kept: &[StepEntry]) -> bool {
    let begun = kept.iter().filter(|entry| matches!(entry.kind, StepKind::Begun { .. }));
    let has_result = |begun: &StepEntry| {
        kept.iter()
            .any(|entry| matches!(entry.kind, StepKind::Result(_)) && entry.step == begun.step)
    };
    !begun.clone().all(has_result)
}

#[tokio::test]
async fn a_run_that_dies_in_a_worktree_resumes_in_it_and_keeps_or_drops_it_once() {
    for at in 1.. {
        let mut ended = false;
        for loses in [true, false] {
            let mut world = world(IN_AND_OUT);
            let (outcome, kept) = until(&mut world, &[], at, loses).await;
            ended = outcome.is_some();
            let half = is_half(&kept);
            let place = format!("died at entry {at} (lost: {loses}), after {:?}", kept.last());
            let outcome = match outcome {
                Some(outcome) => outcome,
                None => until(&mut world, &kept, usize::MAX, false).await.0.unwrap(),
            };
            assert_eq!(
                (outcome.status, &*outcome.output),
                (RunStatus::Completed, "done"),
                "{place}"
            );
            let (layers, dir) = layers(&world);
            assert!(!dir.join("forks").exists(), "{place}");
            let overlay = overlay(&world, &layers);
            for (name, content) in
                [("a.txt", "outside"), ("b.txt", "kept"), ("c.txt", "after"), ("d.txt", "last")]
            {
                match text(&overlay, name) {
                    Some(text) => assert_eq!(text, content, "{name}: {place}"),
                    // The entry was lost in the crash, and the next process does not write the entry either.
                    None => assert!(half, "{name}: {place}"),
                }
            }
            let beside = ["a.txt.from-worktree", "b.txt.from-worktree", "d.txt.from-worktree"];
            assert!(beside.iter().all(|name| text(&overlay, name).is_none()), "{place}");
        }
        if ended {
            assert!(at > 25, "it ended after {at} entries");
            return;
        }
    }
}

#[tokio::test]
async fn no_worktree_is_entered_from_code() {
    // Entering a worktree would end the jar in which the code runs.
    let settings = "[grants.boss]\nmounts = [{ path = '/workspace', access = 'overlay' }]\n\
        tools = ['run_javascript', 'file_write', 'worktree']\n";
    let code = "try { tools.worktree({action: 'enter'}); 'entered' } catch (e) { e.kind + ': ' + e.message }";
    let turns = serde_json::json!({ "code": code });
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: boss\n    turns:\n      \
         - calls: [{{name: run_javascript, arguments: {turns}}}]\n      \
         - calls: [{{name: worktree, arguments: {{action: keep}}}}]\n      - say: done\n"
    );
    let world = World::new(Plan {
        transcript: &transcript,
        settings,
        agents: &[("boss.md", &agent("boss", "tools: [run_javascript, file_write, worktree]\n"))],
        tools: vec![stock("run_javascript"), stock("file_write")],
        ..Plan::default()
    });
    let (layers, _) = layers(&world);
    let mut spec = world.spec("boss", "do it");
    spec.layers = Some(layers);
    let outcome = world.run(spec).await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let told = told(&world, "boss", 0);
    let denied = "=> denied: tool not allowed: the available tools are `file_write`\n";
    assert_eq!(told[0], (denied.to_owned(), false));
    assert!(told[1].1 && told[1].0.starts_with("there is no worktree to leave"), "{told:?}");
}
