//! From a tenant to its sessions. A tenant is opened when it is first needed and stays open.
//!
//! Tenants are told apart by their ids: one that is deleted and made again has another id, and
//! nothing of what its predecessor has open here.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use belljar_policy::Shown;
use belljar_session::{Service, ServiceError};
use belljar_store::{Registry, Tenant};
use tokio::sync::OnceCell;

use crate::outward::Outward;
use crate::problem::Problem;

/// How long a caller waits before it tries a tenant again that could not be opened.
const RETRY: Duration = Duration::from_secs(30);

/// Opens tenants: reads their settings and puts their hosts together.
#[async_trait]
pub trait Tenants: Send + Sync {
    /// The sessions of a tenant that a key has vouched for. Called once for each tenant
    /// that opens, and again for one that did not.
    ///
    /// # Errors
    ///
    /// When it cannot be served now. The text goes to the operator's log; a caller is told less.
    async fn open(&self, tenant: &Tenant) -> Result<Service, OpenError>;
}

/// Why a tenant cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its files lie where this process may not reach.
    #[error("{0}")]
    OutOfReach(String),
    /// Its settings are not valid, or its host cannot be set up.
    #[error("{0}")]
    Setup(String),
}

/// The tenants that are open.
pub(crate) struct Services {
    opener: Arc<dyn Tenants>,
    registry: Registry,
    outward: Arc<Outward>,
    /// By their ids.
    open: Mutex<HashMap<String, Arc<OnceCell<Service>>>>,
}

impl Services {
    pub(crate) fn new(opener: Arc<dyn Tenants>, registry: Registry, outward: Arc<Outward>) -> Self {
        Self { opener, registry, outward, open: Mutex::default() }
    }

    /// The sessions of a tenant, by its name and id. Callers of one that is being opened wait for
    /// each other.
    pub(crate) async fn of(&self, tenant: &str, id: &str) -> Result<Service, Problem> {
        let cell = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            // Only ids of keys that exist come here, so it is as long as the list of tenants.
            Arc::clone(open.entry(id.to_owned()).or_default())
        };
        let open = cell.get_or_try_init(|| self.open(tenant, id)).await;
        open.cloned().map_err(|error| {
            tracing::error!(tenant, why = %Shown::multiline(&error.to_string()), "a tenant cannot be served");
            match error {
                OpenError::OutOfReach(_) => Problem::unavailable(
                    "the files of this tenant are out of this server's reach; a restart is needed",
                    RETRY,
                ),
                OpenError::Setup(_) => {
                    Problem::unavailable("this tenant cannot be served; the log says why", RETRY)
                }
            }
        })
    }

    async fn open(&self, tenant: &str, id: &str) -> Result<Service, OpenError> {
        let setup = |why: String| OpenError::Setup(why);
        let found = self.registry.tenant(tenant).await;
        let found = found.map_err(|error| setup(format!("it cannot be looked up: {error}")))?;
        let found = found.filter(|tenant| tenant.id == id);
        let found = found.ok_or_else(|| setup("it was deleted".to_owned()))?;
        let service = self.opener.open(&found).await?;
        self.outward.hide_of(&service);
        Ok(service)
    }

    /// All that are open.
    pub(crate) fn all(&self) -> Vec<Service> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.values().filter_map(|cell| cell.get().cloned()).collect()
    }

    /// Opens these tenants and goes on with the turns that a process died in. Gives how many.
    pub(crate) async fn recover(&self, tenants: &[Tenant]) -> usize {
        let mut turns = 0;
        for tenant in tenants {
            // Those that cannot be opened are in the log, and their turns wait for the next start.
            let Ok(service) = self.of(&tenant.name, &tenant.id).await else { continue };
            match service.recover().await {
                Ok(recovered) => turns += recovered,
                Err(error) => log_recovery(&tenant.name, &error),
            }
        }
        turns
    }

    /// The ids of those that are open.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// INV-101: closes those of `open` that are not `there` any more: their turns are stopped where
    /// they are, and nothing more of them is written. One that was deleted and made again is
    /// another tenant.
    pub(crate) fn close_deleted(&self, open: &[String], there: &[Tenant]) {
        let there: HashSet<&str> = there.iter().map(|tenant| tenant.id.as_str()).collect();
        for id in open.iter().filter(|id| !there.contains(id.as_str())) {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            // One that is only being opened has no turns, and is looked at again.
            let Some(service) = open.get(id).and_then(|cell| cell.get().cloned()) else { continue };
            open.remove(id);
            drop(open);
            let (tenant, turns) = (service.store().tenant(), service.running().len());
            tracing::info!(tenant, turns, "a tenant was deleted: its turns are stopped");
            tokio::spawn(async move { service.drain(Duration::ZERO).await });
        }
    }

    /// Lets all turns end, up to a limit.
    pub(crate) async fn drain(&self, limit: Duration) {
        let all = self.all();
        futures::future::join_all(all.iter().map(|service| service.drain(limit))).await;
    }
}

fn log_recovery(tenant: &str, error: &ServiceError) {
    tracing::error!(tenant, %error, "turns cannot be gone on with");
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}
