//! Tests of runs: they are found by their turns, and deleted when there are too many.

use belljar_store::{
    MessageEnding, MessageStatus, Role, SessionKind, StoreError, StoreWrite, StoredSession,
};
use serde_json::json;

use crate::support::Writes as _;
use crate::support::{Home, message, session};

/// A session of the given kind with one turn, whose answer has an id made of the session's.
fn one_turn(id: &str, kind: SessionKind, status: MessageStatus) -> Vec<StoreWrite> {
    let asked = message(&format!("{id}-asked"), Role::User, MessageStatus::Completed);
    let answer = message(&format!("{id}-run"), Role::Assistant, status);
    vec![
        StoreWrite::CreateSession(StoredSession { kind, ..session(id, 1) }),
        StoreWrite::AppendMessages { session: id.to_owned(), messages: vec![asked, answer] },
    ]
}

#[tokio::test]
async fn only_ended_runs_past_the_newest_are_deleted_and_never_a_conversation() {
    use MessageStatus::{Completed, InFlight};
    let home = Home::new();
    let store = home.open().await;
    for (id, kind, status) in [
        ("a-chat", SessionKind::Chat, Completed),
        ("b-run", SessionKind::Run, Completed),
        ("c-api", SessionKind::Api, Completed),
        ("d-dead", SessionKind::Run, InFlight),
        ("e-team", SessionKind::Team, Completed),
        ("f-run", SessionKind::Run, Completed),
    ] {
        store.enqueue_writes(one_turn(id, kind, status)).await.unwrap();
    }
    store.tenant_registry().create_tenant("other", 1).await.unwrap();
    let other = store.for_tenant_name("other");
    other.enqueue_writes(one_turn("z-run", SessionKind::Run, Completed)).await.unwrap();
    let latest = store.latest_session("/w").await.unwrap().unwrap();
    assert_eq!(latest.id, "c-api", "a run is no conversation");
    assert_eq!(store.runs_past(1).await.unwrap(), ["e-team", "b-run"]);
    assert_eq!(store.runs_past(0).await.unwrap(), ["f-run", "e-team", "b-run"]);
    assert_eq!(store.runs_past(u64::MAX).await.unwrap(), [""; 0]);
    for spared in ["a-chat", "c-api", "d-dead", "z-run", "none"] {
        assert!(!store.delete_run(spared).await.unwrap(), "{spared}");
    }
    assert!(store.delete_run("b-run").await.unwrap());
    assert!(store.read_session("b-run").await.is_err());
    // A run that was resumed has become a conversation.
    let kind = StoreWrite::SessionKind { session: "f-run".to_owned(), kind: SessionKind::Chat };
    store.enqueue_writes(vec![kind]).await.unwrap();
    assert!(!store.delete_run("f-run").await.unwrap());
    assert_eq!(store.read_session("f-run").await.unwrap().kind, SessionKind::Chat);
    // The run in flight ends.
    let finished = MessageEnding {
        status: Completed,
        content: json!({"text": "done"}),
        metadata: json!({}),
        updated: 30,
    };
    store.finish_message("d-dead", "d-dead-run", &finished).await.unwrap();
    assert_eq!(store.runs_past(0).await.unwrap(), ["e-team", "d-dead"]);
    assert_eq!(store.latest_sessions(10).await.unwrap().len(), 5);
    assert_eq!(other.runs_past(0).await.unwrap(), ["z-run"]);
}

#[tokio::test]
async fn turns_are_listed_across_sessions_and_found_by_a_unique_beginning() {
    let home = Home::new();
    let store = home.open().await;
    for id in ["1a", "1b", "2"] {
        store
            .enqueue_writes(one_turn(id, SessionKind::Run, MessageStatus::Completed))
            .await
            .unwrap();
    }
    let ids = async |before: Option<&str>, limit| -> Vec<String> {
        let turns = store.list_turns(before, limit).await.unwrap();
        turns.into_iter().map(|turn| turn.answer.id).collect()
    };
    assert_eq!(ids(None, 10).await, ["2-run", "1b-run", "1a-run"]);
    assert_eq!(ids(None, 1).await, ["2-run"]);
    assert_eq!(ids(Some("1b-run"), 10).await, ["1a-run"]);
    let turn = store.find_turn("1a").await.unwrap();
    assert_eq!((turn.session.id.as_str(), turn.answer.id.as_str()), ("1a", "1a-run"));
    assert_eq!(turn.asked.unwrap().id, "1a-asked");
    let several = store.find_turn("1").await;
    assert!(matches!(several, Err(StoreError::Ambiguous { .. })), "{several:?}");
    for none in ["", "3", "1a-asked", "1a-run-more", "%"] {
        let found = store.find_turn(none).await;
        assert!(matches!(found, Err(StoreError::NotFound { .. })), "{none}: {found:?}");
    }
    assert_eq!(store.latest_turn("2").await.unwrap().unwrap().answer.id, "2-run");
    assert!(store.latest_turn("none").await.unwrap().is_none());
}
