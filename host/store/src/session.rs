//! Sessions: making, listing, finding, renaming and deleting them.

use belljar_policy::ShownText;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::{BadRow, Store};
use crate::statement::{NoRowMeaning, SqlStatement};
use crate::words::SessionKind;

/// The most sessions in one list.
pub const MAX_LISTED: u32 = 1_000;

/// The most sessions that an error names if a prefix matches several.
const MAX_NAMED: usize = 5;

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoredSession {
    /// The id.
    pub id: String,
    /// A title for people, a stranger's text.
    pub title: String,
    /// The agent's identity, for example `home/scout`.
    pub agent: String,
    /// The path of the workspace.
    pub workspace: String,
    /// The model, by name or alias; empty = the agent's own choice.
    pub model: String,
    /// The kind of session, for example a conversation or a run.
    pub kind: SessionKind,
    /// When the session began, in milliseconds since 1970.
    pub created: i64,
    /// When the session was last added to, in milliseconds since 1970.
    pub updated: i64,
}

/// The fields of a session that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHead {
    /// A title for people, a stranger's text.
    pub title: String,
    /// The agent's identity, for example `home/scout`.
    pub agent: String,
    /// The model, by name or alias; empty = the agent's own choice.
    pub model: String,
}

/// The statement that stores a new session.
pub(crate) fn create_session(
    tenant: &str,
    new: &StoredSession,
) -> Result<SqlStatement, StoreError> {
    let insert = "INSERT INTO sessions \
        (id, tenant, title, agent, workspace, model, kind, created, updated) \
        SELECT $2, t.name, $3, $4, $5, $6, $7, $8, $9 FROM tenants t WHERE t.name = $1";
    SqlStatement::new(
        "save a session",
        NoRowMeaning::NoTenant,
        insert,
        [
            tenant.into(),
            new.id.as_str().into(),
            new.title.as_str().into(),
            new.agent.as_str().into(),
            new.workspace.as_str().into(),
            new.model.as_str().into(),
            new.kind.as_str().into(),
            new.created.into(),
            new.updated.into(),
        ],
    )
}

/// The statement that stores when a session was last added to.
pub(crate) fn touch_session(
    tenant: &str,
    session: &str,
    now: i64,
) -> Result<SqlStatement, StoreError> {
    let update = "UPDATE sessions SET updated = CASE WHEN updated < $3 THEN $3 ELSE updated END \
        WHERE tenant = $1 AND id = $2";
    let args = [tenant.into(), session.into(), now.into()];
    SqlStatement::new("update a session", NoRowMeaning::NoSession, update, args)
}

/// The statement that changes the kind of a session.
pub(crate) fn become_kind(
    tenant: &str,
    session: &str,
    kind: SessionKind,
) -> Result<SqlStatement, StoreError> {
    let update = "UPDATE sessions SET kind = $3 WHERE tenant = $1 AND id = $2";
    let args = [tenant.into(), session.into(), kind.as_str().into()];
    SqlStatement::new("update a session", NoRowMeaning::NoSession, update, args)
}

/// The statement that changes the title, agent and model of a session.
pub(crate) fn replace_head(
    tenant: &str,
    session: &str,
    head: &SessionHead,
) -> Result<SqlStatement, StoreError> {
    let update = "UPDATE sessions SET title = $3, agent = $4, model = $5 \
        WHERE tenant = $1 AND id = $2";
    let SessionHead { title, agent, model } = head;
    let args = [
        tenant.into(),
        session.into(),
        title.as_str().into(),
        agent.as_str().into(),
        model.as_str().into(),
    ];
    SqlStatement::new("update a session", NoRowMeaning::NoSession, update, args)
}

impl Store {
    /// A session with the given id.
    pub async fn read_session(&self, id: &str) -> Result<StoredSession, StoreError> {
        let select = "SELECT id, title, agent, workspace, model, kind, created, updated \
            FROM sessions WHERE tenant = $1 AND id = $2";
        match self.select_row("read a session", select, [id.into()]).await? {
            Some(row) => self.session_from_row(&row),
            None => Err(not_found(id)),
        }
    }

    /// A session whose id is `prefix` or begins with it.
    pub async fn find_session(&self, prefix: &str) -> Result<StoredSession, StoreError> {
        if prefix.is_empty() {
            return Err(not_found(prefix));
        }
        // Ids are ASCII, so a character beyond ASCII ends the range of ids with this prefix.
        let select = "SELECT id, title, agent, workspace, model, kind, created, updated \
            FROM sessions WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4";
        let args = [prefix.into(), format!("{prefix}\u{7f}").into(), (MAX_NAMED as i64).into()];
        let rows = self.select_rows("look for a session", select, args).await?;
        let found: Vec<StoredSession> =
            rows.iter().map(|row| self.session_from_row(row)).collect::<Result<_, _>>()?;
        match found.as_slice() {
            [] => Err(not_found(prefix)),
            [one] => Ok(one.clone()),
            [first, ..] if first.id == prefix => Ok(first.clone()),
            several => {
                let ids: Vec<&str> = several.iter().map(|session| session.id.as_str()).collect();
                let prefix = ShownText::clip_line(prefix, 64).to_string();
                Err(StoreError::Ambiguous { what: "sessions", prefix, ids: ids.join(", ") })
            }
        }
    }

    /// The sessions that were added to last, newest first: at most `limit` and [`MAX_LISTED`].
    pub async fn latest_sessions(&self, limit: u32) -> Result<Vec<StoredSession>, StoreError> {
        let select = "SELECT id, title, agent, workspace, model, kind, created, updated \
            FROM sessions WHERE tenant = $1 ORDER BY updated DESC, id DESC LIMIT $2";
        let args = [i64::from(limit.min(MAX_LISTED)).into()];
        let rows = self.select_rows("list the sessions", select, args).await?;
        rows.iter().map(|row| self.session_from_row(row)).collect()
    }

    /// The conversation of this workspace that was added to last. A run counts only after it was resumed.
    pub async fn latest_session(
        &self,
        workspace: &str,
    ) -> Result<Option<StoredSession>, StoreError> {
        let select = "SELECT id, title, agent, workspace, model, kind, created, updated FROM sessions \
            WHERE tenant = $1 AND workspace = $2 AND kind NOT IN ('run', 'team') \
            ORDER BY updated DESC, id DESC LIMIT 1";
        let row =
            self.select_row("look for the latest session", select, [workspace.into()]).await?;
        row.map(|row| self.session_from_row(&row)).transpose()
    }

    /// Deletes a session with all its contents; returns false if there is none.
    pub async fn delete_session(&self, id: &str) -> Result<bool, StoreError> {
        let delete = "DELETE FROM sessions WHERE tenant = $1 AND id = $2";
        let args = [(&*self.tenant).into(), id.into()];
        let delete = SqlStatement::new("delete a session", NoRowMeaning::Fine, delete, args);
        Ok(self.commit_one(delete).changed_rows().await? > 0)
    }

    /// Deletes all sessions of this tenant with all their contents. Returns the number of sessions.
    pub async fn delete_all_sessions(&self) -> Result<u64, StoreError> {
        let delete = "DELETE FROM sessions WHERE tenant = $1";
        let args = [(&*self.tenant).into()];
        let delete = SqlStatement::new("delete all sessions", NoRowMeaning::Fine, delete, args);
        self.commit_one(delete).changed_rows().await
    }

    /// Reads the columns of a row, in the order of the `SELECT`.
    pub(crate) fn session_from_row(&self, row: &SqliteRow) -> Result<StoredSession, StoreError> {
        let read = || -> Result<StoredSession, BadRow> {
            let kind = row.try_get::<&str, _>(5)?.parse::<SessionKind>();
            Ok(StoredSession {
                id: row.try_get(0)?,
                title: row.try_get(1)?,
                agent: row.try_get(2)?,
                workspace: row.try_get(3)?,
                model: row.try_get(4)?,
                kind: kind.map_err(|error| format!("its kind: {error}"))?,
                created: row.try_get(6)?,
                updated: row.try_get(7)?,
            })
        };
        read().map_err(|why| self.bad_row("a session".to_owned(), why))
    }
}

/// The error for a missing session, which is also the answer for another tenant's session.
fn not_found(id: &str) -> StoreError {
    StoreError::NotFound { what: "session", id: ShownText::clip_line(id, 64).to_string() }
}
