//! Summaries of the older part of a session. The summarized messages stay stored.

use sqlx::Row as _;

use crate::error::StoreError;
use crate::open::Store;
use crate::statement::{NoRowMeaning, SqlStatement};

/// A summary of a session's messages up to a position.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Compaction {
    /// The position of the last summarised message.
    pub upto_sort_order: i64,
    /// The text that replaces the messages in requests to a model.
    pub text: String,
    /// When the summary was made, in milliseconds since 1970.
    pub created: i64,
}

impl Store {
    /// Stores a summary, and replaces an earlier one up to the same position.
    pub async fn save_compaction(
        &self,
        session: &str,
        compaction: &Compaction,
    ) -> Result<(), StoreError> {
        let upsert = "INSERT INTO compactions (session_id, upto_sort_order, text, created) \
            SELECT s.id, $3, $4, $5 FROM sessions s WHERE s.tenant = $1 AND s.id = $2 \
            ON CONFLICT (session_id, upto_sort_order) \
            DO UPDATE SET text = excluded.text, created = excluded.created";
        let args = [
            (&*self.tenant).into(),
            session.into(),
            compaction.upto_sort_order.into(),
            compaction.text.as_str().into(),
            compaction.created.into(),
        ];
        let save = SqlStatement::new("save a summary", NoRowMeaning::NoSession, upsert, args);
        self.commit_one(save).await
    }

    /// The latest summary of a session; `None` if there is none, or if the session is another tenant's.
    pub async fn latest_compaction(&self, session: &str) -> Result<Option<Compaction>, StoreError> {
        let select = "SELECT c.upto_sort_order, c.text, c.created FROM compactions c \
            JOIN sessions s ON s.id = c.session_id \
            WHERE s.tenant = $1 AND s.id = $2 ORDER BY c.upto_sort_order DESC LIMIT 1";
        let row = self.select_row("read a summary", select, [session.into()]).await?;
        let Some(row) = row else { return Ok(None) };
        let read = || -> Result<Compaction, sqlx::Error> {
            Ok(Compaction {
                upto_sort_order: row.try_get(0)?,
                text: row.try_get(1)?,
                created: row.try_get(2)?,
            })
        };
        read().map(Some).map_err(|error| self.bad_row("a summary".to_owned(), error))
    }
}
