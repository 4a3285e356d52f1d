//! Lists in pages: each begins after the last row that the caller has seen. A page also ends after a number
//! of bytes, because strangers choose the size of rows.

use belljar_policy::ShownText;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::message::StoredMessage;
use crate::open::Store;
use crate::session::{MAX_LISTED, StoredSession};
use crate::words::SessionKind;

impl Store {
    /// A page of sessions by their last addition, newest first: those after the session `before` in this
    /// order, or all; at most `limit` and [`MAX_LISTED`]. If `before` does not exist, the page is empty.
    pub async fn sessions_page(
        &self,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredSession>, StoreError> {
        let Some(before) = before else { return self.latest_sessions(limit).await };
        let select = "SELECT s.id, s.title, s.agent, s.workspace, s.model, s.kind, s.created, \
            s.updated FROM sessions s JOIN sessions b ON b.tenant = s.tenant AND b.id = $2 \
            WHERE s.tenant = $1 \
            AND (s.updated < b.updated OR (s.updated = b.updated AND s.id < b.id)) \
            ORDER BY s.updated DESC, s.id DESC LIMIT $3";
        let args = [before.into(), i64::from(limit.min(MAX_LISTED)).into()];
        let rows = self.select_rows("list the sessions", select, args).await?;
        rows.iter().map(|row| self.session_from_row(row)).collect()
    }

    /// Like [`Self::sessions_page`], with only the sessions that match a filter. Reads all titles of the
    /// tenant.
    pub async fn sessions_found(
        &self,
        sought: &SessionFilter<'_>,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredSession>, StoreError> {
        let select = "SELECT s.id, s.title, s.agent, s.workspace, s.model, s.kind, s.created, \
            s.updated FROM sessions s LEFT JOIN sessions b ON b.tenant = s.tenant AND b.id = $2 \
            WHERE s.tenant = $1 AND ($2 IS NULL OR \
            s.updated < b.updated OR (s.updated = b.updated AND s.id < b.id)) \
            AND ($3 IS NULL OR s.kind = $3) \
            AND ($4 IS NULL OR LOWER(s.title) LIKE $4 ESCAPE '\\') \
            ORDER BY s.updated DESC, s.id DESC LIMIT $5";
        let like = sought.title.map(like_pattern);
        let kind = sought.kind.map(SessionKind::as_str);
        let limit = i64::from(limit.min(MAX_LISTED));
        let args = [before.into(), kind.into(), like.into(), limit.into()];
        let rows = self.select_rows("look for sessions", select, args).await?;
        rows.iter().map(|row| self.session_from_row(row)).collect()
    }

    /// One message of a session.
    pub async fn read_message(&self, session: &str, id: &str) -> Result<StoredMessage, StoreError> {
        let select = "SELECT m.id, m.sort_order, m.role, m.status, m.content, m.metadata, \
            m.created, m.updated FROM messages m JOIN sessions s ON s.id = m.session_id \
            WHERE s.tenant = $1 AND s.id = $2 AND m.id = $3";
        let row = self.select_row("read a message", select, [session.into(), id.into()]).await?;
        match row {
            Some(row) => self.stored_message(&row),
            None => {
                let id = ShownText::clip_line(id, 64).to_string();
                Err(StoreError::NotFound { what: "message", id })
            }
        }
    }

    /// The latest messages of a session, oldest first: those at positions below `before`, or all; at most
    /// `limit` and [`MAX_LISTED`], ending with the message that reaches `most_bytes`. It is empty only if no
    /// messages are left, or if the session is not this tenant's.
    pub async fn messages_page(
        &self,
        session: &str,
        before: Option<i64>,
        limit: u32,
        most_bytes: i64,
    ) -> Result<ListPage<StoredMessage>, StoreError> {
        // Sizes are read first, so a row that does not fit is not read at all.
        let select = "WITH sized AS (SELECT m.id, m.sort_order, \
            octet_length(m.content) + octet_length(m.metadata) AS bytes \
            FROM messages m JOIN sessions s ON s.id = m.session_id \
            WHERE s.tenant = $1 AND s.id = $2 AND m.sort_order < $3 \
            ORDER BY m.sort_order DESC LIMIT $4), \
            summed AS (SELECT id, SUM(bytes) OVER (ORDER BY sort_order DESC) - bytes AS newer, \
            ROW_NUMBER() OVER (ORDER BY sort_order DESC) AS place FROM sized) \
            SELECT m.id, m.sort_order, m.role, m.status, m.content, m.metadata, m.created, \
            m.updated, (SELECT COUNT(*) FROM sized) FROM summed x JOIN messages m ON m.id = x.id \
            WHERE x.newer < $5 AND x.place <= $6 ORDER BY m.sort_order DESC";
        let failed = |error| self.database_error("read the messages", &error);
        let limit = i64::from(limit.min(MAX_LISTED));
        let args = [
            session.into(),
            before.unwrap_or(i64::MAX).into(),
            // One more row than requested shows whether further rows exist.
            limit.saturating_add(1).into(),
            most_bytes.max(1).into(),
            limit.into(),
        ];
        let rows = self.select_rows("read the messages", select, args).await?;
        let more = has_more_rows(&rows).map_err(failed)?;
        let messages: Result<_, _> =
            rows.iter().rev().map(|row| self.stored_message(row)).collect();
        Ok(ListPage { rows: messages?, more })
    }
}

/// Returns whether rows follow after a page. The last column of each row is the number of rows that were
/// found, including the first one after the page.
pub(crate) fn has_more_rows(rows: &[SqliteRow]) -> Result<bool, sqlx::Error> {
    let Some(row) = rows.first() else { return Ok(false) };
    let found: i64 = row.try_get(row.len().saturating_sub(1))?;
    Ok(usize::try_from(found).is_ok_and(|found| found > rows.len()))
}

/// The number of rows to select: as requested, at most [`MAX_LISTED`], and one more, which shows whether
/// further rows exist.
pub(crate) fn and_one(limit: u32) -> i64 {
    i64::from(limit.min(MAX_LISTED)).saturating_add(1)
}

/// A filter of sessions; `None` in a field = any value.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionFilter<'a> {
    /// A part of the title; upper and lower case of ASCII letters are equal.
    pub title: Option<&'a str>,
    /// The kind.
    pub kind: Option<SessionKind>,
}

/// The SQL `LIKE` pattern for texts that contain `text`.
fn like_pattern(text: &str) -> String {
    let mut pattern = "%".to_owned();
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter.to_ascii_lowercase());
    }
    pattern.push('%');
    pattern
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPage<T> {
    /// The rows in the list's order.
    pub rows: Vec<T>,
    /// True if further rows follow.
    pub more: bool,
}
