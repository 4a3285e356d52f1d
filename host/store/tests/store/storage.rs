//! Tests of the bytes that count as stored, and that deleted rows do not count.

use belljar_store::{AuditEntry, StoreWrite};

use crate::support::{Home, full};

/// The bytes of all sessions, computed from the rows themselves.
const SUM: &str = "SELECT (SELECT 512 * COUNT(*) FROM sessions) \
    + (SELECT SUM(128 + octet_length(content) + octet_length(metadata)) FROM messages) \
    + (SELECT COALESCE(SUM(128 + octet_length(goal) + COALESCE(octet_length(context), 0) \
    + octet_length(tool_names) + octet_length(summary) + octet_length(result)), 0) \
    FROM subagent_sessions) \
    + (SELECT COALESCE(SUM(128 + octet_length(body)), 0) FROM event_blocks) \
    + (SELECT COALESCE(SUM(128 + octet_length(body)), 0) FROM receipts) \
    + (SELECT COALESCE(SUM(bytes), 0) FROM receipt_blocks) \
    + (SELECT COALESCE(SUM(128 + octet_length(arguments)), 0) FROM permission_answers) \
    + (SELECT COALESCE(SUM(128 + octet_length(data)), 0) FROM attachments) \
    + (SELECT COALESCE(SUM(128 + octet_length(body)), 0) FROM journal) \
    + (SELECT COALESCE(SUM(128 + octet_length(text)), 0) FROM compactions) \
    + (SELECT COALESCE(SUM(128 + octet_length(object) + octet_length(detail)), 0) FROM audit)";

/// INV-414: lines count until they are deleted, and lines about refusals do not count.
#[tokio::test]
async fn lines_of_the_audit_log_count_until_their_time_is_over_and_those_of_refusals_do_not() {
    let home = Home::new();
    let store = home.open().await;
    let line = |id: &str, action: &str, at: i64| AuditEntry {
        id: id.to_owned(),
        at,
        actor: "key:1".to_owned(),
        action: action.to_owned(),
        object: "1234567890".to_owned(),
        detail: serde_json::json!({}),
    };
    let write = async |line| store.enqueue_writes(vec![StoreWrite::Audit(line)]).await.unwrap();
    write(line("a", "apply_changes", 5)).await;
    write(line("b", "cancel", 15)).await;
    assert_eq!(store.stored_bytes().await.unwrap(), 2 * (128 + 10 + 2));
    write(line("c", "refused", 15)).await;
    write(line("d", "strangers", 15)).await;
    assert_eq!(store.stored_bytes().await.unwrap(), 2 * (128 + 10 + 2), "others cause those");
    assert_eq!(store.for_tenant_name("other").stored_bytes().await.unwrap(), 0, "the neighbour");
    assert_eq!(store.tenant_registry().prune_audit(10).await.unwrap(), 1);
    assert_eq!(store.stored_bytes().await.unwrap(), 128 + 10 + 2);
}

#[tokio::test]
async fn what_a_tenant_has_stored_is_what_its_rows_hold() {
    let home = Home::new();
    let store = full(&home).await;
    assert_eq!(store.for_tenant_name("other").stored_bytes().await.unwrap(), 0);
    let sum = async || u64::try_from(home.number(SUM).await).unwrap();
    let all = store.stored_bytes().await.unwrap();
    assert_eq!(all, sum().await);
    store.save_agent("scout", "text", 1, None).await.unwrap();
    assert_eq!(store.stored_bytes().await.unwrap(), all + 128 + 4);
    store.save_agent("scout", "longer text", 2, Some(1)).await.unwrap();
    assert_eq!(store.stored_bytes().await.unwrap(), all + 128 + 11);
    store.delete_agent("scout").await.unwrap();
    assert_eq!(store.stored_bytes().await.unwrap(), all);
    store.delete_session("s").await.unwrap();
    let left = store.stored_bytes().await.unwrap();
    assert!(left < all && left == sum().await, "{left} of {all}");
    store.delete_all_sessions().await.unwrap();
    let audit =
        "SELECT COALESCE(SUM(128 + octet_length(object) + octet_length(detail)), 0) FROM audit";
    let lines = u64::try_from(home.number(audit).await).unwrap();
    assert_eq!(store.stored_bytes().await.unwrap(), lines, "nothing else stays counted");
}
