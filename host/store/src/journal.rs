//! The journal of running turns: their steps so far, from which a turn is resumed after its process has died.
//! It is deleted with the end of the turn; a run's answers and results stay, for replay.

use belljar_policy::ShownText;
use serde_json::Value;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::{BadRow, Store};
use crate::statement::{NoRowMeaning, SqlStatement, json_text};
use crate::words::{JournalKind, SessionKind};

/// One entry in the journal of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    /// The path of the agent within the turn.
    pub agent: String,
    /// The number of the agent's step.
    pub step: i64,
    /// The position within the step.
    pub position: i64,
    /// The kind.
    pub kind: JournalKind,
    /// The content, in the caller's form.
    pub body: Value,
}

/// The statement that appends an entry to the journal of a message.
pub(crate) fn add_entry(
    tenant: &str,
    session: &str,
    message: &str,
    entry: JournalEntry,
) -> Result<SqlStatement, StoreError> {
    let insert = "INSERT INTO journal \
        (session_id, message_id, seq, agent, step, position, kind, body) \
        SELECT m.session_id, m.id, (SELECT COALESCE(MAX(j.seq), 0) + 1 FROM journal j \
        WHERE j.session_id = m.session_id AND j.message_id = m.id), $4, $5, $6, $7, $8 \
        FROM messages m JOIN sessions s ON s.id = m.session_id \
        WHERE s.tenant = $1 AND s.id = $2 AND m.id = $3 AND m.status = 'in_flight'";
    let body = json_text("a journal entry", &entry.body)?;
    SqlStatement::new(
        "journal a step",
        NoRowMeaning::NotInFlight,
        insert,
        [
            tenant.into(),
            session.into(),
            message.into(),
            entry.agent.into(),
            entry.step.into(),
            entry.position.into(),
            entry.kind.as_str().into(),
            body.into(),
        ],
    )
}

/// The statement that deletes the journal of an ended turn. A conversation's messages contain the answers and
/// results too; those of a run's subagents are only in the journal, so these entries stay. The ending of a
/// subagent is stored in a separate row.
pub(crate) fn delete_journal(
    tenant: &str,
    session: &str,
    message: &str,
) -> Result<SqlStatement, StoreError> {
    let delete = "DELETE FROM journal WHERE session_id = $2 AND message_id = $3 \
        AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = $2 AND s.tenant = $1 \
        AND (s.kind <> $4 OR journal.kind = $5))";
    let args = [
        tenant.into(),
        session.into(),
        message.into(),
        SessionKind::Run.as_str().into(),
        JournalKind::Child.as_str().into(),
    ];
    SqlStatement::new("delete a journal", NoRowMeaning::Fine, delete, args)
}

impl Store {
    /// The journal of a turn in flight or of a run, in the order of writing. Empty for a finished turn of a
    /// conversation, and for another tenant's turn.
    pub async fn journal_of(
        &self,
        session: &str,
        message: &str,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        let select = "SELECT j.agent, j.step, j.position, j.kind, j.body, j.seq FROM journal j \
            JOIN sessions s ON s.id = j.session_id \
            WHERE s.tenant = $1 AND s.id = $2 AND j.message_id = $3 ORDER BY j.seq";
        let rows =
            self.select_rows("read a journal", select, [session.into(), message.into()]).await?;
        let named = || format!("the journal of message `{}`", ShownText::clip_line(message, 64));
        rows.iter()
            .map(|row| entry_from_row(row).map_err(|why| self.bad_row(named(), why)))
            .collect()
    }
}

/// Reads an entry from its row.
fn entry_from_row(row: &SqliteRow) -> Result<JournalEntry, BadRow> {
    Ok(JournalEntry {
        agent: row.try_get(0)?,
        step: row.try_get(1)?,
        position: row.try_get(2)?,
        kind: row.try_get::<&str, _>(3)?.parse()?,
        body: serde_json::from_str(row.try_get(4)?)?,
    })
}
