//! Runs whose process died after any entry of the journal, and how the runs resume.

use std::io;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use belljar_agent::{
    ChildSummary, EventKind, Journal, Outcome, QueuedChild, ReplayLog, RunId, RunSpec, RunStatus,
    StepEntry, StepKind, Usage, frame,
};
use belljar_kit::world::{Plan, World, agent, stock};
use belljar_model::ChatMessage;

/// A journal of a run in memory.
#[derive(Default)]
pub(crate) struct Steps(pub(crate) Mutex<Vec<StepEntry>>);

impl Steps {
    fn push(&self, entry: Option<StepEntry>) -> io::Result<()> {
        self.0.lock().unwrap().extend(entry);
        Ok(())
    }
}

#[async_trait]
impl Journal for Steps {
    async fn subagents_queued(
        &self,
        _run: &RunId,
        _children: &[QueuedChild],
        with: Option<StepEntry>,
    ) -> io::Result<()> {
        self.push(with)
    }

    async fn subagent_ended(
        &self,
        _run: &RunId,
        _child: &ChildSummary,
        with: Option<StepEntry>,
    ) -> io::Result<()> {
        self.push(with)
    }

    async fn store_step(&self, _run: &RunId, entry: StepEntry) -> io::Result<()> {
        self.push(Some(entry))
    }

    fn persists_steps(&self) -> bool {
        true
    }
}

const SETTINGS: &str = r#"
[grants.boss]
tools = ["spawn_agent", "delegate_parallel", "agent_result", "file_read", "file_write"]
mounts = [{ path = "/workspace", access = "read-write" }]
[grants.scout]
tools = ["file_read", "file_write"]
mounts = [{ path = "/workspace", access = "read-write" }]
"#;

/// A boss that writes two files, and whose children write one file each: in the foreground, in parallel and
/// in the background.
const TRANSCRIPT: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: boss
    turns:
      - calls:
          - {name: file_write, arguments: {path: boss-1.txt, content: one}}
          - {name: spawn_agent, arguments: {agent: scout, task: look}}
      - calls:
          - {name: delegate_parallel, arguments: {tasks: [{agent: scout, task: left}, {agent: scout, task: right}]}}
          - {name: spawn_agent, arguments: {agent: scout, task: behind, background: true}}
      - calls:
          - {name: agent_result, arguments: {id: bg-1}}
          - {name: file_write, arguments: {path: boss-2.txt, content: two}}
      - say: all is done
  - agent: scout
    spawn: 0
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}, {name: file_write, arguments: {path: scout-0.txt, content: x}}]
      - say: found 0
  - agent: scout
    spawn: 1
    turns:
      - calls: [{name: file_write, arguments: {path: scout-1.txt, content: x}}]
      - say: found 1
  - agent: scout
    spawn: 2
    turns:
      - calls: [{name: file_write, arguments: {path: scout-2.txt, content: x}}]
      - say: found 2
  - agent: scout
    spawn: 3
    turns:
      - calls: [{name: file_write, arguments: {path: scout-3.txt, content: x}}]
      - say: found 3
"#;

const FILES: [&str; 6] =
    ["boss-1.txt", "boss-2.txt", "scout-0.txt", "scout-1.txt", "scout-2.txt", "scout-3.txt"];

/// The number of model answers in a whole run: four of the boss, and two of each of four children.
const REPLIES: usize = 4 + 4 * 2;

/// Makes a world with the agents `boss` and `scout`, and tools to read and write files.
fn world() -> World {
    World::new(Plan {
        transcript: TRANSCRIPT,
        settings: SETTINGS,
        agents: &[("boss.md", &agent("boss", "")), ("scout.md", &agent("scout", ""))],
        files: &[("a.txt", "text of a\n")],
        tools: vec![stock("file_read"), stock("file_write")],
        ..Plan::default()
    })
}

/// Resumes a run from the journal `kept`; returns its outcome and the whole journal.
async fn resumed(world: &mut World, kept: &[StepEntry]) -> (Outcome, Vec<StepEntry>) {
    let journal = Arc::new(Steps(Mutex::new(kept.to_vec())));
    world.host.journal = Arc::clone(&journal) as Arc<dyn Journal>;
    let spec = RunSpec {
        run: Some(RunId::from("20261120T100000000Z-00000000".to_owned())),
        replay: Some(Arc::new(ReplayLog::from_entries(kept.to_vec()))),
        ..world.spec("boss", "do it")
    };
    let outcome = world.run(spec).await;
    let all = journal.0.lock().unwrap().clone();
    (outcome, all)
}

fn replies(kept: &[StepEntry]) -> usize {
    kept.iter().filter(|entry| matches!(entry.kind, StepKind::Said { .. })).count()
}

/// The number of calls that had begun, and have no result.
fn half(kept: &[StepEntry]) -> usize {
    let of = |entry: &StepEntry| (entry.agent.clone(), entry.step, entry.position);
    let ended =
        |place: &_| kept.iter().any(|e| matches!(e.kind, StepKind::Result(_)) && of(e) == *place);
    let is_call = |kind: &StepKind| match kind {
        StepKind::Begun { children, .. } => children.is_empty(),
        StepKind::Said { .. }
        | StepKind::Result(_)
        | StepKind::Child { .. }
        | StepKind::Written(_)
        | StepKind::Muted { .. } => false,
    };
    kept.iter().filter(|entry| is_call(&entry.kind) && !ended(&of(entry))).count()
}

/// The number of calls in the whole tree whose result is the notice of an interruption.
fn interrupted(outcome: &Outcome) -> usize {
    let is = |error: &Option<String>| error.as_deref() == Some(frame::INTERRUPTED);
    outcome.all_receipts().iter().filter(|receipt| is(&receipt.error)).count()
}

#[tokio::test]
async fn a_run_resumes_from_every_place_where_it_can_end() {
    let mut first = world();
    let (whole, kept) = resumed(&mut first, &[]).await;
    assert_eq!((whole.status, &*whole.output), (RunStatus::Completed, "all is done"));
    assert_eq!(replies(&kept), REPLIES);
    assert_eq!(whole.children.len(), 4);
    // The journal has the beginning of each of the 6 calls with an effect.
    assert!(kept.len() > REPLIES + 12, "{}", kept.len());
    for ended_at in 0..=kept.len() {
        let before = &kept[..ended_at];
        let mut next = world();
        let (outcome, all) = resumed(&mut next, before).await;
        let place = format!("ended after {ended_at} of {}: {:?}", kept.len(), before.last());
        assert_eq!(
            (outcome.status, &*outcome.output),
            (RunStatus::Completed, "all is done"),
            "{place}"
        );
        // No stored answer is requested from the model again.
        let asked = next.model.sent.lock().unwrap().len();
        assert_eq!(asked, REPLIES - replies(before), "{place}");
        // No effect happens twice: the workspace is new, so an existing file was written after the resume.
        let done = FILES.iter().filter(|name| next.workspace.path().join(name).exists()).count();
        let results = |kept: &[StepEntry]| FILES.len() - written(kept);
        assert_eq!(done, results(before) - half(before), "{place}");
        assert_eq!(interrupted(&outcome), half(before), "{place}");
        // The outcome has the totals of an uninterrupted run.
        let counts = |total: Usage| (total.steps, total.tool_calls);
        assert_eq!(counts(outcome.total), counts(whole.total), "{place}");
        assert_eq!(outcome.all_receipts().len(), whole.all_receipts().len(), "{place}");
        let paths = |outcome: &Outcome| -> Vec<String> {
            outcome.children.iter().map(|child| child.path.clone()).collect()
        };
        assert_eq!(paths(&outcome), paths(&whole), "{place}");
        if half(before) == 0 {
            assert_eq!(said(&outcome), said(&whole), "{place}");
        }
        assert_eq!(half(&all), 0, "every call has an end that is kept: {place}");
        resumed_is_told(&next, ended_at);
    }
}

/// The number of stored results of calls that wrote a file.
fn written(kept: &[StepEntry]) -> usize {
    let is = |entry: &&StepEntry| match &entry.kind {
        StepKind::Result(kept) => {
            kept.receipt.as_ref().is_some_and(|receipt| receipt.tool == "file_write")
        }
        StepKind::Said { .. }
        | StepKind::Begun { .. }
        | StepKind::Child { .. }
        | StepKind::Written(_)
        | StepKind::Muted { .. } => false,
    };
    kept.iter().filter(is).count()
}

/// The conversation without notices about background subagents, whose position depends on timing.
fn said(outcome: &Outcome) -> Vec<ChatMessage> {
    let is_news = |message: &ChatMessage| match message {
        ChatMessage::User { text, .. } => text.starts_with("<system_notice>"),
        ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => false,
    };
    outcome.messages.iter().filter(|message| !is_news(message)).cloned().collect()
}

/// Asserts that watchers receive `RunResumed` and not `RunStarted`, unless nothing was stored.
fn resumed_is_told(world: &World, kept: usize) {
    let kinds = world.kinds();
    let begins = |kind: &EventKind| matches!(kind, EventKind::RunStarted { .. });
    let resumes = EventKind::RunResumed { kept };
    if kept == 0 {
        assert!(kinds.iter().any(begins) && !kinds.contains(&resumes));
    } else {
        assert!(kinds.contains(&resumes) && !kinds.iter().any(begins), "{kinds:?}");
    }
}
