//! Receipts: what calls of tools have done and used.

use std::sync::LazyLock;

use serde_json::Value;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::{BadRow, Store};
use crate::page::{Page, and_one, more};
use crate::session::MAX_LISTED;
use crate::statement::{Arg, Nothing, Statement};

/// The receipt of one call.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ReceiptRow {
    /// Made by the caller; sorts by time as text.
    pub id: String,
    /// The path of the agent that called, within the turn.
    pub agent: String,
    /// The agent's step.
    pub step: i64,
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Whether it succeeded.
    pub ok: bool,
    /// How it ended, in a word.
    pub ending: String,
    /// Fuel that it used.
    pub fuel: i64,
    /// How long it took, in microseconds.
    pub micros: i64,
    /// The whole receipt; the caller's own form.
    pub body: Value,
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
}

/// A receipt to store, with its contents as text already: whoever stores many at once has little to do.
#[derive(Debug, Clone, PartialEq)]
pub struct NewReceipt([Arg; COLUMNS]);

/// A receipt as it stands in the file.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct StoredReceipt {
    /// The placeholder of its turn.
    pub message: String,
    /// The receipt.
    #[serde(flatten)]
    pub receipt: ReceiptRow,
}

/// Statements for 1, 2, 4 and 8 rows. Each one goes to the database's thread and comes back, which costs more
/// than a row does. One of many rows would hold a processor from threads that answer somebody.
static INSERTS: LazyLock<[String; 4]> =
    LazyLock::new(|| std::array::from_fn(|power| insert(1 << power)));

/// More receipts of a message, in their order.
pub(crate) fn add(
    tenant: &str,
    session: &str,
    message: &str,
    rows: Vec<NewReceipt>,
    to: &mut Vec<Statement>,
) -> Result<(), StoreError> {
    let mut rows = rows.into_iter();
    let inserts: &'static [String; 4] = &INSERTS;
    while rows.len() > 0 {
        let fits = inserts.iter().enumerate().rev().find(|(power, _)| 1 << power <= rows.len());
        let Some((power, sql)) = fits else { break };
        let mut args = Vec::with_capacity(3 + (COLUMNS << power));
        args.extend([tenant.into(), session.into(), message.into()]);
        for row in rows.by_ref().take(1 << power) {
            args.extend(row.0);
        }
        to.push(Statement::new("store receipts", Nothing::NoMessage, sql, args)?);
    }
    Ok(())
}

/// The statement for so many rows; their columns follow the tenant, the session and the message. The places
/// have no numbers: the database would look for the one of each among all before it.
fn insert(rows: usize) -> String {
    let row = format!("({})", ["?"; COLUMNS].join(", "));
    let values = vec![row; rows].join(", ");
    format!(
        "WITH place (tenant, session, message) AS (VALUES (?, ?, ?)) \
         INSERT INTO receipts (id, session_id, message_id, agent, step, call_id, tool, ok, ending, \
         fuel, micros, body, created) \
         SELECT r.column1, m.session_id, m.id, r.column2, r.column3, r.column4, r.column5, r.column6, \
         r.column7, r.column8, r.column9, r.column10, r.column11 \
         FROM place CROSS JOIN sessions s CROSS JOIN messages m CROSS JOIN (VALUES {values}) r \
         WHERE s.tenant = place.tenant AND s.id = place.session \
         AND m.id = place.message AND m.session_id = s.id"
    )
}

/// Columns of a row that are its own.
const COLUMNS: usize = 11;

impl From<ReceiptRow> for NewReceipt {
    fn from(row: ReceiptRow) -> Self {
        Self([
            row.id.into(),
            row.agent.into(),
            row.step.into(),
            row.call_id.into(),
            row.tool.into(),
            row.ok.into(),
            row.ending.into(),
            row.fuel.into(),
            row.micros.into(),
            row.body.to_string().into(),
            row.created.into(),
        ])
    }
}

impl Store {
    /// The latest receipts of a session, or of one of its messages: at most `limit`, at most
    /// [`MAX_LISTED`]; the oldest of them first.
    pub async fn receipts(
        &self,
        session: &str,
        message: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredReceipt>, StoreError> {
        let select = "SELECT r.message_id, r.id, r.agent, r.step, r.call_id, r.tool, r.ok, \
            r.ending, r.fuel, r.micros, r.body, r.created \
            FROM receipts r JOIN sessions s ON s.id = r.session_id \
            WHERE s.tenant = $1 AND s.id = $2 AND r.message_id = COALESCE($3, r.message_id) \
            ORDER BY r.created DESC, r.id DESC LIMIT $4";
        let args = [session.into(), message.into(), i64::from(limit.min(MAX_LISTED)).into()];
        let rows = self.rows("read the receipts", select, args).await?;
        let bad = |why| self.bad_row("a receipt".to_owned(), why);
        rows.iter().rev().map(|row| stored(row).map_err(bad)).collect()
    }

    /// The same in pages: the latest, or those before one of them; no more behind the one with
    /// which they have `most_bytes`. Only where there are none is the page empty.
    pub async fn receipts_page(
        &self,
        session: &str,
        message: Option<&str>,
        before: Option<&str>,
        limit: u32,
        most_bytes: i64,
    ) -> Result<Page<StoredReceipt>, StoreError> {
        // The sizes first: a row that does not fit is not even read.
        let select = "WITH sized AS (SELECT r.id, r.created, octet_length(r.body) AS bytes \
            FROM receipts r JOIN sessions s ON s.id = r.session_id \
            WHERE s.tenant = $1 AND s.id = $2 AND r.message_id = COALESCE($3, r.message_id) \
            AND ($4 IS NULL OR (r.created, r.id) < \
            (SELECT b.created, b.id FROM receipts b WHERE b.session_id = $2 AND b.id = $4)) \
            ORDER BY r.created DESC, r.id DESC LIMIT $5), \
            summed AS (SELECT id, SUM(bytes) OVER (ORDER BY created DESC, id DESC) - bytes \
            AS newer, ROW_NUMBER() OVER (ORDER BY created DESC, id DESC) AS place FROM sized) \
            SELECT r.message_id, r.id, r.agent, r.step, r.call_id, r.tool, r.ok, r.ending, r.fuel, \
            r.micros, r.body, r.created, (SELECT COUNT(*) FROM sized) \
            FROM summed x JOIN receipts r ON r.id = x.id \
            WHERE x.newer < $6 AND x.place < $5 ORDER BY r.created DESC, r.id DESC";
        let failed = |error| self.failed("read the receipts", &error);
        let args = [
            session.into(),
            message.into(),
            before.into(),
            and_one(limit).into(),
            most_bytes.max(1).into(),
        ];
        let rows = self.rows("read the receipts", select, args).await?;
        let bad = |why| self.bad_row("a receipt".to_owned(), why);
        let receipts: Result<_, _> =
            rows.iter().rev().map(|row| stored(row).map_err(bad)).collect();
        Ok(Page { rows: receipts?, more: more(&rows).map_err(failed)? })
    }
}

pub(crate) fn stored(row: &SqliteRow) -> Result<StoredReceipt, BadRow> {
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
