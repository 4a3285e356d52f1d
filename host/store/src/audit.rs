//! The audit log: one line for each act, with the person or key that acted. The database itself refuses to
//! change a line, and to delete a line before its time.

use serde_json::Value;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::{BadRow, Store};
use crate::page::{ListPage, and_one, has_more_rows};
use crate::registry::Registry;
use crate::statement::{NoRowMeaning, SqlStatement, check_bytes, json_text};

/// The most bytes of a line's details: the request and the decision, not the outcome.
pub const MAX_DETAIL_BYTES: usize = 256 << 10;

/// A line of the audit log. It does not contain the tenant, because a store reads and writes only its own
/// tenant's lines.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct AuditEntry {
    /// The id, made by the caller; ids sort by time as text.
    pub id: String,
    /// The time of the act, in milliseconds since 1970.
    pub at: i64,
    /// Who acted: a key, the person at the command line, or an agent.
    pub actor: String,
    /// The action as one word.
    pub action: String,
    /// The object of the action, for example a session's id.
    pub object: String,
    /// Details in the caller's own form, at most [`MAX_DETAIL_BYTES`].
    pub detail: Value,
}

/// The statement that adds a line.
pub(crate) fn add_entry(tenant: &str, entry: AuditEntry) -> Result<SqlStatement, StoreError> {
    let insert = "INSERT INTO audit (tenant, id, at, actor, action, object, detail) \
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let detail = json_text("the detail of an audit entry", &entry.detail)?;
    check_bytes("the detail of an audit entry", detail.len(), MAX_DETAIL_BYTES)?;
    SqlStatement::new(
        "write to the audit log",
        NoRowMeaning::Fine,
        insert,
        [
            tenant.into(),
            entry.id.into(),
            entry.at.into(),
            entry.actor.into(),
            entry.action.into(),
            entry.object.into(),
            detail.into(),
        ],
    )
}

/// The most lines deleted in one transaction: few, so other writers do not wait long.
const MAX_PRUNED: i64 = 5_000;

impl Registry {
    /// Deletes all tenants' lines older than `before`, in milliseconds since 1970. From then on the database
    /// file refuses to delete later lines. Returns the number of deleted lines.
    pub async fn prune_audit(&self, before: i64) -> Result<u64, StoreError> {
        const WHAT: &str = "prune the audit log";
        let raise = "UPDATE audit_kept SET since = $1 WHERE since < $1";
        self.run_change(WHAT, NoRowMeaning::Fine, raise, [before.into()]).await?;
        let delete = "DELETE FROM audit WHERE id IN \
            (SELECT id FROM audit WHERE at < $1 ORDER BY at LIMIT $2)";
        let mut pruned = 0;
        loop {
            let args = [before.into(), MAX_PRUNED.into()];
            match self.run_change(WHAT, NoRowMeaning::Fine, delete, args).await? {
                0 => return Ok(pruned),
                some => pruned += some,
            }
        }
    }
}

impl Store {
    /// A page of the tenant's audit log, newest line first: the lines before an id, at most `limit` and
    /// [`crate::MAX_LISTED`], ending with the line that reaches `most_bytes`. It is empty only if no lines
    /// are left. Lines outlive a tenant; a later tenant of the same name does not see them.
    pub async fn read_audit(
        &self,
        before: Option<&str>,
        limit: u32,
        most_bytes: i64,
    ) -> Result<ListPage<AuditEntry>, StoreError> {
        self.audit_of(None, None, before, limit, most_bytes).await
    }

    /// Like [`Store::read_audit`], with only the lines of one actor or one action.
    pub async fn audit_of(
        &self,
        actor: Option<&str>,
        action: Option<&str>,
        before: Option<&str>,
        limit: u32,
        most_bytes: i64,
    ) -> Result<ListPage<AuditEntry>, StoreError> {
        // Sizes are read first, so a line that does not fit is not read at all.
        let select = "WITH sized AS (SELECT a.id, octet_length(a.detail) AS bytes FROM audit a \
            WHERE a.tenant = $1 \
            AND a.at >= COALESCE((SELECT t.created FROM tenants t WHERE t.name = $1), 0) \
            AND ($2 IS NULL OR a.id < $2) AND ($5 IS NULL OR a.actor = $5) \
            AND ($6 IS NULL OR a.action = $6) ORDER BY a.id DESC LIMIT $3), \
            summed AS (SELECT id, SUM(bytes) OVER (ORDER BY id DESC) - bytes AS newer, \
            ROW_NUMBER() OVER (ORDER BY id DESC) AS place FROM sized) \
            SELECT a.id, a.at, a.actor, a.action, a.object, a.detail, \
            (SELECT COUNT(*) FROM sized) FROM summed x JOIN audit a ON a.id = x.id \
            WHERE x.newer < $4 AND x.place < $3 ORDER BY a.id DESC";
        let failed = |error| self.database_error("read the audit log", &error);
        let args = [
            before.into(),
            and_one(limit).into(),
            most_bytes.max(1).into(),
            actor.into(),
            action.into(),
        ];
        let rows = self.select_rows("read the audit log", select, args).await?;
        let bad = |why| self.bad_row("an audit entry".to_owned(), why);
        let entries: Result<_, _> =
            rows.iter().map(|row| entry_from_row(row).map_err(bad)).collect();
        Ok(ListPage { rows: entries?, more: has_more_rows(&rows).map_err(failed)? })
    }
}

/// Reads a line from its row.
fn entry_from_row(row: &SqliteRow) -> Result<AuditEntry, BadRow> {
    Ok(AuditEntry {
        id: row.try_get(0)?,
        at: row.try_get(1)?,
        actor: row.try_get(2)?,
        action: row.try_get(3)?,
        object: row.try_get(4)?,
        detail: serde_json::from_str(row.try_get(5)?)?,
    })
}
