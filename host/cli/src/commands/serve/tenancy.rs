//! Whether tenants can be served: their places, their settings, and what the operator's own settings
//! mean for them. The same is asked at the start of a server, while it runs, by `doctor` and by
//! `tenants list`.

use std::path::PathBuf;

use belljar_definition::{HookAction, Settings};
use belljar_policy::{Access, Mount, Shown, ShownPath as _};
use belljar_server::OpenError;
use belljar_store::{Registry, StoreError, TENANT, Tenant};

use crate::commands::serve::judged::{is_below, setup};
use crate::commands::serve::late;
use crate::setup::data::Data;
use crate::setup::home::Places;
use crate::setup::host;
use crate::setup::walls;

/// Characters of a hook command that a message repeats.
const MAX_COMMAND: usize = 120;

/// What all tenants of a server have in common: the operator's settings and the data root.
#[derive(Debug, Clone)]
pub(crate) struct Tenancy {
    /// The operator's own.
    pub(crate) settings: Settings,
    pub(crate) places: Places,
    pub(crate) data: Data,
    /// What tenants may write: see [`super::opening::written`].
    pub(crate) written: Vec<PathBuf>,
}

/// What a tenant has, checked.
pub(crate) struct Checked {
    pub(crate) places: Places,
    pub(crate) settings: Settings,
}

impl Tenancy {
    /// INV-153: all that a server would refuse to serve this tenant for. Nothing is opened and
    /// nothing runs.
    pub(crate) fn check(&self, tenant: &Tenant) -> Result<Checked, OpenError> {
        let checked = self.valid(tenant)?;
        if let Some(mount) = self.out_of_reach(&checked, tenant) {
            return Err(OpenError::OutOfReach(format!(
                "tenant `{}` writes to `{}` by a grant that was not there when the server \
                 started, or that lies in its home; restart it, or grant another directory",
                tenant.name,
                mount.host.shown()
            )));
        }
        Ok(checked)
    }

    /// As [`Tenancy::check`], of a tenant that is served already: what is out of this process's
    /// reach is narrowed to what it can give, and named.
    pub(crate) fn check_again(&self, tenant: &Tenant) -> Result<(Checked, Vec<String>), OpenError> {
        let mut checked = self.valid(tenant)?;
        let Checked { places, settings } = &mut checked;
        let most = |mount: &Mount| match self.reaches(mount) {
            true => Some(mount.access),
            false => Some(Access::Read),
        };
        let late = late::mounts(settings, &places.workspace, most);
        Ok((checked, late))
    }

    fn valid(&self, tenant: &Tenant) -> Result<Checked, OpenError> {
        if tenant.name == TENANT {
            let (places, settings) = (self.places.clone(), self.settings.clone());
            return Ok(Checked { places, settings });
        }
        if let Some(hook) = self.command_hooks().first() {
            return Err(OpenError::Setup(format!(
                "{hook}: tenant `{}` is not served with it; make it a component",
                tenant.name
            )));
        }
        let places = self.places_of(tenant)?;
        let settings = host::settings(&places).map_err(|failure| setup(&failure))?;
        self.allows(&settings, &places, &tenant.name)?;
        if !settings.models.is_empty() {
            host::models(&settings, &places).map_err(|failure| setup(&failure))?;
        }
        Ok(Checked { places, settings })
    }

    /// The tenants beside the operator's own that are not disabled, each with why it cannot be
    /// served, if it cannot.
    pub(crate) async fn check_all(
        &self,
        registry: &Registry,
    ) -> Result<Vec<(Tenant, Option<OpenError>)>, StoreError> {
        let mut tenants = registry.tenants().await?;
        tenants.retain(|tenant| tenant.name != TENANT && !tenant.disabled);
        let checked = |tenant: Tenant| {
            let error = self.check(&tenant).err();
            (tenant, error)
        };
        Ok(tenants.into_iter().map(checked).collect())
    }

    /// The operator's hooks that are commands, each as a message names it. With an OS sandbox or
    /// without one they run outside, with the operator's rights: one that ran in a tenant's
    /// workspace would take that tenant's files for its own (`.env`, `Makefile`, a `sh` on a
    /// relative path), and one that was left out would refuse nothing.
    pub(crate) fn command_hooks(&self) -> Vec<String> {
        let file = self.places.config();
        let hooks = self.settings.hooks.iter().zip(1..);
        let commands = hooks.filter_map(|(hook, place)| match &hook.action {
            HookAction::Command(command) => Some(format!(
                "hook {place} of `{}` (`{}`, `{}`) is a command, which runs with the operator's \
                 rights in the operator's workspace",
                file.shown(),
                hook.event.as_str(),
                Shown::clipped(command, MAX_COMMAND)
            )),
            HookAction::Component { .. } => None,
        });
        commands.collect()
    }

    /// The tenant's places, all in its own directory below the data root, links followed: the
    /// wall lets this process write nowhere else, and no tenant reaches another's.
    pub(crate) fn places_of(&self, tenant: &Tenant) -> Result<Places, OpenError> {
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
    fn allows(&self, settings: &Settings, places: &Places, tenant: &str) -> Result<(), OpenError> {
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
        Ok(())
    }

    /// A mount that this process cannot give: behind the wall it writes where tenants could write
    /// when it started, and reads all that is theirs.
    fn out_of_reach(&self, checked: &Checked, tenant: &Tenant) -> Option<Mount> {
        let Checked { places, settings } = checked;
        let mut mounts = settings.mounts(&places.workspace).into_iter();
        mounts.find(|mount| tenant.name != TENANT && !self.reaches(mount))
    }

    fn reaches(&self, mount: &Mount) -> bool {
        mount.access == Access::Read
            || walls::broker().is_none()
            || self.written.iter().any(|written| is_below(&mount.host, written))
    }
}
