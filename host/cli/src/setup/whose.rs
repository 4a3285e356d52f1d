//! The owner of the agents and tools that a command works on: the operator, or a tenant. Agents made through
//! the API are in the store, and the command line finds them as the server does.

use std::path::PathBuf;

use belljar_agent::Host;
use belljar_definition::{SourceFile, command_of};
use belljar_policy::ShownText;
use belljar_session::api_agents;
use belljar_store::{Store, TENANT, Tenant};
use serde_json::Value;

use crate::args::server::{NoTenant, TenantArg};
use crate::setup::below;
use crate::setup::data::{DataRoot, in_store, store_failure, with_store, write_audit};
use crate::setup::exit::Failure;
use crate::setup::home::{HomePaths, not_written};
use crate::setup::host::{self, HostAssembly};
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::term::out::TerminalOutput;

/// The owner of agents and tools: the paths of its files, and its agents in the store.
#[derive(Debug)]
pub(crate) struct AgentOwner {
    /// The paths of the operator or of the tenant.
    pub(crate) places: HomePaths,
    /// The name of the tenant; `None` = the operator.
    pub(crate) tenant: Option<String>,
    /// The data root that the command line names; `None` = the one in the settings.
    data: Option<PathBuf>,
    in_store: Vec<SourceFile>,
}

impl TenantArg {
    /// The tenant that the command line names; `None` = none, or the operator's own.
    pub(crate) fn other_tenant(&self) -> Option<&str> {
        self.tenant.as_deref().filter(|name| *name != TENANT)
    }

    /// Moves a tenant's files from where older versions of belljar had them.
    pub(crate) fn move_old_files(&self, operator: &HomePaths) -> Result<(), Failure> {
        match self.other_tenant() {
            Some(_) => self.data_root(operator)?.create_root(operator),
            None => Ok(()),
        }
    }

    /// Returns whether the command line names a tenant or a data root. Otherwise the operator's own files are
    /// used, without a store.
    pub(crate) fn is_named(&self) -> bool {
        self.tenant.is_some() || self.data.data.is_some()
    }

    /// A command for the same tenant and data root, as a person would type it, for a hint.
    pub(crate) fn format_command(&self, command: &str) -> String {
        command_of(command, self.other_tenant(), self.data.data.as_deref())
    }

    /// Writes the person's action on these objects to the owner's audit log. `done` = the end of the message
    /// if this fails, because the action itself took place.
    pub(crate) fn audit_action(
        &self,
        operator: &HomePaths,
        (action, done): (&str, &str),
        lines: Vec<(String, Value)>,
    ) -> Result<(), Failure> {
        let tenant = self.other_tenant().unwrap_or(TENANT);
        let written = with_store(&self.data, operator, async |store, _: &DataRoot| {
            for (object, detail) in lines {
                write_audit(store, tenant, action, &object, detail).await?;
            }
            Ok(())
        });
        written.map_err(|failure| {
            let message = format!("{done}, and not in the audit log: {}", failure.message);
            Failure { message, ..failure }
        })
    }

    /// The data root that the command works on. Creates nothing.
    pub(crate) fn data_root(&self, operator: &HomePaths) -> Result<DataRoot, Failure> {
        DataRoot::find_root(&self.data, &host::read_settings(operator)?, operator)
    }

    /// The gaps in the OS sandbox that are needed to look up the owner.
    pub(crate) fn wall_gaps(&self, operator: &HomePaths) -> Result<WallGaps, Failure> {
        let data = self.data_root(operator)?;
        if !data.store_path().is_file() {
            return Ok(WallGaps::default());
        }
        let (read, write) = (data.tenant_read_paths(), vec![data.store_directory()]);
        Ok(WallGaps { read, write, ..WallGaps::default() })
    }
}

impl NoTenant {
    /// Refuses the option for a tenant, with this reason and hint.
    pub(crate) fn refuse_tenant(&self, why: &str, hint: &str) -> Result<(), Failure> {
        match self.tenant.as_deref() {
            None | Some(TENANT) => Ok(()),
            Some(_) => {
                Err(Failure::usage(format!("`--tenant` has no place here: {why}")).with_hint(hint))
            }
        }
    }
}

impl AgentOwner {
    /// The operator as the owner, without the agents in the store.
    fn for_operator(operator: &HomePaths) -> Self {
        Self { places: operator.clone(), tenant: None, data: None, in_store: Vec::new() }
    }

    /// The owner that the command line names; the operator without a name.
    pub(crate) fn for_tenant(of: &TenantArg, operator: &HomePaths) -> Result<Self, Failure> {
        if of.is_named() { Self::look_up(of, operator) } else { Ok(Self::for_operator(operator)) }
    }

    /// As [`Self::for_tenant`], for a command that changes the owner's files.
    pub(crate) fn to_change(of: &TenantArg, operator: &HomePaths) -> Result<Self, Failure> {
        of.move_old_files(operator)?;
        Self::for_tenant(of, operator)
    }

    /// As [`Self::for_tenant`], and raises the OS sandbox with the command's gaps `through`.
    pub(crate) fn behind_wall(
        of: &TenantArg,
        operator: &HomePaths,
        walls: WallRaiser<'_>,
        mut through: WallGaps,
    ) -> Result<Self, Failure> {
        if of.is_named() {
            let there = of.wall_gaps(operator)?;
            through.read.extend(there.read);
            through.write.extend(there.write);
        }
        walls.raise_for(operator, &through)?;
        Self::for_tenant(of, operator)
    }

    /// Looks up the owner and its agents in the store. Creates nothing: without a store, only the operator
    /// exists.
    pub(crate) fn look_up(of: &TenantArg, operator: &HomePaths) -> Result<Self, Failure> {
        let data = of.data_root(operator)?;
        if !data.store_path().is_file() {
            return match of.other_tenant() {
                Some(name) => Err(no_tenant(name)),
                None => Ok(Self::for_operator(operator)),
            };
        }
        let found = in_store(&data.store_path(), async |store| {
            look_up_owner(of.other_tenant(), store, &data, operator).await
        })?;
        Ok(Self { data: of.data.data.clone(), ..found })
    }

    /// Builds the host with all of the owner's agents.
    pub(crate) fn build_host(&self, out: &TerminalOutput) -> Result<Host, Failure> {
        self.host_in(&self.places, out)
    }

    /// Builds the host with all of the owner's agents, for other paths, for example for another workspace.
    pub(crate) fn host_in(
        &self,
        places: &HomePaths,
        out: &TerminalOutput,
    ) -> Result<Host, Failure> {
        let mut host = HostAssembly::new(places, out)?.build_host()?;
        host.library.set_other_texts(self.in_store.clone());
        host.tenant.clone_from(&self.tenant);
        host.data.clone_from(&self.data);
        Ok(host)
    }
}

/// Reads the owner from the store: the tenant of this name, or the operator if there is no name. The owner's
/// agents that were made through the API are read too.
async fn look_up_owner(
    name: Option<&str>,
    store: &Store,
    data: &DataRoot,
    operator: &HomePaths,
) -> Result<AgentOwner, Failure> {
    let Some(name) = name else {
        let in_store = api_agents(&store.for_tenant_name(TENANT)).await.map_err(store_failure)?;
        return Ok(AgentOwner { in_store, ..AgentOwner::for_operator(operator) });
    };
    let tenant = tenant_by_name(name, store).await?;
    let in_store =
        api_agents(&store.for_tenant_id(&tenant.name, &tenant.id)).await.map_err(store_failure)?;
    let (home, workspace) = (data.tenant_home(&tenant), data.tenant_workspace(&tenant));
    below::no_link(data.root_path(), &home).map_err(|error| not_written("use", &home, &error))?;
    let places = HomePaths { home, workspace, cache: operator.cache.clone(), user_home: None };
    Ok(AgentOwner { places, tenant: Some(tenant.name), data: None, in_store })
}

pub(crate) async fn tenant_by_name(name: &str, store: &Store) -> Result<Tenant, Failure> {
    let known = store.tenant_registry().find_tenant(name).await.map_err(store_failure)?;
    known.ok_or_else(|| no_tenant(name))
}

/// Returns a store of the tenant in the argument, in the same file; without such a tenant, the store as it is.
pub(crate) async fn part_of(of: &TenantArg, store: &Store) -> Result<Store, Failure> {
    let Some(name) = of.other_tenant() else { return Ok(store.clone()) };
    let own = tenant_by_name(name, store).await?;
    Ok(store.for_tenant_id(&own.name, &own.id))
}

pub(crate) fn no_tenant(name: &str) -> Failure {
    Failure::usage(format!("there is no tenant `{}`", ShownText::clip_line(name, 64)))
        .with_hint("`belljar tenants list` lists them")
}
