//! Runs and teams as sessions of one turn: the store has what was run, whenever the process ended.

use std::sync::Arc;

use belljar_agent::{EventSink, Outcome, RunError, RunSpec, RunStatus, TeamSpec, resolve_team};
use belljar_kit::world::{Plan, World, agent, stock};
use belljar_model::ChatMessage;
use belljar_policy::{BudgetCaps, LimitsRequest};
use belljar_session::{
    Admission, Conversation, HistoryMode, SavedSession, Service, ServiceLimits, Turn, find_run,
    newest_runs, prune_runs, run_saved, run_team_saved, shown_status,
};
use belljar_store::{MessageStatus, SessionKind, Store, StoreError, SubagentStatus};
use tokio_util::sync::CancellationToken;

use crate::store;

/// A script with parallel calls, a subagent of a subagent, and a subagent that fails.
const BUSY: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {name: file_read, arguments: {path: a.txt}}
          - {name: file_read, arguments: {path: gone.txt}}
          - {name: file_read, arguments: {path: ../../etc/passwd}}
        usage: {input: 10, output: 1}
      - calls:
          - {name: spawn_agent, arguments: {agent: scout, task: look, context: short}}
          - {name: spawn_agent, arguments: {agent: boss, task: inner}}
      - say: Done.
        usage: {input: 30, output: 3}
  - agent: boss
    spawn: 1
    turns: [{fail: {status: 400, message: no}}]
  - agent: scout
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - say: a says text of a
"#;

/// Makes a world with three agents, a team of two stages, and tools for files.
fn world(transcript: &str) -> World {
    World::new(Plan {
        transcript,
        agents: &[
            ("boss.md", &agent("boss", "")),
            ("scout.md", &agent("scout", "")),
            ("stuck.md", &agent("stuck", "tools: [file_write]\n")),
        ],
        teams: &[(
            "pair.yaml",
            "name: pair\ndescription: d\nstages:\n  - agent: scout\n  - agent: boss\n",
        )],
        files: &[("a.txt", "text of a\n")],
        tools: vec![stock("file_read"), stock("file_write")],
        ..Plan::default()
    })
}

/// A run of the agent `boss`, with a context and a limit of seven steps.
fn spec(world: &World) -> RunSpec {
    RunSpec {
        context: Some("known".to_owned()),
        limits: LimitsRequest { steps: Some(7), ..LimitsRequest::default() },
        ..world.spec("boss", "the task")
    }
}

/// Runs and stores `spec`, and asserts that the outcome is stored.
async fn run(world: &World, store: &Store) -> Outcome {
    let (events, cancel) = (world.sink(), CancellationToken::new());
    let done = run_saved(store, &world.host, spec(world), events, cancel).await.unwrap();
    assert!(done.unsaved.is_none(), "{:?}", done.unsaved);
    done.outcome
}

/// A run of the team `pair`.
fn team(world: &World) -> TeamSpec {
    let workspace = world.root();
    TeamSpec {
        team: Arc::new(resolve_team(&world.host, "pair", &workspace).unwrap()),
        task: "the task".to_owned(),
        model: None,
        workspace,
        limits: LimitsRequest::default(),
        budget: None,
        layers: None,
    }
}

fn session(turn: &Turn) -> &str {
    &turn.state.session.id
}

fn whole(outcome: &Outcome) -> serde_json::Value {
    serde_json::to_value(outcome).unwrap()
}

/// Runs `work` until `there` returns true, and then drops it, as when the process dies.
async fn die<T>(work: impl Future<Output = T>, there: impl AsyncFn() -> bool) {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            _ = &mut work => panic!("it ended before it was to die"),
            () = tokio::task::yield_now() => {}
        }
        if there().await {
            return;
        }
    }
}

/// Returns whether the newest run has exactly `ended` subagents that ended, and another one that runs.
async fn stands(store: &Store, ended: usize) -> bool {
    let Some(session) = store.latest_sessions(1).await.unwrap().pop() else { return false };
    let subagents = store.list_subagents(&session.id).await.unwrap();
    let running = subagents.iter().any(|one| one.status == SubagentStatus::Running);
    running && subagents.iter().filter(|one| one.ended.is_some()).count() == ended
}

#[tokio::test]
async fn a_run_reads_back_from_the_store_as_it_ended() {
    let world = world(BUSY);
    let store = store(&world).await;
    let outcome = run(&world, &store).await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    assert_eq!((outcome.receipts.len(), outcome.children.len()), (3, 2));
    let id = outcome.run.as_str();
    for which in [id, &id[..8], "latest"] {
        let record = find_run(&store, which).await.unwrap();
        assert_eq!(whole(&record.state.outcome), whole(&outcome), "{which}");
        assert_eq!((record.run.as_str(), session(&record)), (id, id), "one id for all");
        assert_eq!(
            (record.state.session.kind, record.state.status),
            (SessionKind::Run, MessageStatus::Completed)
        );
        assert_eq!((record.text(), record.context()), ("the task", Some("known")));
        let workspace = world.root();
        assert_eq!(record.state.session.workspace, workspace.to_string_lossy());
    }
    let answer = store.read_message(id, id).await.unwrap();
    assert_eq!(answer.metadata["subagents"]["total"], 2);
    assert_eq!(store.usage_by_day("").await.unwrap()[0].turns, 1);
    let none = find_run(&store, "x").await;
    assert!(matches!(none, Err(StoreError::NotFound { what: "run", .. })), "{none:?}");
}

#[tokio::test]
async fn what_an_operator_could_do_about_an_error_stays_out_of_the_rows() {
    let world = world("");
    let store = store(&world).await;
    let spec = world.spec("stuck", "the task");
    let (events, cancel) = (EventSink::none(), CancellationToken::new());
    let done = run_saved(&store, &world.host, spec, events, cancel).await.unwrap();
    let outcome = done.outcome;
    let Some(RunError::Setup { hint: Some(_), .. }) = &outcome.error else {
        panic!("{:?}", outcome.error)
    };
    let record = find_run(&store, "latest").await.unwrap();
    assert_eq!(record.state.status, MessageStatus::Failed);
    let Some(RunError::Setup { message, hint: None }) = &record.state.outcome.error else {
        panic!("{:?}", record.state.outcome.error)
    };
    assert_eq!(Some(message), outcome.error.as_ref().map(ToString::to_string).as_ref());
}

const KILLED: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
        usage: {input: 10, output: 1}
      - calls:
          - {name: spawn_agent, arguments: {agent: scout, task: look}}
          - {name: spawn_agent, arguments: {agent: boss, task: inner}}
        usage: {input: 20, output: 2}
  - agent: boss
    spawn: 1
    turns: [{say: Slow, hang: true}]
  - agent: scout
    turns: [{say: Quick., usage: {input: 5, output: 5}}]
"#;

/// The model answers that the resumed run still has to request.
const LEFT: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - expect: {last_message_contains: [Quick., Slow]}
        say: Both are done.
      - say: Again.
  - agent: boss
    spawn: 1
    turns: [{say: Slow}]
"#;

#[tokio::test]
async fn a_run_whose_process_died_shows_what_is_kept_and_is_resumed() {
    let world = world(KILLED);
    let store = store(&world).await;
    let cancel = CancellationToken::new();
    let work = run_saved(&store, &world.host, spec(&world), EventSink::none(), cancel);
    die(work, async || stands(&store, 1).await).await;
    let record = find_run(&store, "latest").await.unwrap();
    let id = record.run.to_string();
    assert_eq!(
        (record.state.session.kind, record.state.status),
        (SessionKind::Run, MessageStatus::Interrupted)
    );
    let outcome = &record.state.outcome;
    assert_eq!((outcome.receipts.len(), outcome.children.len()), (1, 2));
    assert_eq!(outcome.children[0].outcome.output, "Quick.");
    assert_eq!(outcome.children[1].outcome.status, RunStatus::Cancelled);
    assert_eq!((outcome.usage.steps, outcome.usage.input_tokens), (2, 30));
    assert_eq!((outcome.total.steps, outcome.total.input_tokens), (3, 35));
    assert_eq!(prune_runs(&store, 0).await.unwrap(), 0, "it may be resumed");

    // Stands for the process that resumes the run.
    let mut next = self::world(LEFT);
    next.host.clock = Arc::clone(&world.host.clock);
    let limits = ServiceLimits {
        concurrent_turns: 8,
        queued_turns: 8,
        tokens_per_day: None,
        fuel_per_day: None,
        storage_bytes: None,
    };
    let root = next.workspace.path().to_owned();
    let server = Service::new(next.host.clone(), store.clone(), root, Admission::new(8, 8), limits);
    assert_eq!(server.recover_turns().await.unwrap(), 0, "it is the person's who began it");
    let clock = Arc::clone(&next.host.clock);
    let workspace = world.root();
    let resumed = SavedSession::find_and_resume(store.clone(), clock, Some(&id), &workspace).await;
    let (mut session, mut past) = resumed.unwrap();
    let in_flight = shown_status(&store, &id, MessageStatus::InFlight);
    assert_eq!(in_flight, MessageStatus::InFlight, "it is locked again");
    let turn = past.unfinished.take().unwrap();
    assert_eq!((turn.text(), turn.context()), ("the task", Some("known")));
    assert_eq!(turn.limits().steps, Some(7), "the limits that were given");
    let agent = Arc::clone(&next.spec("boss", "").agent);
    let mut talk = Conversation::new(agent, workspace, BudgetCaps::unlimited());
    let (events, cancel) = (EventSink::none(), CancellationToken::new());
    let done =
        session.perform_turn(turn, &mut talk, &next.host, events.clone(), cancel.clone()).await;
    assert_eq!(done.outcome.output, "Both are done.", "{:?}", done.outcome.error);
    let Some(ChatMessage::User { text, .. }) = talk.messages().first() else { panic!() };
    assert_eq!(text, "Context:\nknown\n\nTask:\nthe task");
    assert_eq!(next.sent().len(), 2, "no answer is asked for again");
    let record = find_run(&store, &id).await.unwrap();
    assert_eq!(whole(&record.state.outcome), whole(&done.outcome), "nothing twice");
    assert_eq!(
        (record.state.session.kind, record.state.status),
        (SessionKind::Run, MessageStatus::Completed)
    );

    // A further message makes the run into a conversation, and conversations are never deleted automatically.
    session.run_turn(&mut talk, &next.host, "and then", events, cancel).await.unwrap();
    drop(session);
    assert_eq!(store.read_session(&id).await.unwrap().kind, SessionKind::Chat);
    assert_eq!(prune_runs(&store, 0).await.unwrap(), 0);
    assert_eq!(store.list_messages(&id).await.unwrap().len(), 4);
}

const TEAM: &str = r#"
transcript: 1
agents:
  - agent: scout
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - say: Found.
  - agent: boss
    turns: [{say: Report., usage: {input: 9, output: 1}}]
"#;

#[tokio::test]
async fn a_team_reads_back_from_the_store_as_it_ended() {
    let world = world(TEAM);
    let store = store(&world).await;
    let (events, cancel) = (world.sink(), CancellationToken::new());
    let done = run_team_saved(&store, &world.host, team(&world), events, cancel).await.unwrap();
    assert!(done.unsaved.is_none(), "{:?}", done.unsaved);
    assert_eq!(done.outcome.status, RunStatus::Completed, "{:?}", done.outcome.error);
    let record = find_run(&store, "latest").await.unwrap();
    assert_eq!(whole(&record.state.outcome), whole(&done.outcome.to_outcome()));
    assert_eq!(
        (record.state.session.kind, record.state.status),
        (SessionKind::Team, MessageStatus::Completed)
    );
    assert_eq!(session(&record), done.outcome.run.as_str());
    let events = store.events_after(session(&record), 0, 100).await.unwrap();
    assert!(events.iter().all(|event| *event.message == *session(&record)));
    assert!(events[0].json.contains("team_started"), "{}", events[0].json);
}

#[tokio::test]
async fn the_stages_of_a_team_whose_process_died_are_kept() {
    let world = world(&TEAM.replace("say: Report.", "say: Rep, hang: true"));
    let store = store(&world).await;
    let cancel = CancellationToken::new();
    let work = run_team_saved(&store, &world.host, team(&world), EventSink::none(), cancel);
    die(work, async || stands(&store, 1).await).await;
    let record = find_run(&store, "latest").await.unwrap();
    assert_eq!(
        (record.state.session.kind, record.state.status),
        (SessionKind::Team, MessageStatus::Interrupted)
    );
    assert_eq!(record.state.outcome.agent, "team home/pair");
    let [first, second] = &record.state.outcome.children[..] else { panic!("{record:?}") };
    assert_eq!((first.outcome.output.as_str(), first.outcome.receipts.len()), ("Found.", 1));
    assert_eq!((second.outcome.status, second.step), (RunStatus::Cancelled, 0));

    // An agent that continues this session has the results of the team's stages.
    let clock = Arc::clone(&world.host.clock);
    let workspace = world.workspace.path();
    let id = session(&record).to_owned();
    let resumed = SavedSession::find_and_resume(store.clone(), clock, Some(&id), workspace).await;
    let (mut session, past) = resumed.unwrap();
    let past = session.give_up(past).await.unwrap();
    let messages = past.request_messages(HistoryMode::Compacted);
    let [.., ChatMessage::Assistant { text, .. }] = messages.as_slice() else { panic!() };
    assert!(text.contains("Found."), "{text}");
    let record = find_run(&store, &id).await.unwrap();
    assert_eq!(record.state.status, MessageStatus::Interrupted);
}

#[tokio::test]
async fn only_runs_are_pruned_and_none_that_somebody_has_open() {
    let world = world(
        "transcript: 1\nagents:\n  - agent: boss\n    spawn: any\n    turns: [{say: a}, {say: b}, {say: c}, {say: d}, {say: e}]\n",
    );
    let store = store(&world).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(run(&world, &store).await.run.to_string());
    }
    let clock = || Arc::clone(&world.host.clock);
    let mut chat = SavedSession::new(store.clone(), clock());
    let agent = Arc::clone(&world.spec("boss", "").agent);
    let workspace = world.root();
    let mut talk = Conversation::new(agent, workspace.clone(), BudgetCaps::unlimited());
    let (events, cancel) = (EventSink::none(), CancellationToken::new());
    chat.run_turn(&mut talk, &world.host, "hello", events, cancel).await.unwrap();
    let talked = chat.session_id().unwrap().to_owned();
    drop(chat);
    let (runs, more) = newest_runs(&store, 2).await.unwrap();
    assert_eq!((runs.len(), more), (2, true));
    assert_eq!(session(&runs[0]), talked, "a turn is a run too");
    assert_ne!(runs[0].run.as_str(), talked);
    let (runs, more) = newest_runs(&store, 4).await.unwrap();
    assert_eq!((runs.len(), more), (4, false));
    assert_eq!(prune_runs(&store, 2).await.unwrap(), 1);
    assert!(store.read_session(&ids[0]).await.is_err(), "the oldest");
    let open =
        SavedSession::find_and_resume(store.clone(), clock(), Some(&ids[1]), &workspace).await;
    assert_eq!(prune_runs(&store, 0).await.unwrap(), 1);
    assert!(store.read_session(&ids[1]).await.is_ok(), "somebody has it open");
    drop(open);
    assert_eq!(prune_runs(&store, 0).await.unwrap(), 1);
    let left: Vec<_> =
        store.latest_sessions(10).await.unwrap().into_iter().map(|one| one.id).collect();
    assert_eq!(left, [talked]);
}
