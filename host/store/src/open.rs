//! Opens the store's file: permissions, checks, migration, connections.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, Sqlite, SqliteConnection, Transaction};

use crate::error::StoreError;
use crate::owner;
#[cfg(doc)]
use crate::registry::Tenant;
use crate::schema;
use crate::statement::{SqlArgument, SqlStatement, bind_arguments};
use crate::writer::{CommitHandle, GroupOwner, WriterHandle};

/// The name of the tenant of the command line, the owner of the home.
pub const TENANT: &str = "local";

/// The time that a write waits for another process's write: several times the longest commit on a slow disk.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause before opening is attempted again. Other processes need only some milliseconds.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// The pages of the write-ahead log after which a commit moves the log into the file: 32 MiB, because turns
/// write the same pages over and over, and SQLite's default of 1,000 pages would copy and sync far more
/// often.
const CHECKPOINT_PAGES: &str = "8000";

/// The connections for reading in one process. Each has a thread, and none waits for the writer.
const MAX_CONNECTIONS: u32 = 4;

/// One tenant's sessions in a store's file. Clones share the connections and the writer.
///
/// The writer is a task of the runtime in which the file was opened; nothing is written after that runtime
/// has ended.
#[derive(Debug, Clone)]
pub struct Store {
    /// The connections for reading. They refuse to write, because all writes go through the writer.
    pub(crate) pool: SqlitePool,
    pub(crate) writer: WriterHandle,
    pub(crate) path: Arc<Path>,
    pub(crate) tenant: Arc<str>,
    /// The id of the tenant, to exclude rows of a later tenant with the same name; `None` = only the name
    /// counts.
    id: Option<Arc<str>>,
}

/// The reason why a row cannot be read: a column, its JSON, or an unknown word.
pub(crate) type BadRow = Box<dyn std::error::Error + Send + Sync>;

impl Store {
    /// Opens a store's file, usually `~/.belljar/sessions/belljar.db`, as tenant [`TENANT`]. Creates a
    /// missing file (readable by its owner only, in a directory of the same kind), and migrates the schema.
    ///
    /// A damaged, foreign or newer file is refused before anything is written; so is a file of another user,
    /// or one in a directory where others can replace it.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let started = Instant::now();
        loop {
            match Self::open_once(path).await {
                // While another process switches the file to the write-ahead log, SQLite does not wait but
                // reports at once that the file is busy.
                Err(StoreError::Busy { .. }) if started.elapsed() < BUSY_TIMEOUT => {
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                opened => return opened,
            }
        }
    }

    /// Makes one attempt to open the file: prepares, checks and migrates it, and connects the writer and the
    /// readers.
    async fn open_once(path: &Path) -> Result<Self, StoreError> {
        prepare_file(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            .foreign_keys(true)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY_TIMEOUT)
            // Large changes use memory instead of a temporary file, because a file in the system's directory
            // would contain people's messages.
            .pragma("temp_store", "MEMORY")
            .disable_statement_logging();
        check_and_migrate(&options, path).await?;
        let failed = |error| StoreError::from_database("open the store", path, &error);
        let options = options
            .journal_mode(SqliteJournalMode::Wal)
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES);
        let shared: Arc<Path> = path.into();
        // The writer connects first, because only it may change the journal mode.
        let writer =
            WriterHandle::start_task(options.clone(), Arc::clone(&shared)).await.map_err(failed)?;
        let pool = SqlitePoolOptions::new()
            .max_connections(MAX_CONNECTIONS)
            .acquire_timeout(BUSY_TIMEOUT)
            .connect_with(options.pragma("query_only", "ON"))
            .await
            .map_err(failed)?;
        Ok(Self { pool, writer, path: shared, tenant: TENANT.into(), id: None })
    }

    /// The store of another tenant in the same file.
    #[must_use]
    pub fn for_tenant_name(&self, tenant: &str) -> Self {
        Self { tenant: tenant.into(), id: None, ..self.clone() }
    }

    /// The store of the tenant with the given name and [`Tenant::id`], in the same file. After the tenant was
    /// deleted, writes fail with [`StoreError::NotFound`], even if a new tenant has the same name.
    #[must_use]
    pub fn for_tenant_id(&self, tenant: &str, id: &str) -> Self {
        Self { tenant: tenant.into(), id: Some(id.into()), ..self.clone() }
    }

    /// Enqueues a group of this tenant's statements at the writer.
    pub(crate) fn commit(&self, statements: Result<Vec<SqlStatement>, StoreError>) -> CommitHandle {
        let owner = self
            .id
            .as_ref()
            .map(|id| GroupOwner { name: Arc::clone(&self.tenant), id: Arc::clone(id) });
        self.writer.enqueue_group(owner, statements)
    }

    /// Like [`Store::commit`], with one statement.
    pub(crate) fn commit_one(&self, statement: Result<SqlStatement, StoreError>) -> CommitHandle {
        self.commit(statement.map(|statement| vec![statement]))
    }

    /// The rows that a `SELECT` finds. The argument `$1` is this tenant's name; `args` follow. `what` names
    /// the operation in an error.
    pub(crate) async fn select_rows<const N: usize>(
        &self,
        what: &'static str,
        select: &'static str,
        args: [SqlArgument; N],
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let query = bind_arguments(sqlx::query(select).bind(&*self.tenant), &args);
        query.fetch_all(&self.pool).await.map_err(|error| self.database_error(what, &error))
    }

    /// Begins a transaction for several reads of the same state, which does not see later writes.
    pub(crate) async fn begin_read(
        &self,
        what: &'static str,
    ) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.pool.begin().await.map_err(|error| self.database_error(what, &error))
    }

    /// Like [`Store::select_rows`], within such a transaction.
    pub(crate) async fn rows_in<const N: usize>(
        &self,
        state: &mut SqliteConnection,
        what: &'static str,
        select: &'static str,
        args: [SqlArgument; N],
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let query = bind_arguments(sqlx::query(select).bind(&*self.tenant), &args);
        query.fetch_all(state).await.map_err(|error| self.database_error(what, &error))
    }

    /// Like [`Store::select_rows`], for at most one row.
    pub(crate) async fn select_row<const N: usize>(
        &self,
        what: &'static str,
        select: &'static str,
        args: [SqlArgument; N],
    ) -> Result<Option<SqliteRow>, StoreError> {
        let query = bind_arguments(sqlx::query(select).bind(&*self.tenant), &args);
        query.fetch_optional(&self.pool).await.map_err(|error| self.database_error(what, &error))
    }

    /// The path of the store's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the tenant whose rows are visible.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// The [`Tenant::id`](crate::Tenant::id) of that tenant, if the store was opened with one.
    pub fn tenant_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Commits earlier writes, and closes all connections of this process, including those of clones. Later
    /// writes fail with [`StoreError::Closed`].
    pub async fn close(&self) {
        self.pool.close().await;
        // Last, so the writer moves the log into the file.
        self.writer.close().await;
    }

    /// The error for an operation `what` that the database refused.
    pub(crate) fn database_error(&self, what: &'static str, error: &sqlx::Error) -> StoreError {
        StoreError::from_database(what, &self.path, error)
    }

    /// The error for a row that cannot be read.
    pub(crate) fn bad_row(&self, what: String, why: impl ToString) -> StoreError {
        StoreError::Row { what, path: self.path.to_path_buf(), why: why.to_string() }
    }
}

/// Opens one connection, and migrates the file after all checks have passed.
async fn check_and_migrate(options: &SqliteConnectOptions, path: &Path) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| StoreError::from_database("open the store", path, &error);
    let mut db: SqliteConnection = options.connect().await.map_err(failed)?;
    let migrated = schema::migrate_schema(&mut db, path, now_millis()).await;
    let closed = db.close().await;
    migrated?;
    closed.map_err(failed)
}

/// Creates an empty file if it is missing, and removes other users' access to it.
///
/// The file is never opened here, because closing a second handle would drop SQLite's locks, which belong to
/// the process.
fn prepare_file(path: &Path) -> Result<(), StoreError> {
    let failed = |what| {
        let path = path.to_owned();
        move |source| StoreError::Io { what, path, source }
    };
    match fs::metadata(path) {
        Ok(meta) if meta.is_file() => {
            owner::check_owner(path)?;
            keep_private(path, &meta).map_err(failed("protect"))
        }
        Ok(_) => {
            let why = "is not a regular file".to_owned();
            Err(StoreError::Unusable { path: path.to_owned(), why })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_dir(path.parent().unwrap_or(Path::new("."))).map_err(failed("create"))?;
            owner::check_owner(path)?;
            create_file(path).map_err(failed("create"))?;
            // Another process may have created the file meanwhile.
            owner::check_owner(path)
        }
        Err(error) => Err(failed("look at")(error)),
    }
}

/// Creates an empty private file under another name and links it to `path`, unless another process was
/// faster.
pub(crate) fn create_file(path: &Path) -> io::Result<()> {
    let temporary = temporary_path(path);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(&temporary)?);
    let linked = fs::hard_link(&temporary, path);
    fs::remove_file(&temporary)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

/// A file name beside `path` that no other creation uses.
fn temporary_path(path: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("{}-{number}.new", std::process::id()))
}

/// Creates a directory, and those above it, for this user only.
#[cfg(unix)]
fn create_dir(dir: &Path) -> io::Result<()> {
    if dir.as_os_str().is_empty() {
        return Ok(());
    }
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(not(unix))]
fn create_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

/// Takes all permissions of other users from a file.
#[cfg(unix)]
fn keep_private(path: &Path, meta: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if meta.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn keep_private(_path: &Path, _meta: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// The present time, only for the record of migrations; rows get their times from the callers.
fn now_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
