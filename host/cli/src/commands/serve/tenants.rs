//! `belljar tenants`: adds, lists, disables and removes tenants of the server.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use belljar_policy::{ShownPath as _, ShownText};
use belljar_store::{Store, StoreError, TENANT, Tenant};
use serde::Serialize;
use serde_json::json;

use crate::args::server::{TenantsArgs, TenantsCommand};
use crate::commands::serve::rules;
use crate::commands::serve::running::{self, ServerFacts};
use crate::commands::serve::tenancy::{CheckedTenant, TenantSettings};
use crate::setup::below;
use crate::setup::data::{
    DataRoot, now_millis, shown_time, store_failure, with_store, write_audit,
};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host;
use crate::term::out::TerminalOutput;
use crate::term::table::{TextTable, plain_cell};

/// Runs the command on the data root's store.
pub(crate) fn run(
    args: &TenantsArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    with_store(&args.data, places, async |store, data| {
        match &args.command {
            TenantsCommand::Add { name } => {
                let tenant = add_tenant(name, store, data, out).await?;
                rules::print_rules(places, &tenant, out);
            }
            TenantsCommand::List { json } => {
                let tenancy = TenantSettings {
                    settings: host::read_settings(places)?,
                    places: places.clone(),
                    data: data.clone(),
                    reach: None,
                };
                let servers = running::read_server_facts(data);
                let tenants =
                    store.tenant_registry().list_tenants().await.map_err(store_failure)?;
                let listed = |tenant| ListedTenant::with_servers(tenant, &tenancy, &servers);
                let listed: Vec<ListedTenant> = tenants.into_iter().map(listed).collect();
                if *json { out.print_json(&listed)? } else { list_tenants(&listed, out) }
            }
            TenantsCommand::Disable { name, enable } => {
                tenant_by_name(name, store).await?;
                let registry = store.tenant_registry();
                registry.set_tenant_disabled(name, !enable).await.map_err(store_failure)?;
                let action = if *enable { "enable_tenant" } else { "disable_tenant" };
                write_audit(store, name, action, name, json!({})).await?;
                match *enable {
                    true => out.note(format_args!("tenant `{name}` may call again")),
                    false => out.note(format_args!(
                        "tenant `{name}` may not call any more; what runs goes on to its end"
                    )),
                }
            }
            TenantsCommand::Rm { name, yes, purge } => {
                let how = TenantRemoval { yes: *yes, purge: *purge };
                let tenant = tenant_by_name(name, store).await?;
                rules::refuse_removal(places, &tenant)?;
                remove_tenant(&tenant, how, store, data, out).await?;
            }
        }
        Ok(CommandExit::Completed)
    })
}

/// Adds a tenant: its row in the store, its directories, and a line in the audit log.
async fn add_tenant(
    name: &str,
    store: &Store,
    data: &DataRoot,
    out: &TerminalOutput,
) -> Result<Tenant, Failure> {
    // The row is made first, because the store checks the name.
    let made = store.tenant_registry().create_tenant(name, now_millis()).await;
    let tenant = made.map_err(|error| match error {
        StoreError::Taken { .. } => Failure::usage(format!(
            "there is a tenant `{}` already",
            ShownText::clip_line(name, 64)
        ))
        .with_hint("choose another name; `belljar tenants list` shows those that are taken"),
        StoreError::Invalid { .. } => store_failure(error).with_hint("such as `acme` or `team-2`"),
        other => store_failure(other),
    })?;
    for path in [data.tenant_home(&tenant), data.tenant_workspace(&tenant)] {
        below::in_home(data.root_path(), &path).map_err(|error| {
            Failure::new(format!("failed to create `{}`: {error}", path.to_shown()))
        })?;
    }
    write_audit(store, name, "create_tenant", name, json!({})).await?;
    out.note(format_args!(
        "tenant `{name}`: its belljar.toml and agents go into {}, what its agents work on into {}",
        data.tenant_home(&tenant).to_shown(),
        data.tenant_workspace(&tenant).to_shown()
    ));
    out.note(format_args!(
        "`belljar keys create --tenant {name} --scope admin --name NAME` makes its first key"
    ));
    Ok(tenant)
}

/// How a tenant is removed.
#[derive(Debug, Clone, Copy)]
struct TenantRemoval {
    /// True if the person is not asked.
    yes: bool,
    /// True if the tenant's files are deleted too.
    purge: bool,
}

/// Finds a tenant by name; an error if there is none.
async fn tenant_by_name(name: &str, store: &Store) -> Result<Tenant, Failure> {
    let tenant = store.tenant_registry().find_tenant(name).await.map_err(store_failure)?;
    tenant.ok_or_else(|| {
        Failure::usage(format!("there is no tenant `{}`", ShownText::clip_line(name, 64)))
            .with_hint("`belljar tenants list` shows them")
    })
}

/// Removes a tenant from the store, after asking; with `purge`, also its files.
async fn remove_tenant(
    tenant: &Tenant,
    how: TenantRemoval,
    store: &Store,
    data: &DataRoot,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    let name = tenant.name.as_str();
    let shown = ShownText::clip_line(name, 64);
    let and = if how.purge { ", and all its files" } else { "" };
    let question = format!("delete tenant `{shown}` with all its keys, sessions and agents{and}?");
    crate::commands::inspect::sessions::confirm_deletion(how.yes, &question, out)?;
    store.tenant_registry().delete_tenant(name).await.map_err(store_failure)?;
    // The sessions are deleted, so their overlays are deleted too.
    let overlays = belljar_session::layers_root(&store.for_tenant_id(name, &tenant.id));
    if let Err(error) = purge_files(&overlays) {
        out.print_warning(format_args!("`{}` is not deleted: {error}", overlays.to_shown()));
    }
    // Both directories are found before either is deleted.
    let files = [data.tenant_directory(tenant), data.tenant_workspace(tenant)];
    let left = match how.purge {
        true => files.iter().map(|files| purge_files(files)).fold(Ok(()), Result::and),
        false => Ok(()),
    };
    let detail = json!({ "purged": how.purge && left.is_ok() });
    write_audit(store, TENANT, "delete_tenant", name, detail).await?;
    left.map_err(|error| {
        let why = format!("tenant `{shown}` is deleted, and its files are not: {error}");
        let [files, work] = files.each_ref().map(|path| path.to_shown());
        Failure::new(why).with_hint(format!("delete what is left of `{files}` and `{work}`"))
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
        out.note(format_args!("  {}: {what}", path.to_shown()));
    }
    out.note("its lines of the audit log stay as long as all others; a tenant that is given this name has directories of its own");
    Ok(())
}

/// Deletes a tenant's directory. A link in its place is removed, not followed.
fn purge_files(files: &Path) -> io::Result<()> {
    match fs::symlink_metadata(files) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => fs::remove_dir_all(files),
        Ok(_) => fs::remove_file(files),
    }
}

/// A tenant with its state, for the list.
#[derive(Serialize)]
struct ListedTenant {
    #[serde(flatten)]
    tenant: Tenant,
    state: TenantState,
    /// The reason why a server that opens the tenant now would not serve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_served: Option<String>,
    /// The tenant's settings that a running server can apply only after a restart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits_for_restart: Vec<String>,
}

/// Whether and how a tenant is served. Without a running server: the state after a start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum TenantState {
    /// The tenant is disabled: its keys are refused.
    Disabled,
    /// The tenant is served with the settings in its files.
    Enabled,
    /// The tenant is served, but some of its settings need a restart of the server.
    RestartNeeded,
    /// The tenant is served with its last valid settings, because the present ones are invalid.
    OlderSettings,
    /// The tenant is not served, because its files are invalid; callers get the status 503.
    NotServed,
}

impl TenantState {
    /// The state as shown in the list.
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

impl ListedTenant {
    /// Finds the state of a tenant from its files and the facts of running servers.
    fn with_servers(tenant: Tenant, tenancy: &TenantSettings, servers: &[ServerFacts]) -> Self {
        let listed =
            |tenant, state| Self { tenant, state, not_served: None, waits_for_restart: Vec::new() };
        if tenant.disabled {
            return listed(tenant, TenantState::Disabled);
        }
        match tenancy.check_tenant(&tenant) {
            Err(error) => {
                let open = servers.iter().any(|server| server.has_open(&tenant.id));
                let state = if open { TenantState::OlderSettings } else { TenantState::NotServed };
                Self { not_served: Some(error.to_string()), ..listed(tenant, state) }
            }
            Ok(CheckedTenant { settings, places, .. }) => {
                let late: BTreeSet<String> = servers
                    .iter()
                    .flat_map(|server| {
                        server.late_settings(&tenant.name, settings.clone(), &places)
                    })
                    .collect();
                let state =
                    if late.is_empty() { TenantState::Enabled } else { TenantState::RestartNeeded };
                Self { waits_for_restart: late.into_iter().collect(), ..listed(tenant, state) }
            }
        }
    }
}

/// Prints the table of tenants, and the reasons for states that need attention.
fn list_tenants(tenants: &[ListedTenant], out: &TerminalOutput) {
    let mut table = TextTable::new(out, &["tenant", "made", "state"]);
    for ListedTenant { tenant, state, .. } in tenants {
        let made =
            if tenant.created == 0 { "always".to_owned() } else { shown_time(tenant.created) };
        table.push_row([
            plain_cell(ShownText::new(&tenant.name)),
            plain_cell(made),
            plain_cell(state.as_str()),
        ]);
    }
    table.print_to(out);
    for ListedTenant { tenant, state, not_served, waits_for_restart } in tenants {
        let name = &tenant.name;
        if let Some(why) = not_served {
            let served = match state {
                TenantState::OlderSettings => "is served by the settings that were valid last",
                _ => "is not served",
            };
            out.note(format_args!("tenant `{name}` {served}: {}", ShownText::multiline(why)));
        }
        for what in waits_for_restart {
            let what = ShownText::new(what);
            out.note(format_args!("tenant `{name}`: after a restart of the server: {what}"));
        }
    }
}
