//! Tenants and their keys: rows that belong to the operator and are not visible to a tenant.

use belljar_policy::ShownText;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::open::{BadRow, Store, TENANT};
use crate::statement::{NoRowMeaning, SqlArgument, SqlStatement};
use crate::words::KeyScope;

/// The most characters of a tenant's name.
pub const MAX_TENANT_NAME: usize = 40;

/// The random bytes of a tenant's id: 16, because then no id ever occurs twice.
const ID_BYTES: usize = 16;

/// Notes the time from which keys are needed, unless it was noted before.
const NEED_KEYS: &str = "INSERT INTO decisions (name, decided) VALUES ('keys_needed', $1) \
    ON CONFLICT (name) DO NOTHING";

/// The tenants and keys of a store's file. It is the only way to other tenants' rows, so its holder acts for
/// the operator.
#[derive(Debug, Clone)]
pub struct Registry {
    pub(crate) store: Store,
}

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Tenant {
    /// The name: `[a-z0-9-]`, 1 to [`MAX_TENANT_NAME`].
    pub name: String,
    /// The permanent id, also the name of the tenant's directory. Random and unique, even among deleted
    /// tenants of the same name. For tenants made by an older program, it is the name.
    pub id: String,
    /// True if the tenant's keys are refused.
    pub disabled: bool,
    /// When the tenant was made, in milliseconds since 1970; 0 = together with the file.
    pub created: i64,
}

/// A key to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// The id for looking up the key; not secret.
    pub id: String,
    /// The name of the key's tenant.
    pub tenant: String,
    /// A title for people, a stranger's text.
    pub label: String,
    /// The scope of the key.
    pub scope: KeyScope,
    /// The digest of the key's secret; the secret itself is not stored.
    pub secret_hash: String,
    /// When the key was made, in milliseconds since 1970.
    pub created: i64,
}

/// A stored key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoredKey {
    /// The id for looking up the key; not secret.
    pub id: String,
    /// The name of the key's tenant.
    pub tenant: String,
    /// The [`Tenant::id`] of that tenant.
    #[serde(skip)]
    pub tenant_id: String,
    /// True if the tenant is disabled, which makes the key invalid.
    pub tenant_disabled: bool,
    /// A title for people, a stranger's text.
    pub label: String,
    /// The scope of the key.
    pub scope: KeyScope,
    /// The digest of the key's secret, to be compared in constant time.
    #[serde(skip)]
    pub secret_hash: String,
    /// When the key was made, in milliseconds since 1970.
    pub created: i64,
    /// When the key was last used, in milliseconds since 1970; `None` = never.
    pub last_used: Option<i64>,
    /// When the key was revoked, which makes it invalid; in milliseconds since 1970.
    pub revoked: Option<i64>,
}

impl Store {
    /// The tenants and keys in the store's file, whichever tenant this store is for.
    pub fn tenant_registry(&self) -> Registry {
        Registry { store: self.clone() }
    }
}

impl Registry {
    /// Makes a tenant with a new id. The error is [`StoreError::Taken`] for a name in use,
    /// [`StoreError::Invalid`] for a malformed one. The tenant of the command line, [`TENANT`], always
    /// exists.
    pub async fn create_tenant(&self, name: &str, now: i64) -> Result<Tenant, StoreError> {
        let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        // A name that begins with `-` would be parsed as an option by every command.
        let option = name.is_empty() || name.starts_with('-');
        if option || name.len() > MAX_TENANT_NAME || !name.bytes().all(letters) {
            let why = format!(
                "`{}` is not 1 to {MAX_TENANT_NAME} of `a` to `z`, `0` to `9` and `-`, with no `-` \
                 in front",
                ShownText::clip_line(name, MAX_TENANT_NAME)
            );
            return Err(StoreError::Invalid { what: "the tenant's name", why });
        }
        let id = new_id()?;
        let insert = "INSERT INTO tenants (name, disabled, created, id) VALUES ($1, 0, $2, $3)";
        let args = [name.into(), now.into(), id.as_str().into()];
        self.run_change("make a tenant", NoRowMeaning::Fine, insert, args).await?;
        Ok(Tenant { name: name.to_owned(), id, disabled: false, created: now })
    }

    /// All tenants, sorted by name.
    pub async fn list_tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        let select = "SELECT name, disabled, created, id FROM tenants ORDER BY name";
        let rows = sqlx::query(select).fetch_all(&self.store.pool).await;
        let rows = rows.map_err(|error| self.store.database_error("list the tenants", &error))?;
        rows.iter().map(|row| self.stored_tenant(row)).collect()
    }

    /// A tenant by its name.
    pub async fn find_tenant(&self, name: &str) -> Result<Option<Tenant>, StoreError> {
        let select = "SELECT name, disabled, created, id FROM tenants WHERE name = $1";
        let row = sqlx::query(select).bind(name).fetch_optional(&self.store.pool).await;
        let row = row.map_err(|error| self.store.database_error("look for a tenant", &error))?;
        row.map(|row| self.stored_tenant(&row)).transpose()
    }

    /// Disables a tenant, or enables it again.
    pub async fn set_tenant_disabled(&self, name: &str, disabled: bool) -> Result<(), StoreError> {
        let update = "UPDATE tenants SET disabled = $2 WHERE name = $1";
        let args = [name.into(), disabled.into()];
        self.run_change("disable a tenant", NoRowMeaning::NoTenant, update, args).await.map(drop)
    }

    /// Deletes a tenant with all its rows, except for the audit log. Returns false if there is none. The
    /// tenant of the command line cannot be deleted: [`StoreError::Invalid`].
    pub async fn delete_tenant(&self, name: &str) -> Result<bool, StoreError> {
        const WHAT: &str = "delete a tenant";
        if name == TENANT {
            let why = format!("`{TENANT}` is the tenant of the command line and stays");
            return Err(StoreError::Invalid { what: "the tenant's name", why });
        }
        let make = |sql| SqlStatement::new(WHAT, NoRowMeaning::Fine, sql, [name.into()]);
        let both = || -> Result<_, StoreError> {
            Ok(vec![
                make("DELETE FROM sessions WHERE tenant = $1")?,
                make("DELETE FROM tenants WHERE name = $1")?,
            ])
        };
        Ok(self.store.writer.enqueue_group(None, both()).changed_rows().await? > 0)
    }

    /// Stores a key. The error is [`StoreError::Taken`] for an id in use, [`StoreError::NotFound`] for a
    /// missing tenant. From then on callers need keys: see [`Registry::keys_needed`].
    pub async fn create_key(&self, key: &NewKey) -> Result<(), StoreError> {
        let insert = "INSERT INTO api_keys (tenant, id, label, scope, secret_hash, created) \
            SELECT t.name, $2, $3, $4, $5, $6 FROM tenants t WHERE t.name = $1";
        let args = [
            key.tenant.as_str().into(),
            key.id.as_str().into(),
            key.label.as_str().into(),
            key.scope.as_str().into(),
            key.secret_hash.as_str().into(),
            key.created.into(),
        ];
        const WHAT: &str = "store a key";
        let both = || -> Result<_, StoreError> {
            Ok(vec![
                SqlStatement::new(WHAT, NoRowMeaning::NoTenant, insert, args)?,
                SqlStatement::new(WHAT, NoRowMeaning::Fine, NEED_KEYS, [key.created.into()])?,
            ])
        };
        self.store.writer.enqueue_group(None, both()).await
    }

    /// Makes every caller need a key from now on, although no key is stored.
    pub async fn need_keys(&self, now: i64) -> Result<(), StoreError> {
        self.run_change("need keys", NoRowMeaning::Fine, NEED_KEYS, [now.into()]).await?;
        Ok(())
    }

    /// Returns whether callers need a key. The need begins with the first stored key, even if that was
    /// revoked or deleted since, or with [`Registry::need_keys`], and ends with
    /// [`Registry::open_without_keys`].
    pub async fn keys_needed(&self) -> Result<bool, StoreError> {
        let select = "SELECT COUNT(*) FROM decisions WHERE name = 'keys_needed'";
        let failed = |error| self.store.database_error("look whether keys are needed", &error);
        let row = sqlx::query(select).fetch_one(&self.store.pool).await.map_err(failed)?;
        let found: i64 = row.try_get(0).map_err(failed)?;
        Ok(found > 0)
    }

    /// Accepts callers without a key until the next key is stored, by the operator's decision. Returns false
    /// if they were accepted already, or if a valid key exists, which must be revoked first.
    pub async fn open_without_keys(&self) -> Result<bool, StoreError> {
        let delete = "DELETE FROM decisions WHERE name = 'keys_needed' \
            AND NOT EXISTS (SELECT 1 FROM api_keys WHERE revoked IS NULL)";
        let what = "open without keys";
        Ok(self.run_change(what, NoRowMeaning::Fine, delete, []).await? > 0)
    }

    /// The keys of one tenant or of all tenants, including revoked ones, sorted by tenant and time.
    pub async fn list_keys(&self, tenant: Option<&str>) -> Result<Vec<StoredKey>, StoreError> {
        let all = "SELECT k.id, k.tenant, t.disabled, k.label, k.scope, k.secret_hash, \
            k.created, k.last_used, k.revoked, t.id FROM api_keys k \
            JOIN tenants t ON t.name = k.tenant ORDER BY k.tenant, k.created, k.id";
        let of_one = "SELECT k.id, k.tenant, t.disabled, k.label, k.scope, k.secret_hash, \
            k.created, k.last_used, k.revoked, t.id FROM api_keys k \
            JOIN tenants t ON t.name = k.tenant WHERE k.tenant = $1 ORDER BY k.created, k.id";
        let query = match tenant {
            Some(tenant) => sqlx::query(of_one).bind(tenant),
            None => sqlx::query(all),
        };
        let rows = query.fetch_all(&self.store.pool).await;
        let rows = rows.map_err(|error| self.store.database_error("list the keys", &error))?;
        rows.iter().map(|row| self.stored_key(row)).collect()
    }

    /// Finds a key by its id, also a revoked one. The caller must compare the digest, and check
    /// [`StoredKey::revoked`] and [`StoredKey::tenant_disabled`].
    pub async fn find_key(&self, id: &str) -> Result<Option<StoredKey>, StoreError> {
        let select = "SELECT k.id, k.tenant, t.disabled, k.label, k.scope, k.secret_hash, \
            k.created, k.last_used, k.revoked, t.id FROM api_keys k \
            JOIN tenants t ON t.name = k.tenant WHERE k.id = $1";
        let row = sqlx::query(select).bind(id).fetch_optional(&self.store.pool).await;
        let row = row.map_err(|error| self.store.database_error("look for a key", &error))?;
        row.map(|row| self.stored_key(&row)).transpose()
    }

    /// Revokes a key; returns false if there is none, or if it was revoked before.
    pub async fn revoke_key(&self, id: &str, now: i64) -> Result<bool, StoreError> {
        let update = "UPDATE api_keys SET revoked = $2 WHERE id = $1 AND revoked IS NULL";
        let args = [id.into(), now.into()];
        Ok(self.run_change("revoke a key", NoRowMeaning::Fine, update, args).await? > 0)
    }

    /// Stores when a key was last used. Nothing changes if a later time is stored, or if there is no such
    /// key.
    pub async fn touch_key(&self, id: &str, now: i64) -> Result<(), StoreError> {
        let update = "UPDATE api_keys SET last_used = $2 \
            WHERE id = $1 AND (last_used IS NULL OR last_used < $2)";
        let args = [id.into(), now.into()];
        self.run_change("note the use of a key", NoRowMeaning::Fine, update, args).await.map(drop)
    }

    /// The tenants with unfinished turns, sorted by name.
    pub async fn tenants_in_flight(&self) -> Result<Vec<Tenant>, StoreError> {
        let select = "SELECT name, disabled, created, id FROM tenants WHERE name IN \
            (SELECT s.tenant FROM messages m JOIN sessions s ON s.id = m.session_id \
            WHERE m.status = 'in_flight') ORDER BY name";
        let failed = |error| self.store.database_error("look for turns in flight", &error);
        let rows = sqlx::query(select).fetch_all(&self.store.pool).await.map_err(failed)?;
        rows.iter().map(|row| self.stored_tenant(row)).collect()
    }

    /// Has the writer execute one statement; returns the number of changed rows.
    pub(crate) async fn run_change<const N: usize>(
        &self,
        what: &'static str,
        nothing: NoRowMeaning,
        sql: &'static str,
        args: [SqlArgument; N],
    ) -> Result<u64, StoreError> {
        let statement = SqlStatement::new(what, nothing, sql, args);
        self.store
            .writer
            .enqueue_group(None, statement.map(|statement| vec![statement]))
            .changed_rows()
            .await
    }

    /// Reads a tenant from its row.
    fn stored_tenant(&self, row: &SqliteRow) -> Result<Tenant, StoreError> {
        let read = || -> Result<Tenant, sqlx::Error> {
            let disabled: i64 = row.try_get(1)?;
            let (name, created, id) = (row.try_get(0)?, row.try_get(2)?, row.try_get(3)?);
            Ok(Tenant { name, id, disabled: disabled != 0, created })
        };
        read().map_err(|error| self.store.bad_row("a tenant".to_owned(), error))
    }

    fn stored_key(&self, row: &SqliteRow) -> Result<StoredKey, StoreError> {
        key_from_row(row).map_err(|why| self.store.bad_row("a key".to_owned(), why))
    }
}

/// A new random id.
fn new_id() -> Result<String, StoreError> {
    let mut bytes = [0_u8; ID_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Invalid {
        what: "the tenant's id",
        why: format!("the system gives no random bytes: {error}"),
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads a key from its row.
fn key_from_row(row: &SqliteRow) -> Result<StoredKey, BadRow> {
    Ok(StoredKey {
        id: row.try_get(0)?,
        tenant: row.try_get(1)?,
        tenant_id: row.try_get(9)?,
        tenant_disabled: row.try_get::<i64, _>(2)? != 0,
        label: row.try_get(3)?,
        scope: row.try_get::<&str, _>(4)?.parse()?,
        secret_hash: row.try_get(5)?,
        created: row.try_get(6)?,
        last_used: row.try_get(7)?,
        revoked: row.try_get(8)?,
    })
}
