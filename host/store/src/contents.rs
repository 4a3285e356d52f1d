//! Counts the rows that belong to a session and would be deleted with it.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::Store;

/// The number of rows that belong to a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct SessionContents {
    /// The messages of the person and of the agent.
    pub messages: i64,
    /// The runs of subagents.
    pub subagents: i64,
    /// The receipts of tool calls.
    pub receipts: i64,
    /// The attached files.
    pub attachments: i64,
    /// The bytes of the attached files.
    pub attachment_bytes: i64,
}

impl Store {
    /// Counts the contents of a session of this tenant; all numbers are 0 for another tenant's session.
    pub async fn read_contents(&self, session: &str) -> Result<SessionContents, StoreError> {
        let select = "SELECT (SELECT COUNT(*) FROM messages m WHERE m.session_id = s.id), \
            (SELECT COUNT(*) FROM subagent_sessions c WHERE c.session_id = s.id), \
            (SELECT COUNT(*) FROM receipts r WHERE r.session_id = s.id) + \
            (SELECT COALESCE(SUM(b.receipts), 0) FROM receipt_blocks b WHERE b.session_id = s.id), \
            (SELECT COUNT(*) FROM attachments a WHERE a.session_id = s.id), \
            (SELECT COALESCE(SUM(a.size), 0) FROM attachments a WHERE a.session_id = s.id) \
            FROM sessions s WHERE s.tenant = $1 AND s.id = $2";
        let row = self.select_row("count what a session has", select, [session.into()]).await?;
        let bad = |error| self.bad_row("the contents of a session".to_owned(), error);
        row.map_or_else(
            || Ok(SessionContents::default()),
            |row| contents_from_row(&row).map_err(bad),
        )
    }
}

/// Reads the counts from a row.
fn contents_from_row(row: &SqliteRow) -> Result<SessionContents, sqlx::Error> {
    Ok(SessionContents {
        messages: row.try_get(0)?,
        subagents: row.try_get(1)?,
        receipts: row.try_get(2)?,
        attachments: row.try_get(3)?,
        attachment_bytes: row.try_get(4)?,
    })
}
