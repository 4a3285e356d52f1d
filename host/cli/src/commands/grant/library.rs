//! `grant --library`: grants each agent of a library its requests, in one decision.

use std::collections::BTreeMap;

use belljar_agent::{Host, ResolvedAgent, resolve_entry};
use belljar_definition::{GrantChange, Grantee, Scope, Slug, Visibility};
use belljar_policy::{Shown, ShownPath as _};

use super::asked::Asks;
use super::{Writer, record, rights};
use crate::commands::libraries::installed;
use crate::libraries::Lock;
use crate::setup::exit::{Exit, Failure};
use crate::term::diff;
use crate::term::out::Out;

/// One agent of the library, with its requests.
struct Member {
    before: ResolvedAgent,
    asks: Asks,
}

pub(super) fn run(name: &str, writer: &Writer<'_>) -> Result<Exit, Failure> {
    let Writer { args, places, out, .. } = *writer;
    let name = installed(name, &args.of, &Lock::read(&places.libraries())?)?;
    let host = writer.whose.host(out)?;
    let members = members(&Scope::Library(name.to_string()), &host, writer);
    let changes: Vec<_> = members.iter().filter_map(Member::change).collect();
    let Some(edit) = writer.changed(&changes)? else {
        return unchanged(name.as_str(), &members, &host, out);
    };
    let after = writer.after(&host, places, &edit.new)?;
    let after = self::members(&Scope::Library(name.to_string()), &after, writer);
    show(name.as_str(), &members, &after, out);
    let question = format!("write this for {}?", agents(changes.len()));
    if !writer.agreed(&question)? {
        return Ok(Exit::Cancelled);
    }
    writer.write(edit, &changes)?;
    let ready = after.iter().filter(|member| member.before.status.is_ready()).count();
    let of = agents(after.len());
    out.note(format_args!("of {of} in library `{name}`, {ready} are ready"));
    if args.read_only && ready < after.len() {
        out.note("`--partial` runs the others with what they are given");
    }
    Ok(Exit::Completed)
}

/// `grant 'library/NAME/*'`: the same rights to all agents of a library, by one section.
pub(super) fn whole(name: &Slug, writer: &Writer<'_>) -> Result<Exit, Failure> {
    let Writer { args, places, out, .. } = *writer;
    if args.asked {
        return Err(Failure::usage("what is asked for differs from agent to agent").hint(format!(
            "`{}` gives each what it asks for",
            args.of.command(&format!("belljar grant --library {name}"))
        )));
    }
    let mut change = rights::change(args)?;
    if change.is_empty() {
        return Err(Failure::usage("nothing to grant")
            .hint("name a right: `--tool`, `--host`, `--mount`, `--secret` or `--limit`"));
    }
    record::check(writer.whose, &change)?;
    let there = installed(name.as_str(), &args.of, &Lock::read(&places.libraries())?);
    if let (Err(unknown), false) = (there, args.absent) {
        return Err(unknown.hint("`--absent` grants it to a library that is not there yet"));
    }
    let host = writer.whose.host(out)?;
    super::check_names(&change, &host)?;
    // Defaults may differ between the agents, so they are not written down for all.
    change.alone = true;
    let scope = Scope::Library(name.to_string());
    let members = members(&scope, &host, writer);
    members.iter().for_each(|member| super::keep_overlay_tools(&member.before, &mut change));
    let to = Grantee::Library(name.clone());
    // A default of some agents may be missing for others, for internal ones.
    let changes = [(to.clone(), Visibility::Internal, change)];
    let Some(edit) = writer.changed(&changes)? else {
        out.line(format_args!("nothing to change: `{to}` has all of that"));
        return Ok(Exit::Completed);
    };
    diff::show(&places.config().shown().to_string(), &edit.old, &edit.new, out);
    let of_it = host.settings.grantees().filter(|other| **other != to && other.is_of(&scope));
    let own: Vec<String> = of_it.map(|other| format!("`{other}`")).collect();
    if !own.is_empty() {
        out.note(format_args!("what these sections state wins over it: {}", own.join(", ")));
    }
    out.note("it holds for agents that an update brings, too");
    if !writer.agreed(&format!("write this for {}?", agents(members.len())))? {
        return Ok(Exit::Cancelled);
    }
    let new = writer.write(edit, &changes)?;
    let after = writer.host_after(&host, places, &new, &changes[0].2)?;
    let after = self::members(&scope, &after, writer);
    let ready = after.iter().filter(|member| member.before.status.is_ready()).count();
    out.note(format_args!("of {} in library `{name}`, {ready} are ready", agents(after.len())));
    Ok(Exit::Completed)
}

/// The library's agents in the catalogue's order, if their files are the agreed ones.
fn members(library: &Scope, host: &Host, writer: &Writer<'_>) -> Vec<Member> {
    let catalog = host.library.catalog();
    let entries = catalog.agents().iter().filter(|entry| entry.id.scope == *library);
    let member = |entry| {
        let before = resolve_entry(host, entry, &writer.places.workspace);
        let read_only = writer.args.read_only;
        let asks = Asks::of(&before, host, read_only, &GrantChange::default());
        Member { before, asks }
    };
    entries.map(member).collect()
}

impl Member {
    fn change(&self) -> Option<(Grantee, Visibility, GrantChange)> {
        let definition = &self.before.definition;
        let asked_tools = definition.asked.tools.clone();
        let mut change = GrantChange { asked_tools, ..GrantChange::default() };
        self.asks.add_to(&mut change);
        (!change.is_empty()).then(|| ((&self.before.id).into(), definition.visibility, change))
    }
}

fn unchanged(name: &str, members: &[Member], host: &Host, out: &Out) -> Result<Exit, Failure> {
    let blocked = blocked(members);
    if blocked.is_empty() {
        out.line(format_args!(
            "nothing to change: {} in library `{name}`, none of them blocked",
            agents(members.len())
        ));
        return Ok(Exit::Completed);
    }
    blocked.iter().for_each(|line| out.line(line));
    Err(Failure::new(format!("no grant is written for library `{name}`"))
        .exit(Exit::NotAllowed)
        .hint(format!(
            "`{}` says what one of them is missing",
            host.for_its_tenant(&format!("belljar agents show library/{name}/NAME"))
        )))
}

/// The decision: the number of ready agents before and after, and all new rights.
fn show(name: &str, before: &[Member], after: &[Member], out: &Out) {
    let ready =
        |all: &[Member]| all.iter().filter(|member| member.before.status.is_ready()).count();
    out.line(format_args!(
        "library `{name}`: {}; ready: {}, and {} with this",
        agents(before.len()),
        ready(before),
        ready(after)
    ));
    union("this lets", before.iter().map(|member| member.asks.deeds()), out);
    union("`--read-only` leaves", before.iter().map(|member| member.asks.left_out.clone()), out);
    let blocked = blocked(after);
    if !blocked.is_empty() {
        out.line(format_args!("blocked all the same: {}", agents(blocked.len())));
        blocked.iter().for_each(|line| out.line(line));
    }
}

/// Each deed with how many agents it is of.
fn union(verb: &str, deeds: impl Iterator<Item = Vec<String>>, out: &Out) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    deeds.flatten().for_each(|deed| *counts.entry(deed).or_default() += 1);
    let unable = if verb == "this lets" { "" } else { "unable to " };
    for (deed, count) in counts {
        out.line(format_args!("  {verb} {} {unable}{deed}", agents(count)));
    }
}

/// A line for each blocked agent.
fn blocked(members: &[Member]) -> Vec<String> {
    let blocked = members.iter().filter(|member| !member.before.status.is_ready());
    let line = |member: &Member| {
        let reasons = member.before.notes().join("; ");
        format!("  {}: {}", member.before.id.slug, Shown::new(&reasons))
    };
    blocked.map(line).collect()
}

fn agents(count: usize) -> String {
    if count == 1 { "1 agent".to_owned() } else { format!("{count} agents") }
}
