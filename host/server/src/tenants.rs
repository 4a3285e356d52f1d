//! From a tenant's name to its sessions. A tenant is opened when it is first needed and stays open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use belljar_policy::Shown;
use belljar_session::{Service, ServiceError};
use belljar_store::{Registry, Tenant};
use tokio::sync::OnceCell;

use crate::problem::Problem;

/// How long a caller waits before it tries a tenant again that could not be opened.
const RETRY: Duration = Duration::from_secs(30);

/// Opens tenants: reads their settings and puts their hosts together.
#[async_trait]
pub trait Tenants: Send + Sync {
    /// The sessions of a tenant whose name a key has vouched for. Called once for each tenant
    /// that opens, and again for one that did not.
    ///
    /// # Errors
    ///
    /// When it cannot be served now. The text goes to the operator's log; a caller is told less.
    async fn open(&self, tenant: &str) -> Result<Service, OpenError>;
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
    open: Mutex<HashMap<String, Arc<OnceCell<Open>>>>,
}

/// A tenant that is open.
#[derive(Clone)]
struct Open {
    service: Service,
    /// When the tenant was made, which tells it from another of its name.
    made: i64,
}

impl Services {
    pub(crate) fn new(opener: Arc<dyn Tenants>, registry: Registry) -> Self {
        Self { opener, registry, open: Mutex::default() }
    }

    /// The sessions of a tenant. Callers of one that is being opened wait for each other.
    pub(crate) async fn of(&self, tenant: &str) -> Result<Service, Problem> {
        let cell = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            // Only names of keys that exist come here, so it is as long as the list of tenants.
            Arc::clone(open.entry(tenant.to_owned()).or_default())
        };
        let open = cell.get_or_try_init(|| self.open(tenant)).await;
        open.map(|open| open.service.clone()).map_err(|error| {
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

    async fn open(&self, tenant: &str) -> Result<Open, OpenError> {
        let setup = |why: String| OpenError::Setup(why);
        let found = self.registry.tenant(tenant).await;
        let found = found.map_err(|error| setup(format!("it cannot be looked up: {error}")))?;
        let made = found.ok_or_else(|| setup("it was deleted".to_owned()))?.created;
        Ok(Open { service: self.opener.open(tenant).await?, made })
    }

    /// All that are open.
    pub(crate) fn all(&self) -> Vec<Service> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.values().filter_map(|cell| Some(cell.get()?.service.clone())).collect()
    }

    /// Opens these tenants and goes on with the turns that a process died in. Gives how many.
    pub(crate) async fn recover(&self, tenants: &[String]) -> usize {
        let mut turns = 0;
        for tenant in tenants {
            // Those that cannot be opened are in the log, and their turns wait for the next start.
            let Ok(service) = self.of(tenant).await else { continue };
            match service.recover().await {
                Ok(recovered) => turns += recovered,
                Err(error) => log_recovery(tenant, &error),
            }
        }
        turns
    }

    /// The names of those that are open.
    pub(crate) fn names(&self) -> Vec<String> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// INV-101: closes those of `open` that are not `there` any more: their turns are stopped where
    /// they are, and nothing more of them is written. One that was deleted and made again is
    /// another tenant.
    pub(crate) fn close_deleted(&self, open: &[String], there: &[Tenant]) {
        let made: HashMap<&str, i64> =
            there.iter().map(|tenant| (tenant.name.as_str(), tenant.created)).collect();
        for name in open {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            // One that is only being opened has no turns, and is looked at again.
            let Some(one) = open.get(name).and_then(|cell| cell.get().cloned()) else { continue };
            if made.get(name.as_str()) == Some(&one.made) {
                continue;
            }
            open.remove(name);
            drop(open);
            let turns = one.service.running().len();
            tracing::info!(tenant = name, turns, "a tenant was deleted: its turns are stopped");
            tokio::spawn(async move { one.service.drain(Duration::ZERO).await });
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
