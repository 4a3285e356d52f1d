//! Makes a consistent copy of the store's file during writes, and checks such a copy.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _, SqliteConnection};

use crate::error::StoreError;
use crate::open::{BUSY_TIMEOUT, Store, create_file};
use crate::schema;

impl Store {
    /// Copies all committed data to a new file at `to`, readable by its owner only. Later commits are not in
    /// the copy, and writers do not wait.
    ///
    /// # Errors
    /// When `to` exists or cannot be written.
    pub async fn write_snapshot(&self, to: &Path) -> Result<(), StoreError> {
        let failed = |error: sqlx::Error| self.database_error("copy the store", &error);
        let no_path = || StoreError::Unusable {
            path: to.to_owned(),
            why: "is not a path in UTF-8".to_owned(),
        };
        let target = to.to_str().ok_or_else(no_path)?;
        let io = |source| StoreError::Io { what: "create", path: to.to_owned(), source };
        if to.try_exists().map_err(io)? {
            return Err(io(std::io::ErrorKind::AlreadyExists.into()));
        }
        create_file(to).map_err(io)?;
        // Made on a separate connection, because the others refuse to write to any file.
        let options = SqliteConnectOptions::new()
            .filename(&*self.path)
            .create_if_missing(false)
            .busy_timeout(BUSY_TIMEOUT)
            .pragma("temp_store", "MEMORY")
            .disable_statement_logging();
        let mut db: SqliteConnection = options.connect().await.map_err(failed)?;
        let copied = sqlx::query("VACUUM INTO $1").bind(target).execute(&mut db).await;
        let closed = db.close().await;
        copied.map_err(failed)?;
        closed.map_err(failed)
    }

    /// Checks that a file has exactly the schema that the migrations up to its version make, because a
    /// stranger's trigger or view would run together with a reader's statements. Runs no code of the file,
    /// and writes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] with the first difference, and the errors of opening for a file that is no
    /// store or too new.
    pub async fn check_schema(path: &Path) -> Result<(), StoreError> {
        let failed =
            |error: sqlx::Error| StoreError::from_database("look at the schema", path, &error);
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            .read_only(true)
            .immutable(true)
            .pragma("trusted_schema", "OFF")
            .disable_statement_logging();
        let mut db: SqliteConnection = options.connect().await.map_err(failed)?;
        let foreign = schema::find_foreign_object(&mut db, path).await;
        let closed = db.close().await;
        let foreign = foreign?;
        closed.map_err(failed)?;
        match foreign {
            None => Ok(()),
            Some(part) => {
                let why = format!("is not as this program makes it: its {part} is another");
                Err(StoreError::Unusable { path: path.to_owned(), why })
            }
        }
    }

    /// Checks that every page and row of the file is intact.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] with the first damage.
    pub async fn verify_file(&self) -> Result<(), StoreError> {
        let check = sqlx::query("PRAGMA integrity_check(1)").fetch_one(&self.pool).await;
        let row = check.map_err(|error| self.database_error("check the store", &error))?;
        let said: String = row.try_get(0).map_err(|error| self.database_error("check", &error))?;
        if said == "ok" {
            return Ok(());
        }
        let why = format!("is damaged: {}", belljar_policy::ShownText::clip_line(&said, 200));
        Err(StoreError::Unusable { path: self.path.to_path_buf(), why })
    }
}
