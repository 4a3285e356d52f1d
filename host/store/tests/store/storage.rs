//! How much is counted as stored, and that nothing stays counted.

use crate::support::{Home, full};

/// The bytes of all sessions, as the rows themselves say.
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
    + (SELECT COALESCE(SUM(128 + octet_length(text)), 0) FROM compactions)";

#[tokio::test]
async fn what_a_tenant_has_stored_is_what_its_rows_hold() {
    let home = Home::new();
    let store = full(&home).await;
    assert_eq!(store.of_tenant("other").stored_bytes().await.unwrap(), 0);
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
    assert_eq!(store.stored_bytes().await.unwrap(), 0, "nothing stays counted");
}
