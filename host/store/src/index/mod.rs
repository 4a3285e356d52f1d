//! A text index of short entries: names, descriptions, and the beginnings of longer texts.
//!
//! ```text
//! IndexEntry ── PreparedEntries::prepare ──> terms ── TextIndex::build ──> FTS5, in memory
//! words + permitted positions ── TextIndex::find_entries ──> positions, best first
//! ```
//!
//! The index belongs to one catalogue of one tenant and is made again from it, so nothing of it is on disk, in a
//! backup, or shared between tenants. It is no source of rights: a search ranks only the positions that its
//! caller permits. [`IndexBackend`] is where another database joins.

mod ranking;
mod terms;

use std::path::Path;

use serde_json::json;
use sqlx::ConnectOptions as _;
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use self::ranking::EntryTraits;
use crate::error::StoreError;

/// The most entries of one index; further ones are left out.
pub const MAX_INDEX_ENTRIES: usize = 20_000;

/// The candidates of one search that are ranked again, because a stuffed description may be among the first.
const MAX_CANDIDATES: u32 = 200;

/// The place of the index in error messages.
const IN_MEMORY: &str = ":memory:";

const CREATE: &str = "CREATE VIRTUAL TABLE entries USING fts5(name, about, more, content='', \
    tokenize='porter unicode61 remove_diacritics 2')";

const FILL: &str = "INSERT INTO entries(rowid, name, about, more) \
    SELECT key, json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') \
    FROM json_each($1)";

/// A term in a name counts four times as much as one in a description, and one in the text behind a third.
/// `bm25` bounds what repetition adds, and is negative: the best entry has the least.
const SELECT: &str = "SELECT rowid, bm25(entries, 4.0, 1.0, 0.3) AS score FROM entries \
    WHERE entries MATCH $1 AND rowid IN (SELECT value FROM json_each($2)) \
    ORDER BY score, rowid LIMIT $3";

/// An entry to find: hostile text of any length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexEntry {
    /// The name, for example `library/x/code-reviewer`.
    pub name: String,
    /// The description, without examples.
    pub about: String,
    /// Tags, and the beginning of the text behind the description.
    pub more: String,
}

/// Entries as terms, ready for the database.
#[derive(Debug, Clone, Default)]
pub struct PreparedEntries {
    rows: Vec<[String; 3]>,
    traits: Vec<EntryTraits>,
}

/// The index of one catalogue. Clones share it.
#[derive(Debug, Clone)]
pub struct TextIndex {
    backend: IndexBackend,
    traits: std::sync::Arc<[EntryTraits]>,
}

/// The database of an index.
#[derive(Debug, Clone)]
enum IndexBackend {
    /// One connection, whose memory holds the index.
    Sqlite(SqlitePool),
}

impl PreparedEntries {
    /// Splits entries into bounded lists of distinct terms. `None` = `is_stopped` returned true.
    pub fn prepare(
        entries: impl IntoIterator<Item = IndexEntry>,
        is_stopped: impl Fn() -> bool,
    ) -> Option<Self> {
        let mut prepared = Self::default();
        for entry in entries.into_iter().take(MAX_INDEX_ENTRIES) {
            if is_stopped() {
                return None;
            }
            let (row, traits) = ranking::prepare_entry(&entry);
            prepared.rows.push(row);
            prepared.traits.push(traits);
        }
        Some(prepared)
    }
}

impl TextIndex {
    /// Makes an index. The position of an entry is its place among the prepared entries.
    pub async fn build(entries: PreparedEntries) -> Result<Self, StoreError> {
        let PreparedEntries { rows, traits } = entries;
        let failed = |error| database_error("make the text index", &error);
        let options = SqliteConnectOptions::new()
            .filename(IN_MEMORY)
            .in_memory(true)
            .pragma("temp_store", "MEMORY")
            .disable_statement_logging();
        // One connection that is never closed: the index is its memory.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .min_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options)
            .await
            .map_err(failed)?;
        sqlx::query(CREATE).execute(&pool).await.map_err(failed)?;
        sqlx::query(FILL).bind(json!(rows).to_string()).execute(&pool).await.map_err(failed)?;
        Ok(Self { backend: IndexBackend::Sqlite(pool), traits: traits.into() })
    }

    /// The permitted entries that fit the words best, at most `limit`, the best first. An entry whose name is
    /// the words comes first; of several entries with one name and description, the first permitted one
    /// counts.
    pub async fn find_entries(
        &self,
        words: &str,
        permitted: &[usize],
        limit: usize,
    ) -> Result<Vec<usize>, StoreError> {
        let IndexBackend::Sqlite(pool) = &self.backend;
        let scored = match terms::match_expression(words) {
            None => Vec::new(),
            Some(expression) => {
                let rows = sqlx::query(SELECT)
                    .bind(expression)
                    .bind(json!(permitted).to_string())
                    .bind(MAX_CANDIDATES)
                    .fetch_all(pool)
                    .await
                    .map_err(|error| database_error("search the text index", &error))?;
                let pair = |row: &sqlx::sqlite::SqliteRow| {
                    let place = usize::try_from(row.try_get::<i64, _>(0).ok()?).ok()?;
                    Some((place, row.try_get::<f64, _>(1).ok()?))
                };
                rows.iter().filter_map(pair).collect()
            }
        };
        Ok(ranking::rank_entries(&self.traits, words, permitted, scored, limit))
    }

    /// The number of entries.
    pub fn entry_count(&self) -> usize {
        self.traits.len()
    }
}

fn database_error(what: &'static str, error: &sqlx::Error) -> StoreError {
    StoreError::from_database(what, Path::new(IN_MEMORY), error)
}
