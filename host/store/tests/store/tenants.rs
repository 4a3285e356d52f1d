//! No tenant reaches another one's rows: every write, every read.

use belljar_store::{
    Finished, MessageStatus, NewMessage, Role, SessionHead, SessionKind, Store, StoreError, Write,
};
use serde_json::json;

use crate::support::Writes as _;
use crate::support::{
    Home, audit, entry, everything, full, hanging, message, part, session, subagent, summary, usage,
};

/// Whether a write is about a session, and so refused to other tenants. A new kind of write
/// does not compile until it is named here, and fails below until it is tried.
fn about_a_session(write: &Write) -> Option<&'static str> {
    match write {
        Write::SessionKind { .. } => Some("kind"),
        Write::SessionHead { .. } => Some("head"),
        Write::AppendMessages { .. } => Some("append"),
        Write::FinishMessage { .. } => Some("finish"),
        Write::Metadata { .. } => Some("metadata"),
        Write::Subagents { .. } => Some("subagents"),
        Write::Journal { .. } => Some("journal"),
        Write::Events { .. } => Some("events"),
        Write::Receipts { .. } => Some("receipts"),
        Write::PackedReceipts { .. } => Some("packed receipts"),
        Write::Answer(_) => Some("answer"),
        Write::Attachments { .. } => Some("attachments"),
        Write::CreateSession(_) | Write::Audit(_) | Write::Usage(_) => None,
    }
}

fn finished() -> Finished {
    let (content, metadata) = (json!({"text": "done"}), json!({}));
    Finished { status: MessageStatus::Completed, content, metadata, updated: 30 }
}

fn one_more() -> NewMessage {
    message("x", Role::User, MessageStatus::Completed)
}

/// One of each kind of write about session `s`.
fn writes() -> Vec<Write> {
    let (session, placeholder) = ("s".to_owned(), "s2".to_owned());
    let mut writes = hanging("s", "s2", "-more");
    writes.push(Write::SessionKind { session: session.clone(), kind: SessionKind::Run });
    let head = SessionHead { title: "taken".into(), agent: "home/x".into(), model: "x".into() };
    writes.push(Write::SessionHead { session: session.clone(), head });
    writes.push(Write::AppendMessages { session: session.clone(), messages: vec![one_more()] });
    let finished = finished();
    writes.push(Write::FinishMessage { session, message: placeholder, finished });
    writes
}

/// A store with everything, and another tenant's view of it.
async fn two(home: &Home) -> (Store, Store) {
    let store = full(home).await;
    store.registry().create_tenant("other", 1).await.unwrap();
    let other = store.of_tenant("other");
    other.enqueue(everything("u")).await.unwrap();
    (store, other)
}

#[tokio::test]
async fn every_write_about_a_session_is_refused_to_another_tenant() {
    let home = Home::new();
    let (store, other) = two(&home).await;
    let mut tried: Vec<&str> = Vec::new();
    for write in writes() {
        let name = about_a_session(&write).unwrap();
        let before = home.dump().await;
        // Alone; behind one that is its own right; and with another session's name on it.
        let own = || Write::Usage(part("home/scout", "m", usage("2026-01-02", 1)));
        for group in [vec![write.clone()], vec![own(), write.clone()]] {
            let error = other.enqueue(group).await.unwrap_err();
            assert!(matches!(error, StoreError::NotFound { .. }), "{name}: {error}");
            assert_eq!(home.dump().await, before, "{name}");
        }
        if let Some(mixed) = under_session(&write, "u") {
            let error = other.enqueue(vec![mixed]).await.unwrap_err();
            assert_eq!(home.dump().await, before, "{name}: {error}");
        }
        store.enqueue(vec![write]).await.unwrap();
        assert_ne!(home.dump().await, before, "{name}: the owner may");
        tried.push(name);
    }
    tried.sort_unstable();
    let all = [
        "answer",
        "append",
        "attachments",
        "events",
        "finish",
        "head",
        "journal",
        "kind",
        "metadata",
        "packed receipts",
        "receipts",
        "subagents",
    ];
    assert_eq!(tried, all);
}

/// The same about a message of `s`, said to be in another session.
fn under_session(write: &Write, id: &str) -> Option<Write> {
    let mut write = write.clone();
    match &mut write {
        Write::FinishMessage { session, .. }
        | Write::Metadata { session, .. }
        | Write::Journal { session, .. }
        | Write::Events { session, .. }
        | Write::Receipts { session, .. }
        | Write::PackedReceipts { session, .. }
        | Write::Attachments { session, .. }
        | Write::Subagents { session, .. } => *session = id.to_owned(),
        Write::Answer(answer) => answer.session = id.to_owned(),
        // These name no message that is there already.
        Write::AppendMessages { .. }
        | Write::SessionKind { .. }
        | Write::SessionHead { .. }
        | Write::CreateSession(_)
        | Write::Audit(_)
        | Write::Usage(_) => return None,
    }
    Some(write)
}

#[tokio::test]
async fn every_call_that_writes_is_refused_to_another_tenant() {
    let home = Home::new();
    let (store, other) = two(&home).await;
    store.save_agent("mine", "text", 5, None).await.unwrap();
    let before = home.dump().await;
    let record = subagent("x", "s2", 3);
    for refused in [
        other.append_message("s", &one_more()).await,
        other.append_messages("s", &[one_more()]).await,
        other.finish_message("s", "s2", &finished()).await,
        other.record_subagents("s", std::slice::from_ref(&record)).await,
        other.record_subagents("u", &[subagent("s-agent", "u2", 0)]).await,
        other.save_compaction("s", &summary(2)).await,
        other.save_agent("mine", "theirs", 6, Some(5)).await.map(drop),
        other.create_session(&session("s", 1)).await,
        other.of_tenant("nobody").create_session(&session("x", 1)).await,
        other.of_tenant("nobody").save_agent("x", "text", 1, None).await.map(drop),
    ] {
        let expected = matches!(
            refused,
            Err(StoreError::NotFound { .. }
                | StoreError::Conflict { .. }
                | StoreError::Taken { .. })
        );
        assert!(expected, "{refused:?}");
    }
    assert!(!other.delete_session("s").await.unwrap());
    assert!(!other.delete_agent("mine").await.unwrap());
    assert_eq!(other.interrupt_in_flight("s", 1).await.unwrap(), 0);
    assert_eq!(other.of_tenant("nobody").delete_all_sessions().await.unwrap(), 0);
    assert_eq!(home.dump().await, before);
    store.record_subagents("s", &[record]).await.unwrap();
    assert!(store.delete_agent("mine").await.unwrap());
}

#[tokio::test]
async fn every_read_gives_another_tenant_nothing() {
    let home = Home::new();
    let (store, _) = two(&home).await;
    store.save_agent("mine", "text", 5, None).await.unwrap();
    let more = vec![
        Write::Audit(audit("a", 5)),
        Write::Usage(part("home/scout", "m", usage("2026-01-02", 1))),
    ];
    store.enqueue(more).await.unwrap();
    store.registry().create_tenant("empty", 1).await.unwrap();
    let empty = store.of_tenant("empty");
    let (own, theirs) = (reads(&store).await, reads(&empty).await);
    for ((name, own), (_, theirs)) in own.into_iter().zip(theirs) {
        assert!(own.is_ok_and(|rows| rows > 0), "{name}: the owner sees something");
        match theirs {
            Ok(0) | Err(StoreError::NotFound { .. }) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// How many rows each read gives.
async fn reads(store: &Store) -> Vec<(&'static str, Result<usize, StoreError>)> {
    fn rows<T>(found: Result<Vec<T>, StoreError>) -> Result<usize, StoreError> {
        found.map(|found| found.len())
    }
    fn row<T>(found: Result<Option<T>, StoreError>) -> Result<usize, StoreError> {
        found.map(|found| usize::from(found.is_some()))
    }
    vec![
        ("session", store.session("s").await.map(|_| 1)),
        ("find_session", store.find_session("s").await.map(|_| 1)),
        ("sessions", rows(store.sessions(10).await)),
        ("latest_session", row(store.latest_session("/w").await)),
        ("messages", rows(store.messages("s").await)),
        ("subagents", rows(store.subagents("s").await)),
        ("subagent", row(store.subagent("s", "s-agent").await)),
        ("in_flight", rows(store.in_flight().await)),
        ("journal_of", rows(store.journal_of("s", "s2").await)),
        ("last_event", store.last_event("s").await.map(|last| last as usize)),
        ("events_after", rows(store.events_after("s", 0, 10).await)),
        ("receipts", rows(store.receipts("s", None, 10).await)),
        ("receipts of a message", rows(store.receipts("s", Some("s2"), 10).await)),
        ("receipts of a turn", rows(store.receipts_of_turn("s", "s2").await)),
        ("turns", rows(store.turns(None, 10).await)),
        ("turn", store.turn("s", "s2").await.map(|_| 1)),
        ("find_turn", store.find_turn("s2").await.map(|_| 1)),
        ("latest_turn", row(store.latest_turn("s").await)),
        ("answers", rows(store.answers("s").await)),
        ("attachments", rows(store.attachments("s").await)),
        ("attachment", store.attachment("s", "s-file").await.map(|_| 1)),
        ("compaction", row(store.compaction("s").await)),
        ("agent", row(store.agent("mine").await)),
        ("agents", rows(store.agents().await)),
        ("agent_slugs", rows(store.agent_slugs().await)),
        ("usage", rows(store.usage("").await)),
        ("audit", rows(store.audit(None, 10, i64::MAX).await.map(|page| page.rows))),
    ]
}

#[tokio::test]
async fn tenants_in_flight_are_those_with_a_placeholder() {
    let home = Home::new();
    let (store, other) = two(&home).await;
    let registry = store.registry();
    assert_eq!(names(&registry).await, ["local", "other"]);
    other.finish_message("u", "u2", &finished()).await.unwrap();
    assert_eq!(names(&registry).await, ["local"]);
    let entries = vec![entry(belljar_store::JournalKind::Said, 9)];
    let late = Write::Journal { session: "u".into(), message: "u2".into(), entries };
    let error = other.enqueue(vec![late]).await.unwrap_err();
    assert!(matches!(error, StoreError::Finished { .. }), "{error}");
}

async fn names(registry: &belljar_store::Registry) -> Vec<String> {
    let tenants = registry.tenants_in_flight().await.unwrap();
    tenants.into_iter().map(|tenant| tenant.name).collect()
}

#[tokio::test]
async fn a_tenant_that_is_made_again_has_an_id_that_nobody_had() {
    let home = Home::new();
    let registry = home.open().await.registry();
    let first = registry.create_tenant("acme", 1).await.unwrap();
    let other = registry.create_tenant("other", 1).await.unwrap();
    assert!(registry.delete_tenant("acme").await.unwrap());
    let second = registry.create_tenant("acme", 1).await.unwrap();
    assert_eq!(registry.tenant("acme").await.unwrap().unwrap(), second);
    let ids = [&first.id, &second.id, &other.id];
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())));
    assert!(first.id != second.id && second.id != other.id);
    assert_eq!(registry.tenant("other").await.unwrap().unwrap(), other, "the neighbour");
}
