//! Scripts whose process died: they run again with the same times and random numbers, and have no effect
//! twice.

use std::sync::{Arc, Mutex};

use belljar_agent::{Journal, Outcome, ReplayLog, RunId, RunSpec, RunStatus, StepEntry};
use belljar_kit::world::{Plan, World, agent, results, stock};

use crate::resume::Steps;

const SETTINGS: &str = r#"
[grants.boss]
tools = ["run_javascript", "file_write"]
mounts = [{ path = "/workspace", access = "read-write" }]
"#;

/// File names come from the clock and from random numbers: another time would make the script write other
/// files.
const TRANSCRIPT: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: boss
    turns:
      - calls: [{name: run_javascript, arguments: {code: "let first = 1; first"}}]
      - calls:
          - name: run_javascript
            arguments:
              code: |
                const name = () => `f${Date.now() % 1e6}-${String(Math.random()).slice(2, 8)}.txt`
                const names = [name(), name()]
                for (const path of names) try { tools.file_write({path, content: path}) } catch (e) { print(e.message) }
                names.join() + ' ' + typeof first
      - say: all is done
"#;

/// Resumes the run from the journal `kept`; returns the world, the outcome and the whole journal.
async fn resumed(kept: &[StepEntry]) -> (World, Outcome, Vec<StepEntry>) {
    let mut world = World::new(Plan {
        transcript: TRANSCRIPT,
        settings: SETTINGS,
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
}

/// The number of text files in the workspace.
fn written(world: &World) -> usize {
    let files = std::fs::read_dir(world.root()).unwrap();
    files
        .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|it| it == "txt"))
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_runs_again_with_the_same_times_and_random_numbers() {
    let (world, outcome, whole) = resumed(&[]).await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    assert_eq!(written(&world), 2);
    let (text, _) = results(world.sent_by("boss", 0).last().unwrap()).remove(0);
    assert!(text.ends_with(" number\n"), "{text}");
    let names = text.split("=> ").nth(1).unwrap().split_whitespace().next().unwrap();
    // The process dies after each entry of the second script in turn.
    let inner: Vec<usize> = (0..whole.len()).filter(|at| whole[*at].agent.contains('@')).collect();
    assert!(inner.len() >= 4, "two calls, each begun and ended: {whole:#?}");
    for died in inner {
        let kept = &whole[..=died];
        let (world, outcome, all) = resumed(kept).await;
        assert_eq!(outcome.status, RunStatus::Completed, "died at {died}: {:?}", outcome.error);
        let (text, is_error) = results(world.sent_by("boss", 0).last().unwrap()).remove(0);
        assert!(!is_error, "died at {died}: {text}");
        assert!(text.contains(names), "died at {died}: {text}");
        // The variable of the first script was lost with its process, and the result has a note about that.
        assert!(text.contains("began anew") && text.contains("undefined"), "{text}");
        let before = kept.iter().filter(|entry| entry.agent.contains('@')).count();
        assert!(written(&world) <= 2 - before / 2, "died at {died}: nothing is written twice");
        assert_eq!(all.iter().filter(|entry| entry.agent.contains('@')).count(), 4, "{died}");
    }
}
