//! Looks at the changes of a session: what ends a look, and that no other request waits for one.

use std::sync::mpsc;

use belljar_agent::RunStatus;
use belljar_session::{CancelOutcome, ReviewError, Service, ServiceError, SessionLook};
use belljar_work::StopSignal;
use tokio::task::JoinHandle;

use crate::service::{LIMITS, again, ask, questions_with, until};

/// A look that runs until its signal is raised, and then sends a message.
fn endless(look: &SessionLook, ended: &mpsc::Sender<()>) -> Result<(), ReviewError> {
    while !look.stop_signal().is_raised() {
        std::thread::yield_now();
    }
    ended.send(()).unwrap();
    Ok(())
}

struct Look {
    task: JoinHandle<Result<(), ServiceError>>,
    ended: mpsc::Receiver<()>,
}

/// Starts a look that does not end by itself, and waits until the look has begun.
async fn look(service: &Service, session: &str) -> Look {
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let (send, ended) = mpsc::channel();
    let (service, session) = (service.clone(), session.to_owned());
    let task = tokio::spawn(async move {
        let work = move |look: &SessionLook| {
            begun.send(()).unwrap();
            endless(look, &send)
        };
        service.look_at(&session, work).await
    });
    has_begun.await.unwrap();
    Look { task, ended }
}

/// INV-412: a turn or a decision that needs the session ends a running look.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_gives_way_to_a_message_and_to_a_decision() {
    let questions = questions_with(LIMITS).await;
    let service = &questions.service;
    let turn = service.begin_turn(ask("scout")).await.unwrap();
    turn.wait_for_end().await.unwrap();
    let first = look(service, &turn.session).await;
    let next = service.begin_turn(again(&turn.session)).await.unwrap();
    assert!(matches!(first.task.await.unwrap(), Err(ServiceError::Busy(_))));
    first.ended.recv().unwrap();
    assert_eq!(next.wait_for_end().await.unwrap().status, RunStatus::Completed);
    let second = look(service, &turn.session).await;
    let places = service
        .review_changes(&turn.session, None, |review| Ok(review.changed_directories().len()))
        .await;
    assert_eq!(places.unwrap(), 0);
    assert!(matches!(second.task.await.unwrap(), Err(ServiceError::Busy(_))));
    // The ended look has released the session.
    service.look_at(&turn.session, |_| Ok(())).await.unwrap();
}

/// INV-412: a look ends when its caller, its session or the service ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_ends_with_its_caller_its_session_and_its_service() {
    let questions = questions_with(LIMITS).await;
    let service = &questions.service;
    let turn = service.begin_turn(ask("scout")).await.unwrap();
    turn.wait_for_end().await.unwrap();
    let other = service.begin_turn(ask("scout")).await.unwrap();
    other.wait_for_end().await.unwrap();

    let hung_up = look(service, &turn.session).await;
    hung_up.task.abort();
    hung_up.ended.recv().unwrap();
    service.look_at(&turn.session, |_| Ok(())).await.unwrap();

    let deleted = look(service, &turn.session).await;
    assert!(service.delete_session(&turn.session).await.unwrap());
    assert!(matches!(deleted.task.await.unwrap(), Err(ServiceError::NoSession(_))));
    deleted.ended.recv().unwrap();

    let drained = look(service, &other.session).await;
    service.drain_turns(std::time::Duration::from_secs(60)).await;
    assert!(matches!(drained.task.await.unwrap(), Err(ServiceError::Draining)));
    drained.ended.recv().unwrap();
}

/// INV-412: however many looks there are, a message is answered.
#[tokio::test(flavor = "multi_thread")]
async fn looks_of_many_sessions_take_no_thread_from_a_turn() {
    let questions = questions_with(LIMITS).await;
    let service = &questions.service;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        let turn = service.begin_turn(ask("scout")).await.unwrap();
        turn.wait_for_end().await.unwrap();
        sessions.push(turn.session);
    }
    let held = [look(service, &sessions[0]).await, look(service, &sessions[1]).await];
    let waiting: Vec<_> = (0..8)
        .map(|at| {
            let (service, session) = (service.clone(), sessions[2 + at % 2].clone());
            tokio::spawn(async move { service.look_at(&session, |_| Ok(())).await })
        })
        .collect();
    let turn = service.begin_turn(ask("scout")).await.unwrap();
    assert_eq!(turn.wait_for_end().await.unwrap().status, RunStatus::Completed);
    let decided = service.review_changes(&sessions[3], None, |_| Ok(7)).await;
    assert_eq!(decided.unwrap(), 7);
    held.iter().for_each(|look| look.task.abort());
    for look in waiting {
        let looked = look.await.unwrap();
        assert!(matches!(looked, Ok(()) | Err(ServiceError::Busy(_))), "{looked:?}");
    }
}

/// INV-413: the audit log has a line for the first canceller only, and none if no turn runs.
#[tokio::test]
async fn who_cancels_again_and_where_nothing_runs_writes_no_line() {
    let questions = questions_with(LIMITS).await;
    let service = &questions.service;
    let lines = async |action: &str| {
        let rows = questions.store.read_audit(None, 100, i64::MAX).await.unwrap().rows;
        rows.iter().filter(|row| row.action == action).count()
    };
    let turn = service.begin_turn(ask("stuck")).await.unwrap();
    let mut watch = turn.watch_events();
    until(&mut watch, "subagent_update").await;
    assert_eq!(service.cancel_turn(&turn.session, "key:1"), CancelOutcome::Cancelled);
    for _ in 0..20 {
        assert_ne!(service.cancel_turn(&turn.session, "key:2"), CancelOutcome::Cancelled);
    }
    assert_eq!(turn.wait_for_end().await.unwrap().status, RunStatus::Cancelled);
    for _ in 0..20 {
        assert_eq!(service.cancel_turn(&turn.session, "key:1"), CancelOutcome::NotRunning);
        let child = service.cancel_subagent(&turn.session, "stuck/sleeper#0", "key:1");
        assert_eq!(child, CancelOutcome::NotRunning);
    }
    assert_eq!((lines("turn_cancelled").await, lines("subagent_cancelled").await), (1, 0));
}

/// INV-530: reading files for a caller ends when the caller no longer waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_files_ends_with_whoever_asked_for_it() {
    let questions = questions_with(LIMITS).await;
    let service = questions.service.clone();
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let (send, ended) = mpsc::channel();
    let look = move |stop: &StopSignal| {
        begun.send(()).unwrap();
        while !stop.is_raised() {
            std::thread::yield_now();
        }
        send.send(()).unwrap();
    };
    let task = tokio::spawn(async move { service.look_up(look).await });
    has_begun.await.unwrap();
    task.abort();
    ended.recv().unwrap();
    assert_eq!(questions.service.look_up(|_| 7).await, Ok(7), "its thread is free again");
}
