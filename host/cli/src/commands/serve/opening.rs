//! Opens tenants for the server: each a host of its own over one sandbox, with a home and a
//! workspace below the data root.
//!
//! What a tenant has is what the operator put into its home. Where its `belljar.toml` has no
//! models, the operator's models and roles serve it; the operator's hooks see its calls too, and
//! it has none of its own. Secrets are never shared.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use belljar_agent::{Hooks, Host};
use belljar_definition::ServerSetting;
use belljar_policy::Access;
use belljar_sandbox::Sandbox;
use belljar_server::{OpenError, Tenants};
use belljar_session::{Admission, Service, ServiceLimits};
use belljar_store::{Store, TENANT, Tenant};

use crate::commands::serve::storage;
use crate::commands::serve::tenancy::{Checked, Tenancy};
use crate::setup::data::Data;
use crate::setup::exit::Failure;
use crate::setup::home::Places;
use crate::setup::host::{self, Assembly};
use crate::setup::walls;
use crate::term::out::Out;

/// What tenants are opened with.
pub(crate) struct Opener {
    /// The operator's own.
    pub(crate) local: Host,
    pub(crate) tenancy: Tenancy,
    pub(crate) store: Store,
    pub(crate) out: Out,
    /// What all tenants share.
    pub(crate) admission: Arc<Admission>,
    /// What each has to itself.
    pub(crate) limits: ServiceLimits,
}

/// Most tenants whose grants are looked at when the server starts; the others' workspaces are read
/// until it starts anew with fewer.
const MAX_TENANTS: usize = 10_000;

/// Findings of one tenant that the log shows whole; the others are counted.
const MOST_FINDINGS: usize = 5;

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
        let opened = tokio::task::spawn_blocking(move || inner.host(&own)).await;
        let (host, workspace, limits) =
            opened.map_err(|error| OpenError::Setup(format!("opening it failed: {error}")))??;
        let Opener { store, admission, .. } = &*self.0;
        let store = store.of(&tenant.name, &tenant.id);
        let service = Service::new(host, store, workspace, Arc::clone(admission), limits);
        let loaded = service.reload_agents().await;
        loaded.map_err(|error| OpenError::Setup(format!("its agents cannot be read: {error}")))?;
        Ok(service)
    }

    async fn check(&self, tenant: &Tenant) -> Result<(), OpenError> {
        let (inner, own) = (Arc::clone(&self.0), tenant.clone());
        let checked = tokio::task::spawn_blocking(move || inner.tenancy.check(&own)).await;
        checked.map_err(|error| OpenError::Setup(format!("checking it failed: {error}")))?.map(drop)
    }
}

/// What a tenant's own `belljar.toml` says of its limits, else what holds for all.
fn limits(own: &ServerSetting, all: ServiceLimits) -> ServiceLimits {
    let count = |own: Option<u32>, all| own.and_then(|n| usize::try_from(n).ok()).unwrap_or(all);
    ServiceLimits {
        concurrent_turns: count(own.tenant_turns, all.concurrent_turns),
        queued_turns: count(own.tenant_queue, all.queued_turns),
        tokens_per_day: own.tenant_tokens_per_day.or(all.tokens_per_day),
        fuel_per_day: own.tenant_fuel_per_day.or(all.fuel_per_day),
        storage_bytes: own.tenant_storage_mib.map(storage).or(all.storage_bytes),
    }
}

impl Opener {
    fn host(&self, tenant: &Tenant) -> Result<(Host, PathBuf, ServiceLimits), OpenError> {
        if tenant.name == TENANT {
            let workspace = self.tenancy.places.workspace.clone();
            return Ok((self.local.clone(), workspace, self.limits));
        }
        let Checked { places, settings } = self.tenancy.check(tenant)?;
        let assembly = Assembly::new(&places, &self.out).map_err(|failure| setup(&failure))?;
        let assembly = match settings.models.is_empty() {
            false => assembly,
            true => {
                let models = host::models(&self.tenancy.settings, &self.tenancy.places);
                assembly.with_models(models.map_err(|failure| setup(&failure))?)
            }
        };
        let sandbox: Sandbox = self.local.sandbox.clone();
        let sandbox = sandbox.with_work_directories(work_directories(&places));
        let mut host = assembly.sharing(sandbox).host().map_err(|failure| setup(&failure))?;
        let hooks = Hooks::of(&self.tenancy.settings);
        host.tenant = Some(tenant.name.clone());
        host.hooks = Arc::new(match walls::broker() {
            Some(broker) => hooks.through(broker),
            None => hooks,
        });
        let limits = limits(&settings.server, self.limits);
        Ok((host, places.workspace, limits))
    }
}

/// Whether a directory lies below another, links followed. One that is not there yet is judged by
/// the nearest one above it.
pub(crate) fn is_below(path: &Path, root: &Path) -> bool {
    let steps_back =
        |path: &Path| path.components().any(|part| matches!(part, std::path::Component::ParentDir));
    if steps_back(path) {
        return false;
    }
    path.ancestors()
        .find_map(|there| there.canonicalize().ok())
        .is_some_and(|there| there.starts_with(root))
}

/// A failure as one text, its first findings included and the others counted.
pub(crate) fn setup(failure: &Failure) -> OpenError {
    let all = failure.diagnostics.len();
    let first = failure.diagnostics.iter().take(MOST_FINDINGS);
    let mut lines: Vec<String> = first.map(ToString::to_string).collect();
    if all > lines.len() {
        lines.push(format!("and {} more", all.saturating_sub(lines.len())));
    }
    lines.push(failure.message.clone());
    lines.extend(failure.hints.iter().map(|hint| format!("hint: {hint}")));
    lines.retain(|line| !line.is_empty());
    OpenError::Setup(lines.join("\n"))
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

    #[test]
    fn what_leads_out_of_a_tenants_directory_is_not_below_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (own, other) = (root.join("own"), root.join("other"));
        std::fs::create_dir(&own).unwrap();
        std::fs::create_dir(&other).unwrap();
        assert!(is_below(&own, &own) && is_below(&own.join("a/b"), &own));
        assert!(!is_below(&other, &own) && !is_below(&root, &own));
        assert!(!is_below(&own.join("../other"), &own));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&other, own.join("link")).unwrap();
            assert!(!is_below(&own.join("link"), &own) && !is_below(&own.join("link/x"), &own));
        }
    }
}
