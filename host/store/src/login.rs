//! Browsers' logins. A login is valid as long as the key or link with which it was made.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::{BadRow, TENANT};
use crate::registry::Registry;
use crate::statement::{NoRowMeaning, SqlStatement};
use crate::words::KeyScope;

/// A login to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLogin {
    /// The id for looking up the login; not secret.
    pub id: String,
    /// The id of the key with which the login was made; `None` = the operator's own link, which makes an
    /// admin of [`TENANT`].
    pub key: Option<String>,
    /// The digest of the login's secret; the secret itself is not stored.
    pub secret_hash: String,
    /// When the login was made, in milliseconds since 1970.
    pub created: i64,
    /// When the login expires, in milliseconds since 1970.
    pub expires: i64,
}

/// A stored login, with everything that decides whether it is valid.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoredLogin {
    /// The id for looking up the login; not secret.
    pub id: String,
    /// The name of the login's tenant.
    pub tenant: String,
    /// The [`crate::Tenant::id`] of that tenant.
    #[serde(skip)]
    pub tenant_id: String,
    /// True if the tenant is disabled, which makes the login invalid.
    pub tenant_disabled: bool,
    /// The id of the key with which the login was made; `None` = the operator's own link.
    pub key: Option<String>,
    /// The scope of that key.
    pub scope: KeyScope,
    /// When that key was revoked, which makes the login invalid; in milliseconds since 1970.
    pub revoked: Option<i64>,
    /// The digest of the login's secret, to be compared in constant time.
    #[serde(skip)]
    pub secret_hash: String,
    /// When the login was made, in milliseconds since 1970.
    pub created: i64,
    /// When the login expires, in milliseconds since 1970.
    pub expires: i64,
}

impl StoredLogin {
    /// Returns whether the login is valid at the given time.
    pub fn is_open(&self, now: i64) -> bool {
        self.revoked.is_none() && !self.tenant_disabled && now < self.expires
    }
}

impl Registry {
    /// Stores a login, and keeps only the newest `most` logins of its key. Expired logins are deleted.
    /// Returns false if the key is missing or revoked.
    pub async fn create_login(&self, login: &NewLogin, most: u32) -> Result<bool, StoreError> {
        const WHAT: &str = "store a login";
        let of_key = "INSERT INTO logins (id, tenant, of_key, secret_hash, created, expires) \
            SELECT $2, k.tenant, k.id, $3, $4, $5 FROM api_keys k \
            WHERE k.id = $1 AND k.revoked IS NULL";
        let of_link = "INSERT INTO logins (id, tenant, of_key, secret_hash, created, expires) \
            SELECT $2, t.name, '', $3, $4, $5 FROM tenants t WHERE t.name = $1";
        let ended = "DELETE FROM logins WHERE expires <= $1";
        let older = "DELETE FROM logins WHERE of_key = $1 AND id NOT IN \
            (SELECT id FROM logins WHERE of_key = $1 ORDER BY created DESC, id DESC LIMIT $2)";
        let (insert, whose) = match &login.key {
            Some(key) => (of_key, key.as_str()),
            None => (of_link, TENANT),
        };
        let args = [
            whose.into(),
            login.id.as_str().into(),
            login.secret_hash.as_str().into(),
            login.created.into(),
            login.expires.into(),
        ];
        let key = login.key.as_deref().unwrap_or_default();
        // One less than `most`, because the new login is inserted last, so the count of changed rows shows
        // whether it was inserted.
        let room = i64::from(most.saturating_sub(1));
        let all = || -> Result<_, StoreError> {
            Ok(vec![
                SqlStatement::new(WHAT, NoRowMeaning::Fine, ended, [login.created.into()])?,
                SqlStatement::new(WHAT, NoRowMeaning::Fine, older, [key.into(), room.into()])?,
                SqlStatement::new(WHAT, NoRowMeaning::Fine, insert, args)?,
            ])
        };
        Ok(self.store.writer.enqueue_group(None, all()).changed_rows().await? > 0)
    }

    /// Finds a login by its id. The caller must compare the digest and check [`StoredLogin::is_open`].
    pub async fn find_login(&self, id: &str) -> Result<Option<StoredLogin>, StoreError> {
        let select = "SELECT l.id, l.tenant, t.id, t.disabled, l.of_key, \
            COALESCE(k.scope, 'admin'), k.revoked, l.secret_hash, l.created, l.expires \
            FROM logins l JOIN tenants t ON t.name = l.tenant \
            LEFT JOIN api_keys k ON k.id = l.of_key \
            WHERE l.id = $1 AND (l.of_key = '' OR k.id IS NOT NULL)";
        let row = sqlx::query(select).bind(id).fetch_optional(&self.store.pool).await;
        let row = row.map_err(|error| self.store.database_error("look for a login", &error))?;
        row.map(|row| self.stored_login(&row)).transpose()
    }

    /// The logins that have not expired at `now`, sorted by tenant and time, including those of revoked keys.
    pub async fn list_logins(&self, now: i64) -> Result<Vec<StoredLogin>, StoreError> {
        let select = "SELECT l.id, l.tenant, t.id, t.disabled, l.of_key, \
            COALESCE(k.scope, 'admin'), k.revoked, l.secret_hash, l.created, l.expires \
            FROM logins l JOIN tenants t ON t.name = l.tenant \
            LEFT JOIN api_keys k ON k.id = l.of_key \
            WHERE l.expires > $1 AND (l.of_key = '' OR k.id IS NOT NULL) \
            ORDER BY l.tenant, l.created, l.id";
        let rows = sqlx::query(select).bind(now).fetch_all(&self.store.pool).await;
        let rows = rows.map_err(|error| self.store.database_error("list the logins", &error))?;
        rows.iter().map(|row| self.stored_login(row)).collect()
    }

    /// Ends a login; returns false if there is none.
    pub async fn end_login(&self, id: &str) -> Result<bool, StoreError> {
        let delete = "DELETE FROM logins WHERE id = $1";
        Ok(self.run_change("end a login", NoRowMeaning::Fine, delete, [id.into()]).await? > 0)
    }

    fn stored_login(&self, row: &SqliteRow) -> Result<StoredLogin, StoreError> {
        login_from_row(row).map_err(|why| self.store.bad_row("a login".to_owned(), why))
    }
}

/// Reads a login from its row.
fn login_from_row(row: &SqliteRow) -> Result<StoredLogin, BadRow> {
    Ok(StoredLogin {
        id: row.try_get(0)?,
        tenant: row.try_get(1)?,
        tenant_id: row.try_get(2)?,
        tenant_disabled: row.try_get::<i64, _>(3)? != 0,
        key: Some(row.try_get(4)?).filter(|key: &String| !key.is_empty()),
        scope: row.try_get::<&str, _>(5)?.parse()?,
        revoked: row.try_get(6)?,
        secret_hash: row.try_get(7)?,
        created: row.try_get(8)?,
        expires: row.try_get(9)?,
    })
}
