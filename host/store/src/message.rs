//! Messages: appended, finished, and read in order.

use belljar_policy::ShownText;
use serde_json::Value;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::Store;
use crate::statement::{NoRowMeaning, SqlStatement, json_text};
use crate::words::{MessageStatus, Role, SubagentStatus};
use crate::{journal, session};

/// A message to append.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// Made by the caller; sorts by time as text.
    pub id: String,
    /// The sender.
    pub role: Role,
    /// [`MessageStatus::InFlight`] for a placeholder.
    pub status: MessageStatus,
    /// The content, in the caller's form.
    pub content: Value,
    /// The metadata, in the caller's form.
    pub metadata: Value,
    /// The time of the message, in milliseconds since 1970.
    pub created: i64,
}

/// The content of a placeholder that ends.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageEnding {
    /// The status at the end.
    pub status: MessageStatus,
    /// The content.
    pub content: Value,
    /// The metadata.
    pub metadata: Value,
    /// The time of the change, in milliseconds since 1970.
    pub updated: i64,
}

/// A message as stored.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct StoredMessage {
    /// The id.
    pub id: String,
    /// The place in the session, from 1.
    pub sort_order: i64,
    /// The sender.
    pub role: Role,
    /// The status.
    pub status: MessageStatus,
    /// The content.
    pub content: Value,
    /// The metadata.
    pub metadata: Value,
    /// The time of appending, in milliseconds since 1970.
    pub created: i64,
    /// The time of the last change, in milliseconds since 1970.
    pub updated: i64,
}

/// New messages at the end of a session.
pub(crate) fn append_messages(
    tenant: &str,
    session: &str,
    messages: &[NewMessage],
    to: &mut Vec<SqlStatement>,
) -> Result<(), StoreError> {
    let insert = "INSERT INTO messages \
        (id, session_id, sort_order, role, status, content, metadata, created, updated) \
        SELECT $3, s.id, (SELECT COALESCE(MAX(m.sort_order), 0) + 1 FROM messages m \
        WHERE m.session_id = s.id), $4, $5, $6, $7, $8, $8 \
        FROM sessions s WHERE s.tenant = $1 AND s.id = $2";
    let Some(latest) = messages.iter().map(|message| message.created).max() else { return Ok(()) };
    to.push(session::touch_session(tenant, session, latest)?);
    for message in messages {
        to.push(SqlStatement::new(
            "append a message",
            NoRowMeaning::NoSession,
            insert,
            [
                tenant.into(),
                session.into(),
                message.id.as_str().into(),
                message.role.as_str().into(),
                message.status.as_str().into(),
                json_text("a message", &message.content)?.into(),
                json_text("a message", &message.metadata)?.into(),
                message.created.into(),
            ],
        )?);
    }
    Ok(())
}

/// Replaces a placeholder by its outcome, and deletes the journal.
pub(crate) fn finish_message(
    tenant: &str,
    session: &str,
    id: &str,
    finished: &MessageEnding,
    to: &mut Vec<SqlStatement>,
) -> Result<(), StoreError> {
    let update = "UPDATE messages SET status = $4, content = $5, metadata = $6, updated = $7 \
        WHERE session_id = $2 AND id = $3 AND status = 'in_flight' \
        AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = $2 AND s.tenant = $1)";
    to.push(session::touch_session(tenant, session, finished.updated)?);
    to.push(SqlStatement::new(
        "finish a message",
        NoRowMeaning::NotInFlight,
        update,
        [
            tenant.into(),
            session.into(),
            id.into(),
            finished.status.as_str().into(),
            json_text("a message", &finished.content)?.into(),
            json_text("a message", &finished.metadata)?.into(),
            finished.updated.into(),
        ],
    )?);
    to.push(journal::delete_journal(tenant, session, id)?);
    Ok(())
}

/// New metadata of a message.
pub(crate) fn replace_metadata(
    tenant: &str,
    session: &str,
    id: &str,
    metadata: &Value,
    updated: i64,
) -> Result<SqlStatement, StoreError> {
    let update = "UPDATE messages SET metadata = $4, updated = $5 \
        WHERE session_id = $2 AND id = $3 \
        AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = $2 AND s.tenant = $1)";
    SqlStatement::new(
        "update a message",
        NoRowMeaning::NoMessage,
        update,
        [
            tenant.into(),
            session.into(),
            id.into(),
            json_text("a message", metadata)?.into(),
            updated.into(),
        ],
    )
}

/// Marks placeholders as interrupted, and their subagents as cancelled. The last statement counts the
/// placeholders.
fn interrupt_messages(
    tenant: &str,
    session: &str,
    now: i64,
) -> Result<Vec<SqlStatement>, StoreError> {
    const WHAT: &str = "mark interrupted turns";
    let journal = "DELETE FROM journal WHERE session_id = $2 AND message_id IN \
        (SELECT m.id FROM messages m WHERE m.session_id = $2 AND m.status = 'in_flight') \
        AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = $2 AND s.tenant = $1)";
    let subagents = "UPDATE subagent_sessions SET status = $3, ended = $4, error = $5 \
        WHERE session_id = $2 AND status IN ($6, $7) \
        AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = $2 AND s.tenant = $1)";
    let messages = "UPDATE messages SET status = $3, updated = $4 \
        WHERE session_id = $2 AND status = 'in_flight' \
        AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = $2 AND s.tenant = $1)";
    Ok(vec![
        SqlStatement::new(WHAT, NoRowMeaning::Fine, journal, [tenant.into(), session.into()])?,
        SqlStatement::new(
            WHAT,
            NoRowMeaning::Fine,
            subagents,
            [
                tenant.into(),
                session.into(),
                SubagentStatus::Cancelled.as_str().into(),
                now.into(),
                "the program ended while it ran".into(),
                SubagentStatus::Queued.as_str().into(),
                SubagentStatus::Running.as_str().into(),
            ],
        )?,
        SqlStatement::new(
            WHAT,
            NoRowMeaning::Fine,
            messages,
            [tenant.into(), session.into(), MessageStatus::Interrupted.as_str().into(), now.into()],
        )?,
    ])
}

impl Store {
    /// The messages of a session, the oldest first.
    pub async fn list_messages(&self, session: &str) -> Result<Vec<StoredMessage>, StoreError> {
        let select = "SELECT m.id, m.sort_order, m.role, m.status, m.content, m.metadata, \
            m.created, m.updated FROM messages m JOIN sessions s ON s.id = m.session_id \
            WHERE s.tenant = $1 AND s.id = $2 ORDER BY m.sort_order";
        let rows = self.select_rows("read the messages", select, [session.into()]).await?;
        if rows.is_empty() {
            // An error here distinguishes a missing session from an empty one.
            self.read_session(session).await?;
        }
        rows.iter().map(|row| self.stored_message(row)).collect()
    }

    /// Marks every placeholder of a session as interrupted, deletes the journals, and marks every waiting or
    /// running subagent as cancelled. Returns the number of placeholders. The caller must know that no
    /// process works on the session any more.
    pub async fn interrupt_in_flight(&self, session: &str, now: i64) -> Result<u64, StoreError> {
        self.commit(interrupt_messages(&self.tenant, session, now)).changed_rows().await
    }

    pub(crate) fn stored_message(&self, row: &SqliteRow) -> Result<StoredMessage, StoreError> {
        let column = |error: sqlx::Error| self.bad_row("a message".to_owned(), error);
        let id: String = row.try_get(0).map_err(column)?;
        let named = || format!("message `{}`", ShownText::clip_line(&id, 64));
        let (role, status): (String, String) =
            (row.try_get(2).map_err(column)?, row.try_get(3).map_err(column)?);
        let unknown = |what: &str, word: &str| {
            self.bad_row(named(), format!("unknown {what} `{}`", ShownText::clip_line(word, 40)))
        };
        let value = |index: usize| -> Result<Value, StoreError> {
            let text: String = row.try_get(index).map_err(column)?;
            serde_json::from_str(&text).map_err(|error| self.bad_row(named(), error))
        };
        Ok(StoredMessage {
            sort_order: row.try_get(1).map_err(column)?,
            role: Role::parse(&role).ok_or_else(|| unknown("role", &role))?,
            status: MessageStatus::parse(&status).ok_or_else(|| unknown("status", &status))?,
            content: value(4)?,
            metadata: value(5)?,
            created: row.try_get(6).map_err(column)?,
            updated: row.try_get(7).map_err(column)?,
            id,
        })
    }
}
