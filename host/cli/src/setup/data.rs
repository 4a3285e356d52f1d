//! The data root: the store, and the homes and workspaces of tenants.
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
use belljar_policy::{Shown, ShownPath as _};
use belljar_store::{AuditEntry, Store, StoreError, TENANT, Tenant, Write};
use serde_json::Value;

use crate::args::server::DataArg;
use crate::setup::below;
use crate::setup::exit::{Exit, Failure, chain};
use crate::setup::home::{Places, STORE, STORE_FILE, create_private, gather_store, not_written};
use crate::setup::host;

/// Where the workspaces of tenants lie, below the root.
pub(crate) const WORKSPACES: &str = "workspaces";

/// Where an older program has put the workspace of a tenant, beside its home.
pub(crate) const OLDER_WORKSPACE: &str = "workspace";

/// The data root of this machine.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    root: PathBuf,
    /// Whether `chat` writes to the same directory.
    is_own: bool,
}

impl Data {
    /// The data root of the command line, otherwise of the settings, otherwise the directory of `chat`'s
    /// sessions.
    pub(crate) fn find(
        arg: &DataArg,
        settings: &Settings,
        places: &Places,
    ) -> Result<Self, Failure> {
        let own = places.sessions();
        let root = match arg.data.as_ref().or(settings.server.data.as_ref()) {
            None => own.clone(),
            Some(path) => std::path::absolute(path).map_err(|error| {
                Failure::usage(format!("`{}` is not a usable path: {error}", path.shown()))
            })?,
        };
        Ok(Self { is_own: root == own, root })
    }

    /// Makes the root where it is not there.
    pub(crate) fn create(&self, places: &Places) -> Result<(), Failure> {
        let failed = |path: &Path, error: io::Error| not_written("create", path, &error);
        create_private(&self.root).map_err(|error| failed(&self.root, error))?;
        // What is not there when the OS sandbox goes up is not let through later.
        for path in self.of_tenants() {
            below::in_home(&self.root, &path).map_err(|error| failed(&path, error))?;
        }
        let gathered = match self.is_own {
            true => places.gather_sessions(),
            false => gather_store(&[&self.root], &self.store_directory()),
        };
        gathered.map_err(|error| failed(&self.store(), error))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of the store, the only part of the root that a server itself writes.
    pub(crate) fn store_directory(&self) -> PathBuf {
        self.root.join(STORE)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.store_directory().join(STORE_FILE)
    }

    /// The directories of all tenants.
    pub(crate) fn tenants(&self) -> PathBuf {
        self.root.join("tenants")
    }

    /// The workspaces of the agents of all tenants, but for what an older program has made.
    pub(crate) fn workspaces(&self) -> PathBuf {
        self.root.join(WORKSPACES)
    }

    /// The directories that looking at tenants reads.
    pub(crate) fn of_tenants(&self) -> Vec<PathBuf> {
        vec![self.tenants(), self.workspaces()]
    }

    /// The directory of a tenant beside its workspace, by id.
    pub(crate) fn tenant(&self, tenant: &Tenant) -> PathBuf {
        self.root.join("tenants").join(&tenant.id)
    }

    pub(crate) fn tenant_home(&self, tenant: &Tenant) -> PathBuf {
        self.tenant(tenant).join("home")
    }

    /// The workspace of a tenant's agents: an older program's, or in the common directory.
    pub(crate) fn tenant_workspace(&self, tenant: &Tenant) -> PathBuf {
        let older = self.tenant(tenant).join(OLDER_WORKSPACE);
        match older.symlink_metadata() {
            Ok(_) => older,
            Err(_) => self.workspaces().join(&tenant.id),
        }
    }
}

/// Opens the store at this path for one command, and closes it afterwards.
pub(crate) fn in_store<T>(
    path: &Path,
    work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    host::small_runtime()?.block_on(async {
        let store = Store::open(path).await.map_err(failed)?;
        let done = work(&store).await;
        store.close().await;
        done
    })
}

/// Like [`in_store`], with the store of the data root, made if missing.
pub(crate) fn with_store<T>(
    arg: &DataArg,
    places: &Places,
    work: impl AsyncFnOnce(&Store, &Data) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let data = Data::find(arg, &host::settings(places)?, places)?;
    data.create(places)?;
    in_store(&data.store(), async |store| work(store, &data).await)
}

/// The store's error, as a failure of the command.
pub(crate) fn failed(error: StoreError) -> Failure {
    match error {
        StoreError::NotFound { .. }
        | StoreError::Ambiguous { .. }
        | StoreError::Invalid { .. }
        | StoreError::Taken { .. } => Failure::usage(error.to_string()),
        other => Failure::new(chain(&other)).exit(Exit::Failed),
    }
}

/// Writes to the audit log of a tenant what the person at the command line did.
pub(crate) async fn audit(
    store: &Store,
    tenant: &str,
    action: &str,
    object: &str,
    detail: Value,
) -> Result<(), Failure> {
    let clock = belljar_agent::SystemClock;
    let entry = AuditEntry {
        id: RunId::new(&clock).into(),
        at: now(),
        actor: TENANT.to_owned(),
        action: action.to_owned(),
        object: Shown::clipped(object, 200).to_string(),
        detail,
    };
    store.of_tenant(tenant).enqueue(vec![Write::Audit(entry)]).await.map_err(failed)
}

/// Now, in milliseconds since 1970.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// A time of the store, for a person.
pub(crate) fn shown_time(milliseconds: i64) -> String {
    match jiff::Timestamp::from_millisecond(milliseconds) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => milliseconds.to_string(),
    }
}
