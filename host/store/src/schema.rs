//! The versions of the database schema, and the migrations between them.
//!
//! A released migration is never changed; a later one alters or adds. Each runs in a separate transaction,
//! together with the record that it ran.

use std::collections::BTreeMap;
use std::path::Path;

use belljar_policy::ShownText;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions as _, Connection as _, Row as _, SqliteConnection};

use crate::error::StoreError;

/// The schema version that this program writes.
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// The migration scripts; the first one leads from version 0 to 1.
///
/// SQL for SQLite alone is in separate files, named `.sqlite.sql`.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_sessions.sql"),
    concat!(
        include_str!("../migrations/0002_server.sql"),
        include_str!("../migrations/0002_server.sqlite.sql"),
    ),
    include_str!("../migrations/0003_kinds.sql"),
    include_str!("../migrations/0004_decisions.sql"),
    concat!(
        include_str!("../migrations/0005_storage.sql"),
        include_str!("../migrations/0005_storage.sqlite.sql"),
    ),
    include_str!("../migrations/0006_tenants.sql"),
    include_str!("../migrations/0007_retention.sqlite.sql"),
    include_str!("../migrations/0008_clock.sqlite.sql"),
    include_str!("../migrations/0009_logins.sql"),
    include_str!("../migrations/0010_usage.sql"),
    concat!(
        include_str!("../migrations/0011_packed_receipts.sql"),
        include_str!("../migrations/0011_packed_receipts.sqlite.sql"),
    ),
    include_str!("../migrations/0012_audit_bytes.sqlite.sql"),
];

/// The statement that makes the table of applied versions, the first one in a new file.
const VERSIONS: &str = "CREATE TABLE IF NOT EXISTS belljar_schema \
(version BIGINT NOT NULL PRIMARY KEY, applied BIGINT NOT NULL)";

/// The objects of a schema, for example tables and triggers: by type, name and table, each with its SQL text.
type Parts = BTreeMap<(String, String, String), Option<String>>;

/// The first unexpected, changed or missing object in the schema of a file; `None` if the schema is exactly
/// what the migrations up to its version make. Runs no code of the file.
pub(crate) async fn find_foreign_object(
    db: &mut SqliteConnection,
    path: &Path,
) -> Result<Option<String>, StoreError> {
    let failed = |error: sqlx::Error| StoreError::from_database("look at the schema", path, &error);
    let found = read_version(db, path).await?;
    let there = schema_objects(db).await.map_err(failed)?;
    let scripts = usize::try_from(found).ok().and_then(|found| MIGRATIONS.get(..found));
    let Some(scripts) = scripts else {
        return Err(StoreError::Newer { path: path.to_owned(), found });
    };
    let mut made = SqliteConnectOptions::new().in_memory(true).connect().await.map_err(failed)?;
    if found > 0 {
        sqlx::raw_sql(VERSIONS).execute(&mut made).await.map_err(failed)?;
    }
    for script in scripts {
        sqlx::raw_sql(*script).execute(&mut made).await.map_err(failed)?;
    }
    let wanted = schema_objects(&mut made).await.map_err(failed)?;
    let unlike = |(part, sql): &(_, _)| wanted.get(*part) != Some(*sql);
    let more = there.iter().find(unlike).map(|(part, _)| part);
    let part = more.or_else(|| wanted.keys().find(|part| !there.contains_key(*part)));
    Ok(part.map(|(kind, name, _)| {
        format!("{} `{}`", ShownText::clip_line(kind, 20), ShownText::clip_line(name, 100))
    }))
}

/// The objects of a file's schema, with the SQL text of each.
async fn schema_objects(db: &mut SqliteConnection) -> Result<Parts, sqlx::Error> {
    let select = "SELECT type, name, tbl_name, sql FROM sqlite_master";
    let rows = sqlx::query(select).fetch_all(db).await?;
    let part = |row: &SqliteRow| {
        Ok(((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?), row.try_get(3)?))
    };
    rows.iter().map(part).collect()
}

/// The schema version of a file; 0 for an empty file. Changes nothing.
pub(crate) async fn read_version(
    db: &mut SqliteConnection,
    path: &Path,
) -> Result<i64, StoreError> {
    let failed = |error: sqlx::Error| StoreError::from_database("read the schema", path, &error);
    let tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
    let rows = sqlx::query(tables).fetch_all(&mut *db).await.map_err(failed)?;
    let names: Vec<String> =
        rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map_err(failed)?;
    if names.is_empty() {
        return Ok(0);
    }
    if !names.iter().any(|name| name == "belljar_schema") {
        let why = "is a database of another program".to_owned();
        return Err(StoreError::Unusable { path: path.to_owned(), why });
    }
    let newest = "SELECT COALESCE(MAX(version), 0) FROM belljar_schema";
    let row = sqlx::query(newest).fetch_one(&mut *db).await.map_err(failed)?;
    row.try_get(0).map_err(failed)
}

/// Migrates a file to [`SCHEMA_VERSION`]. Two processes may do so at the same time, because each step checks
/// the version again while it holds the write lock.
pub(crate) async fn migrate_schema(
    db: &mut SqliteConnection,
    path: &Path,
    now: i64,
) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| StoreError::from_database("migrate the schema", path, &error);
    loop {
        let found = read_version(db, path).await?;
        if found > SCHEMA_VERSION {
            return Err(StoreError::Newer { path: path.to_owned(), found });
        }
        let next = usize::try_from(found).ok().and_then(|found| MIGRATIONS.get(found));
        let Some(script) = next else { return Ok(()) };
        let mut step = db.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        if read_version(&mut step, path).await? == found {
            sqlx::raw_sql(VERSIONS).execute(&mut *step).await.map_err(failed)?;
            sqlx::raw_sql(*script).execute(&mut *step).await.map_err(failed)?;
            sqlx::query("INSERT INTO belljar_schema (version, applied) VALUES ($1, $2)")
                .bind(found + 1)
                .bind(now)
                .execute(&mut *step)
                .await
                .map_err(failed)?;
        }
        step.commit().await.map_err(failed)?;
    }
}
