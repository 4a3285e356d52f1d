//! Opens tenants for the server: each a host of its own over one sandbox, with a home and a
//! workspace below the data root.
//!
//! What a tenant has is what the operator put into its home. Where its `belljar.toml` has no
//! models, the operator's models and roles serve it; the operator's hooks see its calls too, and
//! it has none of its own. Secrets are never shared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use belljar_agent::{Hooks, Host};
use belljar_definition::{HookSetting, ModelSetting, Settings};
use belljar_policy::Access;
use belljar_sandbox::Sandbox;
use belljar_server::{OpenError, Tenants};
use belljar_session::{Admission, Look, Renew, Service, ServiceLimits};
use belljar_store::{Store, TENANT, Tenant};

use crate::commands::serve::judged::setup;
use crate::commands::serve::limits::{limits, limits_of};
use crate::commands::serve::own::{Own, OwnRenewal, OwnVersion};
use crate::commands::serve::renewal::{Seen, TenantRenewal};
use crate::commands::serve::tenancy::{Checked, Tenancy};
use crate::setup::data::Data;
use crate::setup::home::Places;
use crate::setup::host::{self, Assembly};
use crate::setup::walls;
use crate::term::out::Out;

/// What tenants are opened with.
pub(crate) struct Opener {
    /// The operator's own.
    pub(crate) own: Arc<Own>,
    /// What tenants may write: see [`written`].
    pub(crate) written: Vec<PathBuf>,
    pub(crate) store: Store,
    pub(crate) out: Out,
    /// What all tenants share.
    pub(crate) admission: Arc<Admission>,
}

/// What a tenant works with.
pub(crate) struct Opened {
    pub(crate) host: Host,
    pub(crate) workspace: PathBuf,
    pub(crate) limits: ServiceLimits,
}

/// What tenants have of the operator's settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Inherited {
    models: BTreeMap<String, ModelSetting>,
    roles: BTreeMap<String, String>,
    hooks: Vec<HookSetting>,
    limits: ServiceLimits,
}

impl Inherited {
    pub(crate) fn of(own: &OwnVersion) -> Self {
        let Settings { models, roles, hooks, server, .. } = &own.settings;
        let (models, roles, hooks) = (models.clone(), roles.clone(), hooks.clone());
        Self { models, roles, hooks, limits: limits(server) }
    }
}

/// Most tenants whose grants are looked at when the server starts; the others' workspaces are read
/// until it starts anew with fewer.
const MAX_TENANTS: usize = 10_000;

/// The directories that the agents of all tenants may write, as their grants say now: the OS
/// sandbox lets through what was there when it went up. A tenant's home is never among them,
/// whatever it grants, since what it says there is what its agents may do.
pub(crate) fn written(data: &Data) -> Vec<PathBuf> {
    let tenants = std::fs::read_dir(data.tenants()).into_iter().flatten().flatten();
    tenants.take(MAX_TENANTS).flat_map(|tenant| written_by(&tenant.path())).collect()
}

fn written_by(tenant: &Path) -> Vec<PathBuf> {
    let found = |path: PathBuf| path.canonicalize().ok();
    let own = found(tenant.to_path_buf());
    let (home, workspace) = (found(tenant.join("home")), found(tenant.join("workspace")));
    let (Some(own), Some(home), Some(workspace)) = (own, home, workspace) else {
        return Vec::new();
    };
    let places = Places { home: home.clone(), cache: PathBuf::new(), workspace, user_home: None };
    let Ok(settings) = host::settings(&places) else { return Vec::new() };
    let mounts = settings.mounts(&places.workspace).into_iter();
    let mounts = mounts.filter(|mount| mount.access == Access::ReadWrite);
    mounts
        .filter_map(|mount| found(mount.host))
        .filter(|path| path.starts_with(&own) && *path != own && !path.starts_with(&home))
        .collect()
}

/// INV-151: the directories in a tenant's own in which its agents may write, wherever the data
/// root lies: its workspace and what else its grants name, never its home or what holds it.
fn work_directories(places: &Places) -> Vec<PathBuf> {
    let Some(own) = places.workspace.parent().filter(|own| places.home.starts_with(own)) else {
        return Vec::new();
    };
    let first =
        |path: &PathBuf| path.strip_prefix(own).ok()?.components().next().map(|it| own.join(it));
    let mut directories: Vec<PathBuf> = written_by(own).iter().filter_map(first).collect();
    directories.retain(|directory| !places.home.starts_with(directory));
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
        let opened = tokio::task::spawn_blocking(move || open(&inner, &own)).await;
        let (opened, renewal) =
            opened.map_err(|error| OpenError::Setup(format!("opening it failed: {error}")))??;
        let Opened { host, workspace, limits } = opened;
        let Opener { store, admission, .. } = &*self.0;
        let store = store.of(&tenant.name, &tenant.id);
        let service = Service::new(host, store, workspace, Arc::clone(admission), limits);
        let service = service.renewed_by(renewal);
        let loaded = service.reload_agents().await;
        loaded.map_err(|error| OpenError::Setup(format!("its agents cannot be read: {error}")))?;
        Ok(service)
    }

    async fn check(&self, tenant: &Tenant) -> Result<(), OpenError> {
        let (inner, own) = (Arc::clone(&self.0), tenant.clone());
        let checked = tokio::task::spawn_blocking(move || inner.tenancy().check(&own)).await;
        checked.map_err(|error| OpenError::Setup(format!("checking it failed: {error}")))?.map(drop)
    }
}

/// A tenant as it is now, and what makes its later versions.
fn open(opener: &Arc<Opener>, tenant: &Tenant) -> Result<(Opened, Arc<dyn Renew>), OpenError> {
    let looked = opener.own.look(Look::IfChanged);
    let OwnVersion { settings, host } = &*looked.now;
    if tenant.name == TENANT {
        let (host, workspace) = (host.clone(), opener.own.places().workspace.clone());
        let opened = Opened { host, workspace, limits: limits(&settings.server) };
        let renewal = OwnRenewal::new(Arc::clone(&opener.own), looked.reads());
        return Ok((opened, Arc::new(renewal)));
    }
    let tenancy = opener.tenancy();
    let seen = Seen::now(&tenancy.places_of(tenant)?, Inherited::of(&looked.now));
    let opened = opener.put_together(tenant, tenancy.check(tenant)?, &looked.now)?;
    let renewal = TenantRenewal::new(Arc::clone(opener), tenant.clone(), seen);
    Ok((opened, Arc::new(renewal)))
}

impl Opener {
    /// What all tenants have in common, by the operator's settings in force.
    pub(crate) fn tenancy(&self) -> Tenancy {
        Tenancy {
            settings: self.own.now().settings.clone(),
            places: self.own.places().clone(),
            data: self.own.data().clone(),
            written: self.written.clone(),
        }
    }

    /// A tenant that is open, as its files are now. What this process cannot reach of it is taken
    /// out and named, since the rest, and above all what was taken back, has to hold.
    pub(crate) fn open_again(
        &self,
        tenant: &Tenant,
        own: &OwnVersion,
    ) -> Result<(Opened, Vec<String>), OpenError> {
        let (checked, late) = self.tenancy().check_again(tenant)?;
        Ok((self.put_together(tenant, checked, own)?, late))
    }

    fn put_together(
        &self,
        tenant: &Tenant,
        checked: Checked,
        own: &OwnVersion,
    ) -> Result<Opened, OpenError> {
        let Checked { places, settings } = checked;
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
            written_by(&own)
        };
        assert_eq!(mounts(&["home", "home/agents", ".", "..", "nowhere"]), Vec::<PathBuf>::new());
        assert_eq!(mounts(&["elsewhere", "home"]), [own.join("elsewhere")]);
        std::fs::write(own.join("home/belljar.toml"), "no settings").unwrap();
        assert_eq!(written_by(&own), Vec::<PathBuf>::new());
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
        assert_eq!(work("[grants.a]\ntools = []\n"), Vec::<PathBuf>::new());
        let below = ["workspace/.belljar/agents", "out/deep", "home/agents"].map(mount).join(", ");
        let below = work(&format!("[grants.a]\nmounts = [{below}]\n"));
        assert_eq!(below, [own.join("workspace"), own.join("out")]);
    }
}
