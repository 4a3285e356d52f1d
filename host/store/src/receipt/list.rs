//! Reads receipts from separate rows and from packed rows, sorted by time and then by id.

use sqlx::{Row as _, SqliteConnection};

use super::packed::PackedRow;
use super::{StoredReceipt, packed, row};
use crate::error::StoreError;
use crate::open::Store;
use crate::page::{ListPage, and_one, has_more_rows};
use crate::session::MAX_LISTED;
use crate::statement::SqlArgument;

/// The name of the operation in an error.
const WHAT: &str = "read the receipts";

/// The number of packed rows read together. The last one only shows up to which point the others are
/// complete.
const BLOCKS: i64 = 5;

/// A position in the order of receipts: time and id.
type Place = (i64, String);

/// The receipts that were found, newest first, each with the bytes of its contents.
#[derive(Default)]
struct FoundReceipts {
    receipts: Vec<(StoredReceipt, usize)>,
    /// The position down to which the list is complete; older receipts may be missing. `None` if nothing is
    /// missing, or if there is at least one more receipt than requested.
    down_to: Option<Place>,
}

/// The session, the limits and the beginning of a page of receipts.
#[derive(Clone, Copy)]
struct ReceiptQuery<'a> {
    session: &'a str,
    message: Option<&'a str>,
    before: Option<&'a Place>,
    limit: u32,
    most_bytes: i64,
}

impl Store {
    /// The latest receipts of a session, or of one of its messages, oldest first: at most `limit` and
    /// [`MAX_LISTED`].
    pub async fn latest_receipts(
        &self,
        session: &str,
        message: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredReceipt>, StoreError> {
        Ok(self.receipts_page(session, message, None, limit, i64::MAX).await?.rows)
    }

    /// A page of receipts: the latest ones, or those before a receipt, ending with the receipt that reaches
    /// `most_bytes`. It is empty only if no receipts are left.
    pub async fn receipts_page(
        &self,
        session: &str,
        message: Option<&str>,
        before: Option<&str>,
        limit: u32,
        most_bytes: i64,
    ) -> Result<ListPage<StoredReceipt>, StoreError> {
        if limit == 0 {
            return Ok(ListPage { rows: Vec::new(), more: false });
        }
        // Plain and packed rows are read in one transaction, so no receipt is added in between.
        let mut state = self.begin_read(WHAT).await?;
        let place = match before {
            None => None,
            Some(id) => match self.place_of_receipt(&mut state, session, id).await? {
                Some(place) => Some(place),
                // If the receipt `before` does not exist, the page is empty.
                None => return Ok(ListPage { rows: Vec::new(), more: false }),
            },
        };
        let limit = limit.min(MAX_LISTED);
        let most_bytes = most_bytes.max(1);
        let asked = ReceiptQuery { session, message, before: place.as_ref(), limit, most_bytes };
        let rows = self.receipt_rows(&mut state, asked).await?;
        let packed = self.packed_receipts(&mut state, asked).await?;
        Ok(rows.merge_with(packed).into_page(limit, most_bytes))
    }

    /// All receipts of a turn, oldest first. Their number is bounded by the turn's budget; for a client that
    /// calls tools directly, by the tenant's storage.
    pub async fn receipts_of_turn(
        &self,
        session: &str,
        answer: &str,
    ) -> Result<Vec<StoredReceipt>, StoreError> {
        let select = concat!(
            "SELECT ",
            row::columns!(),
            " FROM receipts r JOIN sessions s ON s.id = r.session_id \
              WHERE s.tenant = $1 AND s.id = $2 AND r.message_id = $3"
        );
        let mut state = self.begin_read(WHAT).await?;
        let args = [session.into(), answer.into()];
        let rows = self.rows_in(&mut state, WHAT, select, args).await?;
        let receipts: Result<Vec<_>, _> = rows.iter().map(row::receipt_from_row).collect();
        let mut receipts = receipts.map_err(|why| self.bad_row("a receipt".to_owned(), why))?;
        let select = concat!(
            "SELECT ",
            packed::columns!(),
            " FROM receipt_blocks b JOIN sessions s ON s.id = b.session_id \
              WHERE s.tenant = $1 AND s.id = $2 AND b.message_id = $3"
        );
        let packed = self.packed_rows(&mut state, select, [session.into(), answer.into()]).await?;
        for packed in packed {
            let unpacked = self.unpack_row(&packed)?;
            receipts.extend(unpacked.into_iter().map(|(receipt, _)| receipt));
        }
        receipts.sort_unstable_by(|one, other| receipt_place(one).cmp(&receipt_place(other)));
        Ok(receipts)
    }

    /// The position of a receipt of a session; `None` if there is no such receipt.
    async fn place_of_receipt(
        &self,
        state: &mut SqliteConnection,
        session: &str,
        id: &str,
    ) -> Result<Option<Place>, StoreError> {
        let select = "SELECT r.created FROM receipts r JOIN sessions s ON s.id = r.session_id \
            WHERE s.tenant = $1 AND s.id = $2 AND r.id = $3";
        let args = [session.into(), id.into()];
        if let Some(row) = self.rows_in(state, WHAT, select, args).await?.first() {
            let created = row.try_get(0).map_err(|error| self.database_error(WHAT, &error));
            return Ok(Some((created?, id.to_owned())));
        }
        let select = concat!(
            "SELECT ",
            packed::columns!(),
            " FROM receipt_blocks b JOIN sessions s ON s.id = b.session_id \
              WHERE s.tenant = $1 AND s.id = $2 AND b.first_id <= $3 AND b.last_id >= $3"
        );
        for packed in self.packed_rows(state, select, [session.into(), id.into()]).await? {
            let receipts = self.unpack_row(&packed)?;
            if let Some((found, _)) = receipts.iter().find(|(found, _)| found.receipt.id == id) {
                return Ok(Some((found.receipt.created, id.to_owned())));
            }
        }
        Ok(None)
    }

    /// The latest receipts in separate rows: one more than requested, or up to the limit of bytes.
    async fn receipt_rows(
        &self,
        state: &mut SqliteConnection,
        asked: ReceiptQuery<'_>,
    ) -> Result<FoundReceipts, StoreError> {
        // Sizes are read first, so a row that does not fit is not read at all.
        let select = concat!(
            "WITH sized AS (SELECT r.id, r.created, octet_length(r.body) AS bytes \
             FROM receipts r JOIN sessions s ON s.id = r.session_id \
             WHERE s.tenant = $1 AND s.id = $2 AND r.message_id = COALESCE($3, r.message_id) \
             AND ($4 IS NULL OR (r.created, r.id) < ($4, $5)) \
             ORDER BY r.created DESC, r.id DESC LIMIT $6), \
             summed AS (SELECT id, bytes, SUM(bytes) OVER (ORDER BY created DESC, id DESC) - bytes \
             AS newer FROM sized) SELECT ",
            row::columns!(),
            ", x.bytes, (SELECT COUNT(*) FROM sized) FROM summed x JOIN receipts r ON r.id = x.id \
              WHERE x.newer < $7 ORDER BY r.created DESC, r.id DESC"
        );
        let args = [
            asked.session.into(),
            asked.message.into(),
            asked.before.map(|(created, _)| *created).into(),
            asked.before.map(|(_, id)| id.as_str()).into(),
            and_one(asked.limit).into(),
            asked.most_bytes.into(),
        ];
        let rows = self.rows_in(state, WHAT, select, args).await?;
        let more = has_more_rows(&rows).map_err(|error| self.database_error(WHAT, &error))?;
        let mut receipts = Vec::with_capacity(rows.len());
        for read in &rows {
            let bytes: i64 = read.try_get(12).map_err(|error| self.database_error(WHAT, &error))?;
            let receipt = row::receipt_from_row(read);
            let receipt = receipt.map_err(|why| self.bad_row("a receipt".to_owned(), why))?;
            receipts.push((receipt, usize::try_from(bytes).unwrap_or(usize::MAX)));
        }
        let down_to =
            receipts.last().filter(|_| more).map(|(last, _)| to_owned_place(receipt_place(last)));
        Ok(FoundReceipts { receipts, down_to })
    }

    /// The latest receipts in packed rows: one more than requested, or up to the limit of bytes, together
    /// with the others of the same rows.
    async fn packed_receipts(
        &self,
        state: &mut SqliteConnection,
        asked: ReceiptQuery<'_>,
    ) -> Result<FoundReceipts, StoreError> {
        let select = concat!(
            "SELECT ",
            packed::columns!(),
            " FROM receipt_blocks b JOIN sessions s ON s.id = b.session_id \
              WHERE s.tenant = $1 AND s.id = $2 AND b.message_id = COALESCE($3, b.message_id) \
              AND ($4 IS NULL OR (b.first_created, b.first_id) < ($4, $5)) \
              AND (b.last_created, b.last_id) <= ($6, $7) \
              ORDER BY b.last_created DESC, b.last_id DESC LIMIT $8"
        );
        let mut found = FoundReceipts::default();
        let mut from: Place = (i64::MAX, String::new());
        'reading: loop {
            let args = [
                asked.session.into(),
                asked.message.into(),
                asked.before.map(|(created, _)| *created).into(),
                asked.before.map(|(_, id)| id.as_str()).into(),
                from.0.into(),
                from.1.as_str().into(),
                BLOCKS.into(),
            ];
            let blocks = self.packed_rows(state, select, args).await?;
            let goes_on = i64::try_from(blocks.len()).is_ok_and(|blocks| blocks == BLOCKS);
            let mut blocks = blocks.into_iter().peekable();
            while let Some(packed) = blocks.next() {
                let next = blocks.peek().map(|next| &next.last);
                if next.is_none() && goes_on {
                    // This row is read again, together with the next ones.
                    from = packed.last;
                    continue 'reading;
                }
                let receipts = self.unpack_row(&packed)?;
                let before = |(receipt, _): &(StoredReceipt, usize)| {
                    asked.before.is_none_or(|(created, id)| receipt_place(receipt) < (*created, id))
                };
                found.receipts.extend(receipts.into_iter().filter(before));
                if let Some(next) = next.filter(|next| found.is_enough(next, asked)) {
                    found.end_before(next);
                    break 'reading;
                }
            }
            break;
        }
        found.sort_newest_first();
        Ok(found)
    }

    /// Reads packed rows within a transaction.
    async fn packed_rows<const N: usize>(
        &self,
        state: &mut SqliteConnection,
        select: &'static str,
        args: [SqlArgument; N],
    ) -> Result<Vec<PackedRow>, StoreError> {
        let rows = self.rows_in(state, WHAT, select, args).await?;
        let failed = |error| self.database_error(WHAT, &error);
        rows.iter().map(|row| PackedRow::from_row(row).map_err(failed)).collect()
    }

    fn unpack_row(&self, packed: &PackedRow) -> Result<Vec<(StoredReceipt, usize)>, StoreError> {
        packed.unpack_receipts().map_err(|why| self.bad_row("packed receipts".to_owned(), why))
    }
}

impl FoundReceipts {
    /// Returns whether enough receipts were found that are newer than the first unread position, `next`.
    fn is_enough(&self, next: &Place, asked: ReceiptQuery<'_>) -> bool {
        let sure = self
            .receipts
            .iter()
            .filter(|(receipt, _)| receipt_place(receipt) > as_borrowed_place(next));
        let (many, bytes) = sure.fold((0_u32, 0_usize), |(many, bytes), (_, more)| {
            (many.saturating_add(1), bytes.saturating_add(*more))
        });
        many > asked.limit || i64::try_from(bytes).is_ok_and(|bytes| bytes >= asked.most_bytes)
    }

    /// Drops the receipts that are not newer than the first unread position.
    fn end_before(&mut self, next: &Place) {
        self.receipts.retain(|(receipt, _)| receipt_place(receipt) > as_borrowed_place(next));
        let last = self.receipts.iter().map(|(receipt, _)| receipt_place(receipt)).min();
        self.down_to = last.map(to_owned_place);
    }

    /// Merges two results, down to the position at which both are complete.
    fn merge_with(mut self, other: Self) -> Self {
        self.receipts.extend(other.receipts);
        self.sort_newest_first();
        self.down_to = self.down_to.max(other.down_to);
        if let Some(end) = &self.down_to {
            self.receipts.retain(|(receipt, _)| receipt_place(receipt) >= as_borrowed_place(end));
        }
        self
    }

    fn sort_newest_first(&mut self) {
        self.receipts
            .sort_unstable_by(|(one, _), (other, _)| receipt_place(other).cmp(&receipt_place(one)));
    }

    /// The newest receipts as a page, oldest first.
    fn into_page(self, limit: u32, most_bytes: i64) -> ListPage<StoredReceipt> {
        let (all, mut newer) = (self.receipts.len(), 0_i64);
        let mut rows: Vec<_> = self
            .receipts
            .into_iter()
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .take_while(|(_, bytes)| {
                let fits = newer < most_bytes;
                newer = newer.saturating_add(i64::try_from(*bytes).unwrap_or(i64::MAX));
                fits
            })
            .map(|(receipt, _)| receipt)
            .collect();
        rows.reverse();
        ListPage { more: rows.len() < all || self.down_to.is_some(), rows }
    }
}

fn receipt_place(stored: &StoredReceipt) -> (i64, &str) {
    (stored.receipt.created, &stored.receipt.id)
}

fn as_borrowed_place((created, id): &Place) -> (i64, &str) {
    (*created, id)
}

fn to_owned_place((created, id): (i64, &str)) -> Place {
    (created, id.to_owned())
}
