//! The events of sessions: stored in blocks, and read one by one from any position.

use std::borrow::Cow;
use std::sync::Arc;

use belljar_policy::ShownText;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::Store;
use crate::statement::{NoRowMeaning, SqlStatement, check_bytes};

/// The most bytes of one block: a few of the largest events.
pub const MAX_BLOCK_BYTES: usize = 16 << 20;

/// The most events on one page.
pub const MAX_EVENTS: u32 = 10_000;

/// The bytes after which a page gets no more blocks, because many watchers may each hold a page in memory.
const MAX_PAGE_BYTES: usize = 256 << 10;

/// The number of blocks read at once: few, so little is read and not used.
const BLOCKS: i64 = 4;

/// The separator of events within a block. It cannot occur in an event, because stored JSON has no line
/// breaks.
const BETWEEN: &str = ",\n";

/// Events that are stored as one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventBlock {
    /// The number of the first event; the others follow without gaps. The first event of a session has the
    /// number 1, and each block must begin right after the previous one; otherwise the error is
    /// [`StoreError::OutOfOrder`].
    pub first_seq: i64,
    /// The events, each as JSON without line breaks: at least one, and together at most [`MAX_BLOCK_BYTES`].
    pub events: Vec<String>,
}

/// An event of a session: the one form between the row of a block and a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEvent {
    /// The event's number in its session, from 1, without gaps.
    pub id: i64,
    /// The id of the placeholder of the event's turn.
    pub message: Arc<str>,
    /// The member `type` of the JSON; `event` for an event without one.
    pub kind: Arc<str>,
    /// The whole event as JSON, byte for byte as stored. Foreign text.
    pub json: Arc<str>,
}

impl SessionEvent {
    /// An event with the kind that its JSON has. An unknown kind, stored by a newer program, is kept.
    pub fn from_json(id: i64, message: &Arc<str>, json: &str) -> Self {
        #[derive(Deserialize)]
        struct EventTag<'a> {
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
        }
        let kind = serde_json::from_str::<EventTag<'_>>(json);
        let kind = kind.map_or_else(|_| "event".into(), |tag| tag.kind.into());
        Self { id, message: Arc::clone(message), kind, json: json.into() }
    }
}

/// The statement that adds a block.
pub(crate) fn add_block(
    tenant: &str,
    session: &str,
    message: &str,
    block: &EventBlock,
) -> Result<SqlStatement, StoreError> {
    let insert = "INSERT INTO event_blocks (session_id, message_id, first_seq, last_seq, body) \
        SELECT m.session_id, m.id, $4, $5, $6 \
        FROM messages m JOIN sessions s ON s.id = m.session_id \
        WHERE s.tenant = $1 AND s.id = $2 AND m.id = $3 \
        AND $4 = (SELECT COALESCE(MAX(b.last_seq), 0) + 1 FROM event_blocks b \
        WHERE b.session_id = $2)";
    let more = block.events.len().checked_sub(1).and_then(|more| i64::try_from(more).ok());
    let last = more.and_then(|more| block.first_seq.checked_add(more));
    let last = last.ok_or_else(|| invalid_events("has no events, or no ids for them"))?;
    SqlStatement::new(
        "store events",
        NoRowMeaning::NotNext,
        insert,
        [
            tenant.into(),
            session.into(),
            message.into(),
            block.first_seq.into(),
            last.into(),
            block_body(&block.events)?.into(),
        ],
    )
}

/// The events as a JSON array.
fn block_body(events: &[String]) -> Result<String, StoreError> {
    let bytes = events.iter().map(|event| event.len() + BETWEEN.len()).sum();
    check_bytes("a block of events", bytes, MAX_BLOCK_BYTES)?;
    let mut body = String::with_capacity(bytes);
    for event in events {
        if event.contains(['\n', '\r']) {
            return Err(invalid_events("holds an event with a line break"));
        }
        if let Err(error) = serde_json::from_str::<IgnoredAny>(event) {
            return Err(invalid_events(&format!("holds an event that is no JSON: {error}")));
        }
        body.push_str(if body.is_empty() { "[" } else { BETWEEN });
        body.push_str(event);
    }
    body.push(']');
    Ok(body)
}

fn invalid_events(why: &str) -> StoreError {
    StoreError::Invalid { what: "a block of events", why: why.to_owned() }
}

impl Store {
    /// The number of a session's last event; 0 if it has none.
    pub async fn last_event(&self, session: &str) -> Result<i64, StoreError> {
        let select = "SELECT COALESCE(MAX(b.last_seq), 0) FROM event_blocks b \
            JOIN sessions s ON s.id = b.session_id WHERE s.tenant = $1 AND s.id = $2";
        let failed = |error| self.database_error("look for the last event", &error);
        let row = sqlx::query(select)
            .bind(&*self.tenant)
            .bind(session)
            .fetch_one(&self.pool)
            .await
            .map_err(failed)?;
        row.try_get(0).map_err(failed)
    }

    /// The events of a session after a number, in order: at most `limit` and [`MAX_EVENTS`], and fewer if
    /// they are large. The page is empty only if no events are left; the next page begins after the last
    /// number of this one.
    pub async fn events_after(
        &self,
        session: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<SessionEvent>, StoreError> {
        let limit = limit.min(MAX_EVENTS) as usize;
        let (mut page, mut bytes, mut after) = (Vec::new(), 0_usize, after);
        while page.len() < limit && bytes < MAX_PAGE_BYTES {
            let blocks = self.blocks_after(session, after).await?;
            let Some(last) = blocks.last() else { break };
            let before = after;
            after = last.last_seq;
            for block in blocks {
                if page.len() >= limit || bytes >= MAX_PAGE_BYTES {
                    break;
                }
                bytes = bytes.saturating_add(block.body.len());
                let events = self.events_of(session, &block)?;
                page.extend(events.into_iter().filter(|event| event.id > before));
            }
        }
        page.truncate(limit);
        Ok(page)
    }

    /// Reads the blocks with events after the number `after`, at most [`BLOCKS`] of them.
    async fn blocks_after(&self, session: &str, after: i64) -> Result<Vec<EventRow>, StoreError> {
        let select = "SELECT b.first_seq, b.last_seq, b.message_id, b.body FROM event_blocks b \
            JOIN sessions s ON s.id = b.session_id \
            WHERE s.tenant = $1 AND s.id = $2 AND b.last_seq > $3 ORDER BY b.last_seq LIMIT $4";
        let rows = self
            .select_rows("read events", select, [session.into(), after.into(), BLOCKS.into()])
            .await?;
        let bad = |error| self.bad_row(block_name(session), error);
        rows.iter().map(|row| block_from_row(row).map_err(bad)).collect()
    }

    fn events_of(&self, session: &str, block: &EventRow) -> Result<Vec<SessionEvent>, StoreError> {
        let EventRow { first_seq, last_seq, message, body } = block;
        let inner = body.strip_prefix('[').and_then(|body| body.strip_suffix(']'));
        let bodies: Vec<&str> = inner.into_iter().flat_map(|inner| inner.split(BETWEEN)).collect();
        let expected = last_seq.checked_sub(*first_seq).and_then(|more| more.checked_add(1));
        if i64::try_from(bodies.len()).ok() != expected {
            let why = format!("{} events go by the ids {first_seq} to {last_seq}", bodies.len());
            return Err(self.bad_row(block_name(session), why));
        }
        let numbered = (*first_seq..=*last_seq).zip(bodies);
        Ok(numbered.map(|(id, json)| SessionEvent::from_json(id, message, json)).collect())
    }
}

/// A row with a block of events.
struct EventRow {
    first_seq: i64,
    last_seq: i64,
    message: Arc<str>,
    body: String,
}

/// Reads a block from its row.
fn block_from_row(row: &SqliteRow) -> Result<EventRow, sqlx::Error> {
    Ok(EventRow {
        first_seq: row.try_get(0)?,
        last_seq: row.try_get(1)?,
        message: row.try_get::<&str, _>(2)?.into(),
        body: row.try_get(3)?,
    })
}

fn block_name(session: &str) -> String {
    format!("a block of events of session `{}`", ShownText::clip_line(session, 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_event_has_its_kind_whichever_program_stored_it() {
        for (json, kind) in [
            (r#"{"event_id":1,"type":"todos","items":[]}"#, "todos"),
            (r#"{"event_id":1,"type":"of_a_later_program"}"#, "of_a_later_program"),
            ("[]", "event"),
        ] {
            let event = SessionEvent::from_json(1, &"m".into(), json);
            assert_eq!((&*event.kind, &*event.json), (kind, json));
        }
    }
}
