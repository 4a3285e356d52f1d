//! Saved runs: what is written is what is read.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;

use belljar_session::{RunRecord, RunStore, RunStoreError};
use support::{Plan, World, agent};
use tempfile::TempDir;

const TRANSCRIPT: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: boss, task: inner}}, {name: file_read, arguments: {path: a.txt}}]
      - say: done
  - agent: boss
    spawn: 1
    turns: [{say: hm}]
"#;

async fn record() -> RunRecord {
    let world = World::new(Plan {
        transcript: TRANSCRIPT,
        agents: &[("boss.md", &agent("boss", ""))],
        files: &[("a.txt", "text of a\n")],
        ..Plan::default()
    });
    let mut spec = world.spec("boss", "task");
    spec.context = Some("known".into());
    let outcome = world.run(spec.clone()).await;
    RunRecord::new(&spec, outcome)
}

#[tokio::test]
async fn a_run_reads_back_as_it_was_saved() {
    let record = record().await;
    let dir = TempDir::new().unwrap();
    let store = RunStore::new(dir.path().join("runs"));
    let path = store.save(&record).unwrap();
    let whole = |record: &RunRecord| serde_json::to_value(record).unwrap();
    for which in [None, Some("latest"), Some(record.id.as_str()), Some("20261120")] {
        assert_eq!(whole(&store.load(which).unwrap()), whole(&record));
    }
    assert_eq!(store.list().unwrap(), [record.id.as_str()]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
}

#[tokio::test]
async fn runs_are_found_by_a_unique_beginning_and_the_newest_comes_first() {
    let mut record = record().await;
    let dir = TempDir::new().unwrap();
    let store = RunStore::new(dir.path());
    let ids = [
        "20261120T100000000Z-00000001",
        "20261120T100000000Z-00000002",
        "20261121T080000000Z-00000001",
    ];
    for id in ids {
        record.id = serde_json::from_value(id.into()).unwrap();
        store.save(&record).unwrap();
    }
    assert_eq!(store.list().unwrap(), [ids[2], ids[1], ids[0]]);
    assert_eq!(store.load(None).unwrap().id.as_str(), ids[2]);
    assert_eq!(store.load(Some("20261121")).unwrap().id.as_str(), ids[2]);
    assert!(matches!(store.load(Some("20261120")), Err(RunStoreError::Ambiguous { .. })));
    for none in ["x", "", "../20261120", "20261120T100000000Z-00000001.json"] {
        assert!(matches!(store.load(Some(none)), Err(RunStoreError::NotFound(_))), "{none}");
    }
}

#[tokio::test]
async fn the_oldest_runs_go_and_other_files_stay() {
    let mut record = record().await;
    let dir = TempDir::new().unwrap();
    let store = RunStore::new(dir.path());
    assert_eq!(store.prune(0).unwrap(), 0);
    let ids: Vec<String> = (1..=5).map(|n| format!("2026112{n}T100000000Z-00000001")).collect();
    // Out of order: names count, not times.
    for n in [2, 0, 4, 1, 3] {
        record.id = serde_json::from_value(ids[n].as_str().into()).unwrap();
        store.save(&record).unwrap();
    }
    fs::create_dir(dir.path().join(format!("{}.files", ids[0]))).unwrap();
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    assert_eq!(store.prune(2).unwrap(), 3);
    assert_eq!(store.list().unwrap(), [ids[4].as_str(), ids[3].as_str()]);
    assert_eq!(store.prune(2).unwrap(), 0);
    assert!(dir.path().join("notes.txt").exists());
    assert!(dir.path().join(format!("{}.files", ids[0])).exists());
    assert_eq!(store.prune(0).unwrap(), 2);
}

#[test]
fn files_that_are_no_run_are_errors_and_not_runs_of_another_version() {
    let dir = TempDir::new().unwrap();
    let store = RunStore::new(dir.path());
    assert!(matches!(store.load(None), Err(RunStoreError::NotFound(_))));
    let path = dir.path().join("a.json");
    fs::write(&path, "{}").unwrap();
    assert!(matches!(store.load(None), Err(RunStoreError::Malformed { .. })));
    fs::write(&path, r#"{"version": 99}"#).unwrap();
    assert!(matches!(store.load(None), Err(RunStoreError::Version { found: 99, .. })));
}
