//! Turns: a person's message with the agent's answer, listed and found across sessions; and the deletion of
//! old runs, which are sessions of one turn.

use belljar_policy::ShownText;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::message::StoredMessage;
use crate::open::Store;
use crate::session::{MAX_LISTED, StoredSession};
use crate::statement::{NoRowMeaning, SqlStatement};
use crate::words::{MessageStatus, Role};

/// The most turns that an error names if a prefix matches several.
const MAX_NAMED: i64 = 5;

/// A text that sorts after every id, because ids are ASCII.
const LAST: &str = "\u{7f}";

/// A turn, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTurn {
    /// The session of the turn.
    pub session: StoredSession,
    /// The person's message; `None` if no message precedes the answer.
    pub asked: Option<StoredMessage>,
    /// The agent's answer, or its placeholder.
    pub answer: StoredMessage,
}

impl Store {
    /// The turns of all sessions, newest answer first: those whose answer's id is below `before`, or all; at
    /// most `limit` and [`MAX_LISTED`].
    pub async fn list_turns(
        &self,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredTurn>, StoreError> {
        let select = "SELECT m.session_id, m.id FROM messages m \
            JOIN sessions s ON s.id = m.session_id \
            WHERE s.tenant = $1 AND m.role = 'assistant' AND m.id < $2 \
            ORDER BY m.id DESC LIMIT $3";
        let args = [before.unwrap_or(LAST).into(), i64::from(limit.min(MAX_LISTED)).into()];
        let rows = self.select_rows("list the turns", select, args).await?;
        self.turns_at(&rows).await
    }

    /// The unfinished turns of this tenant, oldest session first.
    pub async fn in_flight(&self) -> Result<Vec<StoredTurn>, StoreError> {
        let select = "SELECT m.session_id, m.id FROM messages m \
            JOIN sessions s ON s.id = m.session_id \
            WHERE s.tenant = $1 AND m.status = 'in_flight' ORDER BY m.session_id, m.sort_order";
        let rows = self.select_rows("look for turns in flight", select, []).await?;
        let mut turns = self.turns_at(&rows).await?;
        // Some may have ended between the two reads.
        turns.retain(|turn| turn.answer.status == MessageStatus::InFlight);
        Ok(turns)
    }

    /// The turn whose answer has this id.
    pub async fn read_turn(&self, session: &str, answer: &str) -> Result<StoredTurn, StoreError> {
        let answer = self.read_message(session, answer).await?;
        let before = self.messages_page(session, Some(answer.sort_order), 1, i64::MAX).await?;
        let asked = before.rows.into_iter().find(|message| message.role == Role::User);
        Ok(StoredTurn { session: self.read_session(session).await?, asked, answer })
    }

    /// A turn whose answer's id is `prefix` or begins with it.
    pub async fn find_turn(&self, prefix: &str) -> Result<StoredTurn, StoreError> {
        let none = || StoreError::NotFound { what: "run", id: shown_id(prefix) };
        if prefix.is_empty() {
            return Err(none());
        }
        let select = "SELECT m.session_id, m.id FROM messages m \
            JOIN sessions s ON s.id = m.session_id \
            WHERE s.tenant = $1 AND m.role = 'assistant' AND m.id >= $2 AND m.id < $3 \
            ORDER BY m.id LIMIT $4";
        let args = [prefix.into(), format!("{prefix}{LAST}").into(), MAX_NAMED.into()];
        let rows = self.select_rows("look for a turn", select, args).await?;
        let found: Vec<_> =
            rows.iter().map(|row| self.turn_place(row)).collect::<Result<_, _>>()?;
        match found.as_slice() {
            [] => Err(none()),
            [(session, id)] => self.read_turn(session, id).await,
            [(session, id), ..] if id == prefix => self.read_turn(session, id).await,
            several => {
                let ids: Vec<&str> = several.iter().map(|(_, id)| id.as_str()).collect();
                let ids = ids.join(", ");
                Err(StoreError::Ambiguous { what: "runs", prefix: shown_id(prefix), ids })
            }
        }
    }

    /// The last turn of a session; `None` if it has none.
    pub async fn latest_turn(&self, session: &str) -> Result<Option<StoredTurn>, StoreError> {
        let newest = self.messages_page(session, None, 1, i64::MAX).await?;
        match newest.rows.first() {
            Some(answer) if answer.role == Role::Assistant => {
                self.read_turn(session, &answer.id).await.map(Some)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// The ids of all ended runs except for the newest `keep`, newest first. Sessions that are no runs or
    /// have a turn in flight do not count.
    pub async fn runs_past(&self, keep: u64) -> Result<Vec<String>, StoreError> {
        let select = "SELECT s.id FROM sessions s \
            WHERE s.tenant = $1 AND s.kind IN ('run', 'team') AND NOT EXISTS \
            (SELECT 1 FROM messages m WHERE m.session_id = s.id AND m.status = 'in_flight') \
            ORDER BY s.id DESC LIMIT $2 OFFSET $3";
        let failed = |error| self.database_error("look for older runs", &error);
        let args = [i64::MAX.into(), i64::try_from(keep).unwrap_or(i64::MAX).into()];
        let rows = self.select_rows("look for older runs", select, args).await?;
        rows.iter().map(|row| row.try_get(0).map_err(failed)).collect()
    }

    /// Deletes a run with all its contents. Returns false if it is missing, has become a conversation, or is
    /// in flight again.
    pub async fn delete_run(&self, id: &str) -> Result<bool, StoreError> {
        let delete = "DELETE FROM sessions WHERE tenant = $1 AND id = $2 \
            AND kind IN ('run', 'team') AND NOT EXISTS \
            (SELECT 1 FROM messages m WHERE m.session_id = $2 AND m.status = 'in_flight')";
        let args = [(&*self.tenant).into(), id.into()];
        let delete = SqlStatement::new("delete a run", NoRowMeaning::Fine, delete, args);
        Ok(self.commit_one(delete).changed_rows().await? > 0)
    }

    /// Reads the turns of the given rows, except for those that were deleted meanwhile.
    async fn turns_at(&self, rows: &[SqliteRow]) -> Result<Vec<StoredTurn>, StoreError> {
        let mut turns = Vec::with_capacity(rows.len());
        for row in rows {
            let (session, id) = self.turn_place(row)?;
            match self.read_turn(&session, &id).await {
                Ok(turn) => turns.push(turn),
                Err(StoreError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(turns)
    }

    fn turn_place(&self, row: &SqliteRow) -> Result<(String, String), StoreError> {
        let read =
            || -> Result<(String, String), sqlx::Error> { Ok((row.try_get(0)?, row.try_get(1)?)) };
        read().map_err(|error| self.bad_row("a turn".to_owned(), error))
    }
}

fn shown_id(id: &str) -> String {
    ShownText::clip_line(id, 64).to_string()
}
