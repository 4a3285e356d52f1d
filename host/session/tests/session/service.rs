//! The service: turns of many sessions, watched, asked about, cancelled, refused and resumed.

use std::sync::Arc;

use belljar_agent::{Approval, Outcome, RunStatus};
use belljar_kit::world::{Plan, World, agent, stock};
use belljar_model::ModelRegistry;
use belljar_session::{
    Admission, EventWatch, HistoryMode, PersonAnswer, QuestionKind, Service, ServiceError,
    ServiceLimits, TurnKind, TurnRequest,
};
use belljar_store::{MessageStatus, SessionEvent, SessionKind, Store, SubagentStatus};
use serde_json::Value;

use crate::store;

pub(crate) const SETTINGS: &str = r#"
[grants.boss]
tools = ["spawn_agent", "delegate_parallel", "file_read"]
[grants.asker]
tools = { file_read = "ask" }
"#;

const TRANSCRIPT: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: boss
    turns:
      - calls: [{name: delegate_parallel, arguments: {tasks: [{agent: scout, task: left}, {agent: scout, task: right}]}}]
      - say: both have looked
  - agent: scout
    spawn: any
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - say: found
  - agent: asker
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - expect: {results: [{name: file_read, contains: text of a, is_error: false}]}
        say: I was let
  - agent: stuck
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: sleeper, task: rest}}]
      - say: the sleeper is gone
  - agent: sleeper
    spawn: any
    turns: [{say: zzz, hang: true}]
"#;

const PAIR: &str = "name: pair\ndescription: d\nstages:\n  - agent: scout\n  - agent: boss\n";

pub(crate) const LIMITS: ServiceLimits = ServiceLimits {
    concurrent_turns: 8,
    queued_turns: 8,
    tokens_per_day: None,
    fuel_per_day: None,
    storage_bytes: None,
};

pub(crate) struct Questions {
    pub(crate) world: World,
    pub(crate) store: Store,
    pub(crate) service: Service,
}

/// A script of two answers that together exceed 600 of the 1,000 tokens which the model reads.
fn talker() -> String {
    let said = "x".repeat(950);
    format!(
        "  - agent: talker\n    turns: [{{say: \"{said}\"}}]\n  - agent: compaction\n    turns: [{{say: they spoke}}, {{say: they spoke}}]\n"
    )
}

pub(crate) async fn questions_with(limits: ServiceLimits) -> Questions {
    let mut world = World::new(Plan {
        transcript: &format!("{TRANSCRIPT}{}", talker()),
        settings: SETTINGS,
        agents: &[
            ("boss.md", &agent("boss", "")),
            ("scout.md", &agent("scout", "tools: [file_read]\n")),
            ("asker.md", &agent("asker", "tools: [file_read]\n")),
            ("stuck.md", &agent("stuck", "tools: [spawn_agent]\n")),
            ("sleeper.md", &agent("sleeper", "tools: [file_read]\n")),
            ("talker.md", &agent("talker", "tools: [file_read]\n")),
            ("greedy.md", &agent("greedy", "tools: [file_write]\n")),
        ],
        teams: &[("pair.yaml", PAIR)],
        files: &[("a.txt", "text of a\n")],
        tools: vec![stock("file_read"), stock("file_write")],
        ..Plan::default()
    });
    world.host.clock = Arc::new(belljar_agent::SystemClock);
    world.host.models = Arc::new(ModelRegistry::from_single(world.model.clone()).that_reads(1_000));
    let store = store(&world).await;
    let service = service(&world, &store, limits);
    Questions { world, store, service }
}

async fn questions() -> Questions {
    questions_with(LIMITS).await
}

fn service(world: &World, store: &Store, limits: ServiceLimits) -> Service {
    let workspace = world.root();
    Service::new(world.host.clone(), store.clone(), workspace, Admission::new(64, 64), limits)
}

pub(crate) fn ask(agent: &str) -> TurnRequest {
    let (agent, actor) = (Some(agent.to_owned()), "key:1".to_owned());
    TurnRequest { agent, text: "look".into(), actor, ..TurnRequest::default() }
}

pub(crate) fn again(session: &str) -> TurnRequest {
    let session = Some(session.to_owned());
    TurnRequest { session, text: "and now?".into(), ..TurnRequest::default() }
}

pub(crate) async fn until(watch: &mut EventWatch, kind: &str) -> Vec<SessionEvent> {
    let mut seen = Vec::new();
    while let Some(event) = watch.next_event().await {
        let last = &*event.kind == kind;
        seen.push(event);
        if last {
            return seen;
        }
    }
    panic!("no `{kind}`, but {seen:#?}");
}

/// The number of subagents that ended with `status`.
fn ended(outcome: &Outcome, status: RunStatus) -> usize {
    outcome.children.iter().filter(|child| child.outcome.status == status).count()
}

fn json(event: &SessionEvent) -> Value {
    serde_json::from_str(&event.json).unwrap()
}

#[tokio::test]
async fn whoever_comes_late_sees_what_one_saw_who_watched() {
    let questions = questions().await;
    let turn = questions.service.begin_turn(ask("boss")).await.unwrap();
    let mut live = turn.watch_events();
    let seen = until(&mut live, "run_finished").await;
    let ids: Vec<i64> = seen.iter().map(|event| event.id).collect();
    assert_eq!(ids, (1..=ids.len() as i64).collect::<Vec<_>>());
    for event in &seen {
        let json = json(event);
        assert_eq!(json["event_id"], event.id);
        assert_eq!(
            (&json["session"], &json["message"]),
            (&turn.session.as_str().into(), &turn.message.as_str().into())
        );
    }
    // `RunFinished` is shown only after the stored message has the turn's outcome.
    let rows = questions.store.list_messages(&turn.session).await.unwrap();
    assert_eq!((rows[1].id.as_str(), rows[1].status), (&*turn.message, MessageStatus::Completed));
    assert_eq!(rows[1].content["text"], "both have looked");
    let batches = &rows[1].metadata["batches"];
    assert_eq!(batches[0]["counts"]["completed"], 2, "{batches}");
    let children = questions.store.list_subagents(&turn.session).await.unwrap();
    assert!(children.iter().all(|child| child.parent_message_id == turn.message));
    assert_eq!(batches[0]["children"][1], children[1].id);
    let receipts = questions.store.latest_receipts(&turn.session, None, 100).await.unwrap();
    assert_eq!(receipts.len(), 2, "one for each call of a tool");
    assert!(questions.store.journal_of(&turn.session, &turn.message).await.unwrap().is_empty());

    let end = turn.wait_for_end().await.unwrap();
    assert_eq!((end.status, ended(&end, RunStatus::Completed)), (RunStatus::Completed, 2));
    // Watches again from the middle of the turn, and from its beginning.
    for after in [0, 4] {
        let mut late = questions.service.watch_session(&turn.session, Some(after)).await.unwrap();
        let rest = until(&mut late, "run_finished").await;
        assert_eq!(rest, seen[after as usize..]);
    }
    // The events of a second turn continue the numbers of the first.
    let next = questions.service.begin_turn(again(&turn.session)).await.unwrap();
    next.wait_for_end().await.unwrap();
    let more = until(&mut live, "run_finished").await;
    assert_eq!(more[0].id, seen.len() as i64 + 1);
    assert_ne!(*more[0].message, *seen[0].message);
    let days = questions.store.usage_by_day("2000-01-01").await.unwrap();
    assert_eq!(days.iter().map(|day| day.turns).sum::<i64>(), 2);
}

#[tokio::test]
async fn a_session_answers_one_message_at_a_time_and_a_subagent_is_cancelled_alone() {
    let questions = questions().await;
    let turn = questions.service.begin_turn(ask("stuck")).await.unwrap();
    let mut watch = turn.watch_events();
    let seen = until(&mut watch, "subagent_update").await;
    let child = json(seen.last().unwrap())["child"].as_str().unwrap().to_owned();
    assert_eq!(child, "stuck/sleeper#0");
    let refused = questions.service.begin_turn(again(&turn.session)).await.unwrap_err();
    assert!(matches!(refused, ServiceError::Busy(_)), "{refused}");
    assert_eq!(questions.service.running_turns()[0].message, turn.message);

    assert!(
        !questions.service.cancel_subagent(&turn.session, "stuck/sleeper#1", "key:1").is_ending()
    );
    assert!(questions.service.cancel_subagent(&turn.session, &child, "key:1").is_ending());
    let end = turn.wait_for_end().await.unwrap();
    assert_eq!((end.status, &*end.output), (RunStatus::Completed, "the sleeper is gone"));
    assert_eq!(ended(&end, RunStatus::Cancelled), 1);
    let children = questions.store.list_subagents(&turn.session).await.unwrap();
    assert_eq!(children[0].status, SubagentStatus::Cancelled);
    assert_eq!(children[0].result["cancelled_by"], "key:1");
    let answer = questions.store.read_message(&turn.session, &turn.message).await.unwrap();
    assert_eq!(answer.metadata.get("cancelled_by"), None, "nobody cancelled the turn");
    assert!(questions.service.running_turns().is_empty());

    let turn = questions.service.begin_turn(ask("stuck")).await.unwrap();
    let mut watch = turn.watch_events();
    until(&mut watch, "subagent_update").await;
    assert!(questions.service.cancel_turn(&turn.session, "key:1").is_ending());
    assert_eq!(turn.wait_for_end().await.unwrap().status, RunStatus::Cancelled);
    assert!(!questions.service.cancel_turn(&turn.session, "key:1").is_ending(), "it is over");
    let answer = questions.store.read_message(&turn.session, &turn.message).await.unwrap();
    assert_eq!(answer.metadata["cancelled_by"], "key:1");
    let children = questions.store.list_subagents(&turn.session).await.unwrap();
    assert_eq!(children[0].result["cancelled_by"], "key:1", "with its turn");
    let audit = questions.store.read_audit(None, 10, i64::MAX).await.unwrap().rows;
    let actions: Vec<&str> = audit.iter().map(|entry| entry.action.as_str()).collect();
    assert!(actions.contains(&"turn_cancelled") && actions.contains(&"subagent_cancelled"));
    assert!(audit.iter().all(|entry| entry.actor == "key:1"));
}

#[tokio::test]
async fn a_question_waits_for_its_answer_and_the_answer_is_kept() {
    let questions = questions().await;
    let turn = questions.service.begin_turn(ask("asker")).await.unwrap();
    let mut watch = turn.watch_events();
    let seen = until(&mut watch, "permission_asked").await;
    let id = json(seen.last().unwrap())["id"].clone();
    let question = loop {
        match questions.service.open_questions(Some(&turn.session)).pop() {
            Some((session, question)) if session == turn.session => break question,
            Some(_) | None => tokio::task::yield_now().await,
        }
    };
    assert_eq!((question.agent.as_str(), &question.message), ("asker", &turn.message));
    let QuestionKind::Permission { tool, reach, .. } = &question.kind else { panic!("{id}") };
    assert_eq!(tool, "file_read");
    // The question names everything that the call could touch, and no path of the host.
    let told = json(seen.last().unwrap());
    for mounts in [&told["mounts"], &serde_json::to_value(&reach.mounts).unwrap()] {
        assert_eq!(
            (mounts.as_array().unwrap().len(), &mounts[0]["path"]),
            (1, &"/workspace".into())
        );
    }
    assert!(reach.hosts.is_empty() && reach.secrets.is_empty(), "{reach:?}");
    assert!(!told["mounts"].to_string().contains("host"), "{told}");
    let wrong = PersonAnswer::Text(Some("yes".into()));
    let refused = questions.service.answer_question(&turn.session, question.id, wrong, "key:2");
    assert!(matches!(refused, Err(ServiceError::NoQuestion(_))), "the answer is none to it");
    let yes = PersonAnswer::Permission(Approval::Yes);
    assert!(questions.service.answer_question("other", question.id, yes.clone(), "key:2").is_err());
    questions.service.answer_question(&turn.session, question.id, yes.clone(), "key:2").unwrap();
    assert_eq!(turn.wait_for_end().await.unwrap().output, "I was let");
    assert!(
        questions.service.answer_question(&turn.session, question.id, yes, "key:2").is_err(),
        "once"
    );
    assert!(questions.service.open_questions(None).is_empty());
    let answers = questions.store.latest_answers(&turn.session).await.unwrap();
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].answer.as_str(), answers[0].actor.as_str()), ("yes", "key:2"));
}

#[tokio::test]
async fn a_turn_that_stops_with_the_host_resumes_at_the_next_start() {
    let questions = questions().await;
    let turn = questions.service.begin_turn(ask("stuck")).await.unwrap();
    let mut watch = turn.watch_events();
    let mut before = until(&mut watch, "subagent_update").await;
    questions.service.drain_turns(std::time::Duration::ZERO).await;
    assert!(matches!(questions.service.begin_turn(ask("boss")).await, Err(ServiceError::Draining)));
    // Watchers receive every stored event; then their watch ends.
    while let Some(event) = watch.next_event().await {
        before.push(event);
    }
    assert!(questions.service.running_turns().is_empty());
    let rows = questions.store.list_messages(&turn.session).await.unwrap();
    assert_eq!(rows[1].status, MessageStatus::InFlight, "it is kept as it is");

    let next = service(&questions.world, &questions.store, LIMITS);
    let mut watch =
        next.watch_session(&turn.session, Some(before.last().unwrap().id)).await.unwrap();
    assert_eq!(next.recover_turns().await.unwrap(), 1);
    let refused = next.begin_turn(again(&turn.session)).await.unwrap_err();
    assert!(matches!(refused, ServiceError::Busy(_)), "{refused}");
    let seen = until(&mut watch, "subagent_update").await;
    assert!(seen.iter().any(|event| &*event.kind == "run_resumed"), "{seen:#?}");
    let ids: Vec<i64> = seen.iter().map(|event| event.id).collect();
    let first = before.last().unwrap().id + 1;
    assert_eq!(ids, (first..first + ids.len() as i64).collect::<Vec<_>>());
    let numbers = |event: &SessionEvent| json(event)["seq"].as_u64().unwrap();
    assert_eq!(numbers(&seen[0]), numbers(before.last().unwrap()) + 1);
    // The boss asked once; its answer was stored.
    assert_eq!(questions.world.sent_by("stuck", 0).len(), 1);
    assert!(next.cancel_subagent(&turn.session, "stuck/sleeper#0", "local").is_ending());
    until(&mut watch, "run_finished").await;
    let rows = questions.store.list_messages(&turn.session).await.unwrap();
    assert_eq!((rows.len(), rows[1].status), (2, MessageStatus::Completed));
    assert_eq!(rows[1].content["text"], "the sleeper is gone");
    assert_eq!(questions.store.list_subagents(&turn.session).await.unwrap().len(), 1, "one record");
}

#[tokio::test]
async fn turns_that_wait_for_their_place_do_not_hold_up_the_end() {
    let questions = questions_with(ServiceLimits { concurrent_turns: 1, ..LIMITS }).await;
    let turn = questions.service.begin_turn(ask("stuck")).await.unwrap();
    until(&mut turn.watch_events(), "subagent_update").await;
    let waiting = tokio::spawn({
        let service = questions.service.clone();
        async move { service.begin_turn(ask("boss")).await }
    });
    while questions.service.running_turns().len() < 2 {
        tokio::task::yield_now().await;
    }
    questions.service.drain_turns(std::time::Duration::ZERO).await;
    assert!(matches!(waiting.await.unwrap(), Err(ServiceError::Draining)));
    assert_eq!(
        questions.store.latest_sessions(10).await.unwrap().len(),
        1,
        "nothing of it is left"
    );
    // Two turns resume with a single free place: the second still waits when the host ends again.
    let limits = ServiceLimits { concurrent_turns: 2, ..LIMITS };
    let next = service(&questions.world, &questions.store, limits);
    let other = next.begin_turn(ask("stuck")).await.unwrap();
    until(&mut other.watch_events(), "subagent_update").await;
    next.drain_turns(std::time::Duration::ZERO).await;
    let last = service(
        &questions.world,
        &questions.store,
        ServiceLimits { concurrent_turns: 1, ..LIMITS },
    );
    assert_eq!(last.recover_turns().await.unwrap(), 2);
    last.drain_turns(std::time::Duration::ZERO).await;
    assert!(last.running_turns().is_empty());
    assert_eq!(questions.store.in_flight().await.unwrap().len(), 2, "both resume later");
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_a_reason_and_leaves_nothing() {
    let questions =
        questions_with(ServiceLimits { concurrent_turns: 1, queued_turns: 0, ..LIMITS }).await;
    let wrong = |request: TurnRequest| async {
        let error = questions.service.begin_turn(request).await.unwrap_err();
        (error.to_string(), error)
    };
    let (text, error) = wrong(ask("nobody")).await;
    assert!(matches!(error, ServiceError::NoAgent(_)) && text.contains("nobody"), "{text}");
    let (text, error) = wrong(ask("greedy")).await;
    assert!(matches!(error, ServiceError::Blocked { .. }), "{text}");
    let (_, error) = wrong(TurnRequest { text: "  ".into(), ..ask("boss") }).await;
    assert!(matches!(error, ServiceError::Invalid(_)));
    let (_, error) = wrong(again("20261122T000000000Z-00000000")).await;
    assert!(matches!(error, ServiceError::NoSession(_)), "{error}");
    let both = TurnRequest { agent: Some("boss".into()), ..again("x") };
    assert!(matches!(wrong(both).await.1, ServiceError::Invalid(_)));
    assert!(questions.store.latest_sessions(10).await.unwrap().is_empty(), "nothing is left");
    assert!(questions.service.running_turns().is_empty());

    let turn = questions.service.begin_turn(ask("stuck")).await.unwrap();
    let (_, error) = wrong(ask("boss")).await;
    assert!(matches!(error, ServiceError::TenantFull { .. }), "{error}");
    questions.service.cancel_turn(&turn.session, "local");
    turn.wait_for_end().await.unwrap();
    questions.service.begin_turn(ask("boss")).await.unwrap().wait_for_end().await.unwrap();
}

#[tokio::test]
async fn a_days_tokens_are_a_bound_that_outlives_the_process() {
    let limits = ServiceLimits { tokens_per_day: Some(200), ..LIMITS };
    let questions = questions_with(limits).await;
    let end =
        questions.service.begin_turn(ask("boss")).await.unwrap().wait_for_end().await.unwrap();
    assert_eq!(end.status, RunStatus::Partial, "{end:?}");
    let asked = questions.world.sent().len();
    assert!(asked > 0, "there was enough for a step");
    let sessions = questions.store.latest_sessions(10).await.unwrap().len();
    let next = service(&questions.world, &questions.store, limits);
    let error = next.begin_turn(ask("boss")).await.unwrap_err();
    assert!(matches!(error, ServiceError::DayUsed { most: 200, .. }), "{error}");
    assert_eq!(questions.world.sent().len(), asked, "no model was asked any more");
    assert_eq!(
        questions.store.latest_sessions(10).await.unwrap().len(),
        sessions,
        "nothing was stored"
    );
}

#[tokio::test]
async fn turns_side_by_side_do_not_each_find_the_whole_day_left() {
    // A turn takes at least 4,000 tokens and probably 16,000.
    let limits = ServiceLimits { tokens_per_day: Some(20_000), ..LIMITS };
    let questions = questions_with(limits).await;
    let long = || TurnRequest { text: "x".repeat(64_000), ..ask("sleeper") };
    let first = questions.service.begin_turn(long()).await.unwrap();
    while questions.world.sent().is_empty() {
        tokio::task::yield_now().await;
    }
    let sessions = questions.store.latest_sessions(10).await.unwrap().len();
    let error = questions.service.begin_turn(long()).await.unwrap_err();
    assert!(matches!(error, ServiceError::TenantFull { .. }), "it may be other soon: {error}");
    assert_eq!(questions.world.sent().len(), 1, "the model was asked once");
    assert_eq!(
        questions.store.latest_sessions(10).await.unwrap().len(),
        sessions,
        "nothing was stored"
    );
    // A smaller turn fits beside the running one, and unused reserved tokens are returned.
    let small = questions.service.begin_turn(ask("sleeper")).await.unwrap();
    for turn in [&small, &first] {
        questions.service.cancel_turn(&turn.session, "local");
        turn.wait_for_end().await.unwrap();
    }
}

#[tokio::test]
async fn a_preview_is_byte_for_byte_what_is_sent() {
    let questions = questions().await;
    let text = || "look".to_owned();
    let agent = Some("boss".to_owned());
    let request = TurnRequest { agent, text: text(), ..TurnRequest::default() };
    let preview = questions.service.preview_turn(request).await.unwrap();
    assert!(
        questions.store.latest_sessions(10).await.unwrap().is_empty()
            && questions.world.sent().is_empty()
    );
    let turn = questions.service.begin_turn(ask("boss")).await.unwrap();
    turn.wait_for_end().await.unwrap();
    assert_eq!(preview.request, questions.world.sent_by("boss", 0)[0]);
    let session = Some(turn.session.clone());
    let request = TurnRequest { session, text: "and now?".into(), ..TurnRequest::default() };
    let preview = questions.service.preview_turn(request).await.unwrap();
    questions.service.begin_turn(again(&turn.session)).await.unwrap().wait_for_end().await.unwrap();
    assert_eq!(preview.request, questions.world.sent_by("boss", 0)[2]);
}

#[tokio::test]
async fn an_agent_of_the_store_is_one_of_a_library_of_its_own() {
    let questions = questions().await;
    let text = agent("scout", "tools: [file_read]\n").replace("You are scout", "I am another");
    questions.store.save_agent("scout", &text, 1, None).await.unwrap();
    let fresh = agent("clerk", "tools: []\n");
    questions.store.save_agent("clerk", &fresh, 1, None).await.unwrap();
    let gone = questions.service.begin_turn(ask("clerk")).await.unwrap_err();
    assert!(matches!(gone, ServiceError::NoAgent(_)), "not before it is taken over");
    questions.service.reload_agents().await.unwrap();
    let preview = async |name: &str| {
        let agent = Some(name.to_owned());
        let request = TurnRequest { agent, text: "x".into(), ..TurnRequest::default() };
        questions
            .service
            .preview_turn(request)
            .await
            .map(|preview| preview.request.system[0].clone())
    };
    assert_eq!(preview("clerk").await.unwrap(), "You are clerk.\n");
    // The name without a prefix still means the home's agent.
    assert_eq!(preview("scout").await.unwrap(), "You are scout.\n");
    assert_eq!(preview("library/api/scout").await.unwrap(), "I am another.\n");
    questions.store.delete_agent("clerk").await.unwrap();
    questions.service.reload_agents().await.unwrap();
    assert!(preview("clerk").await.is_err());
}

#[tokio::test]
async fn a_turn_is_sent_the_history_that_it_asks_for() {
    let questions = questions().await;
    let turn = questions.service.begin_turn(ask("talker")).await.unwrap();
    turn.wait_for_end().await.unwrap();
    let session = turn.session.clone();
    let say = async |history| {
        let request = TurnRequest { history, ..again(&session) };
        let turn = questions.service.begin_turn(request).await.unwrap();
        turn.wait_for_end().await.unwrap()
    };
    let preview = async |history| {
        let session = Some(session.clone());
        let request = TurnRequest { session, text: "so".into(), history, ..Default::default() };
        let made = questions.service.preview_turn(request).await.unwrap();
        (made.request.messages.len(), made.notes.join("\n").contains("would be summarised"))
    };
    say(HistoryMode::Whole).await;
    say(HistoryMode::Whole).await;
    assert_eq!(questions.world.sent_by("talker", 0)[2].messages.len(), 5, "as it was asked for");
    assert_eq!(preview(HistoryMode::Compacted).await, (7, true), "it says that it is not all");
    assert_eq!(preview(HistoryMode::Whole).await, (7, false));
    assert_eq!(
        questions.store.latest_compaction(&session).await.unwrap(),
        None,
        "a preview makes none"
    );
    let fourth = say(HistoryMode::Compacted).await;
    assert_eq!(
        questions.world.sent_by("talker", 0)[3].messages.len(),
        3,
        "a summary, and what is said"
    );
    assert_eq!(fourth.total.steps, 3, "it is read in two pieces");
    assert_eq!(preview(HistoryMode::Compacted).await, (5, false));
    assert_eq!(preview(HistoryMode::Whole).await, (9, false));
}

/// The audit log's lines about turns that began, the oldest first.
async fn begun(store: &Store) -> Vec<(String, Value)> {
    let lines = store.audit_of(None, Some("chat"), None, 10, i64::MAX).await.unwrap().rows;
    lines.into_iter().rev().map(|line| (line.object, line.detail)).collect()
}

#[tokio::test]
async fn a_turn_begins_with_its_line_in_the_audit_log_and_goes_on_without_its_caller() {
    let questions = questions().await;
    let request = || TurnRequest { door: "http", ..ask("scout") };
    let turn = questions.service.begin_turn(request()).await.unwrap();
    let of = |session: &str, message: &str| format!("session {session} message {message}");
    let line = (of(&turn.session, &turn.message), serde_json::json!({"by": "http"}));
    assert_eq!(begun(&questions.store).await, std::slice::from_ref(&line));
    turn.wait_for_end().await.unwrap();
    // The caller drops its future at once: either the turn and its audit line are stored, or neither.
    let mut left = Box::pin(questions.service.begin_turn(request()));
    tokio::select! {
        biased;
        begun = &mut left => panic!("it does not wait: {begun:?}"),
        () = std::future::ready(()) => {}
    }
    drop(left);
    let lines = loop {
        let lines = begun(&questions.store).await;
        if lines.len() == 2 {
            break lines;
        }
    };
    while !questions.service.running_turns().is_empty() {
        tokio::task::yield_now().await;
    }
    let newest = questions.store.latest_sessions(10).await.unwrap().remove(0).id;
    let rows = questions.store.list_messages(&newest).await.unwrap();
    assert_eq!(rows[1].content["text"], "found");
    assert_eq!(lines[1].0, of(&newest, &rows[1].id));
    assert_eq!(lines[0], line);
    // A turn that is refused has no line.
    questions.service.begin_turn(ask("greedy")).await.unwrap_err();
    assert_eq!(begun(&questions.store).await.len(), 2);
}

/// INV-304: a turn of an agent or a team beside conversations counts in the limits of all turns.
#[tokio::test]
async fn an_agent_or_a_team_beside_conversations_is_below_the_limits_of_every_turn() {
    let limits = ServiceLimits { concurrent_turns: 1, queued_turns: 0, ..LIMITS };
    let questions = questions_with(limits).await;
    let beside = [(TurnKind::Run, "scout"), (TurnKind::Team, "pair")]
        .map(|(kind, name)| TurnRequest { kind, door: "acp", ..ask(name) });
    let refused = async |service: &Service, why: fn(&ServiceError) -> bool| {
        let (asked, before) = (questions.world.sent().len(), sessions(&questions.store).await);
        for request in beside.clone() {
            let error = service.begin_turn(request).await.unwrap_err();
            assert!(why(&error), "{error}");
        }
        assert_eq!(questions.world.sent().len(), asked, "no model was asked");
        assert_eq!(sessions(&questions.store).await, before, "nothing is stored");
        assert_eq!(begun(&questions.store).await.len(), before.len());
    };
    let turn = questions.service.begin_turn(ask("stuck")).await.unwrap();
    until(&mut turn.watch_events(), "subagent_update").await;
    refused(&questions.service, |error| matches!(error, ServiceError::TenantFull { .. })).await;
    assert!(
        questions.service.cancel_subagent(&turn.session, "stuck/sleeper#0", "key:1").is_ending()
    );
    assert_eq!(turn.wait_for_end().await.unwrap().output, "the sleeper is gone", "it is unharmed");

    for request in beside.clone() {
        let run = questions.service.begin_turn(request).await.unwrap();
        let end = run.wait_for_end().await.unwrap();
        assert_eq!(end.status, RunStatus::Completed, "{end:?}");
        assert_eq!((&run.session, end.run.as_str()), (&run.message, run.session.as_str()));
    }
    let kinds = sessions(&questions.store).await.into_iter().map(|(_, kind)| kind);
    let kinds: Vec<_> = kinds.collect();
    assert_eq!(kinds, [SessionKind::Team, SessionKind::Run, SessionKind::Api]);

    let used = ServiceLimits { tokens_per_day: Some(1), ..LIMITS };
    let used = service(&questions.world, &questions.store, used);
    refused(&used, |error| matches!(error, ServiceError::DayUsed { most: 1, .. })).await;
    let full = ServiceLimits { storage_bytes: Some(1), ..LIMITS };
    let full = service(&questions.world, &questions.store, full);
    refused(&full, |error| matches!(error, ServiceError::StorageFull { .. })).await;
}

/// The sessions with their kinds, the newest first.
async fn sessions(store: &Store) -> Vec<(String, SessionKind)> {
    let stored = store.latest_sessions(10).await.unwrap();
    stored.into_iter().map(|session| (session.id, session.kind)).collect()
}
