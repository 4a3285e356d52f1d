//! Shows a replay: a row for each call, and the first difference.

use belljar_agent::{CallComparison, CallText, ReplayedCall};
use belljar_policy::ShownText;
use serde_json::json;

use crate::commands::inspect::replay::EndedReplay;
use crate::commands::run::runner::error_reason;
use crate::setup::exit::Failure;
use crate::term::diff;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell, styled_cell};

/// The most characters of a reason in the table.
const MAX_WHY: usize = 120;

/// Prints a replay as JSON, or as a table with the first difference and notes.
pub(crate) fn show_replay(
    replayed: &EndedReplay,
    json: bool,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    if json {
        return out.print_json(&replay_json(replayed));
    }
    print_table(replayed, out);
    if let Some(call) = replayed.first_difference() {
        print_difference(call, out);
    }
    for note in &replayed.notes {
        out.note(format_args!("note: {note}"));
    }
    for agent in &replayed.ended_early {
        out.note(format_args!(
            "note: the record of `{}` ends before it concluded",
            ShownText::new(agent)
        ));
    }
    if let Some(error) = &replayed.outcome.error
        && replayed.ended_early.is_empty()
    {
        out.print_warning(format_args!("the replay ended early: {}", error_reason(Some(error))));
    }
    out.print_line(count_summary(replayed));
    Ok(())
}

/// A replay as a JSON object.
fn replay_json(replayed: &EndedReplay) -> serde_json::Value {
    let run = &replayed.run;
    let differences = replayed.calls.iter().filter(|call| call.result.is_difference()).count();
    json!({
        "run": run.run,
        "agent": run.state.outcome.agent,
        "workspace": run.state.session.workspace,
        "status": { "then": run.state.status, "now": replayed.outcome.status },
        "differences": differences,
        "first": replayed.first_difference().map(|call| json!({
            "agent": call.agent, "step": call.step, "position": call.position,
        })),
        "calls": sort_by_agent(replayed),
        "ended_early": replayed.ended_early,
        "notes": replayed.notes,
    })
}

/// The calls sorted by agent; each agent's calls stay in their order.
fn sort_by_agent(replayed: &EndedReplay) -> Vec<&ReplayedCall> {
    let mut calls: Vec<&ReplayedCall> = replayed.calls.iter().collect();
    calls.sort_by(|a, b| (&a.agent, a.step, a.position).cmp(&(&b.agent, b.step, b.position)));
    calls
}

/// Prints a table of the replayed calls: for each, how its result compares with the stored one, and why.
fn print_table(replayed: &EndedReplay, out: &TerminalOutput) {
    if replayed.calls.is_empty() {
        return;
    }
    let mut table =
        TextTable::new(out, &["agent", ">step", "tool", "result", "why"]).with_cut(MAX_WHY);
    for call in sort_by_agent(replayed) {
        let style = match call.result {
            CallComparison::Same => TextStyle::Green,
            CallComparison::Differs | CallComparison::Added | CallComparison::Missing => {
                TextStyle::Red
            }
            CallComparison::FromRecord | CallComparison::NotCompared => TextStyle::Yellow,
        };
        table.push_row([
            plain_cell(ShownText::new(&call.agent)),
            plain_cell(call.step),
            plain_cell(ShownText::new(&call.tool)),
            styled_cell(style, call.result.as_str()),
            plain_cell(ShownText::new(call.reason.as_deref().unwrap_or_default())),
        ]);
    }
    table.print_to(out);
}

/// Prints the first call whose result differs, with both results.
fn print_difference(call: &ReplayedCall, out: &TerminalOutput) {
    let (agent, tool) = (ShownText::new(&call.agent), ShownText::clip_line(&call.tool, 64));
    out.print_line("");
    out.print_line(format_args!("first difference: `{tool}` of {agent}, step {}", call.step));
    if let Some(reason) = &call.reason {
        out.print_line(format_args!("{}", ShownText::new(reason)));
    }
    let ended = |text: &Option<CallText>| text.as_ref().and_then(|text| text.ending.clone());
    if let (Some(then), Some(now)) = (ended(&call.then), ended(&call.now))
        && then != now
    {
        out.print_line(format_args!(
            "it ended: {} then, {} now",
            ShownText::new(&then),
            ShownText::new(&now)
        ));
    }
    if let (Some(then), Some(now)) = (&call.then, &call.now) {
        diff::print_diff("result", &then.content, &now.content, out);
    }
    out.print_line("");
}

/// The number of calls with each result, on one line.
fn count_summary(replayed: &EndedReplay) -> String {
    let all = [
        CallComparison::Same,
        CallComparison::Differs,
        CallComparison::Added,
        CallComparison::Missing,
        CallComparison::FromRecord,
        CallComparison::NotCompared,
    ];
    let counts: Vec<String> = all
        .into_iter()
        .filter_map(|of| match replayed.count_results(of) {
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
