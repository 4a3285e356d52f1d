//! `belljar explain`: tells whether an agent may use a tool on a target, and which of the four sources of
//! rights decides that.

use belljar_agent::{Host, RightsAdvice, UnanswerableQuestion};
use belljar_policy::{
    CallPermission, DecisionExplanation, DecisionSource, ShownText, SourceStance, SourceVote,
};
use serde_json::{Value, json};

use crate::args::grants::ExplainArgs;
use crate::commands::catalogue::agents;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::walls::WallRaiser;
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell, styled_cell};

/// Runs the command: resolves the agent's rights, and prints the decision with advice.
pub(crate) fn run(
    args: &ExplainArgs,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    walls.raise_for(places, &args.of.wall_gaps(places)?)?;
    let whose = AgentOwner::look_up(&args.of, places)?;
    let host = whose.build_host(out)?;
    let agent = agents::find_agent(&host, &args.agent, &whose.places.workspace)?;
    let (target, workspace) = (args.target.as_deref(), &whose.places.workspace);
    let advice = agent
        .rights_advice(&host, workspace, &args.tool, target, args.write)
        .map_err(|error| unasked_failure(error, &host, &args.tool))?;
    let RightsAdvice { answer, grant, command, section } = advice;
    let id = agent.id.to_string();
    if args.json {
        let mut told = explanation_json(args, &id, &answer, grant.as_deref(), command.as_deref());
        if let (Some(section), Some(told)) = (section, told.as_object_mut()) {
            told.insert("library_section".to_owned(), json!(section));
        }
        out.print_json(&told)?;
    } else {
        print_headline(args, &id, answer.permission, out);
        print_votes(&answer, out);
        if let Some(section) = &section {
            let section = ShownText::new(section);
            out.print_line(format_args!(
                "`{section}` holds for it, as for each agent of its library"
            ));
        }
        print_advice(args, answer.decided_by, command.as_deref(), out);
    }
    Ok(match answer.permission {
        CallPermission::Allow | CallPermission::Ask => CommandExit::Completed,
        CallPermission::Deny => CommandExit::NotAllowed,
    })
}

/// The decision as a JSON object.
fn explanation_json(
    args: &ExplainArgs,
    agent: &str,
    answer: &DecisionExplanation,
    lines: Option<&str>,
    command: Option<&str>,
) -> Value {
    let vote = |vote: &SourceVote| {
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

/// Prints what each source of rights says, and marks the deciding one.
fn print_votes(answer: &DecisionExplanation, out: &TerminalOutput) {
    let mut table = TextTable::new(out, &["source", "vote", "why"]);
    for vote in &answer.votes {
        let style = match vote.stance {
            SourceStance::Allows => TextStyle::Green,
            SourceStance::Asks => TextStyle::Yellow,
            SourceStance::Refuses => TextStyle::Red,
            SourceStance::Silent => TextStyle::Dim,
        };
        let decided = answer.decided_by == Some(vote.source);
        let why = if decided { format!("{} (this decided)", vote.why) } else { vote.why.clone() };
        table.push_row([
            plain_cell(vote.source),
            styled_cell(style, vote.stance),
            plain_cell(ShownText::new(&why)),
        ]);
    }
    table.print_to(out);
}

/// The failure for a question that has no answer, for example about an unknown tool.
fn unasked_failure(error: UnanswerableQuestion, host: &Host, tool: &str) -> Failure {
    match error {
        UnanswerableQuestion::NoTool => crate::commands::tools::no_tool(host, tool),
        error @ UnanswerableQuestion::Target { .. } => Failure::usage(error.to_string()),
        error @ UnanswerableQuestion::Leaves(_) => {
            Failure::usage(error.to_string()).with_hint("name the path without `..`")
        }
    }
}

/// Prints the decision in one line, for example `not allowed: home/scout calling file_write`.
fn print_headline(
    args: &ExplainArgs,
    agent: &str,
    permission: CallPermission,
    out: &TerminalOutput,
) {
    let (style, word) = match permission {
        CallPermission::Allow => (TextStyle::Green, "allowed"),
        CallPermission::Ask => (TextStyle::Yellow, "allowed after asking you"),
        CallPermission::Deny => (TextStyle::Red, "not allowed"),
    };
    let target = args.target.as_ref().map_or(String::new(), |target| {
        let to = if args.write { "writing to" } else { "on" };
        format!(" {to} {}", ShownText::clip_line(target, 200))
    });
    let tool = ShownText::clip_line(&args.tool, 80);
    out.print_line(format_args!(
        "{}: {} calling {tool}{target}",
        out.paint(style, word),
        ShownText::new(agent)
    ));
    out.print_line("");
}

/// The tools whose target is the name of an agent.
const HAND_WORK: [&str; 2] = ["spawn_agent", "delegate_parallel"];

/// Prints for the operator what would allow a refused use.
fn print_advice(
    args: &ExplainArgs,
    decided_by: Option<DecisionSource>,
    command: Option<&str>,
    out: &TerminalOutput,
) {
    let Some(source) = decided_by else { return };
    out.print_line("");
    match (source, command) {
        (DecisionSource::Definition, _) => {
            out.print_line("the agent's own file decides: it does not ask for this, so nothing else can give it");
        }
        (DecisionSource::Manifest, _) => {
            out.print_line(
                "the tool's own manifest decides: it does not ask for this, whoever calls it",
            );
            if let Some(target) = args.target.as_deref().filter(|target| is_bare_host(target)) {
                let target = ShownText::clip_line(target, 200);
                out.print_line(format_args!(
                    "`{target}` was taken for a path; a host is written with its scheme: `https://{target}`"
                ));
            }
        }
        (DecisionSource::Hook, _) => out.print_line("a hook decides about single calls"),
        (DecisionSource::Host, _)
            if args.target.is_some() && HAND_WORK.contains(&args.tool.as_str()) =>
        {
            let agent = ShownText::clip_line(&args.agent, 200);
            out.print_line(format_args!(
                "belljar itself decides; `belljar agents show {agent}` lists whom it may call"
            ));
        }
        (DecisionSource::Host, _) => {
            out.print_line("belljar itself decides; `belljar tools list` says what is wrong with a tool, and what to do");
        }
        (DecisionSource::Parent, _) => out.print_line("a child never has more than its parent"),
        (DecisionSource::Grants, Some(command)) => {
            out.print_line(format_args!("to allow it: `{}`", ShownText::new(command)));
        }
        (DecisionSource::Grants, None) => {
            out.print_line("the grants ask for your word before each call");
        }
    }
}

/// Returns whether a target looks like a host without its scheme, for example `docs.rs`.
fn is_bare_host(target: &str) -> bool {
    let host = target.split('/').next().unwrap_or_default();
    host.contains('.') && !host.starts_with('.') && !host.ends_with('.')
}
