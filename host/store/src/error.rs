//! The errors of the store, whose texts name a remedy.

use std::io;
use std::path::{Path, PathBuf};

use crate::schema::SCHEMA_VERSION;
use belljar_policy::ShownPath as _;

/// The reason why a read or a write failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file or its directory cannot be used.
    #[error("failed to {what} `{}`: {source}", path.to_shown())]
    Io {
        /// The operation that failed, for example `open`.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause of the failure.
        source: io::Error,
    },
    /// The file is not a store of belljar, or is damaged. The file is not changed.
    #[error("`{}` {why}; it is left as it is: move it away to start with an empty one", path.to_shown())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The problem.
        why: String,
    },
    /// Other users can write to the file or its directory, so its content may be a stranger's. The file is
    /// neither read nor written.
    #[error(
        "`{}` {why}, and sessions are kept in what is yours alone: choose another directory, or \
         take it over with `chown` and `chmod go-w`",
        path.to_shown()
    )]
    NotOurs {
        /// The file or directory.
        path: PathBuf,
        /// The reason: the file's owner or mode.
        why: String,
    },
    /// The file was written by a newer program.
    #[error("`{}` has schema {found}, this program knows {SCHEMA_VERSION} and older; use the newer program", path.to_shown())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file's schema.
        found: i64,
    },
    /// Another process kept the file busy for too long.
    #[error("`{}` is in use by another program; try again", path.to_shown())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The database refused or failed.
    #[error("failed to {what} in `{}`: {why}", path.to_shown())]
    Database {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The database's message.
        why: String,
    },
    /// A row has a value that this program cannot parse.
    #[error("{what} in `{}` cannot be read: {why}", path.to_shown())]
    Row {
        /// The row.
        what: String,
        /// The file.
        path: PathBuf,
        /// The problem.
        why: String,
    },
    /// No object has this id.
    #[error("there is no {what} `{id}`")]
    NotFound {
        /// The kind of the object, for example `session`.
        what: &'static str,
        /// The id, escaped.
        id: String,
    },
    /// Several objects have an id that begins with the prefix.
    #[error("several {what} begin with `{prefix}`: {ids}")]
    Ambiguous {
        /// The kind of object, in the plural.
        what: &'static str,
        /// The prefix, escaped.
        prefix: String,
        /// The first few of their ids.
        ids: String,
    },
    /// The message is not in flight any more: another writer has finished it.
    #[error("message `{id}` is already finished")]
    Finished {
        /// The id of the message.
        id: String,
    },
    /// A content is larger than its limit.
    #[error("{what} has {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// The content, for example `a message`.
        what: &'static str,
        /// The size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A content has an invalid form.
    #[error("{what} {why}")]
    Invalid {
        /// The content.
        what: &'static str,
        /// The problem.
        why: String,
    },
    /// The id of a new row is in use.
    #[error("failed to {what}: its name or id is taken; choose another")]
    Taken {
        /// The operation.
        what: &'static str,
    },
    /// Another writer has changed the row meanwhile.
    #[error("{what} `{id}` is not what it was when it was read; read it again")]
    Conflict {
        /// The kind of the row that was to be changed, for example `agent`.
        what: &'static str,
        /// The id, escaped.
        id: String,
    },
    /// The tenant already has the most objects of this kind that it may have.
    #[error("there are {limit} {what} already, which is the limit; delete some first")]
    TooMany {
        /// The kind of object, in the plural.
        what: &'static str,
        /// The limit on their number.
        limit: i64,
    },
    /// A block of events does not begin right after the last stored event.
    #[error("events from {first} of session `{session}` do not follow the last stored one")]
    OutOfOrder {
        /// The id of the session, escaped.
        session: String,
        /// The number of the first event in the block.
        first: i64,
    },
    /// The queue of waiting writes is full; no part of this write was queued.
    #[error("too much waits to be written to `{}`; try again in a moment", path.to_shown())]
    Overloaded {
        /// The file.
        path: PathBuf,
    },
    /// The store was closed, or the writer failed: the write may or may not be stored.
    #[error("`{}` was closed before this was written", path.to_shown())]
    Closed {
        /// The file.
        path: PathBuf,
    },
}

/// The result code of SQLite for a file that another process keeps busy.
const SQLITE_BUSY: i32 = 5;
const SQLITE_LOCKED: i32 = 6;
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_NOTADB: i32 = 26;

impl StoreError {
    /// The error for an operation `what` that the database refused.
    pub(crate) fn from_database(what: &'static str, path: &Path, error: &sqlx::Error) -> Self {
        let path = path.to_owned();
        match primary_code(error) {
            Some(SQLITE_BUSY | SQLITE_LOCKED) => Self::Busy { path },
            Some(SQLITE_CORRUPT) => Self::Unusable { path, why: "is damaged".to_owned() },
            Some(SQLITE_NOTADB) => Self::Unusable { path, why: "is no database".to_owned() },
            Some(_) | None => Self::Database { what, path, why: error.to_string() },
        }
    }
}

/// The primary result code of SQLite, which is in the lower bits.
fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}
