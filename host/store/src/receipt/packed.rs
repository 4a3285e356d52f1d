//! Several receipts in one row: a JSON array, compressed with LZ4. Most of the text repeats, so packed
//! receipts need little space and little time to write.

use serde_json::value::RawValue;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::{NewReceipt, ReceiptRow, StoredReceipt, row};
use crate::error::StoreError;
use crate::open::BadRow;
use crate::statement::{NoRowMeaning, SqlStatement, check_bytes};

/// The fewest receipts that are packed; fewer get separate rows.
const MIN_PACKED: usize = 4;

/// The most receipts of one packed row.
const MAX_PACKED: usize = 128;

/// The most bytes of contents of a packed receipt; a larger one gets a separate row.
const MAX_SMALL: usize = 16 << 10;

/// The bytes of contents after which a packed row gets no more receipts.
const MAX_CONTENTS: usize = 512 << 10;

/// The most bytes of a packed row after decompression.
const MAX_UNPACKED: usize = 4 << 20;

/// The bytes that each receipt counts for besides its contents, as if it had a separate row.
const ROW_BYTES: usize = 128;

/// A packed row, as read from the table.
pub(super) struct PackedRow {
    /// The largest time, and the largest id, among its receipts.
    pub(super) last: (i64, String),
    message: String,
    body: Vec<u8>,
}

/// The columns that [`PackedRow::from_row`] reads, of the table named `b`.
macro_rules! columns {
    () => {
        "b.message_id, b.last_created, b.last_id, b.body"
    };
}
pub(super) use columns;

/// The statements that store receipts of a message, packed where possible. The ids must be new; that is not
/// checked.
pub(crate) fn pack_receipts(
    tenant: &str,
    session: &str,
    message: &str,
    receipts: Vec<NewReceipt>,
    to: &mut Vec<SqlStatement>,
) -> Result<(), StoreError> {
    let mut rows = Vec::new();
    let mut bytes = 0;
    let (small, large): (Vec<_>, Vec<_>) =
        receipts.into_iter().partition(|row| row.body.as_str().len() <= MAX_SMALL);
    for receipt in large {
        to.push(row::add_receipt(tenant, session, message, receipt)?);
    }
    for receipt in small {
        bytes += receipt.body.as_str().len();
        rows.push(receipt);
        if rows.len() == MAX_PACKED || bytes > MAX_CONTENTS {
            to.push(insert_packed(tenant, session, message, &std::mem::take(&mut rows))?);
            bytes = 0;
        }
    }
    match rows.len() {
        MIN_PACKED.. => to.push(insert_packed(tenant, session, message, &rows)?),
        _ => {
            for receipt in rows {
                to.push(row::add_receipt(tenant, session, message, receipt)?);
            }
        }
    }
    Ok(())
}

/// The statement that stores these receipts as one packed row.
fn insert_packed(
    tenant: &str,
    session: &str,
    message: &str,
    rows: &[NewReceipt],
) -> Result<SqlStatement, StoreError> {
    let insert = "INSERT INTO receipt_blocks (session_id, message_id, first_created, first_id, \
        last_created, last_id, receipts, bytes, body) SELECT m.session_id, m.id, $4, $5, $6, $7, $8, $9, $10 \
        FROM messages m JOIN sessions s ON s.id = m.session_id \
        WHERE s.tenant = $1 AND s.id = $2 AND m.id = $3";
    let times = || rows.iter().map(|row| row.created);
    let ids = || rows.iter().map(|row| row.id.as_str());
    let text = serde_json::to_vec(rows)
        .map_err(|error| StoreError::Invalid { what: "receipts", why: error.to_string() })?;
    check_bytes("receipts that came together", text.len(), MAX_UNPACKED)?;
    let bytes: usize = rows.iter().map(|row| ROW_BYTES + row.body.as_str().len()).sum();
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let args = [
        tenant.into(),
        session.into(),
        message.into(),
        times().min().into(),
        ids().min().into(),
        times().max().into(),
        ids().max().into(),
        number(rows.len()).into(),
        number(bytes).into(),
        lz4_flex::block::compress_prepend_size(&text).into(),
    ];
    SqlStatement::new("store receipts", NoRowMeaning::NoMessage, insert, args)
}

impl PackedRow {
    pub(super) fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let last = (row.try_get(1)?, row.try_get(2)?);
        Ok(Self { last, message: row.try_get(0)?, body: row.try_get(3)? })
    }

    /// Decompresses the row; returns its receipts, each with the bytes of its contents.
    pub(super) fn unpack_receipts(&self) -> Result<Vec<(StoredReceipt, usize)>, BadRow> {
        // The first four bytes state the size after decompression, and so the memory that it would need.
        let size = self.body.first_chunk().map(|size| u32::from_le_bytes(*size));
        if !size.is_some_and(|size| usize::try_from(size).is_ok_and(|size| size <= MAX_UNPACKED)) {
            return Err("their size is missing, or larger than any that is written".into());
        }
        let text = lz4_flex::block::decompress_size_prepended(&self.body)?;
        let rows: Vec<ReceiptRow<&RawValue>> = serde_json::from_slice(&text)?;
        let receipt = |row: ReceiptRow<&RawValue>| {
            let bytes = row.body.get().len();
            let body = serde_json::from_str(row.body.get())?;
            let receipt = row.with_body(|_| body);
            Ok((StoredReceipt { message: self.message.clone(), receipt }, bytes))
        };
        rows.into_iter().map(receipt).collect()
    }
}
