//! Opens tenants for the server: a host for each over one sandbox, with a home and a workspace below the data
//! root.
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
use belljar_definition::{HookSetting, ModelSetting, Profile, Settings};
use belljar_os_sandbox::WallReach;
use belljar_policy::Access;
use belljar_sandbox::Sandbox;
use belljar_server::{OpenError, Tenants};
use belljar_session::{Admission, Look, Renew, Service, ServiceLimits};
use belljar_store::{Store, TENANT, Tenant};
use belljar_work::{StopSignal, WorkKind};

use crate::commands::serve::judged::setup;
use crate::commands::serve::limits::{limits, limits_of};
use crate::commands::serve::own::{Own, OwnRenewal, OwnVersion, say_late};
use crate::commands::serve::renewal::{Seen, TenantRenewal};
use crate::commands::serve::running::Running;
use crate::commands::serve::tenancy::{Checked, Tenancy, own_directories};
use crate::setup::data::{Data, OLDER_WORKSPACE};
use crate::setup::home::Places;
use crate::setup::host::{self, Assembly};
use crate::setup::walls;
use crate::term::out::Out;

/// The means to open tenants with.
pub(crate) struct Opener {
    /// The operator's own.
    pub(crate) own: Arc<Own>,
    /// Where the OS sandbox lets this process reach; `None` = anywhere.
    pub(crate) reach: Option<WallReach>,
    /// This server's facts for commands on this machine.
    pub(crate) running: Option<Running>,
    /// The settings of tenants that wait for a restart, by tenant id.
    pub(crate) late: Mutex<BTreeMap<String, Vec<String>>>,
    pub(crate) store: Store,
    pub(crate) out: Out,
    /// The admission that all tenants share.
    pub(crate) admission: Arc<Admission>,
}

/// The means that a tenant works with.
pub(crate) struct Opened {
    pub(crate) host: Host,
    pub(crate) workspace: PathBuf,
    pub(crate) limits: ServiceLimits,
}

/// The part of the operator's settings that tenants have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Inherited {
    models: BTreeMap<String, ModelSetting>,
    roles: BTreeMap<String, String>,
    profile: Profile,
    small_models: BTreeSet<String>,
    hooks: Vec<HookSetting>,
    limits: ServiceLimits,
}

impl Inherited {
    pub(crate) fn of(own: &OwnVersion) -> Self {
        let Settings { models, roles, profile, small_models, hooks, server, .. } = &own.settings;
        let (models, roles, hooks) = (models.clone(), roles.clone(), hooks.clone());
        let (profile, small_models) = (*profile, small_models.clone());
        Self { models, roles, profile, small_models, hooks, limits: limits(server) }
    }
}

/// Most tenants whose directories are searched for workspaces at the server's start; with more, the others'
/// are read-only until a start with fewer.
const MAX_TENANTS: usize = 10_000;

/// The places of tenants that the OS sandbox lets a server write: the directory of workspaces, for later
/// tenants too, and beside a tenant's home the workspace of an older program and granted directories. Rights
/// are decided for each agent. INV-133: a tenant's home is excluded, because its content decides the agents'
/// rights.
pub(crate) fn written(data: &Data) -> Vec<PathBuf> {
    let tenants = std::fs::read_dir(data.tenants()).into_iter().flatten().flatten();
    let beside = tenants.take(MAX_TENANTS).flat_map(|tenant| written_beside(&tenant.path()));
    beside.chain(data.workspaces().canonicalize().ok()).collect()
}

/// The places beside a tenant's home that its agents write.
fn written_beside(own: &Path) -> Vec<PathBuf> {
    let found = |path: PathBuf| path.canonicalize().ok();
    let (Some(own), Some(home)) = (found(own.to_path_buf()), found(own.join("home"))) else {
        return Vec::new();
    };
    let workspace = own.join(OLDER_WORKSPACE);
    let places = Places { home, cache: PathBuf::new(), workspace, user_home: None };
    let workspace = found(places.workspace.clone());
    let mut all: Vec<PathBuf> =
        workspace.into_iter().chain(granted(&places, Access::ReadWrite)).collect();
    all.retain(|path| path.starts_with(&own) && *path != own && !path.starts_with(&places.home));
    all
}

/// The directories that a home lets agents mount with at least this access; empty for an invalid home.
fn granted(places: &Places, least: Access) -> Vec<PathBuf> {
    let Ok(settings) = host::settings(places) else { return Vec::new() };
    host::mounted(&settings, places, least).collect()
}

/// INV-151: the directories of a tenant that its agents may write, wherever the data root is: the workspace
/// and other granted directories, never the home or its parents. Overlays count as writable too.
fn work_directories(places: &Places) -> Vec<PathBuf> {
    let [own, workspace] = own_directories(places);
    let work = |path: PathBuf| {
        if path.starts_with(workspace) {
            return Some(workspace.to_path_buf());
        }
        let first = path.strip_prefix(own).ok()?.components().next()?;
        Some(own.join(first)).filter(|work| !places.home.starts_with(work))
    };
    let granted = granted(places, Access::Overlay).into_iter();
    let mut directories: Vec<PathBuf> = granted.filter_map(work).collect();
    directories.dedup();
    directories
}

/// Opens tenants.
pub(crate) struct Opening(Arc<Opener>);

impl From<Opener> for Opening {
    fn from(opener: Opener) -> Self {
        Self(Arc::new(opener))
    }
}

#[async_trait]
impl Tenants for Opening {
    async fn open(&self, tenant: &Tenant) -> Result<Service, OpenError> {
        let (inner, own) = (Arc::clone(&self.0), tenant.clone());
        // Reads files, and may describe tools on a runtime of its own.
        let opened = belljar_work::run(&OPEN, &tenant.id, move |_| open(&inner, &own)).await;
        let (opened, renewal) =
            opened.map_err(|error| OpenError::Setup(format!("opening it failed: {error}")))??;
        let Opened { host, workspace, limits } = opened;
        let Opener { store, admission, .. } = &*self.0;
        let store = store.of(&tenant.name, &tenant.id);
        let service = Service::new(host, store, workspace, Arc::clone(admission), limits);
        let service = service.renewed_by(renewal);
        let loaded = service.reload_agents().await;
        loaded.map_err(|error| OpenError::Setup(format!("its agents cannot be read: {error}")))?;
        if let Some(running) = &self.0.running {
            running.opened(&tenant.id);
        }
        Ok(service)
    }

    async fn check(&self, tenant: &Tenant) -> Result<(), OpenError> {
        let (inner, own) = (Arc::clone(&self.0), tenant.clone());
        let check = move |_: &StopSignal| inner.check(&own).map(drop);
        let checked = belljar_work::run(&OPEN, &tenant.id, check).await;
        checked.map_err(|error| OpenError::Setup(format!("checking it failed: {error}")))?
    }

    fn waits_for_restart(&self, id: &str) -> bool {
        match id == TENANT {
            true => self.0.own.waits_for_restart(),
            false => self.0.late().contains_key(id),
        }
    }
}

/// Owned by the tenant, so that tools that are read meanwhile, by the operator, find threads.
const OPEN: WorkKind = WorkKind { name: "opening a tenant", time: Duration::from_secs(300) };

/// Opens a tenant as it is now, with the maker of its later versions.
fn open(opener: &Arc<Opener>, tenant: &Tenant) -> Result<(Opened, Arc<dyn Renew>), OpenError> {
    let looked = opener.own.look(Look::IfChanged);
    let OwnVersion { settings, host } = &*looked.now;
    if tenant.name == TENANT {
        let (host, workspace) = (host.clone(), opener.own.places().workspace.clone());
        let opened = Opened { host, workspace, limits: limits(&settings.server) };
        let renewal = OwnRenewal::new(Arc::clone(&opener.own), looked.reads());
        return Ok((opened, Arc::new(renewal)));
    }
    let places = opener.tenancy().places_of(tenant)?;
    let mut seen = Seen::now(&places, Inherited::of(&looked.now));
    let checked = opener.check(tenant)?;
    seen.values_of(&checked, &opener.own, &looked.now);
    let opened = opener.put_together(checked, tenant, &looked.now)?;
    let renewal = TenantRenewal::new(Arc::clone(opener), tenant.clone(), seen);
    Ok((opened, Arc::new(renewal)))
}

impl Opener {
    /// The common part of all tenants, by the operator's settings in force.
    pub(crate) fn tenancy(&self) -> Tenancy {
        Tenancy {
            settings: self.own.now().settings.clone(),
            places: self.own.places().clone(),
            data: self.own.data().clone(),
            reach: self.reach.clone(),
        }
    }

    /// The present files of a tenant. Unreachable parts are removed and named, because the rest, above all
    /// revoked rights, has to count.
    pub(crate) fn check(&self, tenant: &Tenant) -> Result<Checked, OpenError> {
        let checked = self.tenancy().check(tenant)?;
        let mut all = self.late();
        let before = all.remove(&tenant.id).unwrap_or_default();
        say_late(&tenant.name, &before, &checked.late);
        if !checked.late.is_empty() {
            all.insert(tenant.id.clone(), checked.late.clone());
        }
        drop(all);
        Ok(checked)
    }

    fn late(&self) -> MutexGuard<'_, BTreeMap<String, Vec<String>>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put_together(
        &self,
        checked: Checked,
        tenant: &Tenant,
        own: &OwnVersion,
    ) -> Result<Opened, OpenError> {
        let Checked { places, mut settings, late: _ } = checked;
        settings.profile = settings.profile.max(own.settings.profile);
        let limits = limits_of(&settings.server, limits(&own.settings.server));
        let inherits_models = settings.models.is_empty();
        let assembly = Assembly::of(settings, &places, &self.out);
        let assembly = match inherits_models {
            false => assembly,
            true => {
                let models = host::models(&own.settings, self.own.places());
                assembly.with_models(models.map_err(|failure| setup(&failure))?)
            }
        };
        let sandbox: Sandbox = own.host.sandbox.clone();
        let sandbox = sandbox.with_work_directories(work_directories(&places));
        let mut host = assembly.sharing(sandbox).host().map_err(|failure| setup(&failure))?;
        let hooks = Hooks::of(&own.settings);
        host.tenant = Some(tenant.name.clone());
        host.hooks = Arc::new(match walls::broker() {
            Some(broker) => hooks.through(broker),
            None => hooks,
        });
        Ok(Opened { host, workspace: places.workspace, limits })
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
                    path.shown()
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
        let places = Places { home, workspace, cache: PathBuf::new(), user_home: None };
        let work = |grants: &str| {
            std::fs::write(own.join("home/belljar.toml"), grants).unwrap();
            work_directories(&places)
        };
        let mount = |path: &str| {
            let host = own.join(path);
            format!("{{ path = '/{path}', host = '{}', access = 'read-write' }}", host.shown())
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
        let places = Places { home, workspace, cache: PathBuf::new(), user_home: None };
        let mount = |(number, path): (usize, &str)| {
            let host = root.join(path);
            format!("{{ path = '/m{number}', host = '{}', access = 'read-write' }}", host.shown())
        };
        let all = ["workspaces/1/deep", "workspaces/2", "workspaces", "tenants/1/out", "tenants"];
        let all: Vec<String> = all.into_iter().enumerate().map(mount).collect();
        let text = format!("[grants.a]\nmounts = [{}]\n", all.join(", "));
        std::fs::write(places.config(), text).unwrap();
        assert_eq!(
            work_directories(&places),
            [root.join("workspaces/1"), root.join("tenants/1/out")]
        );
        assert_eq!(written_beside(&root.join("tenants/1")), [root.join("tenants/1/out")]);
    }
}
