//! The data root: the directory with the server's store, and with the homes and workspaces of tenants.
//!
//! ```text
//! ROOT/store/belljar.db
//! ROOT/tenants/ID/home  belljar.toml, agents, tools, skills of a tenant
//! ROOT/workspaces/ID    what its agents work on
//! ```
//!
//! All workspaces are in one directory without files that decide about rights: a server's OS sandbox lets
//! that directory through, so later tenants are served like all others. An older program kept a workspace
//! beside the home, as `ROOT/tenants/ID/workspace`; an existing one stays in use.
//!
//! A directory belongs to its tenant for ever: the id is random, and a later tenant of the same name has
//! another.
//!
//! The tenant of the command line has no directory here, because its person's home is used.

use std::io;
use std::path::{Path, PathBuf};

use belljar_agent::RunId;
use belljar_definition::Settings;
use belljar_policy::{ShownPath as _, ShownText};
use belljar_store::{AuditEntry, Store, StoreError, StoreWrite, TENANT, Tenant};
use serde_json::Value;

use crate::args::server::DataArg;
use crate::setup::below;
use crate::setup::exit::{CommandExit, Failure, format_error_chain};
use crate::setup::home::{HomePaths, STORE, STORE_FILE, create_private, gather_store, not_written};
use crate::setup::host;

/// The name of the directory of tenants' workspaces, below the root.
pub(crate) const WORKSPACES: &str = "workspaces";

/// The directory beside a tenant's home in which an earlier version of belljar put the tenant's workspace.
pub(crate) const OLDER_WORKSPACE: &str = "workspace";

/// The path of the data root.
#[derive(Debug, Clone)]
pub(crate) struct DataRoot {
    root: PathBuf,
    /// True if `chat` stores its sessions in the same directory.
    is_own: bool,
}

impl DataRoot {
    /// Finds the data root: the one of the command line, otherwise of the settings, otherwise the directory
    /// of `chat`'s sessions.
    pub(crate) fn find_root(
        arg: &DataArg,
        settings: &Settings,
        places: &HomePaths,
    ) -> Result<Self, Failure> {
        let own = places.sessions_directory();
        let root = match arg.data.as_ref().or(settings.server.data.as_ref()) {
            None => own.clone(),
            Some(path) => std::path::absolute(path).map_err(|error| {
                Failure::usage(format!("`{}` is not a usable path: {error}", path.to_shown()))
            })?,
        };
        Ok(Self { is_own: root == own, root })
    }

    /// Makes the root's directories, if missing.
    pub(crate) fn create_root(&self, places: &HomePaths) -> Result<(), Failure> {
        let failed = |path: &Path, error: io::Error| not_written("create", path, &error);
        create_private(&self.root).map_err(|error| failed(&self.root, error))?;
        // The OS sandbox can only let through directories that exist when it is raised.
        for path in self.tenant_read_paths() {
            below::in_home(&self.root, &path).map_err(|error| failed(&path, error))?;
        }
        let gathered = match self.is_own {
            true => places.gather_sessions(),
            false => gather_store(&[&self.root], &self.store_directory()),
        };
        gathered.map_err(|error| failed(&self.store_path(), error))
    }

    pub(crate) fn root_path(&self) -> &Path {
        &self.root
    }

    /// The directory of the store, the only part of the root that a server itself writes.
    pub(crate) fn store_directory(&self) -> PathBuf {
        self.root.join(STORE)
    }

    pub(crate) fn store_path(&self) -> PathBuf {
        self.store_directory().join(STORE_FILE)
    }

    /// The directories of all tenants.
    pub(crate) fn tenants_directory(&self) -> PathBuf {
        self.root.join("tenants")
    }

    /// The directory of all tenants' workspaces, except those that an earlier version of belljar made.
    pub(crate) fn workspaces_directory(&self) -> PathBuf {
        self.root.join(WORKSPACES)
    }

    /// The directories of tenants that the OS sandbox must let a server or command read.
    pub(crate) fn tenant_read_paths(&self) -> Vec<PathBuf> {
        vec![self.tenants_directory(), self.workspaces_directory()]
    }

    /// The directory of a tenant, `ROOT/tenants/ID`, which contains the tenant's home.
    pub(crate) fn tenant_directory(&self, tenant: &Tenant) -> PathBuf {
        self.root.join("tenants").join(&tenant.id)
    }

    pub(crate) fn tenant_home(&self, tenant: &Tenant) -> PathBuf {
        self.tenant_directory(tenant).join("home")
    }

    /// The workspace of a tenant's agents: `ROOT/tenants/ID/workspace` if an earlier version of belljar made
    /// that directory, otherwise `ROOT/workspaces/ID`.
    pub(crate) fn tenant_workspace(&self, tenant: &Tenant) -> PathBuf {
        let older = self.tenant_directory(tenant).join(OLDER_WORKSPACE);
        match older.symlink_metadata() {
            Ok(_) => older,
            Err(_) => self.workspaces_directory().join(&tenant.id),
        }
    }
}

/// Opens the store at `path` for one command, runs `work` on it, and closes it.
pub(crate) fn in_store<T>(
    path: &Path,
    work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    host::small_runtime()?.block_on(async {
        let store = Store::open(path).await.map_err(store_failure)?;
        let done = work(&store).await;
        store.close().await;
        done
    })
}

/// Like [`in_store`], with the store of the data root. A missing root is created.
pub(crate) fn with_store<T>(
    arg: &DataArg,
    places: &HomePaths,
    work: impl AsyncFnOnce(&Store, &DataRoot) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let data = DataRoot::find_root(arg, &host::read_settings(places)?, places)?;
    data.create_root(places)?;
    in_store(&data.store_path(), async |store| work(store, &data).await)
}

/// The failure of a command for an error of the store.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    match error {
        StoreError::NotFound { .. }
        | StoreError::Ambiguous { .. }
        | StoreError::Invalid { .. }
        | StoreError::Taken { .. } => Failure::usage(error.to_string()),
        other => Failure::new(format_error_chain(&other)).with_exit(CommandExit::Failed),
    }
}

/// Writes the action of the person at the command line to the audit log of a tenant.
pub(crate) async fn write_audit(
    store: &Store,
    tenant: &str,
    action: &str,
    object: &str,
    detail: Value,
) -> Result<(), Failure> {
    let clock = belljar_agent::SystemClock;
    let entry = AuditEntry {
        id: RunId::new(&clock).into(),
        at: now_millis(),
        actor: TENANT.to_owned(),
        action: action.to_owned(),
        object: ShownText::clip_line(object, 200).to_string(),
        detail,
    };
    store
        .for_tenant_name(tenant)
        .enqueue_writes(vec![StoreWrite::Audit(entry)])
        .await
        .map_err(store_failure)
}

/// The present time, in milliseconds since 1970.
pub(crate) fn now_millis() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// A time of the store in the form for a person.
pub(crate) fn shown_time(milliseconds: i64) -> String {
    match jiff::Timestamp::from_millisecond(milliseconds) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => milliseconds.to_string(),
    }
}
