//! Receipts in separate rows.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::{NewReceipt, ReceiptRow, StoredReceipt};
use crate::error::StoreError;
use crate::open::BadRow;
use crate::statement::{NoRowMeaning, SqlStatement};

/// The columns that [`receipt_from_row`] reads, of the table named `r`.
macro_rules! columns {
    () => {
        "r.message_id, r.id, r.agent, r.step, r.call_id, r.tool, r.ok, r.ending, r.fuel, r.micros, \
         r.body, r.created"
    };
}
pub(super) use columns;

/// The statement that adds a receipt to a message.
pub(crate) fn add_receipt(
    tenant: &str,
    session: &str,
    message: &str,
    row: NewReceipt,
) -> Result<SqlStatement, StoreError> {
    let insert = "INSERT INTO receipts (id, session_id, message_id, agent, step, call_id, tool, ok, \
        ending, fuel, micros, body, created) \
        SELECT $4, m.session_id, m.id, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14 \
        FROM messages m JOIN sessions s ON s.id = m.session_id \
        WHERE s.tenant = $1 AND s.id = $2 AND m.id = $3";
    let args = [
        tenant.into(),
        session.into(),
        message.into(),
        row.id.into(),
        row.agent.into(),
        row.step.into(),
        row.call_id.into(),
        row.tool.into(),
        row.ok.into(),
        row.ending.into(),
        row.fuel.into(),
        row.micros.into(),
        row.body.as_str().into(),
        row.created.into(),
    ];
    SqlStatement::new("store a receipt", NoRowMeaning::NoMessage, insert, args)
}

/// Reads a receipt from its row.
pub(super) fn receipt_from_row(row: &SqliteRow) -> Result<StoredReceipt, BadRow> {
    let receipt = ReceiptRow {
        id: row.try_get(1)?,
        agent: row.try_get(2)?,
        step: row.try_get(3)?,
        call_id: row.try_get(4)?,
        tool: row.try_get(5)?,
        ok: row.try_get::<i64, _>(6)? != 0,
        ending: row.try_get(7)?,
        fuel: row.try_get(8)?,
        micros: row.try_get(9)?,
        body: serde_json::from_str(row.try_get(10)?)?,
        created: row.try_get(11)?,
    };
    Ok(StoredReceipt { message: row.try_get(0)?, receipt })
}
