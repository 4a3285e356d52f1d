//! Runs whose process died while a tool was calling other tools.

use std::sync::{Arc, Mutex};

use belljar_agent::{
    Journal, Outcome, ReplayLog, ReplayedRun, RunId, RunSpec, RunStatus, StepEntry, StepKind,
};
use belljar_catalogue::StockTool;
use belljar_kit::hostile;
use belljar_kit::world::{Plan, World, agent, results, stock};

use crate::resume::Steps;

const SETTINGS: &str = r#"
[grants.boss]
tools = ["caller", "file_read", "file_write", "spawn_agent"]
mounts = [{ path = "/workspace", access = "read-write" }]
[grants.scout]
tools = ["file_write"]
mounts = [{ path = "/workspace", access = "read-write" }]
"#;

/// A script in which the tool `caller` writes, reads, writes what was read, and starts a subagent that writes
/// a file; afterwards the boss makes one more call.
const TRANSCRIPT: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: boss
    turns:
      - calls:
          - name: caller
            arguments:
              steps:
                - {do: call, tool: file_write, arguments: {path: one.txt, content: one}}
                - {do: call, tool: file_read, arguments: {path: a.txt, limit: 1}}
                - {do: call, tool: file_write, arguments: {path: two.txt, content: two}}
                - {do: call, tool: spawn_agent, arguments: {agent: scout, task: write}}
                - {do: call, tool: file_write, arguments: {path: three.txt, content: three}}
      - calls: [{name: file_write, arguments: {path: four.txt, content: four}}]
      - say: all is done
  - agent: scout
    spawn: 0
    turns:
      - calls: [{name: file_write, arguments: {path: scout.txt, content: x}}]
      - say: written
"#;

const FILES: [&str; 5] = ["one.txt", "two.txt", "scout.txt", "three.txt", "four.txt"];

const REPLAYED: &str = "manifest = 1\ndescription = \"test\"\npeers = true\nresume = \"replay\"\n";
const PLAIN: &str = "manifest = 1\ndescription = \"test\"\npeers = true\n";

/// Makes a world whose tool `caller` has the given manifest, and calls other tools.
fn world(manifest: &'static str) -> World {
    World::new(Plan {
        transcript: TRANSCRIPT,
        settings: SETTINGS,
        agents: &[("boss.md", &agent("boss", "")), ("scout.md", &agent("scout", ""))],
        files: &[("a.txt", "text of a\n")],
        tools: vec![
            StockTool::new("caller", hostile("caller"), manifest),
            stock("file_read"),
            stock("file_write"),
        ],
        ..Plan::default()
    })
}

/// Resumes the run in a new workspace from the journal `kept`; returns the world, the outcome and the whole
/// journal.
async fn resumed(manifest: &'static str, kept: &[StepEntry]) -> (World, Outcome, Vec<StepEntry>) {
    let mut world = world(manifest);
    let journal = Arc::new(Steps(Mutex::new(kept.to_vec())));
    world.host.journal = Arc::clone(&journal) as Arc<dyn Journal>;
    let spec = RunSpec {
        run: Some(RunId::from("20261120T100000000Z-00000000".to_owned())),
        replay: Some(Arc::new(ReplayLog::from_entries(kept.to_vec()))),
        ..world.spec("boss", "do it")
    };
    let outcome = world.run(spec).await;
    let all = journal.0.lock().unwrap().clone();
    (world, outcome, all)
}

/// The files of the calls whose beginning is in the journal.
fn begun(kept: &[StepEntry]) -> Vec<&'static str> {
    let of = |entry: &StepEntry| {
        let nested = entry.agent.contains('@');
        match (nested, entry.agent.contains('/'), entry.step, entry.position) {
            (true, false, 1, 0) => Some("one.txt"),
            (true, false, 1, 2) => Some("two.txt"),
            (true, false, 1, 4) => Some("three.txt"),
            (false, true, 1, 0) => Some("scout.txt"),
            (false, false, 2, 0) => Some("four.txt"),
            _ => None,
        }
    };
    let is =
        |kind: &StepKind| matches!(kind, StepKind::Begun { children, .. } if children.is_empty());
    kept.iter().filter(|entry| is(&entry.kind)).filter_map(of).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replayed_call_does_nothing_twice_wherever_its_process_died() {
    let (world, outcome, whole) = resumed(REPLAYED, &[]).await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    for file in FILES {
        assert!(world.root().join(file).exists(), "{file}");
    }
    assert_eq!(begun(&whole), FILES);
    for died in 1..whole.len() {
        let kept = &whole[..died];
        let (world, outcome, all) = resumed(REPLAYED, kept).await;
        let at = format!("died at {died} of {}: {:#?}", whole.len(), kept.last());
        assert_eq!(outcome.status, RunStatus::Completed, "{at}: {:?}", outcome.error);
        let before = begun(kept);
        for file in FILES {
            // Each resumed run has a new workspace, so a file that exists was written after the resume.
            let done = world.root().join(file).exists();
            assert_eq!(done, !before.contains(&file), "{file}, {at}");
        }
        assert_eq!(begun(&all), FILES, "{at}");
        let of_caller = outcome.receipts.iter().filter(|call| call.parent.is_some()).count();
        assert_eq!(of_caller, 4, "{at}: {:#?}", outcome.receipts);
        assert_eq!(outcome.children.len(), 1, "{at}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tools_call_is_interrupted_with_all_that_it_called() {
    let (_, _, whole) = resumed(PLAIN, &[]).await;
    let inner = whole.iter().position(|entry| entry.agent.contains('@')).unwrap();
    let (world, outcome, _) = resumed(PLAIN, &whole[..=inner]).await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let sent = world.sent_by("boss", 0);
    let (text, is_error) = results(&sent[0]).remove(0);
    assert!(is_error, "{text}");
    for file in ["one.txt", "two.txt", "three.txt", "scout.txt"] {
        assert!(!world.root().join(file).exists(), "{file}");
    }
    assert!(world.root().join("four.txt").exists(), "the agent goes on");
}

/// The tools of calls that were made by another tool, as the outcome's receipts name them.
fn nested(outcome: &Outcome) -> Vec<&str> {
    let nested = outcome.receipts.iter().filter(|call| call.parent.is_some());
    nested.map(|call| call.tool.as_str()).collect()
}

/// The journal up to the result of the nested call at `position`.
fn up_to(whole: &[StepEntry], position: usize) -> Vec<StepEntry> {
    let is = |entry: &StepEntry| {
        let result = matches!(entry.kind, StepKind::Result(_));
        entry.agent.contains('@') && entry.position == position && result
    };
    let at = whole.iter().position(is).unwrap();
    whole[..=at].to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_calls_did_before_they_were_interrupted_stays_in_receipts_and_budgets() {
    // `PLAIN`: the nested calls are reported as interrupted. `REPLAYED`: the tool runs again, and may act
    // differently.
    for manifest in [PLAIN, REPLAYED] {
        let (_, _, whole) = resumed(manifest, &[]).await;
        let mut kept = up_to(&whole, 1);
        if manifest == REPLAYED {
            for entry in kept.iter_mut().filter(|entry| entry.agent.contains('@')) {
                let mut body = serde_json::to_value(&entry.kind).unwrap();
                let inner =
                    if body["nested"].is_object() { &mut body["nested"] } else { &mut body };
                inner["called"] = "another".into();
                entry.kind = serde_json::from_value(body).unwrap();
            }
        }
        let (_, outcome, _) = resumed(manifest, &kept).await;
        assert_eq!(nested(&outcome), ["file_write", "file_read"], "{manifest}");
        let fuel: u64 = outcome.receipts.iter().map(|call| call.receipt.fuel).sum();
        assert!(outcome.total.fuel >= fuel, "{manifest}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_calls_are_paid_for_by_the_call_that_runs_again() {
    let (_, _, whole) = resumed(REPLAYED, &[]).await;
    let mut kept = up_to(&whole, 1);
    // Each nested call used nearly as much as one call may use.
    for entry in kept.iter_mut().filter(|entry| entry.agent.contains('@')) {
        let mut body = serde_json::to_value(&entry.kind).unwrap();
        if body["receipt"].is_object() {
            body["receipt"]["receipt"]["fuel"] = 19_000_000_000_u64.into();
        }
        entry.kind = serde_json::from_value(body).unwrap();
    }
    let (world, outcome, _) = resumed(REPLAYED, &kept).await;
    let (text, is_error) = results(&world.sent_by("boss", 0)[0]).remove(0);
    assert!(is_error && text.contains("fuel"), "{text}");
    assert!(!world.root().join("two.txt").exists(), "nothing is done without fuel");
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_nobody_was_asked_about_is_asked_about_when_the_grant_wants_it_now() {
    let allowed = "[\"caller\", \"file_read\", \"file_write\", \"spawn_agent\"]";
    let asks = SETTINGS.replace(
        allowed,
        "{ caller = \"ask\", file_read = \"allow\", file_write = \"allow\", spawn_agent = \"allow\" }",
    );
    assert_ne!(asks, SETTINGS);
    let (_, _, whole) = resumed(REPLAYED, &[]).await;
    let kept = up_to(&whole, 1);
    let mut world = world(REPLAYED);
    let settings = belljar_definition::Settings::parse(
        Some((std::path::Path::new("belljar.toml"), &asks)),
        None,
        None,
    );
    world.host.settings = Arc::new(settings.unwrap());
    let spec = RunSpec {
        run: Some(RunId::from("20261120T100000000Z-00000000".to_owned())),
        replay: Some(Arc::new(ReplayLog::from_entries(kept))),
        ..world.spec("boss", "do it")
    };
    // No person is there to approve.
    let outcome = world.run(spec).await;
    let (text, is_error) = results(&world.sent_by("boss", 0)[0]).remove(0);
    assert!(is_error && text.contains("nobody to ask"), "{text}");
    for file in ["one.txt", "two.txt", "three.txt", "scout.txt"] {
        assert!(!world.root().join(file).exists(), "{file}");
    }
    assert!(world.root().join("four.txt").exists(), "the agent goes on");
    assert_eq!(nested(&outcome), ["file_write", "file_read"], "what was done is in receipts");
}

/// Two scripts; what the second one does depends on a variable that the first one set.
const SCRIPTS: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: boss
    turns:
      - calls: [{name: run_javascript, arguments: {code: "globalThis.ready = true"}}]
      - calls:
          - name: run_javascript
            arguments:
              code: |
                if (globalThis.ready) {
                  tools.file_write({path: 'one.txt', content: 'one'});
                  tools.file_write({path: 'two.txt', content: 'two'});
                }
                'nothing to do'
      - say: all is done
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_ends_before_its_recorded_calls_is_an_error_that_says_so() {
    const WRITES: &str = "[grants.boss]\ntools = [\"run_javascript\", \"file_write\"]\n\
        mounts = [{ path = \"/workspace\", access = \"read-write\" }]\n";
    let run = async |kept: &[StepEntry]| {
        let mut world = World::new(Plan {
            transcript: SCRIPTS,
            settings: WRITES,
            agents: &[("boss.md", &agent("boss", ""))],
            tools: vec![stock("run_javascript"), stock("file_write")],
            ..Plan::default()
        });
        let journal = Arc::new(Steps(Mutex::new(kept.to_vec())));
        world.host.journal = Arc::clone(&journal) as Arc<dyn Journal>;
        let spec = RunSpec {
            run: Some(RunId::from("20261120T100000000Z-00000000".to_owned())),
            replay: Some(Arc::new(ReplayLog::from_entries(kept.to_vec()))),
            ..world.spec("boss", "do it")
        };
        let outcome = world.run(spec).await;
        let all = journal.0.lock().unwrap().clone();
        (world, outcome, all)
    };
    let (_, _, whole) = run(&[]).await;
    let (world, outcome, _) = run(&up_to(&whole, 0)).await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let (text, is_error) = results(&world.sent_by("boss", 0)[0]).remove(0);
    assert!(is_error && text.contains("went another way"), "{text}");
    assert!(text.contains("1 of its calls"), "{text}");
    assert_eq!(nested(&outcome), ["file_write"], "what was done is in a receipt");
    assert!(!world.root().join("one.txt").exists() && !world.root().join("two.txt").exists());
}

/// A script that starts a subagent in the background, and ends.
const BEHIND: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: boss
    turns:
      - calls:
          - name: caller
            arguments: {steps: [{do: call, tool: spawn_agent, arguments: {agent: scout, task: behind, background: true}}]}
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: second, background: true}}]
      - calls: [{name: agent_result, arguments: {id: bg-1}}, {name: agent_result, arguments: {id: bg-2}}]
      - say: all is done
  - agent: scout
    spawn: 0
    turns:
      - calls: [{name: file_write, arguments: {path: scout.txt, content: x}}]
      - say: the first is done
  - agent: scout
    spawn: 1
    turns: [{say: the second is done}]
"#;

const BEHIND_TOOLS: &str = "\"caller\", \"agent_result\"";

/// Resumes the run from the journal `kept`, with `settings` as the operator's present settings.
async fn behind(settings: &str, kept: &[StepEntry]) -> (World, Outcome, Vec<StepEntry>) {
    let mut world = World::new(Plan {
        transcript: BEHIND,
        settings,
        agents: &[("boss.md", &agent("boss", "")), ("scout.md", &agent("scout", ""))],
        tools: vec![
            StockTool::new("caller", hostile("caller"), REPLAYED),
            stock("file_read"),
            stock("file_write"),
        ],
        ..Plan::default()
    });
    let journal = Arc::new(Steps(Mutex::new(kept.to_vec())));
    world.host.journal = Arc::clone(&journal) as Arc<dyn Journal>;
    let spec = RunSpec {
        run: Some(RunId::from("20261120T100000000Z-00000000".to_owned())),
        replay: Some(Arc::new(ReplayLog::from_entries(kept.to_vec()))),
        ..world.spec("boss", "do it")
    };
    let outcome = world.run(spec).await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let all = journal.0.lock().unwrap().clone();
    (world, outcome, all)
}

/// All tool results and notices in the last request of the boss, as text.
fn told(world: &World) -> String {
    let sent = world.sent_by("boss", 0);
    let notes = sent.last().map(|request| format!("{:?}", request.messages)).unwrap_or_default();
    format!("{:?} {notes}", sent.iter().flat_map(results).collect::<Vec<_>>())
}

fn is_child(entry: &StepEntry) -> bool {
    matches!(entry.kind, StepKind::Child { .. })
}

/// The journal up to the end of the script, without the entries of its subagents.
fn without_scouts(whole: &[StepEntry]) -> Vec<StepEntry> {
    let ended = |entry: &StepEntry| {
        &*entry.agent == "boss" && entry.step == 1 && matches!(entry.kind, StepKind::Result(_))
    };
    let at = whole.iter().position(ended).unwrap();
    let of_scout = |entry: &StepEntry| entry.agent.contains('/') || is_child(entry);
    whole[..=at].iter().filter(|entry| !of_scout(entry)).cloned().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_code_started_in_the_background_resumes_with_its_id() {
    let settings = SETTINGS.replace("\"caller\"", BEHIND_TOOLS);
    let (_, outcome, whole) = behind(&settings, &[]).await;
    assert_eq!(outcome.children.len(), 2, "{:?}", outcome.error);
    let before = without_scouts(&whole);
    // The entries of the script's subagent, to its end: the process dies after each of them in turn.
    let its = |entry: &&StepEntry| {
        entry.agent.ends_with(".1.0") || (entry.agent.contains('@') && is_child(entry))
    };
    let its: Vec<_> = whole.iter().filter(its).cloned().collect();
    assert!(its.len() > 3 && is_child(its.last().unwrap()), "{its:#?}");
    for died in 0..=its.len() {
        let kept: Vec<_> = before.iter().chain(&its[..died]).cloned().collect();
        let (world, outcome, _) = behind(&settings, &kept).await;
        let told = told(&world);
        assert!(told.contains("the first is done"), "{died}: {told}");
        assert!(told.contains("bg-2") && told.contains("the second is done"), "{died}: {told}");
        assert!(!told.contains("the program ended while it ran"), "{died}: {told}");
        assert_eq!(outcome.children.len(), 2, "{died}");
        // Each resumed run has a new workspace, so a file that exists was written after the resume.
        let begun = its[..died].iter().any(|entry| matches!(entry.kind, StepKind::Begun { .. }));
        assert_eq!(world.root().join("scout.txt").exists(), !begun, "{died}: done once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_code_started_in_the_background_ends_where_it_may_not_resume() {
    let settings = SETTINGS.replace("\"caller\"", BEHIND_TOOLS);
    let (_, _, whole) = behind(&settings, &[]).await;
    let before = without_scouts(&whole);
    // Two reasons why a recorded call cannot be used: the operator has revoked the right, or an older belljar
    // did not record the call.
    let revoked = settings.replace(", \"spawn_agent\"]", "]");
    assert_ne!(revoked, settings);
    let mut older = before.clone();
    for entry in older.iter_mut().filter(|entry| entry.agent.contains('@')) {
        let mut body = serde_json::to_value(&entry.kind).unwrap();
        if let Some(child) = body.get_mut("children").and_then(|all| all.get_mut(0)) {
            assert!(child.as_object_mut().unwrap().remove("call").is_some());
        }
        entry.kind = serde_json::from_value(body).unwrap();
    }
    for (settings, kept) in [(&revoked, &before), (&settings, &older)] {
        let (world, _, _) = behind(settings, kept).await;
        let told = told(&world);
        assert!(told.contains("the program ended while it ran"), "{told}");
        assert!(!told.contains("the first is done"), "{told}");
        assert!(!world.root().join("scout.txt").exists(), "it did nothing");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_goes_another_way_ends_and_does_nothing_more() {
    let (_, _, whole) = resumed(REPLAYED, &[]).await;
    // Replaces the record of the second nested call by the record of a different call.
    let read = |entry: &StepEntry| entry.agent.contains('@') && entry.position == 1;
    let read = whole.iter().position(read).unwrap();
    let mut kept = whole[..=read].to_vec();
    let mut body = serde_json::to_value(&kept[read].kind).unwrap();
    body["nested"]["called"] = "another".into();
    kept[read].kind = serde_json::from_value(body).unwrap();
    let (world, outcome, _) = resumed(REPLAYED, &kept).await;
    let sent = world.sent_by("boss", 0);
    let (text, is_error) = results(&sent[0]).remove(0);
    assert!(is_error && text.contains("went another way") && text.contains("call 2"), "{text}");
    for file in ["one.txt", "two.txt", "three.txt", "scout.txt"] {
        assert!(!world.root().join(file).exists(), "{file}");
    }
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_answers_what_nobody_allowed_then_from_the_record() {
    let (mut asked, journal) = (world(PLAIN), Arc::new(Steps::default()));
    let ask = SETTINGS.replacen("\"file_write\"", "\"spawn_agent\"", 1);
    let ask = ask.replacen(
        "[\"caller\", \"file_read\", \"spawn_agent\", \"spawn_agent\"]",
        "{ caller = \"allow\", file_read = \"allow\", file_write = \"ask\" }",
        1,
    );
    let settings = belljar_definition::Settings::parse(
        Some((std::path::Path::new("belljar.toml"), &ask)),
        None,
        None,
    );
    asked.host.settings = Arc::new(settings.unwrap());
    asked.host.journal = Arc::clone(&journal) as Arc<dyn Journal>;
    let outcome = asked.run(asked.spec("boss", "do it")).await;
    let refused = |outcome: &Outcome| {
        let nested = outcome.receipts.iter().filter(|call| call.parent.is_some());
        nested.filter(|call| !call.receipt.denials.is_empty()).count()
    };
    // Refused: two file calls, and the start of the subagent, which this agent may not start. No person is
    // there to approve.
    assert_eq!(refused(&outcome), 4, "{:#?}", outcome.receipts);
    let steps = journal.0.lock().unwrap().clone();
    let rerun = Arc::new(ReplayedRun::from_steps(steps));
    let spec = RunSpec { rerun: Some(Arc::clone(&rerun)), ..asked.spec("boss", "do it") };
    let again = asked.run(spec).await;
    assert_eq!(refused(&again), 4, "{:#?}", again.receipts);
    let calls = rerun.calls();
    let same = calls.iter().all(|call| !call.result.is_difference());
    assert!(same, "{calls:#?}");
}
