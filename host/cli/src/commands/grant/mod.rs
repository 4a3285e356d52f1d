//! `belljar grant` and `revoke`: write rights into the operator's own `belljar.toml`, and remove them, after
//! showing the changes.

mod asked;
mod library;
mod record;
pub(super) mod revoke;
mod rights;
mod write;

use std::path::Path;
use std::sync::Arc;

use belljar_agent::{Host, ResolvedAgent, resolve_direct, resolve_entry};
use belljar_definition::{
    AgentId, AgentScope, CatalogEntry, DEFAULTS, GrantChange, Grantee, MountSpec, Settings,
    Visibility, apply_grants,
};
use belljar_policy::ShownPath as _;
use belljar_policy::{CallPermission, GuestPath, MountAccess, ShownText, ToolName};
use belljar_server::MCP_IDENTITY;

use self::asked::AgentRequests;
use self::rights::usage_failure;
use crate::args::grants::GrantArgs;
use crate::commands::catalogue::agents;
use crate::setup::agreed::ask_agreement;
use crate::setup::config_lock::ConfigLock;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, read_own_config, read_workspace_config};
use crate::setup::whose::AgentOwner;
use crate::term::diff;
use crate::term::out::TerminalOutput;

/// Runs the command: finds the agent or library, and writes the grant after asking the person.
pub(super) fn run(
    args: &GrantArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    if args.read_only && !args.asked && args.library.is_none() {
        return Err(Failure::usage("`--read-only` says how much of what is asked for is granted")
            .with_hint("add `--asked`, or name the mount: `--mount /workspace:read`"));
    }
    let operator = places;
    args.of.move_old_files(operator)?;
    let whose = AgentOwner::look_up(&args.of, operator)?;
    let writer = GrantWriter { args, operator, whose: &whose, places: &whose.places, out };
    match (&args.library, &args.agent) {
        (Some(name), _) => library::run(name, &writer),
        (None, Some(name)) => match name.parse().map_err(usage_failure)? {
            Grantee::Library(name) => library::grant_whole_library(&name, &writer),
            Grantee::Agent(id) => grant_to_agent(name, &id, &writer),
        },
        (None, None) => Err(Failure::usage("whom to grant it is not said")
            .with_hint("name an agent, or a library with `--library NAME`")),
    }
}

/// Grants rights to one agent: shows what changes, asks, and writes.
fn grant_to_agent(
    name: &str,
    id: &AgentId,
    writer: &GrantWriter<'_>,
) -> Result<CommandExit, Failure> {
    let GrantWriter { args, out, .. } = *writer;
    let mut change = rights::parse_change(args)?;
    if change.is_empty() && !args.asked {
        return Err(Failure::usage("nothing to grant").with_hint(
            "`--asked` grants what the agent asks for; or name a right: `--tool`, `--host`, \
             `--mount`, `--secret` or `--limit`",
        ));
    }
    record::check_mounts(writer.whose, &change)?;
    let places = &writer.seen_by(id);
    let host = writer.whose.host_in(places, out)?;
    check_names(&change, &host)?;
    let (visibility, before) = find_grantee(name, id, &host, writer)?;
    warn_of_no_effect(id, &change, &host, out);
    match &before {
        Some(agent) => change.asked_tools.clone_from(&agent.definition.asked.tools),
        None => change.alone = host.teams.catalog().get(id).is_none(),
    }
    if let Some(agent) = &before {
        keep_overlay_tools(agent, &mut change);
    }
    let asks = before.as_ref().filter(|_| args.asked);
    let asks = asks.map(|agent| AgentRequests::for_agent(agent, &host, args.read_only, &change));
    if let Some(asks) = &asks {
        asks.add_to(&mut change);
    }
    let changes = [(id.into(), visibility, change)];
    let Some(edit) = writer.changed_text(&changes)? else {
        return report_unchanged(id, before.as_ref(), asks.as_ref(), out);
    };
    if let Some(asks) = &asks {
        asks.print_requests(id, out);
    }
    diff::print_diff(
        &writer.places.config_path().to_shown().to_string(),
        &edit.old,
        &edit.new,
        out,
    );
    if !writer.ask_agreement("write this?")? {
        return Ok(CommandExit::Cancelled);
    }
    let new = writer.write_edit(edit, &changes)?;
    if let Some(entry) = host.library.catalog().get(id) {
        let after = writer.host_after(&host, places, &new, &changes[0].2)?;
        say_status(&resolve_entry(&after, entry, &places.workspace), &host, args.asked, out);
    }
    Ok(CommandExit::Completed)
}

/// The arguments and paths that all grants of one command share.
#[derive(Clone, Copy)]
struct GrantWriter<'a> {
    args: &'a GrantArgs,
    /// The operator's own paths, with the audit log.
    operator: &'a HomePaths,
    /// The owner of the agents: the operator or a tenant.
    whose: &'a AgentOwner,
    /// The paths of the owner, whose `belljar.toml` is written.
    places: &'a HomePaths,
    out: &'a TerminalOutput,
}

impl GrantWriter<'_> {
    /// The owner's paths, with the workspace of this agent: an agent of a workspace has the workspace in its
    /// id, in whichever directory the command is typed.
    fn seen_by(&self, id: &AgentId) -> HomePaths {
        let mut places = self.places.clone();
        if let AgentScope::Workspace(path) = &id.scope
            && let Ok(path) = path.canonicalize()
            && path.is_dir()
        {
            places.workspace = path;
        }
        places
    }

    /// The text of `belljar.toml` with these changes; `None` = nothing changes.
    fn changed_text(
        &self,
        changes: &[(Grantee, Visibility, GrantChange)],
    ) -> Result<Option<ConfigEdit>, Failure> {
        let path = self.places.config_path();
        let lock = lock_unless_asked(self.args.yes, &path)?;
        let old = read_own_config(&path)?.unwrap_or_default();
        let tools = changes.iter().flat_map(|(_, _, change)| &change.tools);
        let pinned = write::pin_components(&old, tools, self.places)?;
        let user_home = self.places.user_home.as_deref();
        let new = apply_grants(&path, &pinned, user_home, changes).map_err(|mut diagnostics| {
            // The positions refer to the new text, which the person has not seen, so they are removed.
            diagnostics.iter_mut().for_each(|found| (found.line, found.column) = (0, 0));
            Failure::from_diagnostics("the grant cannot be added", diagnostics)
        })?;
        Ok((new != old).then_some(ConfigEdit { old, new, lock }))
    }

    fn ask_agreement(&self, question: &str) -> Result<bool, Failure> {
        ask_agreement(question, self.args.yes, "written", self.out)
    }

    /// Writes the new text and a line of the audit log; returns the text.
    fn write_edit(
        &self,
        edit: ConfigEdit,
        changes: &[(Grantee, Visibility, GrantChange)],
    ) -> Result<String, Failure> {
        let path = self.places.config_path();
        let ConfigEdit { old, new, lock } = edit;
        replace_text(lock, &path, &old, &new)?;
        self.out.note(format_args!("wrote {}", path.to_shown()));
        record::say_what_waits(&self.args.of, self.operator, self.whose, (&old, &new), self.out);
        let lines =
            changes.iter().map(|(id, _, change)| (id.to_string(), record::addition_detail(change)));
        let what = ("grant", "the grant is written");
        self.args.of.audit_action(self.operator, what, lines.collect())?;
        Ok(new)
    }

    /// The host with the settings that were just written, whose grants pin the components of the tools.
    fn host_after(
        &self,
        host: &Host,
        places: &HomePaths,
        new: &str,
        change: &GrantChange,
    ) -> Result<Host, Failure> {
        match change
            .tools
            .iter()
            .any(|(tool, _)| host.tools.withheld_reason(tool.as_str()).is_some())
        {
            true => self.whose.host_in(places, self.out),
            false => self.host_with_text(host, places, new),
        }
    }

    /// A copy of the host with the settings in `new`.
    fn host_with_text(&self, host: &Host, places: &HomePaths, new: &str) -> Result<Host, Failure> {
        let (home, workspace) = (places.config_path(), places.workspace_config());
        let workspace_text = read_workspace_config(places)?;
        let workspace = workspace_text.as_deref().map(|text| (workspace.as_path(), text));
        let user_home = self.places.user_home.as_deref();
        let settings = Settings::parse(Some((&home, new)), workspace, user_home)
            .map_err(|found| Failure::from_diagnostics("", found))?;
        let mut after = host.clone();
        after.settings = Arc::new(settings);
        Ok(after)
    }
}

/// A change of a `belljar.toml`: the old text and the new one.
struct ConfigEdit {
    old: String,
    new: String,
    /// The lock, held since the old text was read; `None` = a person is asked first.
    lock: Option<ConfigLock>,
}

/// Locks a `belljar.toml`, if no person is asked before the write. With a question there is no lock, because
/// nobody should wait for a person; a change by somebody else in that time is an error.
fn lock_unless_asked(yes: bool, path: &Path) -> Result<Option<ConfigLock>, Failure> {
    yes.then(|| ConfigLock::lock_file(path)).transpose()
}

/// Replaces exactly the text that the person was shown.
fn replace_text(
    lock: Option<ConfigLock>,
    path: &Path,
    shown: &str,
    new: &str,
) -> Result<(), Failure> {
    lock.map_or_else(|| ConfigLock::lock_file(path), Ok)?.replace_text(shown, new)
}

/// Grants the tools that the agent has only because its mount is an overlay: with a writable mount it would
/// lose them.
fn keep_overlay_tools(agent: &ResolvedAgent, change: &mut GrantChange) {
    let writes = |mount: &MountSpec| mount.access == MountAccess::ReadWrite;
    if !change.mounts.iter().any(writes) {
        return;
    }
    for name in DEFAULTS.iter().flat_map(|row| row.overlay_tools) {
        let given = change.tools.iter().any(|(tool, _)| tool.as_str() == *name);
        if let (false, Ok(permit)) = (given, agent.rights.tool(name)) {
            change.tools.push((permit.tool().clone(), agent.rights.tool_permission(name)));
        }
    }
}

/// Finds the agent that gets the rights. A name without a prefix means the home's agent, so that an agent of
/// the same name in a repository gets nothing by accident. A missing agent can be granted rights only with
/// `--absent`.
fn find_grantee(
    name: &str,
    id: &AgentId,
    host: &Host,
    writer: &GrantWriter<'_>,
) -> Result<(Visibility, Option<ResolvedAgent>), Failure> {
    let catalog = host.library.catalog();
    if let Some(entry) = catalog.get(id) {
        let workspace = &writer.seen_by(id).workspace;
        return Ok((entry.definition.visibility, Some(resolve_entry(host, entry, workspace))));
    }
    let is_team = host.teams.catalog().get(id).is_some();
    if agents::is_of_clients(&id.to_string()) && !is_team && !writer.args.absent {
        let of_clients = resolve_direct(host, MCP_IDENTITY, &writer.seen_by(id).workspace);
        return Ok((Visibility::default(), Some(of_clients.map_err(agents::not_found)?)));
    }
    match catalog.find_by_name(name) {
        Ok(other) => Err(Failure::usage(format!("there is no agent `{id}`"))
            .with_hint(format!("`{name}` is found as `{}`; grant to that identity", other.id))),
        // A team may be granted rights: the maximum for each of its agents.
        Err(_) if is_team => Ok((Visibility::default(), None)),
        Err(_) if writer.args.absent => {
            writer.out.print_warning(format_args!("there is no agent `{id}` yet"));
            Ok((Visibility::default(), None))
        }
        Err(unknown) => {
            let failure = agents::not_found(unknown.into());
            Err(match writer.args.asked {
                true => failure,
                false => {
                    failure.with_hint("`--absent` grants it to an agent that is not there yet")
                }
            })
        }
    }
}

/// The report that nothing changes: everything is granted already, or no grant helps.
fn report_unchanged(
    id: &AgentId,
    agent: Option<&ResolvedAgent>,
    asks: Option<&AgentRequests>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let (Some(agent), Some(asks)) = (agent, asks) else {
        out.print_line(format_args!("nothing to change: `{id}` has all of that"));
        return Ok(CommandExit::Completed);
    };
    if agent.status.is_ready() {
        out.print_line(format_args!("nothing to change: `{id}` is {}", agent.status.as_str()));
        return Ok(CommandExit::Completed);
    }
    let reasons = ShownText::new(&agent.run_warnings().join("; ")).to_string();
    let failure = Failure::new(format!("nothing is granted, and `{id}` stays blocked: {reasons}"));
    Err(asks
        .grant_hints()
        .into_iter()
        .fold(failure.with_exit(CommandExit::NotAllowed), Failure::with_hint))
}

/// Prints whether the agent can run after the grant, and what its new tools still need.
fn say_status(agent: &ResolvedAgent, host: &Host, asked: bool, out: &TerminalOutput) {
    let id = &agent.id;
    if agent.status.is_ready() {
        out.note(format_args!("`{id}` is {}", agent.status.as_str()));
    } else {
        let reasons = ShownText::new(&agent.run_warnings().join("; ")).to_string();
        out.print_warning(format_args!("`{id}` is still blocked: {reasons}"));
        // A tenant's agents run in the server only, which does not run blocked ones.
        if asked && agent.may_be_partial() && host.tenant.is_none() {
            let name = id.grant_key();
            out.note(format_args!(
                "`belljar run --agent {name} --partial` runs it with what it is given"
            ));
        }
    }
    let tools =
        agent.rights.offered_tools().map(|(tool, _)| tool).filter(|tool| writes_files(host, tool));
    let tools: Vec<String> = tools.map(|tool| format!("`{tool}`")).collect();
    let nowhere = agent.rights.mounts().iter().all(|mount| mount.access == MountAccess::Read);
    let asked = &agent.definition.asked;
    if !tools.is_empty()
        && nowhere
        && asked.mounts.is_none()
        && asked.writes.left_of(MountAccess::ReadWrite, &GuestPath::workspace())
            == MountAccess::ReadWrite
    {
        let command = format!("belljar grant {} --mount /workspace:read-write", id.grant_key());
        out.note(format_args!(
            "nothing that it sees may be written yet, by {}; for the workspace: `{}`",
            tools.join(", "),
            host.for_its_tenant(&command)
        ));
    }
}

/// Returns whether a tool's manifest says that the tool changes files.
fn writes_files(host: &Host, tool: &ToolName) -> bool {
    let owner = host.tools.find_component(tool.as_str());
    owner.is_some_and(|component| component.manifest.ask.mounts == Some(MountAccess::ReadWrite))
}

/// Refuses names in a grant that do not exist, because a misspelt name would grant nothing.
fn check_names(change: &GrantChange, host: &Host) -> Result<(), Failure> {
    let known = host.tools.known_tools();
    if let Some((tool, _)) = change.tools.iter().find(|(tool, _)| !known.contains(tool.as_str())) {
        return Err(super::tools::no_tool(host, tool.as_str()));
    }
    if let Some(secret) =
        change.secrets.iter().find(|secret| !host.settings.secrets.contains_key(*secret))
    {
        return Err(Failure::usage(format!("there is no secret `{secret}`"))
            .with_hint(format!("set it up under `[secrets.{secret}]` first")));
    }
    Ok(())
}

/// Warns about rights that have no effect for this agent, although they are written.
fn warn_of_no_effect(id: &AgentId, change: &GrantChange, host: &Host, out: &TerminalOutput) {
    let catalog = host.library.catalog();
    let entry: Option<&CatalogEntry> = catalog.get(id);
    let listed = entry.and_then(|entry| entry.definition.asked.tools.as_ref());
    for (tool, permission) in &change.tools {
        if *permission != CallPermission::Deny
            && listed.is_some_and(|listed| !listed.contains(tool))
        {
            // A library's file that was changed is not loaded, so it does not count.
            let own = entry.filter(|entry| !matches!(entry.id.scope, AgentScope::Library(_)));
            let way = own.map_or(String::new(), |entry| {
                format!("; add it to `tools` in `{}`", entry.definition.path.to_shown())
            });
            out.print_warning(format_args!(
                "`{id}` does not get `{tool}`: the agent's own list of tools leaves it out{way}"
            ));
        }
    }
    for mount in &change.mounts {
        if let Some(directory) = mount.host.as_ref().filter(|directory| !directory.is_dir()) {
            out.print_warning(format_args!(
                "there is no directory `{}`; the agent does not start without it",
                directory.to_shown()
            ));
        }
    }
}
