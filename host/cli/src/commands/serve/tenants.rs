//! `belljar tenants`: who shares the server.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use belljar_policy::{Shown, ShownPath as _};
use belljar_store::{Store, StoreError, TENANT, Tenant};
use serde::Serialize;
use serde_json::json;

use crate::args::server::{TenantsArgs, TenantsCommand};
use crate::commands::serve::rules;
use crate::commands::serve::running::{self, Told};
use crate::commands::serve::tenancy::{Checked, Tenancy};
use crate::setup::below;
use crate::setup::data::{Data, audit, failed, now, shown_time, with_store};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::host;
use crate::term::out::Out;
use crate::term::table::{Table, plain};

pub(crate) fn run(args: &TenantsArgs, places: &Places, out: &Out) -> Result<Exit, Failure> {
    with_store(&args.data, places, async |store, data| {
        match &args.command {
            TenantsCommand::Add { name } => {
                let tenant = add(name, store, data, out).await?;
                rules::say(places, &tenant, out);
            }
            TenantsCommand::List { json } => {
                let tenancy = Tenancy {
                    settings: host::settings(places)?,
                    places: places.clone(),
                    data: data.clone(),
                    reach: None,
                };
                let servers = running::told(data);
                let tenants = store.registry().tenants().await.map_err(failed)?;
                let listed = |tenant| Listed::of(tenant, &tenancy, &servers);
                let listed: Vec<Listed> = tenants.into_iter().map(listed).collect();
                if *json { out.json(&listed)? } else { list(&listed, out) }
            }
            TenantsCommand::Disable { name, enable } => {
                named(name, store).await?;
                let registry = store.registry();
                registry.set_tenant_disabled(name, !enable).await.map_err(failed)?;
                let action = if *enable { "enable_tenant" } else { "disable_tenant" };
                audit(store, name, action, name, json!({})).await?;
                match *enable {
                    true => out.note(format_args!("tenant `{name}` may call again")),
                    false => out.note(format_args!(
                        "tenant `{name}` may not call any more; what runs goes on to its end"
                    )),
                }
            }
            TenantsCommand::Rm { name, yes, purge } => {
                let how = Removal { yes: *yes, purge: *purge };
                let tenant = named(name, store).await?;
                rules::refuse_removal(places, &tenant)?;
                remove(&tenant, how, store, data, out).await?;
            }
        }
        Ok(Exit::Completed)
    })
}

async fn add(name: &str, store: &Store, data: &Data, out: &Out) -> Result<Tenant, Failure> {
    // The row first: it is what checks the name.
    let made = store.registry().create_tenant(name, now()).await;
    let tenant = made.map_err(|error| match error {
        StoreError::Taken { .. } => {
            Failure::usage(format!("there is a tenant `{}` already", Shown::clipped(name, 64)))
                .hint("choose another name; `belljar tenants list` shows those that are taken")
        }
        StoreError::Invalid { .. } => failed(error).hint("such as `acme` or `team-2`"),
        other => failed(other),
    })?;
    for path in [data.tenant_home(&tenant), data.tenant_workspace(&tenant)] {
        below::in_home(data.root(), &path).map_err(|error| {
            Failure::new(format!("failed to create `{}`: {error}", path.shown()))
        })?;
    }
    audit(store, name, "create_tenant", name, json!({})).await?;
    out.note(format_args!(
        "tenant `{name}`: its belljar.toml and agents go into {}, what its agents work on into {}",
        data.tenant_home(&tenant).shown(),
        data.tenant_workspace(&tenant).shown()
    ));
    out.note(format_args!(
        "`belljar keys create --tenant {name} --scope admin --name NAME` makes its first key"
    ));
    Ok(tenant)
}

/// How a tenant is removed.
#[derive(Debug, Clone, Copy)]
struct Removal {
    /// Without asking.
    yes: bool,
    /// Its files too.
    purge: bool,
}

async fn named(name: &str, store: &Store) -> Result<Tenant, Failure> {
    let tenant = store.registry().tenant(name).await.map_err(failed)?;
    tenant.ok_or_else(|| {
        Failure::usage(format!("there is no tenant `{}`", Shown::clipped(name, 64)))
            .hint("`belljar tenants list` shows them")
    })
}

async fn remove(
    tenant: &Tenant,
    how: Removal,
    store: &Store,
    data: &Data,
    out: &Out,
) -> Result<(), Failure> {
    let name = tenant.name.as_str();
    let shown = Shown::clipped(name, 64);
    let and = if how.purge { ", and all its files" } else { "" };
    let question = format!("delete tenant `{shown}` with all its keys, sessions and agents{and}?");
    crate::commands::inspect::sessions::sure(how.yes, &question, out)?;
    store.registry().delete_tenant(name).await.map_err(failed)?;
    // Of its sessions nothing is left.
    let overlays = belljar_session::layers_root(&store.of(name, &tenant.id));
    if let Err(error) = purge(&overlays) {
        out.warning(format_args!("`{}` is not deleted: {error}", overlays.shown()));
    }
    // Both, as they are found before anything is gone.
    let files = [data.tenant(tenant), data.tenant_workspace(tenant)];
    let left = match how.purge {
        true => files.iter().map(|files| purge(files)).fold(Ok(()), Result::and),
        false => Ok(()),
    };
    let detail = json!({ "purged": how.purge && left.is_ok() });
    audit(store, TENANT, "delete_tenant", name, detail).await?;
    left.map_err(|error| {
        let why = format!("tenant `{shown}` is deleted, and its files are not: {error}");
        let [files, work] = files.each_ref().map(|path| path.shown());
        Failure::new(why).hint(format!("delete what is left of `{files}` and `{work}`"))
    })?;
    if how.purge {
        out.note(format_args!("tenant `{shown}` is deleted, with all its files"));
        return Ok(());
    }
    out.note(format_args!(
        "tenant `{shown}` is deleted; what it leaves behind is yours to delete:"
    ));
    for (what, path) in [
        ("its settings, grants, agents and tools", data.tenant_home(tenant)),
        ("what its agents worked on", data.tenant_workspace(tenant)),
    ] {
        out.note(format_args!("  {}: {what}", path.shown()));
    }
    out.note("its lines of the audit log stay as long as all others; a tenant that is given this name has directories of its own");
    Ok(())
}

/// Deletes a tenant's files. A link in their place is not followed.
fn purge(files: &Path) -> io::Result<()> {
    match fs::symlink_metadata(files) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => fs::remove_dir_all(files),
        Ok(_) => fs::remove_file(files),
    }
}

/// A tenant, and how it is served.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    tenant: Tenant,
    state: State,
    /// Why a server that opens the tenant now would not serve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_served: Option<String>,
    /// The tenant's grants that a running server cannot apply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits_for_restart: Vec<String>,
}

/// The state of a tenant's service. Without a running server: the state after a start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// Its keys are refused.
    Disabled,
    /// As its files say.
    Enabled,
    /// As in the files, except for parts that need a restart.
    RestartNeeded,
    /// By the last valid settings, because the present ones are invalid.
    OlderSettings,
    /// Not served: the files are invalid, and callers are answered 503.
    NotServed,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Enabled => "enabled",
            Self::RestartNeeded => "restart needed",
            Self::OlderSettings => "older settings",
            Self::NotServed => "not served",
        }
    }
}

impl Listed {
    fn of(tenant: Tenant, tenancy: &Tenancy, servers: &[Told]) -> Self {
        let listed =
            |tenant, state| Self { tenant, state, not_served: None, waits_for_restart: Vec::new() };
        if tenant.disabled {
            return listed(tenant, State::Disabled);
        }
        match tenancy.check(&tenant) {
            Err(error) => {
                let open = servers.iter().any(|server| server.has_open(&tenant.id));
                let state = if open { State::OlderSettings } else { State::NotServed };
                Self { not_served: Some(error.to_string()), ..listed(tenant, state) }
            }
            Ok(Checked { settings, places, .. }) => {
                let late: BTreeSet<String> = servers
                    .iter()
                    .flat_map(|server| server.late(&tenant.name, settings.clone(), &places))
                    .collect();
                let state = if late.is_empty() { State::Enabled } else { State::RestartNeeded };
                Self { waits_for_restart: late.into_iter().collect(), ..listed(tenant, state) }
            }
        }
    }
}

fn list(tenants: &[Listed], out: &Out) {
    let mut table = Table::new(out, &["tenant", "made", "state"]);
    for Listed { tenant, state, .. } in tenants {
        let made =
            if tenant.created == 0 { "always".to_owned() } else { shown_time(tenant.created) };
        table.row([plain(Shown::new(&tenant.name)), plain(made), plain(state.as_str())]);
    }
    table.print(out);
    for Listed { tenant, state, not_served, waits_for_restart } in tenants {
        let name = &tenant.name;
        if let Some(why) = not_served {
            let served = match state {
                State::OlderSettings => "is served by the settings that were valid last",
                _ => "is not served",
            };
            out.note(format_args!("tenant `{name}` {served}: {}", Shown::multiline(why)));
        }
        for what in waits_for_restart {
            let what = Shown::new(what);
            out.note(format_args!("tenant `{name}`: after a restart of the server: {what}"));
        }
    }
}
