//! `belljar explain`: may this agent use that tool on a target, and which of the four sources decides.

use belljar_agent::{Advice, Host, Unasked};
use belljar_policy::{Explanation, Permission, Shown, Source, Stance, Vote};
use serde_json::{Value, json};

use crate::args::grants::ExplainArgs;
use crate::commands::catalogue::agents;
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
    let agent = agents::found(&host, &args.agent, &whose.places.workspace)?;
    let (target, workspace) = (args.target.as_deref(), &whose.places.workspace);
    let advice = agent
        .advice(&host, workspace, &args.tool, target, args.write)
        .map_err(|error| unasked(error, &host, &args.tool))?;
    let Advice { answer, grant, command, section } = advice;
    let id = agent.id.to_string();
    if args.json {
        let mut told = told(args, &id, &answer, grant.as_deref(), command.as_deref());
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
        advise(args, answer.decided_by, command.as_deref(), out);
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
        let verdict = vote.stance.to_string();
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

/// The vote of each source, and the deciding one.
fn votes(answer: &Explanation, out: &Out) {
    let mut table = Table::new(out, &["source", "vote", "why"]);
    for vote in &answer.votes {
        let style = match vote.stance {
            Stance::Allows => Style::Green,
            Stance::Asks => Style::Yellow,
            Stance::Refuses => Style::Red,
            Stance::Silent => Style::Dim,
        };
        let decided = answer.decided_by == Some(vote.source);
        let why = if decided { format!("{} (this decided)", vote.why) } else { vote.why.clone() };
        table.row([plain(vote.source), styled(style, vote.stance), plain(Shown::new(&why))]);
    }
    table.print(out);
}

/// The failure for a question without an answer.
fn unasked(error: Unasked, host: &Host, tool: &str) -> Failure {
    match error {
        Unasked::NoTool => crate::commands::tools::no_tool(host, tool),
        error @ Unasked::Target { .. } => Failure::usage(error.to_string()),
        error @ Unasked::Leaves(_) => {
            Failure::usage(error.to_string()).hint("name the path without `..`")
        }
    }
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

/// The tools whose target is an agent.
const HAND_WORK: [&str; 2] = ["spawn_agent", "delegate_parallel"];

/// Advice to the operator about a refusal.
fn advise(args: &ExplainArgs, decided_by: Option<Source>, command: Option<&str>, out: &Out) {
    let Some(source) = decided_by else { return };
    out.line("");
    match (source, command) {
        (Source::Definition, _) => {
            out.line("the agent's own file decides: it does not ask for this, so nothing else can give it");
        }
        (Source::Manifest, _) => {
            out.line("the tool's own manifest decides: it does not ask for this, whoever calls it");
            if let Some(target) = args.target.as_deref().filter(|target| is_bare_host(target)) {
                let target = Shown::clipped(target, 200);
                out.line(format_args!(
                    "`{target}` was taken for a path; a host is written with its scheme: `https://{target}`"
                ));
            }
        }
        (Source::Hook, _) => out.line("a hook decides about single calls"),
        (Source::Host, _) if args.target.is_some() && HAND_WORK.contains(&args.tool.as_str()) => {
            let agent = Shown::clipped(&args.agent, 200);
            out.line(format_args!(
                "belljar itself decides; `belljar agents show {agent}` lists whom it may call"
            ));
        }
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

/// Whether a target looks like a host whose scheme was left out, such as `docs.rs`.
fn is_bare_host(target: &str) -> bool {
    let host = target.split('/').next().unwrap_or_default();
    host.contains('.') && !host.starts_with('.') && !host.ends_with('.')
}
