//! Checks the directories that a tenant may be granted, and makes the audit log's lines about grants.

use std::collections::BTreeSet;
use std::path::Path;

use belljar_definition::{GrantChange, GrantRemoval, Settings};
use belljar_policy::{Mount, ShownPath as _, ShownText};
use belljar_store::TENANT;
use serde_json::{Map, Value, json};

use crate::args::server::TenantArg;
use crate::commands::serve::judged::is_below;
use crate::commands::serve::running;
use crate::commands::serve::tenancy::{own_directories, writes_home};
use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;
use crate::setup::whose::AgentOwner;
use crate::term::out::TerminalOutput;

/// Refuses a mount outside of the tenant's own directories, or with write access to its home, because the
/// server would then not serve the tenant.
pub(super) fn check_mounts(whose: &AgentOwner, change: &GrantChange) -> Result<(), Failure> {
    let Some(name) = &whose.tenant else { return Ok(()) };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let own = own_directories(&whose.places).map(real);
    let home = real(&whose.places.home);
    for spec in &change.mounts {
        let Some(host) = &spec.host else { continue };
        let shown = ShownText::clip_line(&host.to_string_lossy(), 200).to_string();
        let refused = |why: String| {
            Err(Failure::usage(why).with_hint(format!(
                "what its agents see lies below `{}`, or beside the home in `{}`",
                own[1].to_shown(),
                own[0].to_shown()
            )))
        };
        if !own.iter().any(|own| is_below(host, own)) {
            return refused(format!("`{shown}` is not a directory of tenant `{name}`"));
        }
        let (guest, access) = (spec.guest.clone(), spec.access);
        if writes_home(&Mount { guest, host: host.clone(), access }, &home) {
            return refused(format!("`{shown}` is or holds the home of tenant `{name}`"));
        }
    }
    Ok(())
}

/// Prints the new settings that a running server can apply only after a restart. `old` and `new` = the texts
/// of `belljar.toml`.
pub(super) fn say_what_waits(
    of: &TenantArg,
    operator: &HomePaths,
    whose: &AgentOwner,
    (old, new): (&str, &str),
    out: &TerminalOutput,
) {
    let Ok(data) = of.data_root(operator) else { return };
    let path = whose.places.config_path();
    let user_home = whose.places.user_home.as_deref();
    let parsed = |text: &str| Settings::parse(Some((&path, text)), None, user_home).ok();
    let (Some(old), Some(new)) = (parsed(old), parsed(new)) else { return };
    let tenant = of.other_tenant().unwrap_or(TENANT);
    let mut said = BTreeSet::new();
    for server in running::read_server_facts(&data) {
        let before = server.late_settings(tenant, old.clone(), &whose.places);
        let now = server.late_settings(tenant, new.clone(), &whose.places);
        said.extend(now.into_iter().filter(|what| !before.contains(what)));
    }
    for what in &said {
        out.print_warning(format_args!(
            "the server that runs cannot give this before it is restarted: {}",
            ShownText::new(what)
        ));
    }
}

/// The added rights, for the audit log.
pub(super) fn addition_detail(change: &GrantChange) -> Value {
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

/// The removed rights, for the audit log.
pub(super) fn removal_detail(removal: &GrantRemoval) -> Value {
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
