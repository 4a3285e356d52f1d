//! How a replay is shown: a row for each call, and what differs first.

use belljar_agent::{CallText, Comparison, ReplayedCall};
use belljar_policy::Shown;
use serde_json::json;

use crate::commands::inspect::replay::Replayed;
use crate::commands::run::runner::reason;
use crate::setup::exit::Failure;
use crate::term::diff;
use crate::term::out::{Out, Style};
use crate::term::table::{Table, plain, styled};

/// Characters of a reason in the table.
const MAX_WHY: usize = 120;

pub(crate) fn show(replayed: &Replayed, json: bool, out: &Out) -> Result<(), Failure> {
    if json {
        return out.json(&told(replayed));
    }
    table(replayed, out);
    if let Some(call) = replayed.first() {
        first(call, out);
    }
    for note in &replayed.notes {
        out.note(format_args!("note: {note}"));
    }
    for agent in &replayed.ended_early {
        out.note(format_args!(
            "note: the record of `{}` ends before it concluded",
            Shown::new(agent)
        ));
    }
    if let Some(error) = &replayed.outcome.error
        && replayed.ended_early.is_empty()
    {
        out.warning(format_args!("the replay ended early: {}", reason(Some(error))));
    }
    out.line(summary(replayed));
    Ok(())
}

/// The replay for programs.
fn told(replayed: &Replayed) -> serde_json::Value {
    let run = &replayed.run;
    let differences = replayed.calls.iter().filter(|call| call.result.is_difference()).count();
    json!({
        "run": run.run,
        "agent": run.state.outcome.agent,
        "workspace": run.state.session.workspace,
        "status": { "then": run.state.status, "now": replayed.outcome.status },
        "differences": differences,
        "first": replayed.first().map(|call| json!({
            "agent": call.agent, "step": call.step, "position": call.position,
        })),
        "calls": sorted(replayed),
        "ended_early": replayed.ended_early,
        "notes": replayed.notes,
    })
}

/// The calls by agent, each agent's in its own order.
fn sorted(replayed: &Replayed) -> Vec<&ReplayedCall> {
    let mut calls: Vec<&ReplayedCall> = replayed.calls.iter().collect();
    calls.sort_by(|a, b| (&a.agent, a.step, a.position).cmp(&(&b.agent, b.step, b.position)));
    calls
}

fn table(replayed: &Replayed, out: &Out) {
    if replayed.calls.is_empty() {
        return;
    }
    let mut table = Table::new(out, &["agent", ">step", "tool", "result", "why"]).cut(MAX_WHY);
    for call in sorted(replayed) {
        let style = match call.result {
            Comparison::Same => Style::Green,
            Comparison::Differs | Comparison::Added | Comparison::Missing => Style::Red,
            Comparison::FromRecord | Comparison::NotCompared => Style::Yellow,
        };
        table.row([
            plain(Shown::new(&call.agent)),
            plain(call.step),
            plain(Shown::new(&call.tool)),
            styled(style, call.result.as_str()),
            plain(Shown::new(call.reason.as_deref().unwrap_or_default())),
        ]);
    }
    table.print(out);
}

/// The first difference, and how the two results differ.
fn first(call: &ReplayedCall, out: &Out) {
    let (agent, tool) = (Shown::new(&call.agent), Shown::clipped(&call.tool, 64));
    out.line("");
    out.line(format_args!("first difference: `{tool}` of {agent}, step {}", call.step));
    if let Some(reason) = &call.reason {
        out.line(format_args!("{}", Shown::new(reason)));
    }
    let ended = |text: &Option<CallText>| text.as_ref().and_then(|text| text.ending.clone());
    if let (Some(then), Some(now)) = (ended(&call.then), ended(&call.now))
        && then != now
    {
        out.line(format_args!("it ended: {} then, {} now", Shown::new(&then), Shown::new(&now)));
    }
    if let (Some(then), Some(now)) = (&call.then, &call.now) {
        diff::show("result", &then.content, &now.content, out);
    }
    out.line("");
}

/// How many calls compare how, on one line.
fn summary(replayed: &Replayed) -> String {
    let all = [
        Comparison::Same,
        Comparison::Differs,
        Comparison::Added,
        Comparison::Missing,
        Comparison::FromRecord,
        Comparison::NotCompared,
    ];
    let counts: Vec<String> = all
        .into_iter()
        .filter_map(|of| match replayed.count(of) {
            0 => None,
            count => Some(format!("{count} {}", of.as_str())),
        })
        .collect();
    match replayed.calls.len() {
        0 => "no tool was called, then or now".to_owned(),
        1 => format!("1 call: {}", counts.join(", ")),
        total => format!("{total} calls: {}", counts.join(", ")),
    }
}
