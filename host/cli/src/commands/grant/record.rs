//! The directories that a tenant may be granted, and the line in the audit log that says what was
//! given or taken.

use belljar_definition::{AgentId, GrantChange, GrantRemoval};
use belljar_policy::Shown;
use belljar_policy::ShownPath as _;
use belljar_store::TENANT;
use serde_json::{Map, Value, json};

use crate::args::server::TenantArg;
use crate::commands::serve::judged::is_below;
use crate::setup::data::{Data, audit, with_store};
use crate::setup::exit::Failure;
use crate::setup::home::Places;
use crate::setup::whose::Whose;

/// Refuses a directory outside of the tenant's own: with it the tenant would not be served.
pub(super) fn check(whose: &Whose, change: &GrantChange) -> Result<(), Failure> {
    let Some(name) = &whose.tenant else { return Ok(()) };
    let home = &whose.places.home;
    let root = home.parent().unwrap_or(home);
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

/// Writes which agents were granted what, or had what taken back, into the audit log of the one
/// whose agents they are.
pub(super) fn record(
    of: &TenantArg,
    places: &Places,
    action: &str,
    lines: Vec<(AgentId, Value)>,
) -> Result<(), Failure> {
    let tenant = of.other().unwrap_or(TENANT);
    let written = with_store(&of.data, places, async |store, _: &Data| {
        for (agent, detail) in lines {
            audit(store, tenant, action, &agent.to_string(), detail).await?;
        }
        Ok(())
    });
    written.map_err(|failure| {
        let message =
            format!("the {action} is written, and not in the audit log: {}", failure.message);
        Failure { message, ..failure }
    })
}

/// What was given, as the audit log has it.
pub(super) fn detail(change: &GrantChange) -> Value {
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

/// What was taken back, as the audit log has it.
pub(super) fn taken(removal: &GrantRemoval) -> Value {
    if removal.all {
        return json!({ "all": true });
    }
    json!({
        "tools": removal.tools.iter().map(|(tool, _)| tool.to_string()).collect::<Vec<_>>(),
        "mounts": removal.mounts.iter().map(|it| it.guest.to_string()).collect::<Vec<_>>(),
        "hosts": removal.hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "secrets": removal.secrets.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "limits": removal.limits.iter().map(|(key, _)| key).collect::<Vec<_>>(),
    })
}
