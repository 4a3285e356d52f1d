//! `belljar revoke`: removes rights that `grant` gave, named in the same words.

use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_agent::{Host, resolve_entry};
use belljar_definition::{
    AgentScope, Catalog, CatalogEntry, GrantRemoval, GrantSpec, Grantee, MountRemoval, NotRevoked,
    Settings, Visibility, revoke_grants,
};
use belljar_policy::{
    CallPermission, GuestPath, HostRule, LIMITS, Mount, MountAccess, SecretName, ShownPath as _,
    ShownText, ToolName,
};

use super::rights::{self, usage_failure};
use super::{lock_unless_asked, record, replace_text};
use crate::args::grants::RevokeArgs;
use crate::commands::catalogue::agents;
use crate::setup::agreed::ask_agreement;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, read_own_config};
use crate::setup::whose::AgentOwner;
use crate::term::diff;
use crate::term::out::TerminalOutput;

/// The most names in a hint, for example of granted tools.
const MAX_NAMED: usize = 8;

/// Runs the command: finds the grants, shows what is removed, asks, and writes.
pub(crate) fn run(
    args: &RevokeArgs,
    operator: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let removal = parse_removal(args)?;
    if removal.is_empty() {
        return Err(Failure::usage("nothing to take back is named").with_hint(
            "name a right as it was granted (`--tool`, `--host`, `--mount`, `--secret`, \
             `--limit`), or `--all`",
        ));
    }
    let whose = AgentOwner::look_up(&args.of, operator)?;
    let host = whose.build_host(out)?;
    let ids = find_grantees(args, &host)?;
    let path = whose.places.config_path();
    let lock = lock_unless_asked(args.yes, &path)?;
    let old = read_own_config(&path)?.unwrap_or_default();
    let user_home = whose.places.user_home.as_deref();
    let new = revoke_grants(&path, &old, user_home, &ids, &removal)
        .map_err(|why| revoke_failure(why, &ids, &removal, &host))?;
    let read = |text: &str| {
        Settings::parse(Some((&path, text)), None, user_home)
            .map_err(|found| Failure::from_diagnostics("", found))
    };
    let after = read(&new)?;
    let (was, will) = (
        HeldRights::under_settings(&ids, &read(&old)?, &whose, &host),
        HeldRights::under_settings(&ids, &after, &whose, &host),
    );
    for (was, will) in was.iter().zip(&will) {
        gives_nothing(was, will, &host)?;
    }
    diff::print_diff(&path.to_shown().to_string(), &old, &new, out);
    if !ask_agreement("write this?", args.yes, "written", out)? {
        return Ok(CommandExit::Cancelled);
    }
    replace_text(lock, &path, &old, &new)?;
    out.note(format_args!("wrote {}", path.to_shown()));
    let lines = ids.iter().map(|(id, _)| (id.to_string(), record::removal_detail(&removal)));
    args.of.audit_action(operator, ("revoke", "the revoke is written"), lines.collect())?;
    for (to, _) in &ids {
        out.note(remaining_grant(to, after.own_grant(to)));
    }
    for held in &will {
        let still = removal.tools.iter().filter(|(tool, _)| held.tools.contains_key(tool));
        for (tool, _) in still {
            out.print_warning(has_by_default(&held.id, tool, &host));
        }
    }
    say_status(&ids, &whose, out)?;
    Ok(CommandExit::Completed)
}

/// An agent's rights under some settings. For an agent that is missing: the rights it would have.
struct HeldRights {
    id: Grantee,
    tools: BTreeMap<ToolName, CallPermission>,
    mounts: Vec<Mount>,
}

impl HeldRights {
    /// The rights of each agent that these grants cover, under `settings`.
    fn under_settings(
        ids: &[(Grantee, Visibility)],
        settings: &Settings,
        whose: &AgentOwner,
        host: &Host,
    ) -> Vec<Self> {
        let mut host = host.clone();
        host.settings = Arc::new(settings.clone());
        let catalog = host.library.catalog();
        let workspace = &whose.places.workspace;
        let given = |(_, word): &(ToolName, CallPermission)| *word != CallPermission::Deny;
        let of_entry = |entry: &CatalogEntry| {
            let rights = resolve_entry(&host, entry, workspace).rights;
            let tools =
                rights.offered_tools().map(|(tool, word)| (tool.clone(), word)).filter(given);
            let (tools, mounts) = (tools.collect(), rights.mounts().to_vec());
            Self { id: (&entry.id).into(), tools, mounts }
        };
        let mut all: Vec<Self> = covered_agents(ids, &catalog).map(of_entry).collect();
        for (to, visibility) in ids {
            if let Grantee::Agent(id) = to
                && catalog.get(id).is_none()
            {
                let grants = settings.agent_grants(id, *visibility, workspace);
                let tools = grants.tools.into_iter().filter(given).collect();
                all.push(Self { id: to.clone(), tools, mounts: grants.mounts });
            }
        }
        all
    }
}

/// The agents of the catalogue that these grants cover.
fn covered_agents<'a>(
    ids: &'a [(Grantee, Visibility)],
    catalog: &'a Catalog,
) -> impl Iterator<Item = &'a CatalogEntry> {
    let is_covered = |entry: &&CatalogEntry| ids.iter().any(|(to, _)| to.covers_agent(&entry.id));
    catalog.agents().iter().filter(is_covered)
}

/// INV-159: an error if the revocation would give an agent more rights. A grant may have fewer rights than
/// the defaults, which count if the grant is removed.
fn gives_nothing(was: &HeldRights, will: &HeldRights, host: &Host) -> Result<(), Failure> {
    let tools = will.tools.iter().filter(|(tool, word)| was.tools.get(*tool) < Some(*word));
    let mounts = will.mounts.iter().filter(|mount| {
        let same = was.mounts.iter().filter(|it| it.guest == mount.guest);
        same.map(|it| it.access).max() < Some(mount.access)
    });
    let more: Vec<String> = tools
        .map(|(tool, _)| format!("`{tool}`"))
        .chain(mounts.map(|mount| format!("`{}` ({})", mount.guest, mount.access)))
        .collect();
    if more.is_empty() {
        return Ok(());
    }
    let id = &was.id;
    let more = ShownText::new(&more.join(", ")).to_string();
    let command = format!("belljar grant {} --tool NAME=deny", id.grant_key());
    Err(Failure::new(format!(
        "nothing is taken back: without it `{id}` would have more, by default: {more}"
    ))
    .with_hint(format!(
        "to take away a tool: `{}`; to go back to the defaults, edit `belljar.toml`",
        ShownText::new(&host.for_its_tenant(&command))
    )))
}

/// The sentence about a tool that an agent has by default, without a grant.
fn has_by_default(id: &Grantee, tool: &ToolName, host: &Host) -> String {
    let command = format!("belljar grant {} --tool {tool}=deny", id.grant_key());
    let command = ShownText::new(&host.for_its_tenant(&command)).to_string();
    format!("`{id}` has `{tool}` by default all the same; to take it away: `{command}`")
}

/// The rights to remove, as the options name them.
fn parse_removal(args: &RevokeArgs) -> Result<GrantRemoval, Failure> {
    let mut removal =
        GrantRemoval { all: args.all || args.library.is_some(), ..GrantRemoval::default() };
    for text in &args.tool {
        let (tool, word) = rights::parse_tool(text)?;
        removal.tools.push((tool, text.contains('=').then_some(word)));
    }
    for text in &args.host {
        removal.hosts.push(text.parse::<HostRule>().map_err(usage_failure)?);
    }
    for text in &args.mount {
        removal.mounts.push(parse_mount(text)?);
    }
    for text in &args.secret {
        removal.secrets.push(SecretName::new(text).map_err(usage_failure)?);
    }
    for text in &args.limit {
        removal.limits.push(parse_limit(text)?);
    }
    Ok(removal)
}

/// Parses `/guest`, `/guest:access` or `/guest:/host:access`.
fn parse_mount(text: &str) -> Result<MountRemoval, Failure> {
    if !text.contains(':') {
        let guest = GuestPath::new(text).map_err(usage_failure)?;
        return Ok(MountRemoval { guest, host: None, access: None });
    }
    // In `/data:read`, only the access is given and no directory.
    if let Some((guest, word)) = text.split_once(':')
        && let Some(access) = [MountAccess::Read, MountAccess::Overlay, MountAccess::ReadWrite]
            .into_iter()
            .find(|it| it.to_string() == word)
    {
        let guest = GuestPath::new(guest).map_err(usage_failure)?;
        return Ok(MountRemoval { guest, host: None, access: Some(access) });
    }
    let mount = rights::parse_mount(text)?;
    Ok(MountRemoval { guest: mount.guest, host: mount.host, access: Some(mount.access) })
}

/// Parses `key` or `key=N`.
fn parse_limit(text: &str) -> Result<(String, Option<u64>), Failure> {
    let (key, value) = match text.split_once('=') {
        None => (text, None),
        Some((key, number)) => {
            let number = number.replace('_', "").parse().map_err(|_| {
                let shown = ShownText::clip_line(text, 80);
                Failure::usage(format!("`{shown}`: the value is not a whole number"))
            })?;
            (key, Some(number))
        }
    };
    if LIMITS.iter().any(|row| row.key == key) {
        return Ok((key.to_owned(), value));
    }
    Err(Failure::usage(format!("there is no limit `{}`", ShownText::clip_line(key, 80)))
        .with_hint("`belljar limits` lists them"))
}

/// Finds the grants to change, each with the visibility of its agents, which decides their defaults.
fn find_grantees(args: &RevokeArgs, host: &Host) -> Result<Vec<(Grantee, Visibility)>, Failure> {
    let catalog = host.library.catalog();
    let visibility = |to: &Grantee| match to {
        Grantee::Agent(id) => {
            catalog.get(id).map_or_else(Visibility::default, |entry| entry.definition.visibility)
        }
        Grantee::Library(_) => Visibility::Internal,
    };
    let granted = || host.settings.grantees();
    if let Some(name) = &args.library {
        let scope = AgentScope::Library(name.clone());
        let of_library = granted().filter(|to| to.is_of(&scope));
        let ids: Vec<_> = of_library.map(|id| (id.clone(), visibility(id))).collect();
        if !ids.is_empty() {
            return Ok(ids);
        }
        let name = ShownText::clip_line(name, 80);
        return Err(no_grant_failure(&format!("an agent of library `{name}`"), host));
    }
    let name = args.agent.as_deref().unwrap_or_default();
    let id: Grantee = name.parse().map_err(usage_failure)?;
    if granted().any(|granted| *granted == id) {
        return Ok(vec![(id.clone(), visibility(&id))]);
    }
    if let Grantee::Library(_) = id {
        return Err(no_grant_failure(&format!("`{id}`"), host));
    }
    match catalog.find_by_name(name) {
        Ok(found) if Grantee::from(&found.id) != id => {
            Err(no_grant_failure(&format!("`{id}`"), host)
                .with_hint(format!("`{name}` is found as `{}`; name that identity", found.id)))
        }
        Ok(_) => Err(no_grant_failure(&format!("`{id}`"), host)),
        Err(unknown) => Err(agents::not_found(unknown.into())),
    }
}

/// The failure if there is no grant of this name.
fn no_grant_failure(whom: &str, host: &Host) -> Failure {
    let all: Vec<String> =
        host.settings.grantees().take(MAX_NAMED).map(|id| format!("`{id}`")).collect();
    let hint = match all.as_slice() {
        [] => "`belljar.toml` grants nothing to any agent by name".to_owned(),
        names => format!("`belljar.toml` grants something to {}", names.join(", ")),
    };
    Failure::new(format!("nothing is taken back: `belljar.toml` has no grant for {whom}"))
        .with_hint(ShownText::new(&hint).to_string())
}

/// The failure if a named right was not granted, with the rights that were.
fn revoke_failure(
    why: NotRevoked,
    ids: &[(Grantee, Visibility)],
    removal: &GrantRemoval,
    host: &Host,
) -> Failure {
    let missing = match why {
        NotRevoked::Invalid(mut found) => {
            found.iter_mut().for_each(|found| (found.line, found.column) = (0, 0));
            return Failure::from_diagnostics("the grant cannot be taken back", found);
        }
        NotRevoked::NotGranted(missing) => missing,
    };
    let names: Vec<String> = ids.iter().map(|(id, _)| format!("`{id}`")).collect();
    let names = ShownText::new(&names.join(", ")).to_string();
    let failure = Failure::new(format!(
        "nothing is taken back: the grant of {names} does not give {}",
        missing.join(", ")
    ));
    let Some((id, visibility)) = ids.first() else { return failure };
    let failure = failure.with_hint(remaining_grant(id, host.settings.own_grant(id)));
    let by_default = host.settings.home_grant(id, *visibility).tools.unwrap_or_default();
    let default = removal.tools.iter().find(|(tool, _)| {
        by_default.get(tool).is_some_and(|permission| *permission != CallPermission::Deny)
    });
    match default {
        Some((tool, None)) => failure.with_hint(has_by_default(id, tool, host)),
        Some((_, Some(_))) | None => failure,
    }
}

/// The rights that remain in a grant, in one line.
fn remaining_grant(id: &Grantee, grant: Option<&GrantSpec>) -> String {
    let Some(grant) = grant else {
        return format!("`{id}` has no grant of its own; what all agents have by default holds");
    };
    let mut parts = Vec::new();
    let mut part = |what: &str, names: Vec<String>| {
        if !names.is_empty() {
            parts.push(format!("{what} {}", names.join(", ")));
        }
    };
    let tools = grant.tools.iter().flatten().chain(&grant.add_tools);
    part(
        "tools",
        tools.map(|(tool, word)| format!("{tool}{}", permission_suffix(*word))).collect(),
    );
    let mounts = grant.mounts.iter().flatten();
    part("mounts", mounts.map(|it| format!("{} ({})", it.guest, it.access)).collect());
    part("hosts", grant.hosts.iter().flatten().map(ToString::to_string).collect());
    part("secrets", grant.secrets.iter().flatten().map(ToString::to_string).collect());
    let limits = LIMITS.iter().filter_map(|row| Some((row.key, grant.limits.get(row.key)?)));
    part("limits", limits.map(|(key, value)| format!("{key}={value}")).collect());
    match parts.as_slice() {
        [] => format!("the grant of `{id}` gives nothing by name any more"),
        parts => {
            ShownText::new(&format!("the grant of `{id}` gives {}", parts.join("; "))).to_string()
        }
    }
}

/// The ending of a tool's name in a grant, for example `=ask`.
fn permission_suffix(word: CallPermission) -> &'static str {
    match word {
        CallPermission::Allow => "",
        CallPermission::Ask => "=ask",
        CallPermission::Deny => "=deny",
    }
}

/// Prints whether the agents can still run with the changed settings.
fn say_status(
    ids: &[(Grantee, Visibility)],
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    let host = whose.build_host(out)?;
    let catalog = host.library.catalog();
    for entry in covered_agents(ids, &catalog) {
        let agent = resolve_entry(&host, entry, &whose.places.workspace);
        if agent.status.is_ready() {
            out.note(format_args!("`{}` is {}", agent.id, agent.status.as_str()));
        } else {
            let reasons = ShownText::new(&agent.run_warnings().join("; ")).to_string();
            out.note(format_args!("`{}` is blocked now: {reasons}", agent.id));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_and_a_limit_are_named_as_they_were_granted_or_by_their_names_alone() {
        let named = |text: &str| {
            let it = parse_mount(text).unwrap();
            (it.guest.to_string(), it.host.is_some(), it.access)
        };
        assert_eq!(named("/data"), ("/data".to_owned(), false, None));
        assert_eq!(named("/data:read"), ("/data".to_owned(), false, Some(MountAccess::Read)));
        let full = named("/data:/srv:read-write");
        assert_eq!(full, ("/data".to_owned(), true, Some(MountAccess::ReadWrite)));
        assert!(parse_mount("data").is_err() && parse_mount("/data:rw").is_err());
        assert_eq!(parse_limit("steps").unwrap(), ("steps".to_owned(), None));
        assert_eq!(parse_limit("steps=5_0").unwrap(), ("steps".to_owned(), Some(50)));
        assert!(parse_limit("step").is_err() && parse_limit("steps=x").is_err());
    }
}
