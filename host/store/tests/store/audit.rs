//! The audit log only grows.

use belljar_store::{StoreError, Write};
use sqlx::{Connection as _, Executor as _};

use crate::support::{Home, audit};

#[tokio::test]
async fn no_statement_changes_or_deletes_a_line() {
    let home = Home::new();
    let store = home.open().await;
    store.enqueue(vec![Write::Audit(audit("a1", 5)), Write::Audit(audit("a2", 6))]).await.unwrap();
    let before = home.dump().await;
    let mut db = home.raw().await;
    for attack in [
        "UPDATE audit SET actor = 'nobody' WHERE id = 'a1'",
        "UPDATE OR REPLACE audit SET id = 'a2' WHERE id = 'a1'",
        "DELETE FROM audit WHERE id = 'a1'",
        "DELETE FROM audit",
        "REPLACE INTO audit SELECT id, tenant, at, 'nobody', action, object, detail FROM audit",
        "INSERT OR REPLACE INTO audit (rowid, id, tenant, at, actor, action, object, detail) \
            VALUES (1, 'new', 'local', 5, 'nobody', 'x', 'x', '{}')",
        "INSERT INTO audit VALUES ('a1', 'local', 5, 'nobody', 'x', 'x', '{}') \
            ON CONFLICT (id) DO UPDATE SET actor = excluded.actor",
    ] {
        let error = db.execute(attack).await.unwrap_err().to_string();
        assert!(error.contains("an audit entry is never"), "{attack}: {error}");
        assert_eq!(home.dump().await, before, "{attack}");
    }
    db.close().await.unwrap();
    let again = store.enqueue(vec![Write::Audit(audit("a1", 7))]).await.unwrap_err();
    assert!(again.to_string().contains("an audit entry is never replaced"), "{again}");
    store.enqueue(vec![Write::Audit(audit("a3", 7))]).await.unwrap();
    assert_eq!(store.audit(None, 10).await.unwrap().len(), 3);
}

#[tokio::test]
async fn the_log_is_read_backwards_page_by_page() {
    let home = Home::new();
    let store = home.open().await;
    let lines: Vec<_> = (0..7).map(|number| audit(&format!("a{number}"), number)).collect();
    let writes = lines.iter().cloned().map(Write::Audit).collect();
    store.enqueue(writes).await.unwrap();
    let mut read = Vec::new();
    loop {
        let before = read.last().map(|line: &belljar_store::AuditEntry| line.id.clone());
        let page = store.audit(before.as_deref(), 3).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 3);
        read.extend(page);
    }
    read.reverse();
    assert_eq!(read, lines);
}

#[tokio::test]
async fn a_detail_that_is_too_large_is_refused() {
    let home = Home::new();
    let store = home.open().await;
    let mut large = audit("a", 1);
    large.detail = "x".repeat(belljar_store::MAX_DETAIL_BYTES).into();
    let error = store.enqueue(vec![Write::Audit(large)]).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
    assert!(store.audit(None, 10).await.unwrap().is_empty());
}
