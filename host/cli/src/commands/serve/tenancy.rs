//! Finds out whether tenants can be served, by their directories, their settings and the operator's settings.
//! The same check runs at the start of a server, while it runs, in `doctor` and in `tenants list`.

use std::path::{Path, PathBuf};

use belljar_definition::{HookAction, Settings};
use belljar_os_sandbox::WallReach;
use belljar_policy::{Mount, MountAccess, ShownPath as _, ShownText};
use belljar_server::OpenError;
use belljar_store::{Registry, StoreError, TENANT, Tenant};

use crate::commands::serve::judged::{is_below, setup_error};
use crate::commands::serve::late;
use crate::setup::data::{DataRoot, WORKSPACES};
use crate::setup::home::HomePaths;
use crate::setup::host;

/// The most characters of a hook's command that a message repeats.
const MAX_COMMAND: usize = 120;

/// What all tenants of a server share: the operator's settings and the data root.
#[derive(Debug, Clone)]
pub(crate) struct TenantSettings {
    /// The operator's settings.
    pub(crate) settings: Settings,
    pub(crate) places: HomePaths,
    pub(crate) data: DataRoot,
    /// The files that the server can open behind its OS sandbox; `None` = any, or no server is running.
    pub(crate) reach: Option<WallReach>,
}

/// A tenant's settings that were checked.
pub(crate) struct CheckedTenant {
    pub(crate) places: HomePaths,
    /// The settings, reduced to what the server can apply.
    pub(crate) settings: Settings,
    /// The settings that need a restart of the server, one line each.
    pub(crate) late: Vec<String>,
}

impl TenantSettings {
    /// INV-153: finds every reason for which a server would refuse to serve this tenant. Opens and runs
    /// nothing. Settings that the server cannot apply are reduced, and named.
    pub(crate) fn check_tenant(&self, tenant: &Tenant) -> Result<CheckedTenant, OpenError> {
        let mut checked = self.check_settings(tenant)?;
        if tenant.name != TENANT {
            let CheckedTenant { places, settings, late } = &mut checked;
            let most = |mount: &Mount| late::most_of_tenant(mount, self.reach.as_ref());
            *late = late::narrow_mounts(settings, &places.workspace, most);
        }
        Ok(checked)
    }

    /// Reads and checks a tenant's settings, without the server's limits on files.
    fn check_settings(&self, tenant: &Tenant) -> Result<CheckedTenant, OpenError> {
        if tenant.name == TENANT {
            let (places, settings) = (self.places.clone(), self.settings.clone());
            return Ok(CheckedTenant { places, settings, late: Vec::new() });
        }
        if let Some(hook) = self.command_hooks().first() {
            return Err(OpenError::Setup(format!(
                "{hook}: tenant `{}` is not served with it; make it a component",
                tenant.name
            )));
        }
        let places = self.places_of(tenant)?;
        let settings = host::read_settings(&places).map_err(|failure| setup_error(&failure))?;
        self.check_allowed(&settings, &places, &tenant.name)?;
        if !settings.models.is_empty() {
            host::make_models(&settings, &places).map_err(|failure| setup_error(&failure))?;
        }
        Ok(CheckedTenant { places, settings, late: Vec::new() })
    }

    /// Checks all enabled tenants besides the operator's own; returns for each the reason if it cannot be
    /// served.
    pub(crate) async fn check_all(
        &self,
        registry: &Registry,
    ) -> Result<Vec<(Tenant, Option<OpenError>)>, StoreError> {
        let mut tenants = registry.list_tenants().await?;
        tenants.retain(|tenant| tenant.name != TENANT && !tenant.disabled);
        let checked = |tenant: Tenant| {
            let error = self.check_tenant(&tenant).err();
            (tenant, error)
        };
        Ok(tenants.into_iter().map(checked).collect())
    }

    /// The operator's hooks that are commands, as texts of a message. They run outside of the OS sandbox,
    /// with the operator's rights. In a tenant's workspace a hook would use that tenant's files, for example
    /// `.env`, `Makefile` or a relative `sh`; and a hook that is skipped refuses nothing.
    pub(crate) fn command_hooks(&self) -> Vec<String> {
        let file = self.places.config_path();
        let hooks = self.settings.hooks.iter().zip(1..);
        let commands = hooks.filter_map(|(hook, place)| match &hook.action {
            HookAction::Command(command) => Some(format!(
                "hook {place} of `{}` (`{}`, `{}`) is a command, which runs with the operator's \
                 rights in the operator's workspace",
                file.to_shown(),
                hook.event.as_str(),
                ShownText::clip_line(command, MAX_COMMAND)
            )),
            HookAction::Component { .. } => None,
        });
        commands.collect()
    }

    /// The tenant's directories below the data root, with links resolved: the OS sandbox lets this process
    /// write nowhere else, and no tenant can reach another's directory.
    pub(crate) fn places_of(&self, tenant: &Tenant) -> Result<HomePaths, OpenError> {
        let found = |path: PathBuf| {
            path.canonicalize().map_err(|error| {
                OpenError::Setup(format!("`{}` cannot be used: {error}", path.to_shown()))
            })
        };
        let root = found(self.data.root_path().to_path_buf())?;
        let own = root.join("tenants").join(&tenant.id);
        let work = root.join(WORKSPACES).join(&tenant.id);
        let below = |path: PathBuf, own: &[&PathBuf]| -> Result<PathBuf, OpenError> {
            let path = found(path)?;
            if own.iter().any(|own| path.starts_with(own)) {
                return Ok(path);
            }
            Err(OpenError::OutOfReach(format!(
                "`{}` of tenant `{}` lies outside of `{}`; move it there, or restart with \
                 another `--data`",
                path.to_shown(),
                tenant.name,
                own[0].to_shown()
            )))
        };
        Ok(HomePaths {
            home: below(self.data.tenant_home(tenant), &[&own])?,
            workspace: below(self.data.tenant_workspace(tenant), &[&work, &own])?,
            cache: self.places.cache.clone(),
            // A tenant has no person's home directory, for `~` in paths.
            user_home: None,
        })
    }

    /// An error for a setting that a tenant's `belljar.toml` must not have.
    fn check_allowed(
        &self,
        settings: &Settings,
        places: &HomePaths,
        tenant: &str,
    ) -> Result<(), OpenError> {
        let file = places.config_path();
        let refused = |why: &str| {
            Err(OpenError::Setup(format!("`{}` of tenant `{tenant}` {why}", file.to_shown())))
        };
        if !settings.hooks.is_empty() {
            return refused("has hooks; those of the operator's own belljar.toml hold for all");
        }
        if let Some(name) = settings.mcp_programs.keys().next() {
            let why = format!(
                "has a command in `[mcp.{name}]`; a tenant's servers are reached by `url`: belljar starts \
                 no program for a tenant"
            );
            return refused(&why);
        }
        let mounts = settings.possible_mounts(&places.workspace);
        let own = own_directories(places);
        let inside = |mount: &&Mount| own.iter().any(|own| is_below(&mount.host, own));
        if let Some(mount) = mounts.iter().find(|mount| !inside(mount)) {
            let why = format!("mounts `{}`, which is not the tenant's own", mount.host.to_shown());
            return refused(&why);
        }
        if let Some(mount) = mounts.iter().find(|mount| writes_home(mount, &places.home)) {
            let why = format!(
                "lets agents write `{}`, which is or holds the home of the tenant; grant another \
                 directory",
                mount.host.to_shown()
            );
            return refused(&why);
        }
        Ok(())
    }
}

/// The two directories of a tenant: its home's parent, and its workspace. Links are not resolved.
pub(crate) fn own_directories(places: &HomePaths) -> [&Path; 2] {
    [places.home.parent().unwrap_or(&places.home), &places.workspace]
}

/// INV-133: returns whether a mount would let agents write the tenant's home, which has its grants and
/// agents.
pub(crate) fn writes_home(mount: &Mount, home: &Path) -> bool {
    let holds = || mount.host.canonicalize().is_ok_and(|host| home.starts_with(host));
    mount.access == MountAccess::ReadWrite && (is_below(&mount.host, home) || holds())
}
