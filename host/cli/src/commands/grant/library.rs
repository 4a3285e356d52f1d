//! `grant --library`: grants each agent of a library what it requests, in one decision of the person.

use std::collections::BTreeMap;

use belljar_agent::{Host, ResolvedAgent, resolve_entry};
use belljar_definition::{AgentScope, GrantChange, Grantee, LibraryName, Visibility};
use belljar_policy::{ShownPath as _, ShownText};

use super::asked::AgentRequests;
use super::{GrantWriter, record, rights};
use crate::commands::libraries::installed_scope;
use crate::libraries::LibraryLock;
use crate::setup::exit::{CommandExit, Failure};
use crate::term::diff;
use crate::term::out::TerminalOutput;

/// An agent of the library, and what it requests.
struct LibraryMember {
    before: ResolvedAgent,
    asks: AgentRequests,
}

/// Grants each agent of the library its own requests: shows them, asks, and writes.
pub(super) fn run(name: &str, writer: &GrantWriter<'_>) -> Result<CommandExit, Failure> {
    let GrantWriter { args, places, out, .. } = *writer;
    let lock = LibraryLock::read(&places.libraries_directory())?;
    let name = installed_scope(name, &args.of, &lock)?;
    let host = writer.whose.build_host(out)?;
    let members = list_members(&AgentScope::Library(name.to_string()), &host, writer);
    let changes: Vec<_> = members.iter().filter_map(LibraryMember::member_change).collect();
    let Some(edit) = writer.changed_text(&changes)? else {
        return report_unchanged(name.as_str(), &members, &host, out);
    };
    let after = writer.host_with_text(&host, places, &edit.new)?;
    let after = self::list_members(&AgentScope::Library(name.to_string()), &after, writer);
    print_decision(name.as_str(), &members, &after, out);
    let question = format!("write this for {}?", count_agents(changes.len()));
    if !writer.ask_agreement(&question)? {
        return Ok(CommandExit::Cancelled);
    }
    writer.write_edit(edit, &changes)?;
    let ready = after.iter().filter(|member| member.before.status.is_ready()).count();
    let of = count_agents(after.len());
    out.note(format_args!("of {of} in library `{name}`, {ready} are ready"));
    if args.read_only && ready < after.len() {
        out.note("`--partial` runs the others with what they are given");
    }
    Ok(CommandExit::Completed)
}

/// `grant 'library/NAME/*'`: grants all agents of a library the same rights, in one section.
pub(super) fn grant_whole_library(
    name: &LibraryName,
    writer: &GrantWriter<'_>,
) -> Result<CommandExit, Failure> {
    let GrantWriter { args, places, out, .. } = *writer;
    if args.asked {
        return Err(Failure::usage("what is asked for differs from agent to agent").with_hint(
            format!(
                "`{}` gives each what it asks for",
                args.of.format_command(&format!("belljar grant --library {name}"))
            ),
        ));
    }
    let mut change = rights::parse_change(args)?;
    if change.is_empty() {
        return Err(Failure::usage("nothing to grant")
            .with_hint("name a right: `--tool`, `--host`, `--mount`, `--secret` or `--limit`"));
    }
    record::check_mounts(writer.whose, &change)?;
    let there = installed_scope(
        name.as_str(),
        &args.of,
        &LibraryLock::read(&places.libraries_directory())?,
    );
    if let (Err(unknown), false) = (there, args.absent) {
        return Err(unknown.with_hint("`--absent` grants it to a library that is not there yet"));
    }
    let host = writer.whose.build_host(out)?;
    super::check_names(&change, &host)?;
    // The defaults of the agents may differ, so they are not written into the common section.
    change.alone = true;
    let scope = AgentScope::Library(name.to_string());
    let members = list_members(&scope, &host, writer);
    members.iter().for_each(|member| super::keep_overlay_tools(&member.before, &mut change));
    let to = Grantee::Library(name.clone());
    // Internal agents lack some defaults of the others, so the change is computed as for an internal agent.
    let changes = [(to.clone(), Visibility::Internal, change)];
    let Some(edit) = writer.changed_text(&changes)? else {
        out.print_line(format_args!("nothing to change: `{to}` has all of that"));
        return Ok(CommandExit::Completed);
    };
    diff::print_diff(&places.config_path().to_shown().to_string(), &edit.old, &edit.new, out);
    let of_it = host.settings.grantees().filter(|other| **other != to && other.is_of(&scope));
    let own: Vec<String> = of_it.map(|other| format!("`{other}`")).collect();
    if !own.is_empty() {
        out.note(format_args!("what these sections state wins over it: {}", own.join(", ")));
    }
    out.note("it holds for agents that an update brings, too");
    if !writer.ask_agreement(&format!("write this for {}?", count_agents(members.len())))? {
        return Ok(CommandExit::Cancelled);
    }
    let new = writer.write_edit(edit, &changes)?;
    let after = writer.host_after(&host, places, &new, &changes[0].2)?;
    let after = self::list_members(&scope, &after, writer);
    let ready = after.iter().filter(|member| member.before.status.is_ready()).count();
    out.note(format_args!(
        "of {} in library `{name}`, {ready} are ready",
        count_agents(after.len())
    ));
    Ok(CommandExit::Completed)
}

/// The library's agents in the catalogue's order; an error if the files differ from those that a person
/// agreed to.
fn list_members(library: &AgentScope, host: &Host, writer: &GrantWriter<'_>) -> Vec<LibraryMember> {
    let catalog = host.library.catalog();
    let entries = catalog.agents().iter().filter(|entry| entry.id.scope == *library);
    let member = |entry| {
        let before = resolve_entry(host, entry, &writer.places.workspace);
        let read_only = writer.args.read_only;
        let asks = AgentRequests::for_agent(&before, host, read_only, &GrantChange::default());
        LibraryMember { before, asks }
    };
    entries.map(member).collect()
}

impl LibraryMember {
    /// The change that grants this agent its requests; `None` = it requests nothing more.
    fn member_change(&self) -> Option<(Grantee, Visibility, GrantChange)> {
        let definition = &self.before.definition;
        let asked_tools = definition.asked.tools.clone();
        let mut change = GrantChange { asked_tools, ..GrantChange::default() };
        self.asks.add_to(&mut change);
        (!change.is_empty()).then(|| ((&self.before.id).into(), definition.visibility, change))
    }
}

/// The report that nothing changes: all agents can run, or no grant helps the blocked ones.
fn report_unchanged(
    name: &str,
    members: &[LibraryMember],
    host: &Host,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let blocked = blocked_lines(members);
    if blocked.is_empty() {
        out.print_line(format_args!(
            "nothing to change: {} in library `{name}`, none of them blocked",
            count_agents(members.len())
        ));
        return Ok(CommandExit::Completed);
    }
    blocked.iter().for_each(|line| out.print_line(line));
    Err(Failure::new(format!("no grant is written for library `{name}`"))
        .with_exit(CommandExit::NotAllowed)
        .with_hint(format!(
            "`{}` says what one of them is missing",
            host.for_its_tenant(&format!("belljar agents show library/{name}/NAME"))
        )))
}

/// Prints the decision: how many agents can run before and after, and all new rights.
fn print_decision(
    name: &str,
    before: &[LibraryMember],
    after: &[LibraryMember],
    out: &TerminalOutput,
) {
    let ready =
        |all: &[LibraryMember]| all.iter().filter(|member| member.before.status.is_ready()).count();
    out.print_line(format_args!(
        "library `{name}`: {}; ready: {}, and {} with this",
        count_agents(before.len()),
        ready(before),
        ready(after)
    ));
    print_ability_counts(
        "this lets",
        before.iter().map(|member| member.asks.granted_abilities()),
        out,
    );
    print_ability_counts(
        "`--read-only` leaves",
        before.iter().map(|member| member.asks.left_out.clone()),
        out,
    );
    let blocked = blocked_lines(after);
    if !blocked.is_empty() {
        out.print_line(format_args!("blocked all the same: {}", count_agents(blocked.len())));
        blocked.iter().for_each(|line| out.print_line(line));
    }
}

/// Prints each ability, with the number of agents that would have it.
fn print_ability_counts(
    verb: &str,
    deeds: impl Iterator<Item = Vec<String>>,
    out: &TerminalOutput,
) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    deeds.flatten().for_each(|deed| *counts.entry(deed).or_default() += 1);
    let unable = if verb == "this lets" { "" } else { "unable to " };
    for (deed, count) in counts {
        out.print_line(format_args!("  {verb} {} {unable}{deed}", count_agents(count)));
    }
}

/// A line for each blocked agent, with the reason.
fn blocked_lines(members: &[LibraryMember]) -> Vec<String> {
    let blocked = members.iter().filter(|member| !member.before.status.is_ready());
    let line = |member: &LibraryMember| {
        let reasons = member.before.run_warnings().join("; ");
        format!("  {}: {}", member.before.id.slug, ShownText::new(&reasons))
    };
    blocked.map(line).collect()
}

fn count_agents(count: usize) -> String {
    if count == 1 { "1 agent".to_owned() } else { format!("{count} agents") }
}
