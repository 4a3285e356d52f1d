//! `belljar tenants`: who shares the server.

use belljar_policy::Shown;
use belljar_store::{Store, TENANT, Tenant};
use serde_json::json;

use crate::data::{Data, audit, failed, now, shown_time, with_store};
use crate::exit::{Exit, Failure};
use crate::home::{Places, create_private};
use crate::out::Out;
use crate::server_args::{TenantsArgs, TenantsCommand};
use crate::table::{Table, plain};

pub(super) fn run(args: &TenantsArgs, places: &Places, out: &Out) -> Result<Exit, Failure> {
    with_store(&args.data, places, async |store, data| {
        match &args.command {
            TenantsCommand::Add { name } => add(name, store, data, out).await?,
            TenantsCommand::List { json } => {
                let tenants = store.registry().tenants().await.map_err(failed)?;
                if *json { out.json(&tenants)? } else { list(&tenants, out) }
            }
            TenantsCommand::Disable { name, enable } => {
                let registry = store.registry();
                registry.set_tenant_disabled(name, !enable).await.map_err(failed)?;
                let action = if *enable { "enable_tenant" } else { "disable_tenant" };
                audit(store, name, action, name, json!({})).await?;
                let state = if *enable { "may call again" } else { "may not call any more" };
                out.note(format_args!("tenant `{name}` {state}; what runs goes on to its end"));
            }
            TenantsCommand::Rm { name, yes } => remove(name, *yes, store, data, out).await?,
        }
        Ok(Exit::Completed)
    })
}

async fn add(name: &str, store: &Store, data: &Data, out: &Out) -> Result<(), Failure> {
    // The row first: it is what checks the name.
    store.registry().create_tenant(name, now()).await.map_err(failed)?;
    for path in [data.tenant_home(name), data.tenant_workspace(name)] {
        create_private(&path).map_err(|error| {
            Failure::new(format!("failed to create `{}`: {error}", path.display()))
        })?;
    }
    audit(store, name, "create_tenant", name, json!({})).await?;
    out.note(format_args!(
        "tenant `{name}`: its belljar.toml and agents go into {}, what its agents work on into {}",
        data.tenant_home(name).display(),
        data.tenant_workspace(name).display()
    ));
    out.note(format_args!(
        "`belljar keys create --tenant {name} --scope admin --name NAME` makes its first key"
    ));
    Ok(())
}

async fn remove(
    name: &str,
    yes: bool,
    store: &Store,
    data: &Data,
    out: &Out,
) -> Result<(), Failure> {
    let shown = Shown::clipped(name, 64);
    if store.registry().tenant(name).await.map_err(failed)?.is_none() {
        return Err(Failure::usage(format!("there is no tenant `{shown}`"))
            .hint("`belljar tenants list` shows them"));
    }
    let question = format!("delete tenant `{shown}` with all its keys, sessions and agents?");
    super::sessions::sure(yes, &question, out)?;
    store.registry().delete_tenant(name).await.map_err(failed)?;
    audit(store, TENANT, "delete_tenant", name, json!({})).await?;
    out.note(format_args!(
        "tenant `{shown}` is deleted; its files are still in {}",
        data.tenant(name).display()
    ));
    Ok(())
}

fn list(tenants: &[Tenant], out: &Out) {
    let mut table = Table::new(out, &["tenant", "made", "state"]);
    for tenant in tenants {
        let made =
            if tenant.created == 0 { "always".to_owned() } else { shown_time(tenant.created) };
        let state = if tenant.disabled { "disabled" } else { "enabled" };
        table.row([plain(Shown::new(&tenant.name)), plain(made), plain(state)]);
    }
    table.print(out);
}
