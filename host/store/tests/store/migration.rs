//! Tests with a file of an older program.

use belljar_store::{MessageStatus, SCHEMA_VERSION, Store, StoreWrite};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, SqliteConnection};

use crate::support::{Home, hanging, part, usage};

/// The schema of the first release.
const FIRST: &str = include_str!("../../migrations/0001_sessions.sql");

const ROWS: &str = "
INSERT INTO sessions VALUES ('s', 'local', 'title', 'home/scout', '/w', '', 1, 2);
INSERT INTO sessions VALUES ('t', 'guest', 'title', 'home/scout', '/w', '', 1, 2);
INSERT INTO messages VALUES ('s1', 's', 1, 'user', 'completed', '{\"text\":\"hi\"}', '{}', 1, 1);
INSERT INTO messages VALUES ('s2', 's', 2, 'assistant', 'in_flight', '{\"text\":\"\"}', '{}', 1, 1);
INSERT INTO subagent_sessions VALUES ('a', 's', 's2', 'call', 'home/main', NULL, 1, 'run', 'preset',
    'home/scout', 'scout', 'look', NULL, 'running', 'm', '[]', '', '{}', NULL, 0, 0, 0, 0, 0, 1, 1,
    NULL);
";

async fn first_version(home: &Home) {
    std::fs::create_dir_all(home.file().parent().unwrap()).unwrap();
    std::fs::write(home.file(), b"").unwrap();
    let mut db: SqliteConnection = home.raw().await;
    db.execute(FIRST).await.unwrap();
    let versions = "CREATE TABLE belljar_schema \
        (version BIGINT NOT NULL PRIMARY KEY, applied BIGINT NOT NULL)";
    db.execute(versions).await.unwrap();
    db.execute("INSERT INTO belljar_schema VALUES (1, 7)").await.unwrap();
    db.execute(ROWS).await.unwrap();
    db.close().await.unwrap();
}

#[tokio::test]
async fn a_file_of_version_1_keeps_its_rows_and_takes_new_ones() {
    let home = Home::new();
    first_version(&home).await;
    let before = home.dump().await;
    let store = home.open().await;
    let after = home.dump().await;
    for line in before.lines() {
        // A new column comes after the older ones.
        let column = if line.starts_with("sessions|") { "|'chat'" } else { "" };
        let line = format!("{line}{column}");
        assert!(after.lines().any(|kept| kept == line), "{line}");
    }
    assert_eq!(home.number("SELECT MAX(version) FROM belljar_schema").await, SCHEMA_VERSION);
    let in_flight = store.in_flight().await.unwrap();
    assert_eq!(in_flight.len(), 1);
    assert_eq!(in_flight[0].answer.status, MessageStatus::InFlight);
    assert_eq!(store.list_subagents("s").await.unwrap().len(), 1);
    store.enqueue_writes(hanging("s", "s2", "")).await.unwrap();
    assert_eq!(store.last_event("s").await.unwrap(), 2);
    let tenants = store.tenant_registry().list_tenants().await.unwrap();
    let names: Vec<&str> = tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    assert_eq!(names, ["guest", "local"], "whose rows were there goes on to have them");
    assert!(tenants.iter().all(|tenant| tenant.id == tenant.name), "with their directories");
    store.close().await;
    let again = home.open().await;
    assert_eq!(again.list_messages("s").await.unwrap().len(), 2);
    assert_eq!(home.number("SELECT COUNT(*) FROM belljar_schema").await, SCHEMA_VERSION);
}

#[tokio::test]
async fn the_usage_of_days_before_agents_were_counted_apart_stays() {
    let home = Home::new();
    std::fs::create_dir_all(home.file().parent().unwrap()).unwrap();
    std::fs::write(home.file(), b"").unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
    let scripts = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let earlier = |path: &std::path::PathBuf| path.file_name().unwrap() < "0010";
    let mut scripts: Vec<_> = scripts.filter(earlier).collect();
    scripts.sort();
    let mut db: SqliteConnection = home.raw().await;
    for path in scripts {
        db.execute(AssertSqlSafe(std::fs::read_to_string(path).unwrap())).await.unwrap();
    }
    for statement in [
        "CREATE TABLE belljar_schema (version BIGINT NOT NULL PRIMARY KEY, applied BIGINT NOT NULL)",
        "INSERT INTO belljar_schema VALUES (1, 7), (2, 7), (3, 7), (4, 7), (5, 7), (6, 7), (7, 7), \
         (8, 7), (9, 7)",
        "INSERT INTO tenants (name, id, disabled, created) VALUES ('guest', 'g', 0, 1)",
        "INSERT INTO usage_days VALUES ('guest', '2026-01-02', 3, 3, 3, 3, 3, 3, 3)",
    ] {
        db.execute(statement).await.unwrap();
    }
    db.close().await.unwrap();
    let store = home.open().await.for_tenant_name("guest");
    let was = usage("2026-01-02", 3);
    assert_eq!(store.usage_parts("").await.unwrap(), [part("", "", was)]);
    let more = part("home/scout", "m", usage("2026-01-02", 1));
    store.enqueue_writes(vec![StoreWrite::Usage(more)]).await.unwrap();
    assert_eq!(store.usage_by_day("").await.unwrap(), [usage("2026-01-02", 4)]);
}

#[tokio::test]
async fn a_schema_that_no_migration_makes_is_known_before_the_file_is_opened() {
    let check = async |home: &Home| Store::check_schema(&home.file()).await;
    let older = Home::new();
    first_version(&older).await;
    check(&older).await.unwrap();
    let new = Home::new();
    new.open().await.close().await;
    check(&new).await.unwrap();
    for (statement, why) in [
        (
            "CREATE TRIGGER spy AFTER INSERT ON tenants BEGIN DELETE FROM api_keys; END",
            "trigger `spy`",
        ),
        ("CREATE VIEW spies AS SELECT 1", "view `spies`"),
        ("CREATE TABLE more (a)", "table `more`"),
        ("CREATE INDEX also ON tenants (name)", "index `also`"),
        ("DROP TRIGGER audit_is_not_deleted", "trigger `audit_is_not_deleted`"),
        ("DELETE FROM belljar_schema WHERE version > 2", "is another"),
        ("ALTER TABLE tenants ADD COLUMN more TEXT", "table `tenants`"),
    ] {
        let home = Home::new();
        home.open().await.close().await;
        home.tamper(statement).await;
        let before = std::fs::read(home.file()).unwrap();
        let error = check(&home).await.unwrap_err().to_string();
        assert!(error.contains(why), "no `{why}` in {error}");
        assert_eq!(std::fs::read(home.file()).unwrap(), before);
    }
    // A file that states a newer version, and an older file with an additional object.
    new.tamper("INSERT INTO belljar_schema VALUES (10000, 1)").await;
    check(&new).await.unwrap_err();
    older.tamper("CREATE TRIGGER spy AFTER UPDATE ON messages BEGIN SELECT 1; END").await;
    assert!(check(&older).await.unwrap_err().to_string().contains("`spy`"));
}
