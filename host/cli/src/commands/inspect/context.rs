//! `belljar context`: what the first request of a task costs, part by part, and why.

use belljar_agent::{PartKind, RequestPart, RequestPreview, RunError, RunSpec, preview_request};
use belljar_policy::ShownText;
use serde_json::{Value, json};

use crate::args::ContextArgs;
use crate::commands::catalogue::agents;
use crate::commands::run::runner;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host;
use crate::setup::walls::WallRaiser;
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, format_count, plain_cell, styled_cell};

pub(crate) fn run(
    args: &ContextArgs,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    walls.raise_for(places, &args.of.wall_gaps(places)?)?;
    let whose = AgentOwner::look_up(&args.of, places)?;
    let host = whose.build_host(out)?;
    if host.models.is_empty() {
        return Err(runner::no_model(places));
    }
    let workspace = whose.places.workspace.clone();
    let agent = agents::find_agent(&host, &args.agent, &workspace)?;
    let spec = RunSpec { partial: true, ..RunSpec::new(agent.into(), &*args.text, workspace) };
    let preview = host::small_runtime()?.block_on(preview_request(&host, spec));
    let preview = preview.map_err(|error| match error {
        RunError::Setup { message, hint: Some(hint) } => Failure::new(message).with_hint(hint),
        error => Failure::new(error.to_string()),
    })?;
    for note in &preview.notes {
        out.print_warning(ShownText::new(note));
    }
    if args.json {
        out.print_json(&context_json(&preview))?;
    } else {
        print_parts(&preview, out);
    }
    Ok(CommandExit::Completed)
}

/// The answer for programs.
fn context_json(preview: &RequestPreview) -> Value {
    let part = |part: &RequestPart| {
        let RequestPart { kind, name, bytes, tokens, why } = part;
        json!({ "kind": kind.as_str(), "name": name, "bytes": bytes, "tokens": tokens, "why": why })
    };
    json!({
        "model": preview.model,
        "tokens": total_tokens(&preview.parts),
        "parts": preview.parts.iter().map(part).collect::<Vec<_>>(),
        "matched": preview.matched,
    })
}

fn total_tokens<'a>(parts: impl IntoIterator<Item = &'a RequestPart>) -> u64 {
    parts.into_iter().fold(0, |sum, part| sum.saturating_add(part.tokens))
}

/// One row for each kind of part, in the order of the request; then what fits the message.
fn print_parts(preview: &RequestPreview, out: &TerminalOutput) {
    let mut table = TextTable::new(out, &["part", ">tokens", "what"]);
    let rows = [
        (PartKind::System, "instructions", "the agent's own"),
        (PartKind::Discovery, "agents", "those that it can hand work to"),
        (PartKind::Skills, "skills", "those that it can load"),
        (PartKind::Advice, "advice", "AGENTS.md, and what else the host says"),
        (PartKind::Message, "message", "your text"),
        (PartKind::Matched, "matched", ""),
        (PartKind::Tool, "tools", ""),
    ];
    for (kind, name, what) in rows {
        let parts = || preview.parts.iter().filter(move |part| part.kind == kind);
        if parts().next().is_none() {
            continue;
        }
        let mut why: Vec<String> = parts().filter_map(|part| part.why.clone()).collect();
        if kind == PartKind::Tool {
            why.insert(0, format!("{} tools", parts().count()));
        } else if why.is_empty() {
            why.push(what.to_owned());
        }
        let tokens = format_count(total_tokens(parts()));
        table.push_row([plain_cell(name), plain_cell(tokens), plain_cell(why.join("; "))]);
    }
    let total = format_count(total_tokens(&preview.parts));
    let about = format!("in all, to {}", ShownText::clip_line(&preview.model, 80));
    table.push_row([
        styled_cell(TextStyle::Bold, "request"),
        styled_cell(TextStyle::Bold, total),
        plain_cell(about),
    ]);
    table.print_to(out);
    let entries = preview.matched.iter().flat_map(|text| text.lines());
    for line in entries.filter(|line| line.starts_with("- `")) {
        out.print_line(ShownText::new(line.trim_end_matches("</system_notice>")));
    }
}
