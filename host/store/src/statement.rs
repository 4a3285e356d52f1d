//! One statement as data: the text, the bound values, and the error if no row changes.
//!
//! Callers make statements with serialized contents, and the writer runs them. Serializing is the callers'
//! work, because the writer is a single task and may have to run a statement twice.

use std::path::Path;

use belljar_policy::Shown;
use serde_json::Value;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Row as _, Sqlite, SqliteConnection};

use crate::error::StoreError;

/// Most bytes of one value in a row: a turn at the largest context of any provider, with room
/// for its escapes.
pub const MAX_JSON_BYTES: usize = 64 << 20;

/// A statement to run. The text is fixed, so that the database keeps it prepared.
///
/// A statement about a session has the tenant as `$1` and the session as `$2`; a statement about a message
/// has the message as `$3`. Each such statement checks by itself that the session is the tenant's.
#[derive(Debug)]
pub(crate) struct Statement {
    what: &'static str,
    sql: &'static str,
    args: Vec<Arg>,
    nothing: Nothing,
}

/// A query of the database.
pub(crate) type SqliteQuery<'q> = Query<'q, Sqlite, SqliteArguments>;

/// A value that is bound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arg {
    Text(Option<String>),
    Number(Option<i64>),
    Bytes(Vec<u8>),
}

/// The meaning of a statement that has changed no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// The statement had nothing to do.
    Fine,
    /// The tenant `$1` is missing.
    NoTenant,
    /// The tenant `$1` has no session `$2`.
    NoSession,
    /// The session `$2` has no message `$3`.
    NoMessage,
    /// The message `$3` is finished or missing.
    NotInFlight,
    /// The block at `$4` does not follow the last block, or the message is missing.
    NotNext,
    /// The agent `$2` is not at the expected version.
    AgentChanged,
    /// The agent `$2` exists already, the tenant has too many agents, or the tenant is missing.
    AgentNotNew,
    /// Another session uses the id of the new row.
    Taken,
}

/// The reason why a statement has failed: the error for its caller, and whether the connection is of no use
/// any more.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: StoreError,
    pub(crate) lost: bool,
}

impl Statement {
    /// A statement; a text or a blob beyond [`MAX_JSON_BYTES`] is an error.
    pub(crate) fn new(
        what: &'static str,
        nothing: Nothing,
        sql: &'static str,
        args: impl Into<Vec<Arg>>,
    ) -> Result<Self, StoreError> {
        let args = args.into();
        for bytes in args.iter().map(Arg::bytes) {
            bounded("a value", bytes, MAX_JSON_BYTES)?;
        }
        Ok(Self { what, sql, args, nothing })
    }

    /// The approximate bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.args.iter().map(Arg::bytes).sum()
    }

    /// Runs the statement; returns the number of changed rows.
    pub(crate) async fn run(&self, db: &mut SqliteConnection, path: &Path) -> Result<u64, Failure> {
        let query = bound(sqlx::query(self.sql), &self.args);
        let failed = |error| Failure::database(self.what, path, &error);
        let changed = query.execute(&mut *db).await.map_err(failed)?.rows_affected();
        match (changed, self.nothing) {
            (1.., _) | (0, Nothing::Fine) => Ok(changed),
            (0, nothing) => {
                let error = self.diagnose(nothing, db).await.map_err(failed)?;
                Err(Failure { error, lost: false })
            }
        }
    }

    /// The error of a statement that changed no row.
    async fn diagnose(
        &self,
        nothing: Nothing,
        db: &mut SqliteConnection,
    ) -> Result<StoreError, sqlx::Error> {
        Ok(match nothing {
            Nothing::Fine | Nothing::Taken => StoreError::Taken { what: self.what },
            Nothing::NoTenant => self.not_found("tenant", 0),
            Nothing::NoSession => self.not_found("session", 1),
            Nothing::NoMessage => self.not_found("message", 2),
            Nothing::NotInFlight if self.has_message(db).await? => {
                StoreError::Finished { id: self.shown(2) }
            }
            Nothing::NotNext if self.has_message(db).await? => {
                StoreError::OutOfOrder { session: self.shown(1), first: self.number(3) }
            }
            Nothing::NotInFlight | Nothing::NotNext => self.not_found("message", 2),
            Nothing::AgentChanged => self.agent_not_replaced(db).await?,
            Nothing::AgentNotNew => self.agent_not_new(db).await?,
        })
    }

    async fn has_message(&self, db: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
        let select = "SELECT 1 FROM messages m JOIN sessions s ON s.id = m.session_id \
            WHERE s.tenant = $1 AND s.id = $2 AND m.id = $3";
        let row = sqlx::query(select)
            .bind(self.text(0))
            .bind(self.text(1))
            .bind(self.text(2))
            .fetch_optional(db)
            .await?;
        Ok(row.is_some())
    }

    /// The error of an agent that was not replaced: another version, a missing agent, or too many bytes in
    /// all agents.
    async fn agent_not_replaced(
        &self,
        db: &mut SqliteConnection,
    ) -> Result<StoreError, sqlx::Error> {
        let select = "SELECT COUNT(*) FROM agents WHERE tenant = $1 AND slug = $2 AND updated = $3";
        let query = sqlx::query(select).bind(self.text(0)).bind(self.text(1));
        let there: i64 = query.bind(self.number(4)).fetch_one(db).await?.try_get(0)?;
        Ok(match there {
            0 => StoreError::Conflict { what: "agent", id: self.shown(1) },
            _ => too_large_together(),
        })
    }

    async fn agent_not_new(&self, db: &mut SqliteConnection) -> Result<StoreError, sqlx::Error> {
        let select = "SELECT (SELECT COUNT(*) FROM tenants WHERE name = $1), \
            (SELECT COUNT(*) FROM agents WHERE tenant = $1 AND slug = $2), \
            (SELECT COUNT(*) FROM agents WHERE tenant = $1)";
        let row = sqlx::query(select).bind(self.text(0)).bind(self.text(1)).fetch_one(db).await?;
        let (tenants, agents): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let all: i64 = row.try_get(2)?;
        Ok(match (tenants, agents) {
            (0, _) => self.not_found("tenant", 0),
            (_, 0) if all < crate::limits::MAX_AGENTS => too_large_together(),
            (_, 0) => StoreError::TooMany { what: "agents", limit: crate::limits::MAX_AGENTS },
            _ => StoreError::Conflict { what: "agent", id: self.shown(1) },
        })
    }

    fn not_found(&self, what: &'static str, at: usize) -> StoreError {
        StoreError::NotFound { what, id: self.shown(at) }
    }

    fn shown(&self, at: usize) -> String {
        Shown::clipped(self.text(at).unwrap_or_default(), 64).to_string()
    }

    fn text(&self, at: usize) -> Option<&str> {
        match self.args.get(at) {
            Some(Arg::Text(text)) => text.as_deref(),
            Some(Arg::Number(_) | Arg::Bytes(_)) | None => None,
        }
    }

    fn number(&self, at: usize) -> i64 {
        match self.args.get(at) {
            Some(Arg::Number(number)) => number.unwrap_or_default(),
            Some(Arg::Text(_) | Arg::Bytes(_)) | None => 0,
        }
    }
}

impl Failure {
    /// The database's error. Any other error is the connection's: the connection is not used again.
    pub(crate) fn database(what: &'static str, path: &Path, error: &sqlx::Error) -> Self {
        let lost = error.as_database_error().is_none();
        let taken = error.as_database_error().is_some_and(|error| error.is_unique_violation());
        let error = match taken {
            true => StoreError::Taken { what },
            false => StoreError::database(what, path, error),
        };
        Self { error, lost }
    }
}

impl Arg {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.as_ref().map_or(0, String::len),
            Self::Number(_) => size_of::<i64>(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

impl From<&str> for Arg {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Arg {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Arg {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Option<&str>> for Arg {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(str::to_owned))
    }
}

impl From<i64> for Arg {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for Arg {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Arg {
    fn from(flag: bool) -> Self {
        Self::Number(Some(i64::from(flag)))
    }
}

impl From<Vec<u8>> for Arg {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

fn too_large_together() -> StoreError {
    let limit = crate::limits::MAX_AGENTS_BYTES;
    StoreError::TooMany { what: "bytes of agents", limit }
}

/// Binds further arguments to a query.
pub(crate) fn bound<'q>(mut query: SqliteQuery<'q>, args: &[Arg]) -> SqliteQuery<'q> {
    for arg in args {
        query = match arg {
            Arg::Text(text) => query.bind(text.as_deref()),
            Arg::Number(number) => query.bind(*number),
            Arg::Bytes(bytes) => query.bind(bytes.as_slice()),
        };
    }
    query
}

/// A JSON value as text, within its bound.
pub(crate) fn json(what: &'static str, value: &Value) -> Result<String, StoreError> {
    let text = value.to_string();
    bounded(what, text.len(), MAX_JSON_BYTES)?;
    Ok(text)
}

/// An error if `bytes` exceeds `limit`.
pub(crate) fn bounded(what: &'static str, bytes: usize, limit: usize) -> Result<(), StoreError> {
    if bytes > limit { Err(StoreError::TooLarge { what, bytes, limit }) } else { Ok(()) }
}
