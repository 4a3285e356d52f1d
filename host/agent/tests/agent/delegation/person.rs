//! Tests of questions to the person who started the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use belljar_agent::{
    Approval, ApprovalQuestion, Asker, ClarificationAnswer, ClarificationQuestion, EventKind,
    RunStatus,
};

use belljar_kit::world::{Plan, World, agent, results};

/// A person who answers after some time. Counts the questions.
struct Person {
    word: Approval,
    after: Duration,
    asked: AtomicUsize,
}

#[async_trait]
impl Asker for Person {
    async fn ask_approval(&self, question: ApprovalQuestion<'_>) -> Approval {
        assert_eq!((question.agent, question.tool.as_str()), ("boss/scout#0", "file_read"));
        self.asked.fetch_add(1, Ordering::SeqCst);
        // The clock is paused in tests that wait.
        let _ = tokio::time::timeout(self.after, std::future::pending::<()>()).await;
        self.word
    }

    async fn ask_clarification(&self, question: ClarificationQuestion<'_>) -> ClarificationAnswer {
        match question.question {
            "which?" => ClarificationAnswer::Words(question.options[1].clone()),
            _ => ClarificationAnswer::Nobody,
        }
    }
}

const TWICE: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: x}}]
      - say: ok
  - agent: scout
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - calls: [{name: file_read, arguments: {path: b.txt}}]
      - say: read
"#;

/// A world whose person answers `word` after `after` seconds.
fn world(transcript: &str, word: Approval, after: u64) -> (World, Arc<Person>) {
    let mut world = World::new(Plan {
        transcript,
        settings: "[grants.scout]\ntools = { file_read = \"ask\" }\nlimits = { timeout_seconds = 20 }\n\
            [defaults.user-facing]\nlimits = { timeout_seconds = 20 }\n",
        agents: &[("boss.md", &agent("boss", "")), ("scout.md", &agent("scout", ""))],
        files: &[("a.txt", "text of a\n"), ("b.txt", "text of b\n")],
        ..Plan::default()
    });
    let after = Duration::from_secs(after);
    let person = Arc::new(Person { word, after, asked: AtomicUsize::new(0) });
    world.host.asker = person.clone();
    (world, person)
}

/// The answers in the events.
fn answers(world: &World) -> Vec<Approval> {
    let answer = |kind| match kind {
        EventKind::PermissionAnswered { answer, .. } => Some(answer),
        _ => None,
    };
    world.kinds().into_iter().filter_map(answer).collect()
}

#[tokio::test]
async fn a_childs_question_goes_to_the_person_at_the_root_and_once_is_once() {
    let (world, person) = world(TWICE, Approval::Yes, 0);
    let outcome = world.go("boss").await;
    assert_eq!(outcome.children[0].outcome.paths_read(), ["/workspace/a.txt", "/workspace/b.txt"]);
    assert_eq!(person.asked.load(Ordering::SeqCst), 2);
    assert_eq!(answers(&world), [Approval::Yes, Approval::Yes]);
}

#[tokio::test]
async fn what_is_allowed_for_the_run_is_asked_once() {
    let (world, person) = world(TWICE, Approval::ForRun, 0);
    let outcome = world.go("boss").await;
    assert_eq!(outcome.children[0].outcome.paths_read(), ["/workspace/a.txt", "/workspace/b.txt"]);
    assert_eq!(person.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_no_is_told_to_the_child_and_nothing_is_read() {
    let (world, _) = world(TWICE, Approval::No, 0);
    let outcome = world.go("boss").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    assert_eq!(results(&world.sent_by("scout", 0)[1]), [("tool not allowed".to_owned(), true)]);
    assert!(outcome.paths_read().is_empty());
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_person_counts_against_no_time_limit() {
    let (world, _) = world(TWICE, Approval::Yes, 100);
    let outcome = world.go("boss").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let child = &outcome.children[0].outcome;
    assert_eq!((child.status, child.paths_read().len()), (RunStatus::Completed, 2));
}

#[tokio::test(start_paused = true)]
async fn no_answer_in_time_is_a_denial_and_never_a_hang() {
    let (world, _) = world(TWICE, Approval::Yes, 100_000);
    let outcome = world.go("boss").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    assert!(results(&world.sent_by("scout", 0)[1])[0].0.contains("nobody to ask"));
    assert_eq!(answers(&world), [Approval::Nobody, Approval::Nobody]);
    assert!(outcome.paths_read().is_empty());
}

#[tokio::test]
async fn the_agent_at_the_top_asks_the_person_and_keeps_a_list() {
    let transcript = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {name: todo_write, arguments: {todos: [{content: ask, status: in_progress}]}}
          - {name: clarify, arguments: {question: "which?", options: [one, two]}}
          - {name: clarify, arguments: {question: "and why?"}}
          - {name: todo_write, arguments: {todos: [{content: ask, status: someday}]}}
      - say: ok
"#;
    let (world, _) = world(transcript, Approval::No, 0);
    let outcome = world.go("boss").await;
    let answers = results(&world.sent_by("boss", 0)[1]);
    assert_eq!(answers[0], ("kept 1 items: 0 completed, 1 in progress, 0 pending".into(), false));
    assert_eq!(answers[1], ("two".to_owned(), false));
    assert!(answers[2].1 && answers[2].0.starts_with("nobody answers"), "{answers:?}");
    assert!(answers[3].1 && answers[3].0.contains("unknown variant"), "{answers:?}");
    let lists = world.kinds().into_iter().filter(|kind| matches!(kind, EventKind::Todos { .. }));
    assert_eq!(lists.count(), 1);
    assert_eq!(outcome.receipts.len(), 4);
}
