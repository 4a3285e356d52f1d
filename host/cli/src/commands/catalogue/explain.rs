//! `belljar explain`: may this agent use that tool there, and which of the four sources says so.

use belljar_agent::{ResolvedAgent, resolve};
use belljar_definition::{GrantChange, HOST_PLACEHOLDER, MountSpec, grant_command, grant_lines};
use belljar_policy::{
    Access, Explanation, GuestPath, Permission, Question, Shown, Source, Target, ToolAsk, ToolName,
    Verdict, Vote, WORKSPACE,
};
use serde_json::{Value, json};

use crate::args::ExplainArgs;
use crate::commands::tools::refused;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::walls::Walls;
use crate::setup::whose::Whose;
use crate::term::out::{Out, Style};
use crate::term::table::{Table, plain, styled};

pub(crate) fn run(
    args: &ExplainArgs,
    places: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    walls.up(places, &args.of.through(places)?)?;
    let whose = Whose::find(&args.of, places)?;
    let host = whose.host(out)?;
    let agent = resolve(&host, &args.agent, &whose.places.workspace)
        .map_err(crate::commands::catalogue::agents::not_found)?;
    let manifest = match host.tools.withholds(&args.tool) {
        Some(_) => ToolAsk::default(),
        None => crate::commands::tools::manifest_of(&host, &args.tool)?,
    };
    // A tool that asks to write is there to write: saying that it may read would mislead.
    let write = args.write || manifest.mounts == Some(Access::ReadWrite);
    let question = question(args, write)?;
    let workspace = &whose.places.workspace;
    let answer = agent.decision(&host, workspace, &args.tool, &question, &manifest);
    let change = match answer.decided_by {
        Some(Source::Grants) if answer.permission == Permission::Deny => {
            missing(&agent, &args.tool, &question)
        }
        _ => None,
    };
    let command = change.as_ref().map(|change| grant_command(&agent.id, change, false));
    let command = command.map(|command| host.for_its_tenant(&command));
    let id = agent.id.to_string();
    let section = host.settings.library_section(&agent.id);
    if args.json {
        let lines = change.as_ref().map(|change| {
            grant_lines(&host.settings, &agent.id, agent.definition.visibility, change)
        });
        let mut told = told(args, &id, &answer, lines.as_deref(), command.as_deref());
        if let (Some(section), Some(told)) = (section, told.as_object_mut()) {
            told.insert("library_section".to_owned(), json!(section));
        }
        out.json(&told)?;
    } else {
        headline(args, &id, answer.permission, out);
        votes(&answer, out);
        if let Some(section) = &section {
            let section = Shown::new(section);
            out.line(format_args!("`{section}` holds for it, as for each agent of its library"));
        }
        advise(answer.decided_by, command.as_deref(), out);
    }
    Ok(match answer.permission {
        Permission::Allow | Permission::Ask => Exit::Completed,
        Permission::Deny => Exit::NotAllowed,
    })
}

/// The answer for programs.
fn told(
    args: &ExplainArgs,
    agent: &str,
    answer: &Explanation,
    lines: Option<&str>,
    command: Option<&str>,
) -> Value {
    let vote = |vote: &Vote| {
        let verdict = vote.verdict.to_string();
        json!({ "source": vote.source, "verdict": verdict, "why": vote.why })
    };
    json!({
        "agent": agent,
        "tool": args.tool,
        "target": args.target,
        "permission": answer.permission,
        "decided_by": answer.decided_by,
        "votes": answer.votes.iter().map(vote).collect::<Vec<_>>(),
        "grant": lines,
        "command": command,
    })
}

/// Who voted how, and which vote decided.
fn votes(answer: &Explanation, out: &Out) {
    let mut table = Table::new(out, &["source", "vote", "why"]);
    for vote in &answer.votes {
        let style = match vote.verdict {
            Verdict::Allows => Style::Green,
            Verdict::Asks => Style::Yellow,
            Verdict::Refuses => Style::Red,
            Verdict::Silent => Style::Dim,
        };
        let decided = answer.decided_by == Some(vote.source);
        let why = if decided { format!("{} (this decided)", vote.why) } else { vote.why.clone() };
        table.row([plain(vote.source), styled(style, vote.verdict), plain(Shown::new(&why))]);
    }
    table.print(out);
}

/// A path as the agent sees it, or a URL; none = the call itself.
fn question(args: &ExplainArgs, write: bool) -> Result<Question, Failure> {
    let Some(target) = &args.target else { return Ok(Question::Call) };
    if target.contains("://") {
        let parsed = Target::parse(target).map_err(|error| {
            Failure::usage(format!("`{}`: {error}", Shown::clipped(target, 200)))
        })?;
        return Ok(Question::Url(parsed));
    }
    let path =
        if target.starts_with('/') { target.clone() } else { format!("{WORKSPACE}/{target}") };
    if path.split('/').any(|part| part == "..") {
        return Err(Failure::usage(format!(
            "`{}` leaves its directory",
            Shown::clipped(target, 200)
        ))
        .hint("name the path without `..`"));
    }
    // Who writes to an overlay is allowed to write.
    let access = if write { Access::Overlay } else { Access::Read };
    Ok(Question::Path(path, access))
}

fn headline(args: &ExplainArgs, agent: &str, permission: Permission, out: &Out) {
    let (style, word) = match permission {
        Permission::Allow => (Style::Green, "allowed"),
        Permission::Ask => (Style::Yellow, "allowed after asking you"),
        Permission::Deny => (Style::Red, "not allowed"),
    };
    let target = args.target.as_ref().map_or(String::new(), |target| {
        let to = if args.write { "writing to" } else { "on" };
        format!(" {to} {}", Shown::clipped(target, 200))
    });
    let tool = Shown::clipped(&args.tool, 80);
    out.line(format_args!(
        "{}: {} calling {tool}{target}",
        out.paint(style, word),
        Shown::new(agent)
    ));
    out.line("");
}

/// The remedy that would allow it, where the grants are what is missing.
pub(crate) fn missing(
    agent: &ResolvedAgent,
    tool: &str,
    question: &Question,
) -> Option<GrantChange> {
    let asked_tools = agent.definition.asked.tools.clone();
    let mut change = GrantChange { asked_tools, ..GrantChange::default() };
    if agent.grants.permission(tool) == Permission::Deny {
        change.tools.push((ToolName::new(tool).ok()?, Permission::Allow));
    }
    match question {
        Question::Call => {}
        Question::Path(path, access) => change.mounts.extend(mount(path, *access)),
        Question::Url(target) => change.hosts.push(refused::rule(target)?),
    }
    (!change.is_empty()).then_some(change)
}

/// The mount that would hold the path: the workspace, or the first directory of the path. Whoever is
/// to write is granted to write there, and not beside.
fn mount(path: &str, access: Access) -> Option<MountSpec> {
    let access = if access == Access::Read { access } else { Access::ReadWrite };
    if GuestPath::workspace().covers(path) {
        return Some(MountSpec { guest: GuestPath::workspace(), host: None, access });
    }
    let first = path.split('/').find(|part| !part.is_empty())?;
    let guest = GuestPath::new(&format!("/{first}")).ok()?;
    Some(MountSpec { guest, host: Some(HOST_PLACEHOLDER.into()), access })
}

/// Advice to the operator about a refusal.
fn advise(decided_by: Option<Source>, command: Option<&str>, out: &Out) {
    let Some(source) = decided_by else { return };
    out.line("");
    match (source, command) {
        (Source::Definition, _) => {
            out.line("the agent's own file decides: it does not ask for this, so nothing else can give it");
        }
        (Source::Manifest, _) => {
            out.line("the tool's own manifest decides: it does not ask for this, whoever calls it");
        }
        (Source::Hook, _) => out.line("a hook decides about single calls"),
        (Source::Host, _) => {
            out.line("belljar itself decides; `belljar tools list` says what is wrong with a tool, and what to do");
        }
        (Source::Parent, _) => out.line("a child never has more than its parent"),
        (Source::Grants, Some(command)) => {
            out.line(format_args!("to allow it: `{}`", Shown::new(command)));
        }
        (Source::Grants, None) => {
            out.line("the grants ask for your word before each call");
        }
    }
}
