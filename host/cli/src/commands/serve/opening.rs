//! Opens tenants for the server: builds a host for each, with a shared sandbox, and with a home and a
//! workspace below the data root.
//!
//! A tenant has only the files that the operator put into its home. Without models in its `belljar.toml`, the
//! operator's models and roles serve it; the operator's hooks see its calls too, and it has no hooks of its
//! own. Secrets are never shared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use belljar_agent::{Hooks, Host};
use belljar_definition::{HookSetting, ModelSetting, Settings, SubagentProfile};
use belljar_os_sandbox::WallReach;
use belljar_policy::MountAccess;
use belljar_sandbox::Sandbox;
use belljar_server::{OpenError, TenantOpener};
use belljar_session::{Admission, LookDepth, Service, ServiceLimits, VersionMaker};
use belljar_store::{Store, TENANT, Tenant};
use belljar_work::{StopSignal, WorkKind};

use crate::commands::serve::judged::setup_error;
use crate::commands::serve::limits::{limits_of, service_limits};
use crate::commands::serve::own::{OwnRenewal, OwnSettings, OwnVersion, log_late_settings};
use crate::commands::serve::renewal::{SeenFiles, TenantRenewal};
use crate::commands::serve::running::RunningServer;
use crate::commands::serve::tenancy::{CheckedTenant, TenantSettings, own_directories};
use crate::setup::data::{DataRoot, OLDER_WORKSPACE};
use crate::setup::home::HomePaths;
use crate::setup::host::{self, HostAssembly};
use crate::setup::walls;
use crate::term::out::TerminalOutput;

/// What the server needs to open tenants.
pub(crate) struct TenantOpeningContext {
    /// The operator's own settings, as they change over time.
    pub(crate) own: Arc<OwnSettings>,
    /// The files that this process can open behind its OS sandbox; `None` = any file.
    pub(crate) reach: Option<WallReach>,
    /// The facts that this server writes down for commands on this machine.
    pub(crate) running: Option<RunningServer>,
    /// For each tenant's id, the settings that need a restart.
    pub(crate) late: Mutex<BTreeMap<String, Vec<String>>>,
    pub(crate) store: Store,
    pub(crate) out: TerminalOutput,
    /// The admission that all tenants share.
    pub(crate) admission: Arc<Admission>,
}

/// An opened tenant: its host, workspace and limits.
pub(crate) struct OpenedTenant {
    pub(crate) host: Host,
    pub(crate) workspace: PathBuf,
    pub(crate) limits: ServiceLimits,
}

/// The part of the operator's settings that each tenant's agents use too.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InheritedSettings {
    models: BTreeMap<String, ModelSetting>,
    roles: BTreeMap<String, String>,
    profile: SubagentProfile,
    small_models: BTreeSet<String>,
    hooks: Vec<HookSetting>,
    limits: ServiceLimits,
}

impl InheritedSettings {
    /// Copies this part from the operator's settings.
    pub(crate) fn from_own_version(own: &OwnVersion) -> Self {
        let Settings { models, roles, profile, small_models, hooks, server, .. } = &own.settings;
        let (models, roles, hooks) = (models.clone(), roles.clone(), hooks.clone());
        let (profile, small_models) = (*profile, small_models.clone());
        Self { models, roles, profile, small_models, hooks, limits: service_limits(server) }
    }
}

/// The most tenants whose directories are searched for workspaces when the server starts. With more tenants,
/// the others' directories are read-only until a start with fewer.
const MAX_TENANTS: usize = 10_000;

/// The places of tenants that the OS sandbox lets a server write: the directory of workspaces, for later
/// tenants too, and beside a tenant's home the workspace of an older program and granted directories. Rights
/// are decided for each agent. INV-133: a tenant's home is excluded, because its content decides the agents'
/// rights.
pub(crate) fn written_places(data: &DataRoot) -> Vec<PathBuf> {
    let tenants = std::fs::read_dir(data.tenants_directory()).into_iter().flatten().flatten();
    let beside = tenants.take(MAX_TENANTS).flat_map(|tenant| written_beside(&tenant.path()));
    beside.chain(data.workspaces_directory().canonicalize().ok()).collect()
}

/// The directories beside a tenant's home that its agents may write.
fn written_beside(own: &Path) -> Vec<PathBuf> {
    let found = |path: PathBuf| path.canonicalize().ok();
    let (Some(own), Some(home)) = (found(own.to_path_buf()), found(own.join("home"))) else {
        return Vec::new();
    };
    let workspace = own.join(OLDER_WORKSPACE);
    let places = HomePaths { home, cache: PathBuf::new(), workspace, user_home: None };
    let workspace = found(places.workspace.clone());
    let mut all: Vec<PathBuf> =
        workspace.into_iter().chain(granted_directories(&places, MountAccess::ReadWrite)).collect();
    all.retain(|path| path.starts_with(&own) && *path != own && !path.starts_with(&places.home));
    all
}

/// The directories that a tenant's settings let its agents mount with at least the access `least`; empty if
/// the settings are invalid.
fn granted_directories(places: &HomePaths, least: MountAccess) -> Vec<PathBuf> {
    let Ok(settings) = host::read_settings(places) else { return Vec::new() };
    host::mountable_directories(&settings, places, least).collect()
}

/// INV-151: the directories of a tenant that its agents may write, wherever the data root is: the workspace
/// and other granted directories, never the home or its parents. Overlays count as writable too.
fn work_directories(places: &HomePaths) -> Vec<PathBuf> {
    let [own, workspace] = own_directories(places);
    let work = |path: PathBuf| {
        if path.starts_with(workspace) {
            return Some(workspace.to_path_buf());
        }
        let first = path.strip_prefix(own).ok()?.components().next()?;
        Some(own.join(first)).filter(|work| !places.home.starts_with(work))
    };
    let granted = granted_directories(places, MountAccess::Overlay).into_iter();
    let mut directories: Vec<PathBuf> = granted.filter_map(work).collect();
    directories.dedup();
    directories
}

/// Opens a tenant from its files on disk, on request of the server.
pub(crate) struct DiskTenantOpener(Arc<TenantOpeningContext>);

impl From<TenantOpeningContext> for DiskTenantOpener {
    fn from(opener: TenantOpeningContext) -> Self {
        Self(Arc::new(opener))
    }
}

#[async_trait]
impl TenantOpener for DiskTenantOpener {
    async fn open_tenant(&self, tenant: &Tenant) -> Result<Service, OpenError> {
        let (inner, own) = (Arc::clone(&self.0), tenant.clone());
        // On a separate thread, because files are read, and tools may be listed in another runtime.
        let opened =
            belljar_work::run_job(&OPEN, &tenant.id, move |_| open_tenant(&inner, &own)).await;
        let (opened, renewal) =
            opened.map_err(|error| OpenError::Setup(format!("opening it failed: {error}")))??;
        let OpenedTenant { host, workspace, limits } = opened;
        let TenantOpeningContext { store, admission, .. } = &*self.0;
        let store = store.for_tenant_id(&tenant.name, &tenant.id);
        let service = Service::new(host, store, workspace, Arc::clone(admission), limits);
        let service = service.renewed_by(renewal);
        let loaded = service.reload_agents().await;
        loaded.map_err(|error| OpenError::Setup(format!("its agents cannot be read: {error}")))?;
        if let Some(running) = &self.0.running {
            running.note_opened(&tenant.id);
        }
        Ok(service)
    }

    async fn check_tenant(&self, tenant: &Tenant) -> Result<(), OpenError> {
        let (inner, own) = (Arc::clone(&self.0), tenant.clone());
        let check = move |_: &StopSignal| inner.check_tenant(&own).map(drop);
        let checked = belljar_work::run_job(&OPEN, &tenant.id, check).await;
        checked.map_err(|error| OpenError::Setup(format!("checking it failed: {error}")))?
    }

    fn waits_for_restart(&self, id: &str) -> bool {
        match id == TENANT {
            true => self.0.own.waits_for_restart(),
            false => self.0.lock_late_settings().contains_key(id),
        }
    }
}

/// The kind of host work that opens a tenant. It counts against the tenant, so that the operator's own work
/// still finds threads.
const OPEN: WorkKind = WorkKind { name: "opening a tenant", time: Duration::from_secs(300) };

/// Opens a tenant by its present files. Also returns the maker of its later versions.
fn open_tenant(
    opener: &Arc<TenantOpeningContext>,
    tenant: &Tenant,
) -> Result<(OpenedTenant, Arc<dyn VersionMaker>), OpenError> {
    let looked = opener.own.look_at_files(LookDepth::IfChanged);
    let OwnVersion { settings, host } = &*looked.now;
    if tenant.name == TENANT {
        let (host, workspace) = (host.clone(), opener.own.operator_places().workspace.clone());
        let opened = OpenedTenant { host, workspace, limits: service_limits(&settings.server) };
        let renewal = OwnRenewal::new(Arc::clone(&opener.own), looked.read_count());
        return Ok((opened, Arc::new(renewal)));
    }
    let places = opener.current_tenancy().places_of(tenant)?;
    let mut seen =
        SeenFiles::from_places(&places, InheritedSettings::from_own_version(&looked.now));
    let checked = opener.check_tenant(tenant)?;
    seen.values_of(&checked, &opener.own, &looked.now);
    let opened = opener.put_together(checked, tenant, &looked.now)?;
    let renewal = TenantRenewal::new(Arc::clone(opener), tenant.clone(), seen);
    Ok((opened, Arc::new(renewal)))
}

impl TenantOpeningContext {
    /// What all tenants share, from the operator's settings in force.
    pub(crate) fn current_tenancy(&self) -> TenantSettings {
        TenantSettings {
            settings: self.own.current_version().settings.clone(),
            places: self.own.operator_places().clone(),
            data: self.own.data_root().clone(),
            reach: self.reach.clone(),
        }
    }

    /// Reads and checks the present files of a tenant. Settings that this process cannot apply are removed
    /// and named, because the rest, above all a revoked right, must take effect.
    pub(crate) fn check_tenant(&self, tenant: &Tenant) -> Result<CheckedTenant, OpenError> {
        let checked = self.current_tenancy().check_tenant(tenant)?;
        let mut all = self.lock_late_settings();
        let before = all.remove(&tenant.id).unwrap_or_default();
        log_late_settings(&tenant.name, &before, &checked.late);
        if !checked.late.is_empty() {
            all.insert(tenant.id.clone(), checked.late.clone());
        }
        drop(all);
        Ok(checked)
    }

    fn lock_late_settings(&self) -> MutexGuard<'_, BTreeMap<String, Vec<String>>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds a tenant's host from its checked settings and the operator's.
    pub(crate) fn put_together(
        &self,
        checked: CheckedTenant,
        tenant: &Tenant,
        own: &OwnVersion,
    ) -> Result<OpenedTenant, OpenError> {
        let CheckedTenant { places, mut settings, late: _ } = checked;
        settings.profile = settings.profile.max(own.settings.profile);
        let limits = limits_of(&settings.server, service_limits(&own.settings.server));
        let inherits_models = settings.models.is_empty();
        let assembly = HostAssembly::from_settings(settings, &places, &self.out);
        let assembly = match inherits_models {
            false => assembly,
            true => {
                let models = host::make_models(&own.settings, self.own.operator_places());
                assembly.with_models(models.map_err(|failure| setup_error(&failure))?)
            }
        };
        let sandbox: Sandbox = own.host.sandbox.clone();
        let sandbox = sandbox.with_work_directories(work_directories(&places));
        let mut host =
            assembly.with_sandbox(sandbox).build_host().map_err(|failure| setup_error(&failure))?;
        let hooks = Hooks::from_settings(&own.settings);
        host.tenant = Some(tenant.name.clone());
        host.hooks = Arc::new(match walls::outside_broker() {
            Some(broker) => hooks.with_broker(broker),
            None => hooks,
        });
        Ok(OpenedTenant { host, workspace: places.workspace, limits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_policy::ShownPath as _;

    #[test]
    fn a_tenants_settings_are_never_among_what_its_agents_write() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().canonicalize().unwrap().join("red");
        for made in ["home/agents", "workspace", "elsewhere"] {
            std::fs::create_dir_all(own.join(made)).unwrap();
        }
        let mounts = |at: &[&str]| {
            let mount = |(number, path): (usize, &&str)| {
                let path = own.join(path);
                format!(
                    "{{ path = '/m{number}', host = '{}', access = 'read-write' }}",
                    path.to_shown()
                )
            };
            let all: Vec<String> = at.iter().enumerate().map(mount).collect();
            let text = format!("[grants.red]\nmounts = [{}]\n", all.join(", "));
            std::fs::write(own.join("home/belljar.toml"), text).unwrap();
            written_beside(&own)
        };
        let workspace = own.join("workspace");
        let granted = mounts(&["home", "home/agents", ".", "..", "nowhere"]);
        assert_eq!(granted, std::slice::from_ref(&workspace));
        assert_eq!(mounts(&["elsewhere", "home"]), [workspace.clone(), own.join("elsewhere")]);
        std::fs::write(own.join("home/belljar.toml"), "no settings").unwrap();
        assert_eq!(written_beside(&own), [workspace]);
        std::fs::remove_dir(own.join("workspace")).unwrap();
        assert_eq!(written_beside(&own), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_tenants_agents_work_in_its_workspace_and_never_in_its_home() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().canonicalize().unwrap().join(".belljar/tenants/1");
        for made in ["home/agents", "workspace/.belljar/agents", "out/deep"] {
            std::fs::create_dir_all(own.join(made)).unwrap();
        }
        let (home, workspace) = (own.join("home"), own.join("workspace"));
        let places = HomePaths { home, workspace, cache: PathBuf::new(), user_home: None };
        let work = |grants: &str| {
            std::fs::write(own.join("home/belljar.toml"), grants).unwrap();
            work_directories(&places)
        };
        let mount = |path: &str| {
            let host = own.join(path);
            format!("{{ path = '/{path}', host = '{}', access = 'read-write' }}", host.to_shown())
        };
        let never = "[agents]\noverlay = 'never'\n";
        assert_eq!(work(never), Vec::<PathBuf>::new());
        assert_eq!(work("[grants.a]\ntools = []\n"), [own.join("workspace")]);
        let below = ["workspace/.belljar/agents", "out/deep", "home/agents"].map(mount).join(", ");
        let below = work(&format!("[grants.a]\nmounts = [{below}]\n"));
        assert_eq!(below, [own.join("workspace"), own.join("out")]);
    }

    #[test]
    fn a_workspace_with_those_of_the_others_is_written_and_theirs_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for made in ["tenants/1/home", "tenants/1/out", "workspaces/1/deep", "workspaces/2"] {
            std::fs::create_dir_all(root.join(made)).unwrap();
        }
        let (home, workspace) = (root.join("tenants/1/home"), root.join("workspaces/1"));
        let places = HomePaths { home, workspace, cache: PathBuf::new(), user_home: None };
        let mount = |(number, path): (usize, &str)| {
            let host = root.join(path);
            format!(
                "{{ path = '/m{number}', host = '{}', access = 'read-write' }}",
                host.to_shown()
            )
        };
        let all = ["workspaces/1/deep", "workspaces/2", "workspaces", "tenants/1/out", "tenants"];
        let all: Vec<String> = all.into_iter().enumerate().map(mount).collect();
        let text = format!("[grants.a]\nmounts = [{}]\n", all.join(", "));
        std::fs::write(places.config_path(), text).unwrap();
        assert_eq!(
            work_directories(&places),
            [root.join("workspaces/1"), root.join("tenants/1/out")]
        );
        assert_eq!(written_beside(&root.join("tenants/1")), [root.join("tenants/1/out")]);
    }
}
