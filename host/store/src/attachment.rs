//! Files that belong to messages: given by a person, or attached by a tool call.

use belljar_policy::ShownText;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::Store;
use crate::session::MAX_LISTED;
use crate::statement::{NoRowMeaning, SqlStatement, check_bytes};

/// The most bytes of one file.
pub const MAX_ATTACHMENT_BYTES: usize = 32 << 20;

/// A file to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAttachment {
    /// The id, made by the caller; ids sort by time as text.
    pub id: String,
    /// The call that attached the file; `None` = a person attached it.
    pub call_id: Option<String>,
    /// The file's name, a stranger's text.
    pub name: String,
    /// The media type as its sender stated it, a stranger's text.
    pub media_type: String,
    /// The content, at most [`MAX_ATTACHMENT_BYTES`].
    pub data: Vec<u8>,
    /// When the file was attached, in milliseconds since 1970.
    pub created: i64,
}

/// A stored file without its content.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoredAttachment {
    /// The id.
    pub id: String,
    /// The id of the message with the file.
    pub message: String,
    /// The call that attached the file; `None` = a person attached it.
    pub call_id: Option<String>,
    /// The file's name, a stranger's text.
    pub name: String,
    /// The media type as its sender stated it, a stranger's text.
    pub media_type: String,
    /// The size of the content in bytes.
    pub size: i64,
    /// When the file was attached, in milliseconds since 1970.
    pub created: i64,
}

/// The statement that adds a file.
pub(crate) fn add_attachment(
    tenant: &str,
    session: &str,
    message: &str,
    new: NewAttachment,
) -> Result<SqlStatement, StoreError> {
    let insert = "INSERT INTO attachments \
        (id, session_id, message_id, call_id, name, media_type, size, created, data) \
        SELECT $4, m.session_id, m.id, $5, $6, $7, $8, $9, $10 \
        FROM messages m JOIN sessions s ON s.id = m.session_id \
        WHERE s.tenant = $1 AND s.id = $2 AND m.id = $3";
    check_bytes("an attachment", new.data.len(), MAX_ATTACHMENT_BYTES)?;
    let size = i64::try_from(new.data.len()).unwrap_or(i64::MAX);
    SqlStatement::new(
        "store an attachment",
        NoRowMeaning::NoMessage,
        insert,
        [
            tenant.into(),
            session.into(),
            message.into(),
            new.id.into(),
            new.call_id.into(),
            new.name.into(),
            new.media_type.into(),
            size.into(),
            new.created.into(),
            new.data.into(),
        ],
    )
}

impl Store {
    /// The latest files of a session without their contents, at most [`MAX_LISTED`], oldest first.
    pub async fn latest_attachments(
        &self,
        session: &str,
    ) -> Result<Vec<StoredAttachment>, StoreError> {
        let select = "SELECT a.id, a.message_id, a.call_id, a.name, a.media_type, a.size, \
            a.created FROM attachments a JOIN sessions s ON s.id = a.session_id \
            WHERE s.tenant = $1 AND s.id = $2 ORDER BY a.created DESC, a.id DESC LIMIT $3";
        let args = [session.into(), i64::from(MAX_LISTED).into()];
        let rows = self.select_rows("list the attachments", select, args).await?;
        rows.iter()
            .rev()
            .map(|row| attachment_from_row(row).map_err(|error| self.bad_file(error)))
            .collect()
    }

    /// A file with its content. [`StoreError::NotFound`] if no session of this tenant has a file with the
    /// given id.
    pub async fn read_attachment(
        &self,
        session: &str,
        id: &str,
    ) -> Result<(StoredAttachment, Vec<u8>), StoreError> {
        let select = "SELECT a.id, a.message_id, a.call_id, a.name, a.media_type, a.size, \
            a.created, a.data FROM attachments a JOIN sessions s ON s.id = a.session_id \
            WHERE s.tenant = $1 AND s.id = $2 AND a.id = $3";
        let row =
            self.select_row("read an attachment", select, [session.into(), id.into()]).await?;
        let Some(row) = row else {
            let id = ShownText::clip_line(id, 64).to_string();
            return Err(StoreError::NotFound { what: "attachment", id });
        };
        let bad = |error| self.bad_file(error);
        Ok((attachment_from_row(&row).map_err(bad)?, row.try_get(7).map_err(bad)?))
    }

    /// The content of a file with the given name that a person attached to the session; the oldest if there
    /// are several. Files attached by calls do not count.
    pub async fn brought_file(
        &self,
        session: &str,
        name: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let select = "SELECT a.data FROM attachments a JOIN sessions s ON s.id = a.session_id \
            WHERE s.tenant = $1 AND s.id = $2 AND a.name = $3 AND a.call_id IS NULL \
            ORDER BY a.created, a.id LIMIT 1";
        let row = self.select_row("read a file", select, [session.into(), name.into()]).await?;
        row.map(|row| row.try_get(0)).transpose().map_err(|error| self.bad_file(error))
    }

    fn bad_file(&self, error: sqlx::Error) -> StoreError {
        self.bad_row("an attachment".to_owned(), error)
    }
}

/// Reads a file's columns from its row.
fn attachment_from_row(row: &SqliteRow) -> Result<StoredAttachment, sqlx::Error> {
    Ok(StoredAttachment {
        id: row.try_get(0)?,
        message: row.try_get(1)?,
        call_id: row.try_get(2)?,
        name: row.try_get(3)?,
        media_type: row.try_get(4)?,
        size: row.try_get(5)?,
        created: row.try_get(6)?,
    })
}
