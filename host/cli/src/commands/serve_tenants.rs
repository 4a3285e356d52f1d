//! Opens tenants for the server: each a host of its own over one sandbox, with a home and a
//! workspace below the data root.
//!
//! What a tenant has is what the operator put into its home. Where its `belljar.toml` has no
//! models, the operator's models and roles serve it; the operator's hooks see its calls too, and
//! it has none of its own. Secrets are never shared.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use belljar_definition::{HookAction, ServerSetting, Settings};
use belljar_policy::{Access, Mount, ShownPath as _};
use belljar_sandbox::Sandbox;
use belljar_server::{OpenError, Tenants};
use belljar_session::{Admission, Hooks, Host, Service, ServiceLimits};
use belljar_store::{Store, TENANT, Tenant};

use super::serve::storage;
use crate::data::Data;
use crate::exit::Failure;
use crate::home::Places;
use crate::host::{self, Assembly};
use crate::out::Out;
use crate::walls;

/// What tenants are opened with.
pub(super) struct Opener {
    /// The operator's own.
    pub(super) local: Host,
    pub(super) settings: Settings,
    pub(super) places: Places,
    pub(super) data: Data,
    /// What tenants may write: see [`written`].
    pub(super) written: Vec<PathBuf>,
    pub(super) store: Store,
    pub(super) out: Out,
    /// What all tenants share.
    pub(super) admission: Arc<Admission>,
    /// What each has to itself.
    pub(super) limits: ServiceLimits,
}

/// Most tenants whose grants are looked at when the server starts; the others' workspaces are read
/// until it starts anew with fewer.
const MAX_TENANTS: usize = 10_000;

/// The directories that the agents of all tenants may write, as their grants say now: the OS
/// sandbox lets through what was there when it went up. A tenant's home is never among them,
/// whatever it grants, since what it says there is what its agents may do.
pub(super) fn written(data: &Data) -> Vec<PathBuf> {
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

/// Opens tenants.
pub(super) struct Opening(Arc<Opener>);

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
        let store = store.of_tenant(&tenant.name);
        let service = Service::new(host, store, workspace, Arc::clone(admission), limits);
        let loaded = service.reload_agents().await;
        loaded.map_err(|error| OpenError::Setup(format!("its agents cannot be read: {error}")))?;
        Ok(service)
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
            return Ok((self.local.clone(), self.places.workspace.clone(), self.limits));
        }
        let places = self.places_of(tenant)?;
        let settings = host::settings(&places).map_err(|failure| setup(&failure))?;
        self.check(&settings, &places, &tenant.name)?;
        let assembly = Assembly::new(&places, &self.out).map_err(|failure| setup(&failure))?;
        let assembly = match settings.models.is_empty() {
            false => assembly,
            true => {
                let models = host::models(&self.settings, &self.places);
                assembly.with_models(models.map_err(|failure| setup(&failure))?)
            }
        };
        let sandbox: Sandbox = self.local.sandbox.clone();
        let mut host = assembly.sharing(sandbox).host().map_err(|failure| setup(&failure))?;
        let hooks = Hooks::of(&self.settings);
        host.tenant = Some(tenant.name.clone());
        host.hooks = Arc::new(match walls::broker() {
            Some(broker) => hooks.through(broker),
            None => hooks,
        });
        let limits = limits(&settings.server, self.limits);
        Ok((host, places.workspace, limits))
    }

    /// The tenant's places, all in its own directory below the data root, links followed: the
    /// wall lets this process write nowhere else, and no tenant reaches another's.
    fn places_of(&self, tenant: &Tenant) -> Result<Places, OpenError> {
        let found = |path: PathBuf| {
            path.canonicalize().map_err(|error| {
                OpenError::Setup(format!("`{}` cannot be used: {error}", path.shown()))
            })
        };
        let root = found(self.data.root().to_path_buf())?;
        let own = root.join("tenants").join(&tenant.id);
        let below = |path: PathBuf| -> Result<PathBuf, OpenError> {
            let path = found(path)?;
            if path.starts_with(&own) {
                return Ok(path);
            }
            Err(OpenError::OutOfReach(format!(
                "`{}` of tenant `{}` lies outside of `{}`; move it there, or restart with \
                 another `--data`",
                path.shown(),
                tenant.name,
                own.shown()
            )))
        };
        Ok(Places {
            home: below(self.data.tenant_home(tenant))?,
            workspace: below(self.data.tenant_workspace(tenant))?,
            cache: self.places.cache.clone(),
            // A tenant has no home of a person.
            user_home: None,
        })
    }

    /// What a tenant's `belljar.toml` may not say.
    fn check(&self, settings: &Settings, places: &Places, tenant: &str) -> Result<(), OpenError> {
        let file = places.config();
        let refused = |why: &str| {
            Err(OpenError::Setup(format!("`{}` of tenant `{tenant}` {why}", file.shown())))
        };
        if !settings.hooks.is_empty() {
            return refused("has hooks; those of the operator's own belljar.toml hold for all");
        }
        let own = places.home.parent().unwrap_or(&places.home);
        let inside = |mount: &Mount| is_below(&mount.host, own);
        if let Some(mount) = settings.mounts(&places.workspace).iter().find(|mount| !inside(mount))
        {
            let why = format!("mounts `{}`, which is not the tenant's own", mount.host.shown());
            return refused(&why);
        }
        let behind_wall = walls::broker().is_some();
        let out_of_reach = |mount: &&Mount| {
            mount.access == Access::ReadWrite
                && !self.written.iter().any(|w| is_below(&mount.host, w))
        };
        let mounts = settings.mounts(&places.workspace);
        if let Some(mount) = mounts.iter().filter(|_| behind_wall).find(out_of_reach) {
            return Err(OpenError::OutOfReach(format!(
                "tenant `{tenant}` writes to `{}` by a grant that was not there when the server \
                 started, or that lies in its home; restart it, or grant another directory",
                mount.host.shown()
            )));
        }
        let commands = |action: &HookAction| matches!(action, HookAction::Command(_));
        if self.settings.hooks.iter().any(|hook| commands(&hook.action)) {
            // With a wall or without one: a program of the operator's that runs in a tenant's
            // workspace takes that tenant's files for its own (`.env`, `Makefile`, a `sh` on a
            // relative path). Left out, the hooks would refuse nothing.
            return Err(OpenError::Setup(format!(
                "the operator's hooks have commands, which see only the operator's own workspace, \
                 so tenant `{tenant}` is not served; make them components"
            )));
        }
        Ok(())
    }
}

/// Whether a directory lies below another, links followed. One that is not there yet is judged by
/// the nearest one above it.
pub(super) fn is_below(path: &Path, root: &Path) -> bool {
    let steps_back =
        |path: &Path| path.components().any(|part| matches!(part, std::path::Component::ParentDir));
    if steps_back(path) {
        return false;
    }
    path.ancestors()
        .find_map(|there| there.canonicalize().ok())
        .is_some_and(|there| there.starts_with(root))
}

/// A failure as one text, its findings included.
fn setup(failure: &Failure) -> OpenError {
    let mut lines: Vec<String> = failure.diagnostics.iter().map(ToString::to_string).collect();
    lines.push(failure.message.clone());
    lines.extend(failure.hints.iter().map(|hint| format!("hint: {hint}")));
    lines.retain(|line| !line.is_empty());
    OpenError::Setup(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
