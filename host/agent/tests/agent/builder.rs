//! Tests of agents embedded in another program: faults are reported before anything runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use belljar_agent::{Agent, AgentBuilder, EventSink, RunStatus};
use belljar_kit::TestHost;
use belljar_kit::world::stock as stock_tool;
use belljar_model::ScriptedModel;
use belljar_work::{MAX_RUNNING_PER_OWNER, StopSignal, WorkKind};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const READER: &str = "---\nname: reader\ndescription: d\ntools: [file_read]\n---\nRead.";
const WRITER: &str = "---\nname: writer\ndescription: d\ntools: [file_write]\n---\nWrite.";

fn model(script: &str) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::from_yaml(script, Path::new("test")).unwrap())
}

fn says(agent: &str) -> Arc<ScriptedModel> {
    let turns = "turns: [{say: Done.}]";
    model(&format!("transcript: 1\nagents:\n  - agent: {agent}\n    {turns}\n"))
}

fn code(builder: AgentBuilder) -> &'static str {
    let error = builder.build().unwrap_err();
    assert!(!error.hint().is_empty() && !error.to_string().is_empty());
    error.code()
}

#[tokio::test]
async fn an_agent_writes_only_where_the_settings_grant_it() {
    let host = TestHost::new();
    let builder = || {
        Agent::builder(&host.sandbox, host.path())
            .agent("writer.md", WRITER)
            .tool(stock_tool("file_write"))
    };
    let blocked = builder().model(says("writer")).build().unwrap_err();
    assert_eq!(blocked.code(), "blocked");
    let script = "transcript: 1\nagents:\n  - agent: writer\n    turns:\n      - calls: [{name: \
                  file_write, arguments: {path: a.txt, content: x}}]\n      - say: Done.\n";
    let grant = "[grants.writer]\ntools = ['file_write']\n\
                 mounts = [{ path = '/workspace', access = 'read-write' }]\n";
    let granted = builder().model(model(script)).settings(grant).build().unwrap();
    assert_eq!(host.read("a.txt"), None);
    let outcome = granted.run("Write.").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    assert_eq!(host.read("a.txt").as_deref(), Some("x"));
}

#[tokio::test]
async fn an_agent_with_a_place_for_overlays_writes_there_from_run_to_run() {
    let host = TestHost::new();
    let place = tempfile::tempdir().unwrap();
    let script = "transcript: 1\neach_run: true\nagents:\n  - agent: writer\n    turns:\n      - \
                  calls: [{name: file_write, arguments: {path: a.txt, content: x}}]\n      - say: \
                  Done.\n";
    let agent = Agent::builder(&host.sandbox, host.path())
        .agent("writer.md", WRITER)
        .tool(stock_tool("file_write"))
        .model(model(script))
        .overlay_in(place.path().join("layers"))
        .build()
        .unwrap();
    for _ in 0..2 {
        let outcome = agent.run("Write.").await;
        assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
        assert_eq!(host.read("a.txt"), None, "the workspace stays as it is");
        let layers = agent.session_layers().unwrap();
        let present = layers.present().unwrap();
        let [layer] = &present[..] else { panic!("{present:?}") };
        let changes = layer.overlay.list_changes();
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].path, std::path::Path::new("a.txt"));
        drop((changes, present));
        layers.close();
    }
}

/// Occupies both threads of a tenant's share until the senders are dropped.
async fn hold(owner: &'static str) -> (Vec<Sender<()>>, JoinSet<()>) {
    let (mut holds, mut jobs) = (Vec::new(), JoinSet::new());
    for _ in 0..MAX_RUNNING_PER_OWNER {
        let (hold, held) = channel::<()>();
        let (begins, begun) = tokio::sync::oneshot::channel();
        let job = move |_: &StopSignal| {
            begins.send(()).unwrap();
            let _ = held.recv();
        };
        jobs.spawn(async move { belljar_work::run_job(&HELD, owner, job).await.unwrap() });
        begun.await.unwrap();
        holds.push(hold);
    }
    (holds, jobs)
}

/// Long enough for a run with one answer to end.
const SOON: Duration = Duration::from_millis(500);

const HELD: WorkKind = WorkKind { name: "work of a test", time: Duration::from_secs(60) };

/// INV-531: this runtime has one worker. A run reads the disk before the first step on the tenant's threads,
/// not on the worker.
#[tokio::test]
async fn a_run_reads_skills_and_overlays_beside_the_async_workers_and_ends_when_it_is_cancelled() {
    let host = TestHost::new();
    let place = tempfile::tempdir().unwrap();
    let script =
        "transcript: 1\neach_run: true\nagents:\n  - agent: writer\n    turns: [{say: Done.}]\n";
    let agent = Agent::builder(&host.sandbox, host.path())
        .agent("writer.md", WRITER)
        .tool(stock_tool("file_write"))
        .model(model(script))
        .overlay_in(place.path().join("layers"))
        .build()
        .unwrap();
    // The first run compiles tools, which takes extra time.
    assert_eq!(agent.run("Write.").await.status, RunStatus::Completed);
    agent.session_layers().unwrap().close();
    for share in ["/skills", "/overlays"] {
        let (holds, mut jobs) = hold(share).await;
        let cancel = CancellationToken::new();
        let mut run = Box::pin(agent.run_with("Write.", EventSink::none(), cancel.clone()));
        let early = timeout(SOON, &mut run).await;
        assert!(early.is_err(), "{share}: it did not wait");
        cancel.cancel();
        assert_eq!(run.await.status, RunStatus::Cancelled, "{share}");
        drop(holds);
        while jobs.join_next().await.is_some() {}
    }
    assert_eq!(agent.run("Write.").await.status, RunStatus::Completed);
    // Closing the overlays waits for a thread too; the next run opens the overlays again.
    let (holds, mut jobs) = hold("/overlays").await;
    let owner = agent.host().owner_of_overlays();
    let mut closing = Box::pin(agent.session_layers().unwrap().clone().close_for(&owner));
    assert!(timeout(SOON, &mut closing).await.is_err(), "it did not wait");
    drop(holds);
    while jobs.join_next().await.is_some() {}
    closing.await;
    assert_eq!(agent.run("Write.").await.status, RunStatus::Completed);
}

#[test]
fn what_is_wrong_with_an_agent_has_a_word_and_a_way_on() {
    let host = TestHost::new();
    let empty = || Agent::builder(&host.sandbox, host.path());
    let reader = || empty().agent("reader.md", READER).tool(stock_tool("file_read"));
    assert_eq!(code(empty().model(says("x"))), "no-agent");
    assert_eq!(code(reader()), "no-model");
    assert_eq!(code(reader().agent_file("/nowhere/a.md").model(says("x"))), "not-read");
    assert_eq!(code(reader().tool_files("/nowhere/a.wasm", "b").model(says("x"))), "not-read");
    let broken = empty().agent("a.md", READER.replace("[file_read]", "[]\ntimeoutSeconds: soon"));
    assert_eq!(code(broken.model(says("x"))), "invalid-file");
    assert_eq!(code(reader().settings("[grantz]").model(says("x"))), "invalid-file");
    let nowhere = Agent::builder(&host.sandbox, "/nowhere").agent("reader.md", READER);
    let nowhere = nowhere.tool(stock_tool("file_read")).model(says("reader"));
    assert_eq!(code(nowhere), "not-resolved");
    // A tool that was not added does not exist for the agent: an error in the program's own file.
    let toolless = empty().agent("reader.md", READER).model(says("reader"));
    assert_eq!(code(toolless), "invalid-file");
    let limited = READER.replace("[file_read]", "[file_read]\nplanMode: perhaps");
    let limited = empty().agent("reader.md", limited).tool(stock_tool("file_read"));
    assert_eq!(code(limited.model(says("reader"))), "blocked");
}
