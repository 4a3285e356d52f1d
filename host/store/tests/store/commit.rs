//! Tests of groups of writes: their order, that each is stored whole or not at all, and that every caller
//! gets an answer.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use belljar_store::{JournalKind, MessageStatus, Role, Store, StoreError, StoreWrite};
use sqlx::{Connection as _, Executor as _};

use crate::support::Writes as _;
use crate::support::{Home, entry, filled, message, session};

fn say(id: &str) -> StoreWrite {
    let messages = vec![message(id, Role::User, MessageStatus::Completed)];
    StoreWrite::AppendMessages { session: "s".into(), messages }
}

async fn said(store: &Store) -> Vec<String> {
    store.list_messages("s").await.unwrap().into_iter().map(|message| message.id).collect()
}

/// The value of a future that is ready without waiting; `None` if it is not.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[tokio::test]
async fn the_order_of_calls_is_the_order_of_commits() {
    let home = Home::new();
    let store = home.open().await;
    // The test does not wait in between, so most of these groups share one transaction.
    let first = store.enqueue_writes(vec![StoreWrite::CreateSession(session("s", 1))]);
    let ids: Vec<String> = (0..600).map(|number| format!("m{number}")).collect();
    let waiting: Vec<_> = ids.iter().map(|id| store.enqueue_writes(vec![say(id)])).collect();
    assert_eq!(store.pending_writes(), 601);
    // The last one is awaited first, because its commit implies that of all earlier ones.
    for committed in waiting.into_iter().rev().chain([first]) {
        committed.await.unwrap();
    }
    assert_eq!(store.pending_writes(), 0);
    assert_eq!(said(&store).await, ids);
}

#[tokio::test]
async fn a_bad_group_in_the_middle_fails_alone_and_as_a_whole() {
    let home = Home::new();
    let store = filled(&home).await;
    let before = store.enqueue_writes(vec![say("a"), say("b")]);
    // The second write of this group fails, so its first and third must not be stored either.
    let taken = store.enqueue_writes(vec![say("x"), say("a"), say("y")]);
    let stray = store.enqueue_writes(vec![
        say("z"),
        StoreWrite::Journal {
            session: "s".into(),
            message: "nowhere".into(),
            entries: vec![entry(JournalKind::Said, 1)],
        },
    ]);
    let after = store.enqueue_writes(vec![say("c")]);
    before.await.unwrap();
    let (taken, stray) = (taken.await.unwrap_err(), stray.await.unwrap_err());
    after.await.unwrap();
    assert!(matches!(taken, StoreError::Taken { what: "append a message" }), "{taken}");
    assert!(matches!(stray, StoreError::NotFound { what: "message", .. }), "{stray}");
    assert_eq!(said(&store).await, ["m1", "m2", "a", "b", "c"]);
    let places: Vec<i64> =
        store.list_messages("s").await.unwrap().iter().map(|message| message.sort_order).collect();
    assert_eq!(places, [1, 2, 3, 4, 5], "what was rolled back has left no hole");
}

#[tokio::test]
async fn what_nobody_waits_for_is_written_too() {
    let home = Home::new();
    let store = filled(&home).await;
    drop(store.enqueue_writes(vec![say("a")]));
    // A group without writes resolves when all earlier ones are committed.
    store.enqueue_writes(Vec::new()).await.unwrap();
    assert_eq!(said(&store).await, ["m1", "m2", "a"]);
}

#[tokio::test]
async fn closing_commits_what_was_handed_over_and_refuses_what_comes_later() {
    let home = Home::new();
    let store = filled(&home).await;
    let clone = store.clone();
    let waiting: Vec<_> =
        (0..300).map(|number| store.enqueue_writes(vec![say(&format!("n{number}"))])).collect();
    store.close().await;
    for committed in waiting {
        committed.await.unwrap();
    }
    let late = clone.enqueue_writes(vec![say("late")]).await.unwrap_err();
    assert!(matches!(late, StoreError::Closed { .. }), "{late}");
    assert_eq!(clone.pending_writes(), 0);
    // Closing a second time does not wait.
    clone.close().await;
    assert_eq!(said(&home.open().await).await.len(), 302);
}

#[tokio::test]
async fn what_waits_is_bounded_and_the_refused_leave_no_trace() {
    let home = Home::new();
    let store = filled(&home).await;
    // The writer cannot run before this test waits for something.
    let waiting: Vec<_> =
        (0..20_000).map(|number| store.enqueue_writes(vec![say(&format!("n{number}"))])).collect();
    let (mut written, mut refused) = (0, 0);
    for committed in waiting {
        match committed.await {
            Ok(()) if refused == 0 => written += 1,
            Err(StoreError::Overloaded { .. }) => refused += 1,
            other => panic!("after {written} and {refused}: {other:?}"),
        }
    }
    assert_eq!((written, refused), (16_384, 20_000 - 16_384));
    assert_eq!(store.pending_writes(), 0);
    store.enqueue_writes(vec![say("again")]).await.unwrap();
    assert_eq!(said(&store).await.len(), 2 + written + 1);
}

#[tokio::test]
async fn a_write_waits_for_another_programs() {
    let home = Home::new();
    let store = filled(&home).await;
    let mut other = home.raw().await;
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let insert = "INSERT INTO messages SELECT 'other', 's', 3, role, status, content, metadata, \
        created, updated FROM messages WHERE id = 'm1'";
    other.execute(insert).await.unwrap();
    let mut committed = store.enqueue_writes(vec![say("a")]);
    assert!(ready(&mut committed).is_none());
    tokio::task::yield_now().await;
    other.execute("COMMIT").await.unwrap();
    other.close().await.unwrap();
    committed.await.unwrap();
    assert_eq!(said(&store).await, ["m1", "m2", "other", "a"]);
}

#[test]
fn without_its_runtime_a_write_is_an_error_and_not_a_wait() {
    let home = Home::new();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let store = first.block_on(filled(&home));
    // The writer has not run since the runtime was left.
    let waiting = store.enqueue_writes(vec![say("a")]);
    drop(first);
    runtime().block_on(async {
        for refused in [waiting.await, store.enqueue_writes(vec![say("b")]).await] {
            let error = refused.unwrap_err();
            assert!(matches!(error, StoreError::Closed { .. }), "{error}");
        }
        assert_eq!(said(&home.open().await).await, ["m1", "m2"]);
    });
}

#[tokio::test]
async fn what_another_program_has_deleted_is_missed_and_can_be_made_again() {
    let home = Home::new();
    let store = filled(&home).await;
    home.tamper("DELETE FROM sessions").await;
    let error = store.enqueue_writes(vec![say("a")]).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { what: "session", .. }), "{error}");
    store.create_session(&session("s", 1)).await.unwrap();
    store.enqueue_writes(vec![say("a")]).await.unwrap();
    assert_eq!(said(&store).await, ["a"]);
}
