//! Tests of a turn in flight: its journal, and how it is found again.

use belljar_store::{
    JournalEntry, JournalKind, MessageEnding, MessageStatus, Role, SessionKind, StoreError,
    StoreWrite, StoredSession,
};
use serde_json::json;

use crate::support::Writes as _;
use crate::support::{Home, entry, filled, full, message, session};

fn journal(entries: Vec<JournalEntry>) -> Vec<StoreWrite> {
    vec![StoreWrite::Journal { session: "s".into(), message: "m2".into(), entries }]
}

fn finished() -> MessageEnding {
    let (content, metadata) = (json!({"text": "done"}), json!({"run": "r"}));
    MessageEnding { status: MessageStatus::Completed, content, metadata, updated: 30 }
}

#[tokio::test]
async fn a_journal_is_read_in_the_order_in_which_it_was_written() {
    let home = Home::new();
    let store = filled(&home).await;
    let said = entry(JournalKind::Said, 1);
    let begun = JournalEntry { position: 1, ..entry(JournalKind::Begun, 1) };
    let result = JournalEntry { agent: "top/a#1".into(), ..entry(JournalKind::Result, 1) };
    let child = entry(JournalKind::Child, 0);
    store.enqueue_writes(journal(vec![said.clone(), begun.clone()])).await.unwrap();
    drop(store.enqueue_writes(journal(vec![result.clone()])));
    store.enqueue_writes(journal(vec![child.clone()])).await.unwrap();
    store.close().await;
    let again = home.open().await;
    assert_eq!(again.journal_of("s", "m2").await.unwrap(), [said, begun, result, child]);
    assert!(again.journal_of("s", "m1").await.unwrap().is_empty());
}

#[tokio::test]
async fn the_end_of_a_turn_is_the_end_of_its_journal() {
    let home = Home::new();
    let store = filled(&home).await;
    let more = message("m3", Role::Assistant, MessageStatus::InFlight);
    store.append_message("s", &more).await.unwrap();
    let other = StoreWrite::Journal {
        session: "s".into(),
        message: "m3".into(),
        entries: vec![entry(JournalKind::Said, 5)],
    };
    store.enqueue_writes(vec![other]).await.unwrap();
    // An entry of the last step, together with the end of the turn.
    let mut last = journal(vec![entry(JournalKind::Result, 2)]);
    last.push(StoreWrite::FinishMessage {
        session: "s".into(),
        message: "m2".into(),
        finished: finished(),
    });
    store.enqueue_writes(last).await.unwrap();
    assert!(store.journal_of("s", "m2").await.unwrap().is_empty());
    assert_eq!(store.journal_of("s", "m3").await.unwrap().len(), 1, "the neighbour's stays");
    let late = store.enqueue_writes(journal(vec![entry(JournalKind::Said, 3)])).await.unwrap_err();
    assert!(matches!(late, StoreError::Finished { .. }), "{late}");
    assert_eq!(store.list_messages("s").await.unwrap()[1].content, json!({"text": "done"}));

    assert_eq!(store.interrupt_in_flight("s", 40).await.unwrap(), 1);
    assert!(store.journal_of("s", "m3").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_run_keeps_its_answers_and_results() {
    let home = Home::new();
    let store = filled(&home).await;
    let run = StoredSession { id: "r".into(), kind: SessionKind::Run, ..session("r", 2) };
    store.create_session(&run).await.unwrap();
    store
        .append_message("r", &message("r2", Role::Assistant, MessageStatus::InFlight))
        .await
        .unwrap();
    let kinds = [
        JournalKind::Said,
        JournalKind::Begun,
        JournalKind::Result,
        JournalKind::Written,
        JournalKind::Muted,
        JournalKind::Child,
    ];
    let entries = kinds.map(|kind| entry(kind, 0)).to_vec();
    let steps = StoreWrite::Journal { session: "r".into(), message: "r2".into(), entries };
    store.enqueue_writes(vec![steps]).await.unwrap();
    store.finish_message("r", "r2", &finished()).await.unwrap();
    let left = store.journal_of("r", "r2").await.unwrap();
    let left: Vec<_> = left.into_iter().map(|entry| entry.kind).collect();
    assert_eq!(left, kinds[..5], "how a subagent ended has a row of its own");
    assert!(store.delete_run("r").await.unwrap());
    assert!(store.journal_of("r", "r2").await.unwrap().is_empty());
}

#[tokio::test]
async fn turns_in_flight_are_found_with_what_the_person_said() {
    let home = Home::new();
    let store = full(&home).await;
    let more = [
        message("s3", Role::User, MessageStatus::Completed),
        message("s4", Role::Assistant, MessageStatus::InFlight),
    ];
    store.append_messages("s", &more).await.unwrap();
    let found = |turns: Vec<belljar_store::StoredTurn>| -> Vec<(String, String, Option<String>)> {
        let asked =
            |turn: &belljar_store::StoredTurn| turn.asked.as_ref().map(|one| one.id.clone());
        turns
            .iter()
            .map(|one| (one.session.id.clone(), one.answer.id.clone(), asked(one)))
            .collect()
    };
    let line = |session: &str, message: &str, asked: &str| {
        (session.to_owned(), message.to_owned(), Some(asked.to_owned()))
    };
    let all = found(store.in_flight().await.unwrap());
    assert_eq!(all, [line("s", "s2", "s1"), line("s", "s4", "s3"), line("t", "t2", "t1")]);
    store.finish_message("s", "s2", &finished()).await.unwrap();
    store.delete_session("t").await.unwrap();
    assert_eq!(found(store.in_flight().await.unwrap()), [line("s", "s4", "s3")]);
}

#[tokio::test]
async fn what_is_known_of_a_message_changes_and_what_it_says_does_not() {
    let home = Home::new();
    let store = filled(&home).await;
    let metadata = |message: &str| StoreWrite::Metadata {
        session: "s".into(),
        message: message.into(),
        metadata: json!({"running": 2}),
        updated: 15,
    };
    store.enqueue_writes(vec![metadata("m2")]).await.unwrap();
    let error = store.enqueue_writes(vec![metadata("m9")]).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { what: "message", .. }), "{error}");
    let messages = store.list_messages("s").await.unwrap();
    assert_eq!(messages[1].metadata, json!({"running": 2}));
    assert_eq!((messages[1].updated, messages[1].status), (15, MessageStatus::InFlight));
    assert_eq!(messages[1].content, json!({"text": "text of m2"}));
    assert_eq!(messages[0].metadata, json!({}));
}
