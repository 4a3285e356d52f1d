//! An SQL statement as data: its text, the bound values, and the error if it changes no row.
//!
//! Callers make statements with serialized contents, and the writer executes them. Serializing is the
//! callers' work, because the writer is a single task and may have to execute a statement twice.

use std::path::Path;

use belljar_policy::ShownText;
use serde_json::Value;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Row as _, Sqlite, SqliteConnection};

use crate::error::StoreError;

/// The most bytes of one value in a row: a turn with the largest context of any provider, with space for JSON
/// escapes.
pub const MAX_JSON_BYTES: usize = 64 << 20;

/// A statement to execute. Its text is constant, so the database keeps it prepared.
///
/// In a statement about a session, `$1` is the tenant and `$2` the session; in a statement about a message,
/// `$3` is the message. Each such statement itself checks that the session belongs to the tenant.
#[derive(Debug)]
pub(crate) struct SqlStatement {
    what: &'static str,
    sql: &'static str,
    args: Vec<SqlArgument>,
    nothing: NoRowMeaning,
}

/// A query of the database.
pub(crate) type SqliteQuery<'q> = Query<'q, Sqlite, SqliteArguments>;

/// A value that is bound to a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SqlArgument {
    Text(Option<String>),
    Number(Option<i64>),
    Bytes(Vec<u8>),
}

/// What it means if a statement has changed no row, which decides the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRowMeaning {
    /// There was nothing to do; this is no error.
    Fine,
    /// The tenant `$1` is missing.
    NoTenant,
    /// The tenant `$1` has no session `$2`.
    NoSession,
    /// The session `$2` has no message `$3`.
    NoMessage,
    /// The message `$3` is finished already, or missing.
    NotInFlight,
    /// The block that begins at `$4` does not follow the last block, or the message is missing.
    NotNext,
    /// The agent `$2` does not have the expected version.
    AgentChanged,
    /// The agent `$2` exists already, the tenant has too many agents, or the tenant is missing.
    AgentNotNew,
    /// The id of the new row is used by another session.
    Taken,
}

/// A failed statement: the error for its caller, and whether the connection can no longer be used.
#[derive(Debug)]
pub(crate) struct StatementFailure {
    pub(crate) error: StoreError,
    pub(crate) lost: bool,
}

impl SqlStatement {
    /// Makes a statement; a text or blob of more than [`MAX_JSON_BYTES`] is an error.
    pub(crate) fn new(
        what: &'static str,
        nothing: NoRowMeaning,
        sql: &'static str,
        args: impl Into<Vec<SqlArgument>>,
    ) -> Result<Self, StoreError> {
        let args = args.into();
        for bytes in args.iter().map(SqlArgument::byte_count) {
            check_bytes("a value", bytes, MAX_JSON_BYTES)?;
        }
        Ok(Self { what, sql, args, nothing })
    }

    /// The approximate bytes of the values in memory.
    pub(crate) fn argument_bytes(&self) -> usize {
        self.args.iter().map(SqlArgument::byte_count).sum()
    }

    /// Executes the statement; returns the number of changed rows.
    pub(crate) async fn run_statement(
        &self,
        db: &mut SqliteConnection,
        path: &Path,
    ) -> Result<u64, StatementFailure> {
        let query = bind_arguments(sqlx::query(self.sql), &self.args);
        let failed = |error| StatementFailure::from_database(self.what, path, &error);
        let changed = query.execute(&mut *db).await.map_err(failed)?.rows_affected();
        match (changed, self.nothing) {
            (1.., _) | (0, NoRowMeaning::Fine) => Ok(changed),
            (0, nothing) => {
                let error = self.diagnose(nothing, db).await.map_err(failed)?;
                Err(StatementFailure { error, lost: false })
            }
        }
    }

    /// Finds the error for a statement that changed no row.
    async fn diagnose(
        &self,
        nothing: NoRowMeaning,
        db: &mut SqliteConnection,
    ) -> Result<StoreError, sqlx::Error> {
        Ok(match nothing {
            NoRowMeaning::Fine | NoRowMeaning::Taken => StoreError::Taken { what: self.what },
            NoRowMeaning::NoTenant => self.not_found("tenant", 0),
            NoRowMeaning::NoSession => self.not_found("session", 1),
            NoRowMeaning::NoMessage => self.not_found("message", 2),
            NoRowMeaning::NotInFlight if self.has_message(db).await? => {
                StoreError::Finished { id: self.shown_argument(2) }
            }
            NoRowMeaning::NotNext if self.has_message(db).await? => StoreError::OutOfOrder {
                session: self.shown_argument(1),
                first: self.number_argument(3),
            },
            NoRowMeaning::NotInFlight | NoRowMeaning::NotNext => self.not_found("message", 2),
            NoRowMeaning::AgentChanged => self.agent_not_replaced(db).await?,
            NoRowMeaning::AgentNotNew => self.agent_not_new(db).await?,
        })
    }

    /// Returns whether the message of this statement exists.
    async fn has_message(&self, db: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
        let select = "SELECT 1 FROM messages m JOIN sessions s ON s.id = m.session_id \
            WHERE s.tenant = $1 AND s.id = $2 AND m.id = $3";
        let row = sqlx::query(select)
            .bind(self.text_argument(0))
            .bind(self.text_argument(1))
            .bind(self.text_argument(2))
            .fetch_optional(db)
            .await?;
        Ok(row.is_some())
    }

    /// The error for an agent that was not replaced: it has another version, is missing, or the tenant's
    /// agents have too many bytes.
    async fn agent_not_replaced(
        &self,
        db: &mut SqliteConnection,
    ) -> Result<StoreError, sqlx::Error> {
        let select = "SELECT COUNT(*) FROM agents WHERE tenant = $1 AND slug = $2 AND updated = $3";
        let query = sqlx::query(select).bind(self.text_argument(0)).bind(self.text_argument(1));
        let there: i64 = query.bind(self.number_argument(4)).fetch_one(db).await?.try_get(0)?;
        Ok(match there {
            0 => StoreError::Conflict { what: "agent", id: self.shown_argument(1) },
            _ => too_large_together(),
        })
    }

    /// The error for an agent that was not created: the tenant is missing, has too many agents or bytes, or
    /// has an agent of the given name.
    async fn agent_not_new(&self, db: &mut SqliteConnection) -> Result<StoreError, sqlx::Error> {
        let select = "SELECT (SELECT COUNT(*) FROM tenants WHERE name = $1), \
            (SELECT COUNT(*) FROM agents WHERE tenant = $1 AND slug = $2), \
            (SELECT COUNT(*) FROM agents WHERE tenant = $1)";
        let row = sqlx::query(select)
            .bind(self.text_argument(0))
            .bind(self.text_argument(1))
            .fetch_one(db)
            .await?;
        let (tenants, agents): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let all: i64 = row.try_get(2)?;
        Ok(match (tenants, agents) {
            (0, _) => self.not_found("tenant", 0),
            (_, 0) if all < crate::limits::MAX_AGENTS => too_large_together(),
            (_, 0) => StoreError::TooMany { what: "agents", limit: crate::limits::MAX_AGENTS },
            _ => StoreError::Conflict { what: "agent", id: self.shown_argument(1) },
        })
    }

    fn not_found(&self, what: &'static str, at: usize) -> StoreError {
        StoreError::NotFound { what, id: self.shown_argument(at) }
    }

    fn shown_argument(&self, at: usize) -> String {
        ShownText::clip_line(self.text_argument(at).unwrap_or_default(), 64).to_string()
    }

    /// The text that is bound at a position, if it is a text.
    fn text_argument(&self, at: usize) -> Option<&str> {
        match self.args.get(at) {
            Some(SqlArgument::Text(text)) => text.as_deref(),
            Some(SqlArgument::Number(_) | SqlArgument::Bytes(_)) | None => None,
        }
    }

    /// The number that is bound at a position; 0 if it is none.
    fn number_argument(&self, at: usize) -> i64 {
        match self.args.get(at) {
            Some(SqlArgument::Number(number)) => number.unwrap_or_default(),
            Some(SqlArgument::Text(_) | SqlArgument::Bytes(_)) | None => 0,
        }
    }
}

impl StatementFailure {
    /// The failure that the database reports. After any other error than one of SQLite itself, the connection
    /// is not used again.
    pub(crate) fn from_database(what: &'static str, path: &Path, error: &sqlx::Error) -> Self {
        let lost = error.as_database_error().is_none();
        let taken = error.as_database_error().is_some_and(|error| error.is_unique_violation());
        let error = match taken {
            true => StoreError::Taken { what },
            false => StoreError::from_database(what, path, error),
        };
        Self { error, lost }
    }
}

impl SqlArgument {
    /// The number of bytes that the argument occupies.
    fn byte_count(&self) -> usize {
        match self {
            Self::Text(text) => text.as_ref().map_or(0, String::len),
            Self::Number(_) => size_of::<i64>(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

impl From<&str> for SqlArgument {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for SqlArgument {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for SqlArgument {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Option<&str>> for SqlArgument {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(str::to_owned))
    }
}

impl From<i64> for SqlArgument {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for SqlArgument {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for SqlArgument {
    fn from(flag: bool) -> Self {
        Self::Number(Some(i64::from(flag)))
    }
}

impl From<Vec<u8>> for SqlArgument {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

fn too_large_together() -> StoreError {
    let limit = crate::limits::MAX_AGENTS_BYTES;
    StoreError::TooMany { what: "bytes of agents", limit }
}

/// Binds further values to a query.
pub(crate) fn bind_arguments<'q>(
    mut query: SqliteQuery<'q>,
    args: &[SqlArgument],
) -> SqliteQuery<'q> {
    for arg in args {
        query = match arg {
            SqlArgument::Text(text) => query.bind(text.as_deref()),
            SqlArgument::Number(number) => query.bind(*number),
            SqlArgument::Bytes(bytes) => query.bind(bytes.as_slice()),
        };
    }
    query
}

/// The JSON text of a value, within its limit.
pub(crate) fn json_text(what: &'static str, value: &Value) -> Result<String, StoreError> {
    let text = value.to_string();
    check_bytes(what, text.len(), MAX_JSON_BYTES)?;
    Ok(text)
}

/// Returns an error if `bytes` exceeds `limit`.
pub(crate) fn check_bytes(
    what: &'static str,
    bytes: usize,
    limit: usize,
) -> Result<(), StoreError> {
    if bytes > limit { Err(StoreError::TooLarge { what, bytes, limit }) } else { Ok(()) }
}
