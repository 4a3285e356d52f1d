//! Tests of children that run while the parent continues.

use std::io;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use belljar_agent::{
    Approval, ApprovalQuestion, Asker, ChildSummary, Journal, RunId, RunStatus, StepEntry,
};
use belljar_model::{ChatMessage, ChatRequest};

use super::{ALL, world_with};
use belljar_kit::world::{World, results};

/// How many messages of a request announce the end of a background subagent.
fn told(request: &ChatRequest) -> usize {
    let is = |message: &&ChatMessage| match message {
        ChatMessage::User { text, .. } => text.contains("in the background has ended."),
        ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => false,
    };
    request.messages.iter().filter(is).count()
}

fn world(transcript: &str) -> World {
    world_with(transcript, ALL)
}

#[tokio::test]
async fn a_background_child_gives_an_id_at_once_and_its_conclusion_when_asked() {
    let world = world(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: look, background: true}}]
      - expect: {results: [{name: spawn_agent, contains: "as `bg-1`", is_error: false}]}
        calls: [{name: agent_result, arguments: {id: bg-1}}]
      - expect: {results: [{name: agent_result, contains: ["status=\"completed\"", found]}]}
        say: with what it found
  - agent: scout
    turns: [{say: found}]
"#,
    );
    let outcome = world.go("boss").await;
    assert_eq!((outcome.status, &*outcome.output), (RunStatus::Completed, "with what it found"));
    assert_eq!(outcome.children[0].outcome.output, "found");
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
}

/// A journal that records, when an outcome is stored, how many ends the parent knew.
struct Witness(Arc<Mutex<Vec<usize>>>, Arc<belljar_kit::world::Spy>);

#[async_trait]
impl Journal for Witness {
    async fn subagent_ended(
        &self,
        _run: &RunId,
        child: &ChildSummary,
        _with: Option<StepEntry>,
    ) -> io::Result<()> {
        assert_eq!(child.outcome.output, "so far");
        let sent = self.1.sent.lock().unwrap();
        self.0.lock().unwrap().push(sent.iter().map(|(_, _, request)| told(request)).sum());
        Ok(())
    }
}

const LATER: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: look, background: true}}]
      - say: I am done.
      - expect: {last_user_contains: ["`bg-1` in the background has ended", so far]}
        say: And the scout is too.
  - agent: scout
    turns: [{say: so far, hang: true}]
"#;

#[tokio::test(start_paused = true)]
async fn a_parent_that_finishes_first_waits_and_hears_of_the_end_once_it_is_kept() {
    let settings = format!("{ALL}[grants.scout]\nlimits = {{ timeout_seconds = 20 }}\n");
    let mut world = world_with(LATER, &settings);
    let kept = Arc::default();
    world.host.journal = Arc::new(Witness(Arc::clone(&kept), Arc::clone(&world.model)));
    let outcome = world.go("boss").await;
    assert_eq!(outcome.output, "And the scout is too.", "{:?}", outcome.error);
    assert_eq!(*kept.lock().unwrap(), [0], "kept once, before anybody was told");
    let sent = world.sent_by("boss", 0);
    assert_eq!(sent.iter().map(told).collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!(outcome.children.len(), 1);
}

/// A model that never answers.
struct Silent;

#[async_trait]
impl Asker for Silent {
    async fn ask_approval(&self, _question: ApprovalQuestion<'_>) -> Approval {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn what_runs_longer_than_the_wait_is_cancelled_named_and_kept() {
    let asks = LATER.replace(
        "say: so far, hang: true",
        "say: so far, calls: [{name: file_read, arguments: {path: a.txt}}]",
    );
    let settings = format!("{ALL}[grants.scout]\ntools = {{ file_read = \"ask\" }}\n");
    let mut world = world_with(&asks, &settings);
    world.host.asker = Arc::new(Silent);
    let outcome = world.go("boss").await;
    assert_eq!((outcome.status, &*outcome.output), (RunStatus::Completed, "I am done."));
    let child = &outcome.children[0].outcome;
    assert_eq!((child.status, child.output.as_str()), (RunStatus::Cancelled, "so far"));
    assert!(child.paths_read().is_empty());
    assert!(outcome.warnings[0].contains("`bg-1`"), "{:?}", outcome.warnings);
    assert!(outcome.unfinished.is_empty());
}

/// A model that never answers, and reports when the request is dropped.
struct Watched(tokio::sync::mpsc::Sender<&'static str>);

struct Gone(tokio::sync::mpsc::Sender<&'static str>);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = self.0.try_send("gone");
    }
}

#[async_trait]
impl Asker for Watched {
    async fn ask_approval(&self, _question: ApprovalQuestion<'_>) -> Approval {
        let _gone = Gone(self.0.clone());
        let _ = self.0.try_send("asked");
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_takes_its_background_with_it() {
    let asks = LATER.replace(
        "say: so far, hang: true",
        "say: so far, calls: [{name: file_read, arguments: {path: a.txt}}]",
    );
    let settings = format!("{ALL}[grants.scout]\ntools = {{ file_read = \"ask\" }}\n");
    let mut world = world_with(&asks, &settings);
    let (told, mut heard) = tokio::sync::mpsc::channel(4);
    world.host.asker = Arc::new(Watched(told));
    let (host, spec) = (world.host.clone(), world.spec("boss", "t"));
    let running = tokio::spawn(async move {
        let cancel = tokio_util::sync::CancellationToken::new();
        belljar_agent::run(&host, spec, belljar_agent::EventSink::none(), cancel).await
    });
    assert_eq!(heard.recv().await, Some("asked"));
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let limit = std::time::Duration::from_secs(30);
    let last = tokio::time::timeout(limit, heard.recv()).await.expect("it still waits");
    assert_eq!(last, Some("gone"));
}

#[tokio::test]
async fn a_background_child_that_is_cancelled_ends_with_what_it_had() {
    let world = world(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {name: spawn_agent, arguments: {agent: scout, task: first, background: true}}
          - {name: spawn_agent, arguments: {agent: scout, task: second, background: true}}
      - calls: [{name: agent_result, arguments: {id: bg-2}}]
      - calls:
          - {name: agent_status, arguments: {}}
          - {name: agent_cancel, arguments: {id: bg-1}}
          - {name: agent_status, arguments: {id: bg-1}}
      - say: enough
  - agent: scout
    turns: [{say: half of it, hang: true}]
  - agent: scout
    spawn: 1
    turns: [{say: the neighbour}]
"#,
    );
    let outcome = world.go("boss").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let sent = world.sent_by("boss", 0);
    assert!(results(&sent[2])[0].0.contains("the neighbour"));
    let answers = results(&sent[3]);
    assert_eq!(answers[0].0, "bg-1 `scout` running: first\nbg-2 `scout` completed: second");
    assert!(answers[1].0.contains("status=\"cancelled\""), "{answers:?}");
    assert_eq!(answers[2].0, "bg-1 `scout` cancelled: first");
}

#[tokio::test]
async fn an_id_that_is_none_is_an_error_that_names_those_that_are() {
    let world = world(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {name: agent_status, arguments: {}}
          - {name: agent_result, arguments: {id: bg-1}}
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: x, background: true}}]
      - calls:
          - {name: agent_cancel, arguments: {id: bg-7}}
          - {name: agent_result, arguments: {id: bg-1}}
      - say: ok
  - agent: scout
    turns: [{say: found}]
"#,
    );
    world.go("boss").await;
    let sent = world.sent_by("boss", 0);
    let answers = results(&sent[1]);
    assert_eq!(answers[0], ("there are no subagents in the background".to_owned(), false));
    assert!(answers[1].1 && answers[1].0.ends_with("there are none"), "{answers:?}");
    let answers = results(&sent[3]);
    assert!(answers[0].1 && answers[0].0.ends_with("there are `bg-1`"), "{answers:?}");
    assert!(answers[1].0.contains("found"), "the neighbour is unharmed");
}

#[tokio::test]
async fn cancelling_the_run_ends_what_is_in_the_background() {
    let world = world(LATER);
    let cancel = tokio_util::sync::CancellationToken::new();
    let token = cancel.clone();
    let sink = belljar_agent::EventSink::with_listener(move |event| {
        let heard = matches!(&event.kind, belljar_agent::EventKind::TextDelta { .. });
        if heard && event.agent.contains("scout") {
            token.cancel();
        }
    });
    let outcome = belljar_agent::run(&world.host, world.spec("boss", "t"), sink, cancel).await;
    assert_eq!(outcome.status, RunStatus::Cancelled);
    assert_eq!(outcome.children[0].outcome.status, RunStatus::Cancelled);
    assert!(outcome.unfinished.is_empty());
    let calls = world.sent().len();
    tokio::task::yield_now().await;
    assert_eq!(world.sent().len(), calls, "nothing is asked after the run has returned");
}
