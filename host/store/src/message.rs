//! The messages of sessions: appending, finishing and reading them.

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
    /// The id, made by the caller; ids sort by time as text.
    pub id: String,
    /// Who wrote the message: a person or the agent.
    pub role: Role,
    /// The status; [`MessageStatus::InFlight`] for a placeholder, which is finished later.
    pub status: MessageStatus,
    /// The content, in the caller's form.
    pub content: Value,
    /// The metadata, in the caller's form.
    pub metadata: Value,
    /// When the message was written, in milliseconds since 1970.
    pub created: i64,
}

/// The result that replaces a placeholder when its turn ends.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageEnding {
    /// The status at the end.
    pub status: MessageStatus,
    /// The content.
    pub content: Value,
    /// The metadata.
    pub metadata: Value,
    /// When the turn ended, in milliseconds since 1970.
    pub updated: i64,
}

/// A stored message.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct StoredMessage {
    /// The id.
    pub id: String,
    /// The position in the session, from 1.
    pub sort_order: i64,
    /// Who wrote the message: a person or the agent.
    pub role: Role,
    /// The status.
    pub status: MessageStatus,
    /// The content.
    pub content: Value,
    /// The metadata.
    pub metadata: Value,
    /// When the message was appended, in milliseconds since 1970.
    pub created: i64,
    /// When the message was last changed, in milliseconds since 1970.
    pub updated: i64,
}

/// The statements that append messages to a session.
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

/// The statements that replace a placeholder by its result, and delete its journal.
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

/// The statement that replaces the metadata of a message.
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

/// The statements that mark placeholders as interrupted, and their subagents as cancelled. The last
/// statement's count is the number of placeholders.
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
    /// All messages of a session, oldest first.
    pub async fn list_messages(&self, session: &str) -> Result<Vec<StoredMessage>, StoreError> {
        let select = "SELECT m.id, m.sort_order, m.role, m.status, m.content, m.metadata, \
            m.created, m.updated FROM messages m JOIN sessions s ON s.id = m.session_id \
            WHERE s.tenant = $1 AND s.id = $2 ORDER BY m.sort_order";
        let rows = self.select_rows("read the messages", select, [session.into()]).await?;
        if rows.is_empty() {
            // Without rows, this read reports a session that is missing rather than empty.
            self.read_session(session).await?;
        }
        rows.iter().map(|row| self.stored_message(row)).collect()
    }

    /// Marks every placeholder of a session as interrupted and every unfinished subagent as cancelled, and
    /// deletes the journals. Returns the number of placeholders. The caller must be sure that no process
    /// works on the session any more.
    pub async fn interrupt_in_flight(&self, session: &str, now: i64) -> Result<u64, StoreError> {
        self.commit(interrupt_messages(&self.tenant, session, now)).changed_rows().await
    }

    /// Reads the columns of a row, in the order of the `SELECT`; an unknown word or invalid JSON is an error
    /// that names the message.
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
