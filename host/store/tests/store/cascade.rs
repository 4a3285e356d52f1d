//! Tests of the rows that are deleted with a session, and with a tenant.

use belljar_store::{NewKey, Store, StoreError, StoreWrite};
use sqlx::{AssertSqlSafe, Connection as _};

use crate::support::{Home, audit, everything, full, part, usage};

/// The number of a session's rows in each table that has any.
async fn rows_of(home: &Home, session: &str) -> Vec<(String, i64)> {
    let mut rows = Vec::new();
    for table in home.tables_with("session_id").await {
        let sql = format!("SELECT COUNT(*) FROM {table} WHERE session_id = '{session}'");
        let count = home.number(&sql).await;
        rows.push((table, count));
    }
    rows
}

#[tokio::test]
async fn deleting_a_session_deletes_rows_of_every_table_and_leaves_the_neighbour() {
    let home = Home::new();
    let store = full(&home).await;
    let (own, neighbour) = (rows_of(&home, "s").await, rows_of(&home, "t").await);
    assert_eq!(own.len(), 10, "{own:?}");
    assert!(own.iter().all(|(_, count)| *count > 0), "the fixture fills every table: {own:?}");
    assert!(store.delete_session("s").await.unwrap());
    let left = rows_of(&home, "s").await;
    assert!(left.iter().all(|(_, count)| *count == 0), "{left:?}");
    assert_eq!(rows_of(&home, "t").await, neighbour);
    assert_eq!(store.read_attachment("t", "t-file").await.unwrap().1, b"\0bytes\xff");
}

#[tokio::test]
async fn deleting_all_sessions_deletes_those_of_one_tenant() {
    let home = Home::new();
    let store = full(&home).await;
    store.tenant_registry().create_tenant("other", 1).await.unwrap();
    let other = store.for_tenant_name("other");
    other.enqueue_writes(everything("u")).await.unwrap();
    let neighbour = rows_of(&home, "u").await;
    assert_eq!(store.delete_all_sessions().await.unwrap(), 2);
    assert_eq!(store.delete_all_sessions().await.unwrap(), 0);
    for session in ["s", "t"] {
        let left = rows_of(&home, session).await;
        assert!(left.iter().all(|(_, count)| *count == 0), "{left:?}");
    }
    assert_eq!(rows_of(&home, "u").await, neighbour);
}

#[tokio::test]
async fn deleting_a_tenant_deletes_all_of_it_but_its_audit_log() {
    let home = Home::new();
    let store = full(&home).await;
    let registry = store.tenant_registry();
    registry.create_tenant("other", 50).await.unwrap();
    let other = store.for_tenant_name("other");
    fill_tenant(&other, "u").await;
    fill_tenant(&store, "v").await;
    let neighbour = home.dump().await;
    let neighbour: Vec<&str> = neighbour.lines().filter(|line| line.contains("'local'")).collect();

    assert!(registry.delete_tenant("other").await.unwrap());
    assert!(!registry.delete_tenant("other").await.unwrap());
    for table in home.tables_with("tenant").await {
        let sql = format!("SELECT COUNT(*) FROM {table} WHERE tenant = 'other'");
        assert_eq!(home.number(&sql).await, i64::from(table == "audit"), "{table}");
    }
    assert!(rows_of(&home, "u").await.iter().all(|(_, count)| *count == 0));
    let left = home.dump().await;
    let left: Vec<&str> = left.lines().filter(|line| line.contains("'local'")).collect();
    assert_eq!(left, neighbour);

    // Writes that arrive late write nothing for a later tenant of the same name.
    for late in
        [everything("w"), vec![StoreWrite::Usage(part("home/scout", "m", usage("2026-01-02", 1)))]]
    {
        let error = other.enqueue_writes(late).await.unwrap_err();
        assert_eq!(error.to_string(), "there is no tenant `other`");
    }
    assert!(other.save_agent("a", "text", 1, None).await.is_err());
    assert_eq!(
        other.read_audit(None, 10, i64::MAX).await.unwrap().rows.len(),
        1,
        "for the operator"
    );
    registry.create_tenant("other", 100).await.unwrap();
    assert!(
        other.read_audit(None, 10, i64::MAX).await.unwrap().rows.is_empty(),
        "and not for the next of that name"
    );
}

#[tokio::test]
async fn what_is_under_way_for_a_deleted_tenant_writes_nothing_for_the_next_of_its_name() {
    let home = Home::new();
    let store = full(&home).await;
    let registry = store.tenant_registry();
    let first = registry.create_tenant("other", 50).await.unwrap();
    let old = store.for_tenant_id(&first.name, &first.id);
    fill_tenant(&old, "u").await;
    registry.delete_tenant("other").await.unwrap();
    let second = registry.create_tenant("other", 100).await.unwrap();
    let before = home.dump().await;
    for late in
        [everything("w"), vec![StoreWrite::Usage(part("home/scout", "m", usage("2026-01-02", 1)))]]
    {
        let error = old.enqueue_writes(late).await.unwrap_err();
        assert!(matches!(error, StoreError::NotFound { what: "tenant", .. }), "{error}");
    }
    assert!(old.save_agent("a", "text", 1, None).await.is_err());
    assert!(old.delete_all_sessions().await.is_err());
    assert_eq!(home.dump().await, before);
    // Other groups in the same transaction are committed.
    let own = store.for_tenant_id(&second.name, &second.id);
    let late = old.enqueue_writes(everything("w"));
    let next = own.enqueue_writes(vec![StoreWrite::Usage(part(
        "home/scout",
        "m",
        usage("2026-01-02", 1),
    ))]);
    let last = old.enqueue_writes(everything("x"));
    assert!(late.await.is_err() && next.await.is_ok() && last.await.is_err());
    assert_eq!(own.usage_by_day("2026-01-02").await.unwrap().len(), 1);
    assert!(own.latest_sessions(10).await.unwrap().is_empty());
}

async fn fill_tenant(store: &Store, session: &str) {
    let id = format!("{}-row", store.tenant());
    store.enqueue_writes(everything(session)).await.unwrap();
    let more = vec![
        StoreWrite::Audit(audit(&id, 60)),
        StoreWrite::Usage(part("home/scout", "m", usage("2026-01-02", 1))),
    ];
    store.enqueue_writes(more).await.unwrap();
    store.save_agent("a", "text", 1, None).await.unwrap();
    let key = NewKey {
        id,
        tenant: store.tenant().to_owned(),
        label: String::new(),
        scope: belljar_store::KeyScope::Member,
        secret_hash: "00".into(),
        created: 1,
    };
    store.tenant_registry().create_key(&key).await.unwrap();
}

#[tokio::test]
async fn no_cascade_looks_through_a_whole_table() {
    let home = Home::new();
    full(&home).await.close().await;
    let mut db = home.raw().await;
    let select = "SELECT t.name, f.\"table\", group_concat(f.\"from\" || ' = 1', ' AND ') \
        FROM sqlite_master t JOIN pragma_foreign_key_list(t.name) f \
        WHERE t.type = 'table' GROUP BY t.name, f.id";
    let keys: Vec<(String, String, String)> =
        sqlx::query_as(select).fetch_all(&mut db).await.unwrap();
    assert!(keys.len() >= 12, "{keys:?}");
    for (table, parent, columns) in keys {
        let explain = format!("EXPLAIN QUERY PLAN SELECT 1 FROM {table} WHERE {columns}");
        let plan: Vec<(i64, i64, i64, String)> =
            sqlx::query_as(AssertSqlSafe(explain)).fetch_all(&mut db).await.unwrap();
        let wanted = columns.matches('=').count();
        let used = plan[0].3.matches("=?").count();
        assert_eq!(used, wanted, "{table} below {parent}: {}", plan[0].3);
    }
    db.close().await.unwrap();
}
