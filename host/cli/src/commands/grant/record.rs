//! Whose home a grant goes into, and the line in the audit log that says it was given.

use belljar_definition::{AgentId, GrantChange, Visibility};
use belljar_policy::Shown;
use belljar_policy::ShownPath as _;
use belljar_store::TENANT;
use serde_json::{Map, Value, json};

use crate::args::GrantArgs;
use crate::commands::serve::judged::is_below;
use crate::setup::data::{Data, audit, with_store};
use crate::setup::exit::Failure;
use crate::setup::home::Places;

/// The places whose `belljar.toml` is written: those of a tenant where one is named.
pub(super) fn places(args: &GrantArgs, places: &Places) -> Result<Places, Failure> {
    let Some(name) = tenant(args) else { return Ok(places.clone()) };
    let (home, workspace) = with_store(&args.data, places, async |store, data: &Data| {
        let known = store.registry().tenant(name).await.map_err(crate::setup::data::failed)?;
        let own = |tenant| (data.tenant_home(&tenant), data.tenant_workspace(&tenant));
        known.map(own).ok_or_else(|| {
            Failure::usage(format!("there is no tenant `{}`", Shown::clipped(name, 64)))
                .hint("`belljar tenants list` lists them")
        })
    })?;
    Ok(Places { home, workspace, cache: places.cache.clone(), user_home: None })
}

/// Refuses a directory outside of the tenant's own: with it the tenant would not be served.
pub(super) fn check(args: &GrantArgs, change: &GrantChange, own: &Places) -> Result<(), Failure> {
    let Some(name) = tenant(args) else { return Ok(()) };
    let root = own.home.parent().unwrap_or(&own.home);
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let hosts = change.mounts.iter().filter_map(|mount| mount.host.as_deref());
    match hosts.into_iter().find(|host| !is_below(host, &root)) {
        None => Ok(()),
        Some(host) => Err(Failure::usage(format!(
            "`{}` is not a directory of tenant `{name}`",
            Shown::clipped(&host.to_string_lossy(), 200)
        ))
        .hint(format!("what its agents see lies below `{}`", root.shown()))),
    }
}

/// Writes who was granted what into the audit log of the one whose grant it is.
pub(super) fn record(
    args: &GrantArgs,
    places: &Places,
    changes: &[(AgentId, Visibility, GrantChange)],
) -> Result<(), Failure> {
    let tenant = tenant(args).unwrap_or(TENANT);
    let written = with_store(&args.data, places, async |store, _: &Data| {
        for (agent, _, change) in changes {
            audit(store, tenant, "grant", &agent.to_string(), detail(change)).await?;
        }
        Ok(())
    });
    written.map_err(|failure| {
        let message =
            format!("the grant is written, and not in the audit log: {}", failure.message);
        Failure { message, ..failure }
    })
}

/// The tenant that is named, but for the one of the command line.
fn tenant(args: &GrantArgs) -> Option<&str> {
    args.tenant.as_deref().filter(|name| *name != TENANT)
}

fn detail(change: &GrantChange) -> Value {
    let tools: Map<String, Value> =
        change.tools.iter().map(|(tool, word)| (tool.to_string(), json!(word))).collect();
    let mounts = change.mounts.iter().map(|mount| {
        let host = mount.host.as_ref().map(|host| host.to_string_lossy().into_owned());
        json!({"path": mount.guest.to_string(), "host": host, "access": mount.access.to_string()})
    });
    json!({
        "tools": tools,
        "mounts": mounts.collect::<Vec<_>>(),
        "hosts": change.hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "secrets": change.secrets.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "limits": change.limits,
    })
}
