//! The owner of a command's agents and tools: the operator, or a tenant. Agents made through the API are in
//! the store, and the command line finds them like the server.

use std::path::PathBuf;

use belljar_agent::Host;
use belljar_definition::{SourceFile, command_of};
use belljar_policy::Shown;
use belljar_session::api_agents;
use belljar_store::{Store, TENANT, Tenant};
use serde_json::Value;

use crate::args::server::{NoTenant, TenantArg};
use crate::setup::below;
use crate::setup::data::{Data, audit, failed, in_store, with_store};
use crate::setup::exit::Failure;
use crate::setup::home::{Places, not_written};
use crate::setup::host::{self, Assembly};
use crate::setup::walls::{Through, Walls};
use crate::term::out::Out;

/// The places of an owner's agents, and agents outside of files.
#[derive(Debug)]
pub(crate) struct Whose {
    /// The operator's own places, or those of the tenant.
    pub(crate) places: Places,
    /// The tenant, where it is not the operator's own.
    pub(crate) tenant: Option<String>,
    /// The data root, where the command line names one.
    data: Option<PathBuf>,
    in_store: Vec<SourceFile>,
}

impl TenantArg {
    /// The named tenant, unless the command line's own.
    pub(crate) fn other(&self) -> Option<&str> {
        self.tenant.as_deref().filter(|name| *name != TENANT)
    }

    /// Moves a tenant's files from an older program's places.
    pub(crate) fn gather(&self, operator: &Places) -> Result<(), Failure> {
        match self.other() {
            Some(_) => self.root(operator)?.create(operator),
            None => Ok(()),
        }
    }

    /// Whether the command line names a tenant or a data root. Otherwise the operator's own files are used,
    /// and no store is opened for them.
    pub(crate) fn is_named(&self) -> bool {
        self.tenant.is_some() || self.data.data.is_some()
    }

    /// A command for the same tenant and data root, as a person would type it.
    pub(crate) fn command(&self, command: &str) -> String {
        command_of(command, self.other(), self.data.data.as_deref())
    }

    /// Writes a line to the owner's audit log about the person's action on these objects. `done` is the rest
    /// of the message after a failure: the action took place all the same.
    pub(crate) fn audit(
        &self,
        operator: &Places,
        (action, done): (&str, &str),
        lines: Vec<(String, Value)>,
    ) -> Result<(), Failure> {
        let tenant = self.other().unwrap_or(TENANT);
        let written = with_store(&self.data, operator, async |store, _: &Data| {
            for (object, detail) in lines {
                audit(store, tenant, action, &object, detail).await?;
            }
            Ok(())
        });
        written.map_err(|failure| {
            let message = format!("{done}, and not in the audit log: {}", failure.message);
            Failure { message, ..failure }
        })
    }

    /// The data root. Nothing is made.
    pub(crate) fn root(&self, operator: &Places) -> Result<Data, Failure> {
        Data::find(&self.data, &host::settings(operator)?, operator)
    }

    /// The gaps in the OS sandbox that looking there needs besides.
    pub(crate) fn through(&self, operator: &Places) -> Result<Through, Failure> {
        let data = self.root(operator)?;
        if !data.store().is_file() {
            return Ok(Through::default());
        }
        let (read, write) = (data.of_tenants(), vec![data.store_directory()]);
        Ok(Through { read, write, ..Through::default() })
    }
}

impl NoTenant {
    /// Refuses a tenant, for this reason.
    pub(crate) fn refuse(&self, why: &str, hint: &str) -> Result<(), Failure> {
        match self.tenant.as_deref() {
            None | Some(TENANT) => Ok(()),
            Some(_) => {
                Err(Failure::usage(format!("`--tenant` has no place here: {why}")).hint(hint))
            }
        }
    }
}

impl Whose {
    /// The operator, without a look into the store.
    fn operators(operator: &Places) -> Self {
        Self { places: operator.clone(), tenant: None, data: None, in_store: Vec::new() }
    }

    /// The named owner; the operator without a name.
    pub(crate) fn named(of: &TenantArg, operator: &Places) -> Result<Self, Failure> {
        if of.is_named() { Self::find(of, operator) } else { Ok(Self::operators(operator)) }
    }

    /// As [`Self::named`], for a command that changes something.
    pub(crate) fn to_change(of: &TenantArg, operator: &Places) -> Result<Self, Failure> {
        of.gather(operator)?;
        Self::named(of, operator)
    }

    /// Like [`Self::named`], behind the OS sandbox, with the command's further gaps.
    pub(crate) fn behind(
        of: &TenantArg,
        operator: &Places,
        walls: Walls<'_>,
        mut through: Through,
    ) -> Result<Self, Failure> {
        if of.is_named() {
            let there = of.through(operator)?;
            through.read.extend(there.read);
            through.write.extend(there.write);
        }
        walls.up(operator, &through)?;
        Self::named(of, operator)
    }

    /// Looks up the tenant, and its agents in the store. Makes nothing: without a store, the operator is the
    /// only owner.
    pub(crate) fn find(of: &TenantArg, operator: &Places) -> Result<Self, Failure> {
        let data = of.root(operator)?;
        if !data.store().is_file() {
            return match of.other() {
                Some(name) => Err(no_tenant(name)),
                None => Ok(Self::operators(operator)),
            };
        }
        let found =
            in_store(&data.store(), async |store| look(of.other(), store, &data, operator).await)?;
        Ok(Self { data: of.data.data.clone(), ..found })
    }

    /// The host with all of its agents.
    pub(crate) fn host(&self, out: &Out) -> Result<Host, Failure> {
        self.host_in(&self.places, out)
    }

    /// The same, seen from another workspace.
    pub(crate) fn host_in(&self, places: &Places, out: &Out) -> Result<Host, Failure> {
        let mut host = Assembly::new(places, out)?.host()?;
        host.library.besides(self.in_store.clone());
        host.tenant.clone_from(&self.tenant);
        host.data.clone_from(&self.data);
        Ok(host)
    }
}

async fn look(
    name: Option<&str>,
    store: &Store,
    data: &Data,
    operator: &Places,
) -> Result<Whose, Failure> {
    let Some(name) = name else {
        let in_store = api_agents(&store.of_tenant(TENANT)).await.map_err(failed)?;
        return Ok(Whose { in_store, ..Whose::operators(operator) });
    };
    let tenant = tenant(name, store).await?;
    let in_store = api_agents(&store.of(&tenant.name, &tenant.id)).await.map_err(failed)?;
    let (home, workspace) = (data.tenant_home(&tenant), data.tenant_workspace(&tenant));
    below::no_link(data.root(), &home).map_err(|error| not_written("use", &home, &error))?;
    let places = Places { home, workspace, cache: operator.cache.clone(), user_home: None };
    Ok(Whose { places, tenant: Some(tenant.name), data: None, in_store })
}

pub(crate) async fn tenant(name: &str, store: &Store) -> Result<Tenant, Failure> {
    let known = store.registry().tenant(name).await.map_err(failed)?;
    known.ok_or_else(|| no_tenant(name))
}

/// The owner's part of a store.
pub(crate) async fn part_of(of: &TenantArg, store: &Store) -> Result<Store, Failure> {
    let Some(name) = of.other() else { return Ok(store.clone()) };
    let own = tenant(name, store).await?;
    Ok(store.of(&own.name, &own.id))
}

pub(crate) fn no_tenant(name: &str) -> Failure {
    Failure::usage(format!("there is no tenant `{}`", Shown::clipped(name, 64)))
        .hint("`belljar tenants list` lists them")
}
