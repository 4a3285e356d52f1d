//! Tests of the audit log: it only grows, and a line is deleted only after its time.

use belljar_store::{StoreError, StoreWrite};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use crate::support::{Home, audit};

#[tokio::test]
async fn no_statement_changes_or_deletes_a_line() {
    let home = Home::new();
    let store = home.open().await;
    store
        .enqueue_writes(vec![StoreWrite::Audit(audit("a1", 5)), StoreWrite::Audit(audit("a2", 6))])
        .await
        .unwrap();
    let before = home.dump().await;
    let mut db = home.raw().await;
    for attack in [
        "UPDATE audit SET actor = 'nobody' WHERE id = 'a1'",
        "UPDATE OR REPLACE audit SET id = 'a2' WHERE id = 'a1'",
        "DELETE FROM audit WHERE id = 'a1'",
        "DELETE FROM audit WHERE at < 1000",
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
    let again = store.enqueue_writes(vec![StoreWrite::Audit(audit("a1", 7))]).await.unwrap_err();
    assert!(again.to_string().contains("an audit entry is never replaced"), "{again}");
    store.enqueue_writes(vec![StoreWrite::Audit(audit("a3", 7))]).await.unwrap();
    assert_eq!(store.read_audit(None, 10, i64::MAX).await.unwrap().rows.len(), 3);
}

#[tokio::test]
async fn the_log_is_read_backwards_page_by_page() {
    let home = Home::new();
    let store = home.open().await;
    let lines: Vec<_> = (0..7).map(|number| audit(&format!("a{number}"), number)).collect();
    let writes = lines.iter().cloned().map(StoreWrite::Audit).collect();
    store.enqueue_writes(writes).await.unwrap();
    let mut read = Vec::new();
    loop {
        let before = read.last().map(|line: &belljar_store::AuditEntry| line.id.clone());
        let page = store.read_audit(before.as_deref(), 3, i64::MAX).await.unwrap();
        assert_eq!(page.more, read.len() + page.rows.len() < lines.len());
        if page.rows.is_empty() {
            break;
        }
        assert!(page.rows.len() <= 3);
        read.extend(page.rows);
    }
    read.reverse();
    assert_eq!(read, lines);
}

#[tokio::test]
async fn lines_go_when_their_time_is_over_and_none_before() {
    let home = Home::new();
    let store = home.open().await;
    let lines = (1..=9).map(|number| StoreWrite::Audit(audit(&format!("a{number}"), number)));
    store.enqueue_writes(lines.collect()).await.unwrap();
    let other = store.for_tenant_name("other");
    store.tenant_registry().create_tenant("other", 0).await.unwrap();
    other
        .enqueue_writes(vec![StoreWrite::Audit(audit("b1", 4)), StoreWrite::Audit(audit("b2", 5))])
        .await
        .unwrap();
    assert_eq!(store.tenant_registry().prune_audit(5).await.unwrap(), 5, "of every tenant");
    let times = async |store: &belljar_store::Store| {
        let lines = store.read_audit(None, 10, i64::MAX).await.unwrap().rows;
        lines.iter().map(|line| line.at).collect::<Vec<_>>()
    };
    assert_eq!(times(&store).await, [9, 8, 7, 6, 5]);
    assert_eq!(times(&other).await, [5]);
    // The file refuses to delete the rest, and the limit cannot be lowered.
    let mut db = home.raw().await;
    let error = db.execute("DELETE FROM audit WHERE at = 5").await.unwrap_err().to_string();
    assert!(error.contains("never deleted before its time"), "{error}");
    assert!(db.execute("UPDATE audit_kept SET since = 1").await.is_err());
    db.execute("DELETE FROM audit_kept").await.unwrap();
    assert!(db.execute("DELETE FROM audit").await.is_err(), "without a bound all stay");
    db.close().await.unwrap();
    assert_eq!(times(&store).await.len() + times(&other).await.len(), 6);
}

#[tokio::test]
async fn no_bound_makes_the_file_give_up_a_line_of_today() {
    let home = Home::new();
    let store = home.open().await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_millis()).unwrap();
    let (old, young) = (audit("a1", 5), audit("a2", now));
    store.enqueue_writes(vec![StoreWrite::Audit(old), StoreWrite::Audit(young)]).await.unwrap();
    let mut db = home.raw().await;
    for bound in [i64::MAX, 9_000_000_000_000_000, now, now - 3_600_000] {
        for attack in [
            format!("UPDATE audit_kept SET since = {bound}"),
            format!("UPDATE OR REPLACE audit_kept SET since = {bound}"),
            format!("REPLACE INTO audit_kept VALUES (1, {bound})"),
            format!("INSERT INTO audit_kept VALUES (2, {bound})"),
            format!(
                "INSERT INTO audit_kept VALUES (1, 0) ON CONFLICT DO UPDATE SET since = {bound}"
            ),
        ] {
            let error = db.execute(AssertSqlSafe(attack.clone())).await.unwrap_err().to_string();
            assert!(error.contains("a day behind the clock"), "{attack}: {error}");
        }
    }
    db.execute("DELETE FROM audit_kept").await.unwrap();
    let again = format!("INSERT INTO audit_kept VALUES (1, {now})");
    assert!(db.execute(AssertSqlSafe(again)).await.is_err());
    // The limit can be raised only up to this time.
    let most = format!("INSERT INTO audit_kept VALUES (1, {})", now - 2 * 86_400_000);
    db.execute(AssertSqlSafe(most)).await.unwrap();
    assert!(db.execute("DELETE FROM audit").await.is_err());
    db.close().await.unwrap();
    assert_eq!(store.read_audit(None, 10, i64::MAX).await.unwrap().rows.len(), 2);
}

#[tokio::test]
async fn a_detail_that_is_too_large_is_refused() {
    let home = Home::new();
    let store = home.open().await;
    let mut large = audit("a", 1);
    large.detail = "x".repeat(belljar_store::MAX_DETAIL_BYTES).into();
    let error = store.enqueue_writes(vec![StoreWrite::Audit(large)]).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
    assert!(store.read_audit(None, 10, i64::MAX).await.unwrap().rows.is_empty());
}
