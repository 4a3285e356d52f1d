//! Tests of lists in pages: each row occurs once, in the right order, and no other tenant's rows.

use belljar_store::{
    MessageStatus, NewMessage, Role, SessionKind, Store, StoreError, StoreWrite, StoredSession,
};
use serde_json::json;

async fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("belljar.db")).await.unwrap();
    for number in 0..5_i64 {
        let session = StoredSession {
            id: format!("s{number}"),
            title: String::new(),
            agent: "home/a".to_owned(),
            workspace: "/w".to_owned(),
            model: String::new(),
            kind: SessionKind::Chat,
            // Two sessions have the same time each.
            created: number / 2,
            updated: number / 2,
        };
        store.enqueue_writes(vec![StoreWrite::CreateSession(session)]).await.unwrap();
    }
    (dir, store)
}

fn message(number: i64) -> NewMessage {
    NewMessage {
        id: format!("m{number}"),
        role: Role::User,
        status: MessageStatus::Completed,
        content: json!({"text": number}),
        metadata: json!({}),
        created: 100,
    }
}

#[tokio::test]
async fn pages_of_sessions_join_without_gap_or_repeat() {
    let (_dir, store) = store().await;
    let mut seen = Vec::new();
    let mut before: Option<String> = None;
    loop {
        let page = store.sessions_page(before.as_deref(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id.clone());
        seen.extend(page.into_iter().map(|session| session.id));
    }
    assert_eq!(seen, ["s4", "s3", "s2", "s1", "s0"]);
    assert_eq!(store.for_tenant_name("other").sessions_page(Some("s4"), 2).await.unwrap(), []);
    assert_eq!(store.sessions_page(Some("nothing"), 2).await.unwrap(), []);
}

#[tokio::test]
async fn pages_of_messages_go_back_from_the_latest() {
    let (_dir, store) = store().await;
    let messages: Vec<_> = (1..=5).map(message).collect();
    let append = StoreWrite::AppendMessages { session: "s0".to_owned(), messages };
    store.enqueue_writes(vec![append]).await.unwrap();
    let all = i64::MAX;
    let page = store.messages_page("s0", None, 2, all).await.unwrap();
    let ids = |page: &belljar_store::ListPage<belljar_store::StoredMessage>| {
        page.rows.iter().map(|message| message.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!((ids(&page), page.more), (vec!["m4".into(), "m5".into()], true));
    let before = Some(page.rows[0].sort_order);
    let page = store.messages_page("s0", before, 3, all).await.unwrap();
    assert_eq!((ids(&page).len(), page.more), (3, false));
    assert_eq!(ids(&page), ["m1", "m2", "m3"]);
    // With a limit of bytes, a page has at least one row, and no more than fit.
    for most in [i64::MIN, 0, 1] {
        let page = store.messages_page("s0", None, 10, most).await.unwrap();
        assert_eq!((ids(&page), page.more), (vec!["m5".into()], true), "{most}");
    }
    let one = json!({"text": 5}).to_string().len() + json!({}).to_string().len();
    let two = i64::try_from(one).unwrap() + 1;
    let page = store.messages_page("s0", None, 10, two).await.unwrap();
    assert_eq!((ids(&page), page.more), (vec!["m4".into(), "m5".into()], true));
    assert_eq!(store.read_message("s0", "m3").await.unwrap().content, json!({"text": 3}));
    let other = store.for_tenant_name("other");
    assert_eq!(other.messages_page("s0", None, 10, all).await.unwrap().rows, []);
    for (store, session, id) in [(&other, "s0", "m3"), (&store, "s1", "m3"), (&store, "s0", "m9")] {
        let error = store.read_message(session, id).await.unwrap_err();
        assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    }
}
