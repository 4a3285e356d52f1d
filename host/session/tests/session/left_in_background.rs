//! Runs whose process died after a subagent had exceeded its waiting time, so that its parent continued
//! without it.

use std::sync::{Arc, Mutex};

use belljar_agent::{
    Journal, Outcome, ReplayLog, ReplayedRun, RunId, RunSpec, RunStatus, StepEntry, StepKind,
};
use belljar_catalogue::StockTool;
use belljar_kit::hostile;
use belljar_kit::world::{Plan, World, agent, stock};

use crate::resume::Steps;

const SETTINGS: &str = r#"
[grants.boss]
tools = ["spawn_agent", "agent_result", "file_read"]
subagents = { auto_background = "5s" }
[grants.scout]
limits = { timeout_seconds = 20 }
"#;

const TRANSCRIPT: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: look}}]
      - expect: {results: [{name: spawn_agent, contains: "in the background as `bg-1`", is_error: false}]}
        calls: [{name: agent_result, arguments: {id: bg-1}}]
      - expect: {results: [{name: agent_result, contains: ["status=\"partial\"", so far]}]}
        say: all is done
  - agent: scout
    turns: [{say: so far, hang: true}]
"#;

fn world(settings: &str) -> World {
    world_of(TRANSCRIPT, settings)
}

/// Makes a world with the agents `boss` and `scout`, a file, and the tool `file_read`.
fn world_of(transcript: &str, settings: &str) -> World {
    World::new(Plan {
        transcript,
        settings,
        agents: &[("boss.md", &agent("boss", "")), ("scout.md", &agent("scout", ""))],
        files: &[("a.txt", "text of a\n")],
        tools: vec![stock("file_read")],
        ..Plan::default()
    })
}

/// Resumes a run from the journal `kept`; returns its outcome and the whole journal.
async fn run(mut world: World, kept: &[StepEntry]) -> (Outcome, Vec<StepEntry>) {
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

async fn resumed(settings: &str, kept: &[StepEntry]) -> (Outcome, Vec<StepEntry>) {
    run(world(settings), kept).await
}

/// Returns whether the journal notes that the subagent runs in the background.
fn is_left(kept: &[StepEntry]) -> bool {
    let is = |entry: &StepEntry| matches!(&entry.kind, StepKind::Result(result) if result.background.is_some());
    kept.iter().any(is)
}

#[tokio::test(start_paused = true)]
async fn it_is_in_the_background_again_wherever_the_process_died() {
    let (whole, kept) = resumed(SETTINGS, &[]).await;
    assert_eq!((whole.status, &*whole.output), (RunStatus::Completed, "all is done"));
    assert!(is_left(&kept), "{kept:#?}");
    for died in 1..=kept.len() {
        let before = &kept[..died];
        let (outcome, _) = resumed(SETTINGS, before).await;
        let place = format!("died after {died} of {}: {:?}", kept.len(), before.last());
        assert_eq!(
            (outcome.status, &*outcome.output),
            (RunStatus::Completed, "all is done"),
            "{place}"
        );
        assert_eq!(outcome.children.len(), 1, "{place}");
        assert_eq!(outcome.total.steps, whole.total.steps, "{place}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_journal_says_of_it_counts_whatever_the_grant_says_by_now() {
    let (_, kept) = resumed(SETTINGS, &[]).await;
    let left = kept.iter().position(|entry| is_left(std::slice::from_ref(entry))).unwrap();
    let now = SETTINGS.replace("auto_background = \"5s\"", "auto_background = \"never\"");
    // The parent was told of `bg-1`, so the resumed run must have it.
    let (outcome, _) = resumed(&now, &kept[..=left]).await;
    assert_eq!(outcome.output, "all is done", "{:?}", outcome.error);
    // The process died before the subagent was left in the background, so the grant's present waiting time
    // counts.
    let (outcome, all) = resumed(&now, &kept[..left]).await;
    assert!(!is_left(&all) && outcome.children.len() == 1, "{:?}", outcome.error);
}

#[tokio::test(start_paused = true)]
async fn one_that_may_not_be_started_again_has_ended_and_its_parent_is_told() {
    let (_, kept) = resumed(SETTINGS, &[]).await;
    let left = kept.iter().position(|entry| is_left(std::slice::from_ref(entry))).unwrap();
    let transcript = TRANSCRIPT.replace(r#"["status=\"partial\"", so far]"#, "the program ended");
    let blocked = format!("{SETTINGS}[subagents]\nblocked_agents = [\"scout\"]\n");
    let revoked = SETTINGS.replace("\"spawn_agent\", ", "");
    for settings in [blocked, revoked] {
        let (outcome, _) = run(world_of(&transcript, &settings), &kept[..=left]).await;
        assert_eq!(outcome.output, "all is done", "{settings}: {:?}", outcome.error);
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_the_finished_run_leaves_it_where_it_was_left() {
    let (_, kept) = resumed(SETTINGS, &[]).await;
    let now = SETTINGS.replace("subagents = { auto_background = \"5s\" }\n", "");
    let world = world(&now);
    let rerun = Arc::new(ReplayedRun::from_steps(kept));
    let spec = RunSpec { rerun: Some(Arc::clone(&rerun)), ..world.spec("boss", "do it") };
    let outcome = world.run(spec).await;
    assert_eq!(outcome.output, "all is done", "{:?}", outcome.error);
    let spawn = rerun.calls().into_iter().find(|call| call.tool == "spawn_agent").unwrap();
    assert_eq!(spawn.result, belljar_agent::CallComparison::Same, "{spawn:?}");
}

/// A script in which code of a tool starts a subagent that takes longer than the code may wait.
const NESTED: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: boss
    turns:
      - calls:
          - name: caller
            arguments: {steps: [{do: call, tool: spawn_agent, arguments: {agent: scout, task: look}}]}
      - calls: [{name: agent_result, arguments: {id: bg-1}}]
      - expect: {results: [{name: agent_result, contains: ["status=\"partial\"", so far]}]}
        say: all is done
  - agent: scout
    turns: [{say: so far, hang: true}]
"#;

/// Resumes the run of `NESTED` from the journal `kept`, with short time limits.
async fn nested(kept: &[StepEntry]) -> (Outcome, Vec<StepEntry>) {
    let settings = SETTINGS
        .replace("\"spawn_agent\", ", "\"spawn_agent\", \"caller\", ")
        .replace("\"5s\"", "\"1s\"")
        .replace("timeout_seconds = 20", "timeout_seconds = 2");
    let manifest = "manifest = 1\ndescription = \"test\"\npeers = true\n";
    let world = World::new(Plan {
        transcript: NESTED,
        settings: &settings,
        agents: &[("boss.md", &agent("boss", "")), ("scout.md", &agent("scout", ""))],
        tools: vec![StockTool::new("caller", hostile("caller"), manifest), stock("file_read")],
        ..Plan::default()
    });
    run(world, kept).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_code_started_and_left_resumes_when_the_code_has_ended() {
    let (whole, kept) = nested(&[]).await;
    assert_eq!(
        (whole.status, &*whole.output),
        (RunStatus::Completed, "all is done"),
        "{:?}",
        whole.error
    );
    // The code's call has its result, and the subagent has none.
    let ended = |entry: &StepEntry| {
        &*entry.agent == "boss" && entry.step == 1 && matches!(entry.kind, StepKind::Result(_))
    };
    let ended = kept.iter().position(ended).unwrap();
    let of_scout = |entry: &StepEntry| matches!(entry.kind, StepKind::Child { .. });
    assert!(is_left(&kept[..=ended]) && !kept[..=ended].iter().any(of_scout), "{kept:#?}");
    let (outcome, _) = nested(&kept[..=ended]).await;
    assert_eq!(outcome.output, "all is done", "{:?}", outcome.error);
    assert_eq!(outcome.children.len(), 1);
}
