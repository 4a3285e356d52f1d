//! Tests that no tenant can read or write another one's rows.

use belljar_store::{
    MessageEnding, MessageStatus, NewMessage, Role, SessionHead, SessionKind, Store, StoreError,
    StoreWrite,
};
use serde_json::json;

use crate::support::Writes as _;
use crate::support::{
    Home, audit, entry, everything, full, hanging, message, part, session, subagent, summary, usage,
};

/// The name of a write that is about a session and so must be refused to other tenants. A new kind of write
/// does not compile until it is listed here, and fails a test until it is tried.
fn about_a_session(write: &StoreWrite) -> Option<&'static str> {
    match write {
        StoreWrite::SessionKind { .. } => Some("kind"),
        StoreWrite::SessionHead { .. } => Some("head"),
        StoreWrite::AppendMessages { .. } => Some("append"),
        StoreWrite::FinishMessage { .. } => Some("finish"),
        StoreWrite::Metadata { .. } => Some("metadata"),
        StoreWrite::Subagents { .. } => Some("subagents"),
        StoreWrite::Journal { .. } => Some("journal"),
        StoreWrite::Events { .. } => Some("events"),
        StoreWrite::Receipts { .. } => Some("receipts"),
        StoreWrite::PackedReceipts { .. } => Some("packed receipts"),
        StoreWrite::Answer(_) => Some("answer"),
        StoreWrite::Attachments { .. } => Some("attachments"),
        StoreWrite::CreateSession(_) | StoreWrite::Audit(_) | StoreWrite::Usage(_) => None,
    }
}

fn finished() -> MessageEnding {
    let (content, metadata) = (json!({"text": "done"}), json!({}));
    MessageEnding { status: MessageStatus::Completed, content, metadata, updated: 30 }
}

fn one_more() -> NewMessage {
    message("x", Role::User, MessageStatus::Completed)
}

/// One of each kind of write about the session `s`.
fn writes() -> Vec<StoreWrite> {
    let (session, placeholder) = ("s".to_owned(), "s2".to_owned());
    let mut writes = hanging("s", "s2", "-more");
    writes.push(StoreWrite::SessionKind { session: session.clone(), kind: SessionKind::Run });
    let head = SessionHead { title: "taken".into(), agent: "home/x".into(), model: "x".into() };
    writes.push(StoreWrite::SessionHead { session: session.clone(), head });
    writes
        .push(StoreWrite::AppendMessages { session: session.clone(), messages: vec![one_more()] });
    let finished = finished();
    writes.push(StoreWrite::FinishMessage { session, message: placeholder, finished });
    writes
}

/// A store with everything, and the store of another tenant in the same file.
async fn two(home: &Home) -> (Store, Store) {
    let store = full(home).await;
    store.tenant_registry().create_tenant("other", 1).await.unwrap();
    let other = store.for_tenant_name("other");
    other.enqueue_writes(everything("u")).await.unwrap();
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
        // Each write is tried alone, and after a write that the tenant may make.
        let own = || StoreWrite::Usage(part("home/scout", "m", usage("2026-01-02", 1)));
        for group in [vec![write.clone()], vec![own(), write.clone()]] {
            let error = other.enqueue_writes(group).await.unwrap_err();
            assert!(matches!(error, StoreError::NotFound { .. }), "{name}: {error}");
            assert_eq!(home.dump().await, before, "{name}");
        }
        if let Some(mixed) = under_session(&write, "u") {
            let error = other.enqueue_writes(vec![mixed]).await.unwrap_err();
            assert_eq!(home.dump().await, before, "{name}: {error}");
        }
        store.enqueue_writes(vec![write]).await.unwrap();
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

/// The same write about a message of `s`, with another session's id.
fn under_session(write: &StoreWrite, id: &str) -> Option<StoreWrite> {
    let mut write = write.clone();
    match &mut write {
        StoreWrite::FinishMessage { session, .. }
        | StoreWrite::Metadata { session, .. }
        | StoreWrite::Journal { session, .. }
        | StoreWrite::Events { session, .. }
        | StoreWrite::Receipts { session, .. }
        | StoreWrite::PackedReceipts { session, .. }
        | StoreWrite::Attachments { session, .. }
        | StoreWrite::Subagents { session, .. } => *session = id.to_owned(),
        StoreWrite::Answer(answer) => answer.session = id.to_owned(),
        // These writes name no existing message.
        StoreWrite::AppendMessages { .. }
        | StoreWrite::SessionKind { .. }
        | StoreWrite::SessionHead { .. }
        | StoreWrite::CreateSession(_)
        | StoreWrite::Audit(_)
        | StoreWrite::Usage(_) => return None,
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
        other.for_tenant_name("nobody").create_session(&session("x", 1)).await,
        other.for_tenant_name("nobody").save_agent("x", "text", 1, None).await.map(drop),
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
    assert_eq!(other.for_tenant_name("nobody").delete_all_sessions().await.unwrap(), 0);
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
        StoreWrite::Audit(audit("a", 5)),
        StoreWrite::Usage(part("home/scout", "m", usage("2026-01-02", 1))),
    ];
    store.enqueue_writes(more).await.unwrap();
    store.tenant_registry().create_tenant("empty", 1).await.unwrap();
    let empty = store.for_tenant_name("empty");
    let (own, theirs) = (reads(&store).await, reads(&empty).await);
    for ((name, own), (_, theirs)) in own.into_iter().zip(theirs) {
        assert!(own.is_ok_and(|rows| rows > 0), "{name}: the owner sees something");
        match theirs {
            Ok(0) | Err(StoreError::NotFound { .. }) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// The number of rows that each kind of read returns.
async fn reads(store: &Store) -> Vec<(&'static str, Result<usize, StoreError>)> {
    fn rows<T>(found: Result<Vec<T>, StoreError>) -> Result<usize, StoreError> {
        found.map(|found| found.len())
    }
    fn row<T>(found: Result<Option<T>, StoreError>) -> Result<usize, StoreError> {
        found.map(|found| usize::from(found.is_some()))
    }
    vec![
        ("session", store.read_session("s").await.map(|_| 1)),
        ("find_session", store.find_session("s").await.map(|_| 1)),
        ("sessions", rows(store.latest_sessions(10).await)),
        ("latest_session", row(store.latest_session("/w").await)),
        ("messages", rows(store.list_messages("s").await)),
        ("subagents", rows(store.list_subagents("s").await)),
        ("subagent", row(store.find_subagent("s", "s-agent").await)),
        ("in_flight", rows(store.in_flight().await)),
        ("journal_of", rows(store.journal_of("s", "s2").await)),
        ("last_event", store.last_event("s").await.map(|last| last as usize)),
        ("events_after", rows(store.events_after("s", 0, 10).await)),
        ("receipts", rows(store.latest_receipts("s", None, 10).await)),
        ("receipts of a message", rows(store.latest_receipts("s", Some("s2"), 10).await)),
        ("receipts of a turn", rows(store.receipts_of_turn("s", "s2").await)),
        ("turns", rows(store.list_turns(None, 10).await)),
        ("turn", store.read_turn("s", "s2").await.map(|_| 1)),
        ("find_turn", store.find_turn("s2").await.map(|_| 1)),
        ("latest_turn", row(store.latest_turn("s").await)),
        ("answers", rows(store.latest_answers("s").await)),
        ("attachments", rows(store.latest_attachments("s").await)),
        ("attachment", store.read_attachment("s", "s-file").await.map(|_| 1)),
        ("compaction", row(store.latest_compaction("s").await)),
        ("agent", row(store.find_agent("mine").await)),
        ("agents", rows(store.list_agents().await)),
        ("agent_slugs", rows(store.agent_slugs().await)),
        ("usage", rows(store.usage_by_day("").await)),
        ("audit", rows(store.read_audit(None, 10, i64::MAX).await.map(|page| page.rows))),
    ]
}

#[tokio::test]
async fn tenants_in_flight_are_those_with_a_placeholder() {
    let home = Home::new();
    let (store, other) = two(&home).await;
    let registry = store.tenant_registry();
    assert_eq!(names(&registry).await, ["local", "other"]);
    other.finish_message("u", "u2", &finished()).await.unwrap();
    assert_eq!(names(&registry).await, ["local"]);
    let entries = vec![entry(belljar_store::JournalKind::Said, 9)];
    let late = StoreWrite::Journal { session: "u".into(), message: "u2".into(), entries };
    let error = other.enqueue_writes(vec![late]).await.unwrap_err();
    assert!(matches!(error, StoreError::Finished { .. }), "{error}");
}

async fn names(registry: &belljar_store::Registry) -> Vec<String> {
    let tenants = registry.tenants_in_flight().await.unwrap();
    tenants.into_iter().map(|tenant| tenant.name).collect()
}

#[tokio::test]
async fn a_tenant_that_is_made_again_has_an_id_that_nobody_had() {
    let home = Home::new();
    let registry = home.open().await.tenant_registry();
    let first = registry.create_tenant("acme", 1).await.unwrap();
    let other = registry.create_tenant("other", 1).await.unwrap();
    assert!(registry.delete_tenant("acme").await.unwrap());
    let second = registry.create_tenant("acme", 1).await.unwrap();
    assert_eq!(registry.find_tenant("acme").await.unwrap().unwrap(), second);
    let ids = [&first.id, &second.id, &other.id];
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())));
    assert!(first.id != second.id && second.id != other.id);
    assert_eq!(registry.find_tenant("other").await.unwrap().unwrap(), other, "the neighbour");
}
