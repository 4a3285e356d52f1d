//! `belljar revoke`: takes back what `grant` gave, by the same words.

use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_agent::{Host, resolve_entry};
use belljar_definition::{
    Catalog, CatalogEntry, GrantRemoval, GrantSpec, Grantee, MountRemoval, NotRevoked, Scope,
    Settings, Visibility, revoke_grants,
};
use belljar_policy::{
    Access, GuestPath, HostRule, LIMITS, Mount, Permission, SecretName, Shown, ShownPath as _,
    ToolName,
};

use super::rights::{self, usage};
use super::{lock_unless_asked, record, replace};
use crate::args::grants::RevokeArgs;
use crate::commands::catalogue::agents;
use crate::setup::agreed::agreed;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{Places, read_own_config};
use crate::setup::whose::Whose;
use crate::term::diff;
use crate::term::out::Out;

/// Names listed in a hint, for example of granted tools.
const MAX_NAMED: usize = 8;

pub(crate) fn run(args: &RevokeArgs, operator: &Places, out: &Out) -> Result<Exit, Failure> {
    let removal = removal(args)?;
    if removal.is_empty() {
        return Err(Failure::usage("nothing to take back is named").hint(
            "name a right as it was granted (`--tool`, `--host`, `--mount`, `--secret`, \
             `--limit`), or `--all`",
        ));
    }
    let whose = Whose::find(&args.of, operator)?;
    let host = whose.host(out)?;
    let ids = ids(args, &host)?;
    let path = whose.places.config();
    let lock = lock_unless_asked(args.yes, &path)?;
    let old = read_own_config(&path)?.unwrap_or_default();
    let user_home = whose.places.user_home.as_deref();
    let new = revoke_grants(&path, &old, user_home, &ids, &removal)
        .map_err(|why| refused(why, &ids, &removal, &host))?;
    let read = |text: &str| {
        Settings::parse(Some((&path, text)), None, user_home)
            .map_err(|found| Failure::diagnostics("", found))
    };
    let after = read(&new)?;
    let (was, will) =
        (Held::of(&ids, &read(&old)?, &whose, &host), Held::of(&ids, &after, &whose, &host));
    for (was, will) in was.iter().zip(&will) {
        gives_nothing(was, will, &host)?;
    }
    diff::show(&path.shown().to_string(), &old, &new, out);
    if !agreed("write this?", args.yes, "written", out)? {
        return Ok(Exit::Cancelled);
    }
    replace(lock, &path, &old, &new)?;
    out.note(format_args!("wrote {}", path.shown()));
    let lines = ids.iter().map(|(id, _)| (id.to_string(), record::taken(&removal)));
    args.of.audit(operator, ("revoke", "the revoke is written"), lines.collect())?;
    for (to, _) in &ids {
        out.note(left(to, after.own_grant(to)));
    }
    for held in &will {
        let still = removal.tools.iter().filter(|(tool, _)| held.tools.contains_key(tool));
        for (tool, _) in still {
            out.warning(has_by_default(&held.id, tool, &host));
        }
    }
    say_status(&ids, &whose, out)?;
    Ok(Exit::Completed)
}

/// An agent's rights under some settings, or the future rights of a missing agent.
struct Held {
    id: Grantee,
    tools: BTreeMap<ToolName, Permission>,
    mounts: Vec<Mount>,
}

impl Held {
    fn of(
        ids: &[(Grantee, Visibility)],
        settings: &Settings,
        whose: &Whose,
        host: &Host,
    ) -> Vec<Self> {
        let mut host = host.clone();
        host.settings = Arc::new(settings.clone());
        let catalog = host.library.catalog();
        let workspace = &whose.places.workspace;
        let given = |(_, word): &(ToolName, Permission)| *word != Permission::Deny;
        let of_entry = |entry: &CatalogEntry| {
            let rights = resolve_entry(&host, entry, workspace).rights;
            let tools = rights.tools().map(|(tool, word)| (tool.clone(), word)).filter(given);
            let (tools, mounts) = (tools.collect(), rights.mounts().to_vec());
            Self { id: (&entry.id).into(), tools, mounts }
        };
        let mut all: Vec<Self> = covered(ids, &catalog).map(of_entry).collect();
        for (to, visibility) in ids {
            if let Grantee::Agent(id) = to
                && catalog.get(id).is_none()
            {
                let grants = settings.grants(id, *visibility, workspace);
                let tools = grants.tools.into_iter().filter(given).collect();
                all.push(Self { id: to.clone(), tools, mounts: grants.mounts });
            }
        }
        all
    }
}

/// The existing agents under these sections.
fn covered<'a>(
    ids: &'a [(Grantee, Visibility)],
    catalog: &'a Catalog,
) -> impl Iterator<Item = &'a CatalogEntry> {
    let is_covered = |entry: &&CatalogEntry| ids.iter().any(|(to, _)| to.covers(&entry.id));
    catalog.agents().iter().filter(is_covered)
}

/// INV-159: a revocation grants nothing. A grant may hold less than the defaults, and without the grant its
/// agent would get these.
fn gives_nothing(was: &Held, will: &Held, host: &Host) -> Result<(), Failure> {
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
    let more = Shown::new(&more.join(", ")).to_string();
    let command = format!("belljar grant {} --tool NAME=deny", id.grant_key());
    Err(Failure::new(format!(
        "nothing is taken back: without it `{id}` would have more, by default: {more}"
    ))
    .hint(format!(
        "to take away a tool: `{}`; to go back to the defaults, edit `belljar.toml`",
        Shown::new(&host.for_its_tenant(&command))
    )))
}

/// The sentence about a tool that an agent has without a grant of its own.
fn has_by_default(id: &Grantee, tool: &ToolName, host: &Host) -> String {
    let command = format!("belljar grant {} --tool {tool}=deny", id.grant_key());
    let command = Shown::new(&host.for_its_tenant(&command)).to_string();
    format!("`{id}` has `{tool}` by default all the same; to take it away: `{command}`")
}

/// The removal that the options name.
fn removal(args: &RevokeArgs) -> Result<GrantRemoval, Failure> {
    let mut removal =
        GrantRemoval { all: args.all || args.library.is_some(), ..GrantRemoval::default() };
    for text in &args.tool {
        let (tool, word) = rights::tool(text)?;
        removal.tools.push((tool, text.contains('=').then_some(word)));
    }
    for text in &args.host {
        removal.hosts.push(text.parse::<HostRule>().map_err(usage)?);
    }
    for text in &args.mount {
        removal.mounts.push(mount(text)?);
    }
    for text in &args.secret {
        removal.secrets.push(SecretName::new(text).map_err(usage)?);
    }
    for text in &args.limit {
        removal.limits.push(limit(text)?);
    }
    Ok(removal)
}

/// `/guest`, `/guest:access` or `/guest:/host:access`.
fn mount(text: &str) -> Result<MountRemoval, Failure> {
    if !text.contains(':') {
        let guest = GuestPath::new(text).map_err(usage)?;
        return Ok(MountRemoval { guest, host: None, access: None });
    }
    // Of `/data:read` alone the directory is not asked for.
    if let Some((guest, word)) = text.split_once(':')
        && let Some(access) = [Access::Read, Access::Overlay, Access::ReadWrite]
            .into_iter()
            .find(|it| it.to_string() == word)
    {
        let guest = GuestPath::new(guest).map_err(usage)?;
        return Ok(MountRemoval { guest, host: None, access: Some(access) });
    }
    let mount = rights::mount(text)?;
    Ok(MountRemoval { guest: mount.guest, host: mount.host, access: Some(mount.access) })
}

/// `key` or `key=N`.
fn limit(text: &str) -> Result<(String, Option<u64>), Failure> {
    let (key, value) = match text.split_once('=') {
        None => (text, None),
        Some((key, number)) => {
            let number = number.replace('_', "").parse().map_err(|_| {
                let shown = Shown::clipped(text, 80);
                Failure::usage(format!("`{shown}`: the value is not a whole number"))
            })?;
            (key, Some(number))
        }
    };
    if LIMITS.iter().any(|row| row.key == key) {
        return Ok((key.to_owned(), value));
    }
    Err(Failure::usage(format!("there is no limit `{}`", Shown::clipped(key, 80)))
        .hint("`belljar limits` lists them"))
}

/// The owners of the grants, each with the visibility that decides the default.
fn ids(args: &RevokeArgs, host: &Host) -> Result<Vec<(Grantee, Visibility)>, Failure> {
    let catalog = host.library.catalog();
    let visibility = |to: &Grantee| match to {
        Grantee::Agent(id) => {
            catalog.get(id).map_or_else(Visibility::default, |entry| entry.definition.visibility)
        }
        Grantee::Library(_) => Visibility::Internal,
    };
    let granted = || host.settings.grantees();
    if let Some(name) = &args.library {
        let scope = Scope::Library(name.clone());
        let of_library = granted().filter(|to| to.is_of(&scope));
        let ids: Vec<_> = of_library.map(|id| (id.clone(), visibility(id))).collect();
        if !ids.is_empty() {
            return Ok(ids);
        }
        let name = Shown::clipped(name, 80);
        return Err(nothing(&format!("an agent of library `{name}`"), host));
    }
    let name = args.agent.as_deref().unwrap_or_default();
    let id: Grantee = name.parse().map_err(usage)?;
    if granted().any(|granted| *granted == id) {
        return Ok(vec![(id.clone(), visibility(&id))]);
    }
    if let Grantee::Library(_) = id {
        return Err(nothing(&format!("`{id}`"), host));
    }
    match catalog.find(name) {
        Ok(found) if Grantee::from(&found.id) != id => Err(nothing(&format!("`{id}`"), host)
            .hint(format!("`{name}` is found as `{}`; name that identity", found.id))),
        Ok(_) => Err(nothing(&format!("`{id}`"), host)),
        Err(unknown) => Err(agents::not_found(unknown.into())),
    }
}

/// There is no grant to take from.
fn nothing(whom: &str, host: &Host) -> Failure {
    let all: Vec<String> =
        host.settings.grantees().take(MAX_NAMED).map(|id| format!("`{id}`")).collect();
    let hint = match all.as_slice() {
        [] => "`belljar.toml` grants nothing to any agent by name".to_owned(),
        names => format!("`belljar.toml` grants something to {}", names.join(", ")),
    };
    Failure::new(format!("nothing is taken back: `belljar.toml` has no grant for {whom}"))
        .hint(Shown::new(&hint).to_string())
}

/// Why nothing is taken back, and what there is.
fn refused(
    why: NotRevoked,
    ids: &[(Grantee, Visibility)],
    removal: &GrantRemoval,
    host: &Host,
) -> Failure {
    let missing = match why {
        NotRevoked::Invalid(mut found) => {
            found.iter_mut().for_each(|found| (found.line, found.column) = (0, 0));
            return Failure::diagnostics("the grant cannot be taken back", found);
        }
        NotRevoked::NotGranted(missing) => missing,
    };
    let names: Vec<String> = ids.iter().map(|(id, _)| format!("`{id}`")).collect();
    let names = Shown::new(&names.join(", ")).to_string();
    let failure = Failure::new(format!(
        "nothing is taken back: the grant of {names} does not give {}",
        missing.join(", ")
    ));
    let Some((id, visibility)) = ids.first() else { return failure };
    let failure = failure.hint(left(id, host.settings.own_grant(id)));
    let by_default = host.settings.home_grant(id, *visibility).tools.unwrap_or_default();
    let default = removal.tools.iter().find(|(tool, _)| {
        by_default.get(tool).is_some_and(|permission| *permission != Permission::Deny)
    });
    match default {
        Some((tool, None)) => failure.hint(has_by_default(id, tool, host)),
        Some((_, Some(_))) | None => failure,
    }
}

/// The rest of a grant, in one line.
fn left(id: &Grantee, grant: Option<&GrantSpec>) -> String {
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
    part("tools", tools.map(|(tool, word)| format!("{tool}{}", suffix(*word))).collect());
    let mounts = grant.mounts.iter().flatten();
    part("mounts", mounts.map(|it| format!("{} ({})", it.guest, it.access)).collect());
    part("hosts", grant.hosts.iter().flatten().map(ToString::to_string).collect());
    part("secrets", grant.secrets.iter().flatten().map(ToString::to_string).collect());
    let limits = LIMITS.iter().filter_map(|row| Some((row.key, grant.limits.get(row.key)?)));
    part("limits", limits.map(|(key, value)| format!("{key}={value}")).collect());
    match parts.as_slice() {
        [] => format!("the grant of `{id}` gives nothing by name any more"),
        parts => Shown::new(&format!("the grant of `{id}` gives {}", parts.join("; "))).to_string(),
    }
}

fn suffix(word: Permission) -> &'static str {
    match word {
        Permission::Allow => "",
        Permission::Ask => "=ask",
        Permission::Deny => "=deny",
    }
}

/// Whether the agents still run, as the file is now.
fn say_status(ids: &[(Grantee, Visibility)], whose: &Whose, out: &Out) -> Result<(), Failure> {
    let host = whose.host(out)?;
    let catalog = host.library.catalog();
    for entry in covered(ids, &catalog) {
        let agent = resolve_entry(&host, entry, &whose.places.workspace);
        if agent.status.is_ready() {
            out.note(format_args!("`{}` is {}", agent.id, agent.status.as_str()));
        } else {
            let reasons = Shown::new(&agent.notes().join("; ")).to_string();
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
            let it = mount(text).unwrap();
            (it.guest.to_string(), it.host.is_some(), it.access)
        };
        assert_eq!(named("/data"), ("/data".to_owned(), false, None));
        assert_eq!(named("/data:read"), ("/data".to_owned(), false, Some(Access::Read)));
        let full = named("/data:/srv:read-write");
        assert_eq!(full, ("/data".to_owned(), true, Some(Access::ReadWrite)));
        assert!(mount("data").is_err() && mount("/data:rw").is_err());
        assert_eq!(limit("steps").unwrap(), ("steps".to_owned(), None));
        assert_eq!(limit("steps=5_0").unwrap(), ("steps".to_owned(), Some(50)));
        assert!(limit("step").is_err() && limit("steps=x").is_err());
    }
}
