//! Whose agents a command speaks of: the operator's own, or a tenant's. Agents that are made through
//! the API are in the store, and the command line finds them as the server does.

use belljar_agent::Host;
use belljar_definition::SourceFile;
use belljar_policy::Shown;
use belljar_session::api_agents;
use belljar_store::{Store, TENANT, Tenant};

use crate::args::server::TenantArg;
use crate::setup::data::{Data, failed};
use crate::setup::exit::Failure;
use crate::setup::home::Places;
use crate::setup::host::{self, Assembly};
use crate::setup::walls::Through;
use crate::term::out::Out;

/// Where somebody's agents are, and those that lie in no file.
#[derive(Debug)]
pub(crate) struct Whose {
    /// The operator's own places, or those of the tenant.
    pub(crate) places: Places,
    /// The tenant, where it is not the operator's own.
    pub(crate) tenant: Option<String>,
    in_store: Vec<SourceFile>,
}

impl TenantArg {
    /// The tenant that is named, but for the one of the command line.
    pub(crate) fn other(&self) -> Option<&str> {
        self.tenant.as_deref().filter(|name| *name != TENANT)
    }

    /// The data root. Nothing is made.
    pub(crate) fn root(&self, operator: &Places) -> Result<Data, Failure> {
        Data::find(&self.data, &host::settings(operator)?, operator)
    }

    /// What looking there needs of the OS sandbox besides.
    pub(crate) fn through(&self, operator: &Places) -> Result<Through, Failure> {
        let data = self.root(operator)?;
        if !data.store().is_file() {
            return Ok(Through::default());
        }
        let (read, write) = (data.of_tenants(), vec![data.store_directory()]);
        Ok(Through { read, write, ..Through::default() })
    }
}

impl Whose {
    /// Looks for the tenant, and for what the store has of its agents. Makes nothing: where there is
    /// no store, there is nobody but the operator.
    pub(crate) fn find(of: &TenantArg, operator: &Places) -> Result<Self, Failure> {
        let data = of.root(operator)?;
        if !data.store().is_file() {
            return match of.other() {
                Some(name) => Err(no_tenant(name)),
                None => Ok(Self { places: operator.clone(), tenant: None, in_store: Vec::new() }),
            };
        }
        host::small_runtime()?.block_on(async {
            let store = Store::open(&data.store()).await.map_err(failed)?;
            let found = look(of.other(), &store, &data, operator).await;
            store.close().await;
            found
        })
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
        return Ok(Whose { places: operator.clone(), tenant: None, in_store });
    };
    let tenant = tenant(name, store).await?;
    let in_store = api_agents(&store.of(&tenant.name, &tenant.id)).await.map_err(failed)?;
    let (home, workspace) = (data.tenant_home(&tenant), data.tenant_workspace(&tenant));
    let places = Places { home, workspace, cache: operator.cache.clone(), user_home: None };
    Ok(Whose { places, tenant: Some(tenant.name), in_store })
}

/// A tenant by its name.
pub(crate) async fn tenant(name: &str, store: &Store) -> Result<Tenant, Failure> {
    let known = store.registry().tenant(name).await.map_err(failed)?;
    known.ok_or_else(|| no_tenant(name))
}

fn no_tenant(name: &str) -> Failure {
    Failure::usage(format!("there is no tenant `{}`", Shown::clipped(name, 64)))
        .hint("`belljar tenants list` lists them")
}
