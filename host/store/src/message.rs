//! Messages: appended, finished, read in their order.

use belljar_policy::Shown;
use serde_json::Value;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::Store;
use crate::session::not_found;
use crate::words::{MessageStatus, Role, SubagentStatus};

/// Most bytes of one JSON value in a row: a turn at the largest context of any provider, with
/// room for its escapes.
pub const MAX_JSON_BYTES: usize = 64 << 20;

/// A message to append.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// Made by the caller; sorts by time as text.
    pub id: String,
    /// Who it is from.
    pub role: Role,
    /// [`MessageStatus::InFlight`] for a placeholder.
    pub status: MessageStatus,
    /// What it says; the caller's own form.
    pub content: Value,
    /// What is known about it; the caller's own form.
    pub metadata: Value,
    /// When, in milliseconds since 1970.
    pub created: i64,
}

/// What a placeholder becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// How it ended.
    pub status: MessageStatus,
    /// What it says.
    pub content: Value,
    /// What is known about it.
    pub metadata: Value,
    /// When, in milliseconds since 1970.
    pub updated: i64,
}

/// A message as it stands in the file.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct StoredMessage {
    /// Its id.
    pub id: String,
    /// Its place in the session, from 1.
    pub sort_order: i64,
    /// Who it is from.
    pub role: Role,
    /// How far it is.
    pub status: MessageStatus,
    /// What it says.
    pub content: Value,
    /// What is known about it.
    pub metadata: Value,
    /// When it was appended, in milliseconds since 1970.
    pub created: i64,
    /// When it was last changed, in milliseconds since 1970.
    pub updated: i64,
}

impl Store {
    /// Appends messages to a session, all or none. Two processes that append at the same time
    /// get different places.
    pub async fn append_messages(
        &self,
        session: &str,
        messages: &[NewMessage],
    ) -> Result<(), StoreError> {
        const WHAT: &str = "append a message";
        let insert = "INSERT INTO messages \
            (id, session_id, sort_order, role, status, content, metadata, created, updated) \
            SELECT $1, $2, COALESCE(MAX(sort_order), 0) + 1, $3, $4, $5, $6, $7, $7 \
            FROM messages WHERE session_id = $2";
        let mut rows = Vec::with_capacity(messages.len());
        for message in messages {
            rows.push((
                message,
                json("a message", &message.content)?,
                json("a message", &message.metadata)?,
            ));
        }
        let mut write = self.write(WHAT).await?;
        for (message, content, metadata) in rows {
            self.touch(&mut write, session, message.created).await?;
            sqlx::query(insert)
                .bind(&message.id)
                .bind(session)
                .bind(message.role.as_str())
                .bind(message.status.as_str())
                .bind(content)
                .bind(metadata)
                .bind(message.created)
                .execute(&mut *write)
                .await
                .map_err(|error| self.failed(WHAT, &error))?;
        }
        write.commit().await.map_err(|error| self.failed(WHAT, &error))
    }

    /// Appends one message.
    pub async fn append_message(
        &self,
        session: &str,
        message: &NewMessage,
    ) -> Result<(), StoreError> {
        self.append_messages(session, std::slice::from_ref(message)).await
    }

    /// Puts the result in the place of a placeholder. A message is finished once: a second
    /// time is [`StoreError::Finished`] and changes nothing.
    pub async fn finish_message(
        &self,
        session: &str,
        id: &str,
        finished: &Finished,
    ) -> Result<(), StoreError> {
        const WHAT: &str = "finish a message";
        let (content, metadata) =
            (json("a message", &finished.content)?, json("a message", &finished.metadata)?);
        let update = "UPDATE messages \
            SET status = $1, content = $2, metadata = $3, updated = $4 \
            WHERE id = $5 AND session_id = $6 AND status = $7";
        let mut write = self.write(WHAT).await?;
        self.touch(&mut write, session, finished.updated).await?;
        let done = sqlx::query(update)
            .bind(finished.status.as_str())
            .bind(content)
            .bind(metadata)
            .bind(finished.updated)
            .bind(id)
            .bind(session)
            .bind(MessageStatus::InFlight.as_str())
            .execute(&mut *write)
            .await
            .map_err(|error| self.failed(WHAT, &error))?;
        if done.rows_affected() == 0 {
            let id = Shown::clipped(id, 64).to_string();
            return Err(match self.has_message(session, &id).await? {
                true => StoreError::Finished { id },
                false => StoreError::NotFound { what: "message", id },
            });
        }
        write.commit().await.map_err(|error| self.failed(WHAT, &error))
    }

    /// The messages of a session, the oldest first.
    pub async fn messages(&self, session: &str) -> Result<Vec<StoredMessage>, StoreError> {
        let select = "SELECT m.id, m.sort_order, m.role, m.status, m.content, m.metadata, \
            m.created, m.updated FROM messages m JOIN sessions s ON s.id = m.session_id \
            WHERE s.tenant = $1 AND s.id = $2 ORDER BY m.sort_order";
        let rows = sqlx::query(select)
            .bind(&*self.tenant)
            .bind(session)
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.failed("read the messages", &error))?;
        if rows.is_empty() {
            // Tells an empty session from none.
            self.session(session).await?;
        }
        rows.iter().map(|row| self.stored_message(row)).collect()
    }

    /// Marks every placeholder of a session as interrupted, and every subagent that waited or
    /// ran as cancelled: for a caller that knows that none of them is being worked on any more.
    /// Gives how many placeholders there were.
    pub async fn interrupt_in_flight(&self, session: &str, now: i64) -> Result<u64, StoreError> {
        const WHAT: &str = "mark interrupted turns";
        let messages = "UPDATE messages SET status = $1, updated = $2 \
            WHERE session_id = $3 AND status = $4 \
            AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = $3 AND s.tenant = $5)";
        let subagents = "UPDATE subagent_sessions SET status = $1, ended = $2, error = $6 \
            WHERE session_id = $3 AND status IN ($4, $7) \
            AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = $3 AND s.tenant = $5)";
        let failed = |error: sqlx::Error| self.failed(WHAT, &error);
        let mut write = self.write(WHAT).await?;
        sqlx::query(subagents)
            .bind(SubagentStatus::Cancelled.as_str())
            .bind(now)
            .bind(session)
            .bind(SubagentStatus::Queued.as_str())
            .bind(&*self.tenant)
            .bind("the program ended while it ran")
            .bind(SubagentStatus::Running.as_str())
            .execute(&mut *write)
            .await
            .map_err(failed)?;
        let done = sqlx::query(messages)
            .bind(MessageStatus::Interrupted.as_str())
            .bind(now)
            .bind(session)
            .bind(MessageStatus::InFlight.as_str())
            .bind(&*self.tenant)
            .execute(&mut *write)
            .await
            .map_err(failed)?;
        write.commit().await.map_err(failed)?;
        Ok(done.rows_affected())
    }

    /// Notes that something was added to a session of this tenant; an error if there is none.
    pub(crate) async fn touch(
        &self,
        write: &mut sqlx::SqliteConnection,
        session: &str,
        now: i64,
    ) -> Result<(), StoreError> {
        let update = "UPDATE sessions \
            SET updated = CASE WHEN updated < $1 THEN $1 ELSE updated END \
            WHERE tenant = $2 AND id = $3";
        let done = sqlx::query(update)
            .bind(now)
            .bind(&*self.tenant)
            .bind(session)
            .execute(write)
            .await
            .map_err(|error| self.failed("update a session", &error))?;
        if done.rows_affected() == 0 { Err(not_found(session)) } else { Ok(()) }
    }

    async fn has_message(&self, session: &str, id: &str) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT 1 FROM messages WHERE id = $1 AND session_id = $2")
            .bind(id)
            .bind(session)
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.failed("look for a message", &error))?;
        Ok(row.is_some())
    }

    fn stored_message(&self, row: &SqliteRow) -> Result<StoredMessage, StoreError> {
        let column = |error: sqlx::Error| self.bad_row("a message".to_owned(), error);
        let id: String = row.try_get(0).map_err(column)?;
        let named = || format!("message `{}`", Shown::clipped(&id, 64));
        let (role, status): (String, String) =
            (row.try_get(2).map_err(column)?, row.try_get(3).map_err(column)?);
        let unknown = |what: &str, word: &str| {
            self.bad_row(named(), format!("unknown {what} `{}`", Shown::clipped(word, 40)))
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

/// A JSON value as text, within its bound.
pub(crate) fn json(what: &'static str, value: &Value) -> Result<String, StoreError> {
    let text = value.to_string();
    if text.len() > MAX_JSON_BYTES {
        return Err(StoreError::TooLarge { what, bytes: text.len() });
    }
    Ok(text)
}
