//! The open tenants, each with the service of its sessions. A tenant is opened on first use and stays open.
//!
//! Tenants are distinguished by id: a tenant that is deleted and made again has another id, and no access to
//! its predecessor's open objects.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use belljar_policy::ShownText;
use belljar_session::{LookDepth, Service, ServiceError};
use belljar_store::{Registry, Tenant};
use tokio::sync::OnceCell;

use crate::http::outward::PlaceHider;
use crate::http::problem::Problem;

/// The time after which a caller should retry if its tenant could not be opened.
const RETRY: Duration = Duration::from_secs(30);

/// The time for which a tenant that failed to open is not tried again, because each attempt costs the same.
/// Short, so a repaired tenant is soon served.
const OPENED_AGAIN: Duration = Duration::from_secs(1);

/// Opens tenants: reads their settings and builds their hosts.
#[async_trait]
pub trait TenantOpener: Send + Sync {
    /// Opens a tenant's service. Called once for each tenant, and again after a failure.
    ///
    /// # Errors
    /// When the tenant cannot be served now. The text is for the operator's log; callers read less.
    async fn open_tenant(&self, tenant: &Tenant) -> Result<Service, OpenError>;

    /// Checks that a tenant could be opened, without opening it. Called for every tenant at the server's
    /// start, for a new tenant soon after it was made, and again after a failure. By default, succeeds.
    ///
    /// # Errors
    /// The error that [`TenantOpener::open_tenant`] would return.
    async fn check_tenant(&self, _tenant: &Tenant) -> Result<(), OpenError> {
        Ok(())
    }

    /// Returns whether, at the last check, the tenant with the given id had a grant that needs a restart of
    /// this process. Default: no.
    fn waits_for_restart(&self, _id: &str) -> bool {
        false
    }
}

/// The reason why a tenant cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// This process has no access to the tenant's files.
    #[error("{0}")]
    OutOfReach(String),
    /// The settings are invalid, or the host cannot be set up.
    #[error("{0}")]
    Setup(String),
}

/// All tenants of the server that were opened or checked.
pub(crate) struct TenantServices {
    opener: Arc<dyn TenantOpener>,
    registry: Registry,
    outward: Arc<PlaceHider>,
    /// The open or opening tenants by id.
    open: Mutex<HashMap<String, Arc<OnceCell<Service>>>>,
    /// The result of each tenant's last check, by id.
    found: Mutex<HashMap<String, TenantCheck>>,
    /// True after the service was stopped: no tenant accepts turns any more, even one that opens later.
    closing: AtomicBool,
}

/// The result of a tenant's last check.
#[derive(Clone)]
enum TenantCheck {
    Served,
    Not(NotServed),
}

/// The reason why a caller gets no open tenant.
enum OpeningFailure {
    /// Another attempt has just failed, with this problem.
    Known(Problem),
    Failed(OpenError),
}

/// A tenant that could not be opened.
#[derive(Clone)]
struct NotServed {
    at: Instant,
    /// The reason, as it was logged.
    why: String,
    /// The answer to a caller.
    problem: Problem,
}

impl TenantCheck {
    fn is_served(&self) -> bool {
        matches!(self, Self::Served)
    }
}

impl TenantServices {
    /// Starts with no open tenant. `opener` opens each on first use; `outward` then also hides its host paths.
    pub(crate) fn new(
        opener: Arc<dyn TenantOpener>,
        registry: Registry,
        outward: Arc<PlaceHider>,
    ) -> Self {
        let (open, found) = (Mutex::default(), Mutex::default());
        Self { opener, registry, outward, open, found, closing: AtomicBool::new(false) }
    }

    /// Returns the service of a tenant, by name and id, and opens it if necessary. Simultaneous callers of
    /// one tenant share one attempt. A failure is logged once, however many callers get it.
    pub(crate) async fn open_service(&self, tenant: &str, id: &str) -> Result<Service, Problem> {
        if let Some(problem) = self.recent_problem(id) {
            return Err(problem);
        }
        let cell = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            // Only ids of existing tenants get here, so the map is no longer than the list of tenants.
            Arc::clone(open.entry(id.to_owned()).or_default())
        };
        let opening = async || {
            // Another caller may just have failed to open it, and then its problem is returned.
            match self.recent_problem(id) {
                Some(problem) => Err(OpeningFailure::Known(problem)),
                None => self.open_tenant(tenant, id).await.map_err(OpeningFailure::Failed),
            }
        };
        match cell.get_or_try_init(opening).await {
            Err(OpeningFailure::Known(problem)) => Err(problem),
            Ok(open) => {
                self.lock_checks().insert(id.to_owned(), TenantCheck::Served);
                // Checked after the tenant was inserted: so either `drain` finds the tenant, or this check
                // sees that `drain` has begun.
                if self.closing.load(Ordering::SeqCst) {
                    open.take_no_turns();
                }
                Ok(open.clone())
            }
            Err(OpeningFailure::Failed(error)) => {
                let now = NotServed::from_error(&error);
                let before = self.not_served_before(id);
                if before.is_none_or(|before| before.why != now.why) {
                    let why = ShownText::multiline(&now.why);
                    tracing::error!(tenant, %why, "a tenant cannot be served");
                }
                let problem = now.problem.clone();
                self.lock_checks().insert(id.to_owned(), TenantCheck::Not(now));
                Err(problem)
            }
        }
    }

    /// The reason why an earlier check found that the tenant cannot be served, if it did.
    fn not_served_before(&self, id: &str) -> Option<NotServed> {
        match self.lock_checks().get(id) {
            Some(TenantCheck::Not(before)) => Some(before.clone()),
            Some(TenantCheck::Served) | None => None,
        }
    }

    /// The answer of an attempt to open this tenant that failed a moment ago.
    fn recent_problem(&self, id: &str) -> Option<Problem> {
        let before = self.not_served_before(id)?;
        (before.at.elapsed() < OPENED_AGAIN).then_some(before.problem)
    }

    /// Opens a tenant if it still exists, and hides the host paths that its turns can reveal.
    async fn open_tenant(&self, tenant: &str, id: &str) -> Result<Service, OpenError> {
        let setup = |why: String| OpenError::Setup(why);
        let found = self.registry.find_tenant(tenant).await;
        let found = found.map_err(|error| setup(format!("it cannot be looked up: {error}")))?;
        let found = found.filter(|tenant| tenant.id == id);
        let found = found.ok_or_else(|| setup("it was deleted".to_owned()))?;
        let service = self.opener.open_tenant(&found).await?;
        let (outward, workspace) = (Arc::clone(&self.outward), service.workspace().to_owned());
        self.outward.hide_of(&service.current_host(), &workspace);
        service.before_each_version(move |host| outward.hide_of(host, &workspace));
        Ok(service)
    }

    /// Checks the settings of all open tenants for changes.
    pub(crate) async fn look_for_changes(&self, look: LookDepth) {
        for service in self.open_services() {
            service.look_for_changes(look).await;
        }
    }

    /// The number of tenants that still use earlier settings, because the present ones are invalid.
    pub(crate) fn on_older_settings(&self) -> usize {
        self.open_services().iter().filter(|service| service.is_on_older_settings()).count()
    }

    /// INV-153: checks the tenants of `there` that are not known to be served. Returns the tenants that newly
    /// fail, with the reasons.
    pub(crate) async fn check_tenants(&self, there: &[Tenant]) -> Vec<(String, OpenError)> {
        let enabled: HashMap<&str, &Tenant> = there
            .iter()
            .filter(|tenant| !tenant.disabled)
            .map(|tenant| (tenant.id.as_str(), tenant))
            .collect();
        self.lock_checks().retain(|id, _| enabled.contains_key(id.as_str()));
        let mut found = Vec::new();
        for tenant in enabled.into_values() {
            let known = self.lock_checks().get(&tenant.id).map(TenantCheck::is_served);
            if known == Some(true) {
                continue;
            }
            let checked = self.opener.check_tenant(tenant).await;
            let now = match &checked {
                Ok(()) => TenantCheck::Served,
                Err(why) => TenantCheck::Not(NotServed::from_error(why)),
            };
            self.lock_checks().insert(tenant.id.clone(), now);
            match (known, checked) {
                (None, Err(why)) => found.push((tenant.name.clone(), why)),
                (Some(_), Err(_)) | (_, Ok(())) => {}
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found
    }

    /// The number of tenants that failed their last check.
    pub(crate) fn not_served(&self) -> usize {
        self.lock_checks().values().filter(|found| !found.is_served()).count()
    }

    /// The number of tenants with a grant or setting that needs a restart.
    pub(crate) fn waiting_for_restart(&self) -> usize {
        let ids: Vec<String> = self.lock_checks().keys().cloned().collect();
        ids.iter().filter(|id| self.opener.waits_for_restart(id)).count()
    }

    fn lock_checks(&self) -> MutexGuard<'_, HashMap<String, TenantCheck>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The services of all open tenants.
    pub(crate) fn open_services(&self) -> Vec<Service> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.values().filter_map(|cell| cell.get().cloned()).collect()
    }

    /// Opens these tenants and resumes their interrupted turns. Returns the number of resumed turns.
    pub(crate) async fn recover_tenants(&self, tenants: &[Tenant]) -> usize {
        let mut turns = 0;
        for tenant in tenants {
            // If a tenant cannot be opened, that is logged, and its turns wait for the next start.
            let Ok(service) = self.open_service(&tenant.name, &tenant.id).await else { continue };
            match service.recover_turns().await {
                Ok(recovered) => turns += recovered,
                Err(error) => log_recovery(&tenant.name, &error),
            }
        }
        turns
    }

    /// The ids of the open tenants.
    pub(crate) fn tenant_ids(&self) -> Vec<String> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// INV-101: closes the tenants of `open` that are missing from `there`, because they were deleted. Their
    /// turns are stopped, and nothing more is stored for them.
    pub(crate) fn close_deleted(&self, open: &[String], there: &[Tenant]) {
        let there: HashSet<&str> = there.iter().map(|tenant| tenant.id.as_str()).collect();
        for id in open.iter().filter(|id| !there.contains(id.as_str())) {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(cell) = open.get(id) else { continue };
            let Some(service) = cell.get().cloned() else {
                // A tenant that is still opening has no turns, and is checked again later.
                if Arc::strong_count(cell) == 1 {
                    open.remove(id);
                }
                continue;
            };
            open.remove(id);
            drop(open);
            let (tenant, turns) = (service.store().tenant(), service.running_turns().len());
            tracing::info!(tenant, turns, "a tenant was deleted: its turns are stopped");
            tokio::spawn(async move { service.drain_turns(Duration::ZERO).await });
        }
    }

    /// Refuses new turns of all tenants, and waits for the running ones, at most for `limit`.
    pub(crate) async fn drain_turns(&self, limit: Duration) {
        self.closing.store(true, Ordering::SeqCst);
        let all = self.open_services();
        futures::future::join_all(all.iter().map(|service| service.drain_turns(limit))).await;
    }
}

impl NotServed {
    /// The answer to callers and the logged reason for a tenant that could not be opened.
    fn from_error(error: &OpenError) -> Self {
        let told = match error {
            OpenError::OutOfReach(_) => {
                "the files of this tenant are out of this server's reach; a restart is needed"
            }
            OpenError::Setup(_) => "this tenant cannot be served; the log says why",
        };
        let problem = Problem::unavailable(told, RETRY);
        Self { at: Instant::now(), why: error.to_string(), problem }
    }
}

fn log_recovery(tenant: &str, error: &ServiceError) {
    tracing::error!(tenant, %error, "turns cannot be resumed");
}

impl std::fmt::Debug for TenantServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TenantServices").finish_non_exhaustive()
    }
}
