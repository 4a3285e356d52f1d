//! `belljar receipts`: the stored runs, and one run's tool calls.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use belljar_agent::{CallReceipt, ChildOrigin, ChildSummary, Outcome};
use belljar_policy::{ShownPath as _, ShownText};
use belljar_sandbox::{CallEnding, Receipt};
use belljar_session::{RecordedState, Turn, find_run, newest_runs};
use belljar_store::{MessageStatus, SessionKind, Store};
use serde_json::{Value, json};

use crate::args::ReceiptsArgs;
use crate::args::server::TenantArg;
use crate::commands::run::refused::explain_command;
use crate::commands::tools::{crash, refused};
use crate::setup::data::{in_store, store_failure};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::whose::{AgentOwner, part_of};
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::progress::{message_style, status_style};
use crate::term::table::{self, TextTable, plain_cell, styled_cell};

/// The most runs in the list; `--json` lists all.
const MAX_LISTED: usize = 20;

/// The most characters of a task in the list.
const MAX_TASK: usize = 60;

/// The most characters of a failed call's error.
const MAX_WHY: usize = 300;

/// The prefix of names of MCP servers' tools.
const OF_SERVERS: &str = "mcp__";

/// The most lines of an MCP server's stderr that are shown for a call.
const MAX_COMPLAINTS: usize = 40;

/// The most characters of a call's ending in the table.
const MAX_ENDING: usize = 60;

/// Runs the command: lists the stored runs, or shows one.
pub(crate) fn run(
    args: &ReceiptsArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    // Runs of the command line are in the home, even if a server uses another data root.
    let elsewhere = args.of.tenant.is_some() || args.of.data.data.is_some();
    let path =
        if elsewhere { args.of.data_root(places)?.store_path() } else { places.store_path() };
    if !path.exists() && args.of.other_tenant().is_none() {
        return report_none(args, &path, out);
    }
    if !path.exists() {
        return AgentOwner::look_up(&args.of, places).map(|_| CommandExit::Completed);
    }
    in_store(&path, async |store| {
        look_up_receipts(args, &part_of(&args.of, store).await?, out).await
    })
}

/// Lists the runs of this store, or shows the named one.
async fn look_up_receipts(
    args: &ReceiptsArgs,
    store: &Store,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let Some(name) = &args.run else {
        let most = if args.json { usize::MAX } else { MAX_LISTED };
        let (runs, more) = newest_runs(store, most).await.map_err(store_failure)?;
        if runs.is_empty() {
            return report_none(args, store.path(), out);
        }
        list_runs(&runs, more, args.json, out)?;
        return Ok(CommandExit::Completed);
    };
    let run = find_run(store, name).await.map_err(|error| {
        let failure = store_failure(error);
        let usage = failure.exit == CommandExit::Usage;
        if usage { failure.with_hint("`belljar receipts` lists the runs") } else { failure }
    })?;
    if args.json {
        out.print_json(&run)?;
    } else {
        show_run(&run, &args.of, out);
    }
    Ok(CommandExit::Completed)
}

/// The report that no run is stored yet.
fn report_none(
    args: &ReceiptsArgs,
    store: &Path,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    match &args.run {
        None if args.json => out.print_json(&Vec::<Value>::new())?,
        None => out.note(format_args!("no runs in {}", store.to_shown())),
        Some(name) => {
            let name = ShownText::clip_line(name, 64);
            return Err(Failure::usage(format!("there is no run `{name}`"))
                .with_hint("`belljar receipts` lists the runs"));
        }
    }
    Ok(CommandExit::Completed)
}

/// Prints the list of runs, as a table or JSON. `more` = there are further runs.
fn list_runs(runs: &[Turn], more: bool, json: bool, out: &TerminalOutput) -> Result<(), Failure> {
    if json {
        let rows: Vec<_> = runs.iter().map(run_summary).collect();
        return out.print_json(&rows);
    }
    let headings = ["run", "agent", "status", ">calls", ">tokens", "task"];
    let mut table = TextTable::new(out, &headings).with_cut(MAX_TASK);
    for run in runs {
        let RecordedState { status, outcome, .. } = &run.state;
        let total = outcome.total;
        table.push_row([
            plain_cell(&run.run),
            // A name without a prefix means an agent of the home.
            plain_cell(ShownText::new(
                outcome.agent.strip_prefix("home/").unwrap_or(&outcome.agent),
            )),
            styled_cell(message_style(*status), status),
            plain_cell(table::format_count(total.tool_calls)),
            plain_cell(table::format_count(total.input_tokens.saturating_add(total.output_tokens))),
            plain_cell(ShownText::new(run.text().trim())),
        ]);
    }
    table.print_to(out);
    if more {
        out.note("there are older runs; `--json` lists all");
    }
    Ok(())
}

/// A run as a JSON object, for the list.
fn run_summary(run: &Turn) -> Value {
    let RecordedState { session, status, outcome, .. } = &run.state;
    json!({
        "id": run.run,
        "agent": outcome.agent,
        "model": outcome.model,
        "status": status,
        "session": session.id,
        "kind": session.kind,
        "task": run.text(),
        "workspace": session.workspace,
        "started": outcome.started,
        "ended": outcome.ended,
        "total": outcome.total,
    })
}

/// Shows one run: its agent, task, status and usage, and its calls.
fn show_run(run: &Turn, of: &TenantArg, out: &TerminalOutput) {
    let RecordedState { session, status, outcome, .. } = &run.state;
    let word = out.paint(message_style(*status), status);
    out.print_line(format_args!("run     {}", run.run));
    if session.id != run.run.as_str() {
        out.print_line(format_args!("session {}", session.id));
    }
    // The outcome of a team has no model.
    let on = match outcome.model.as_str() {
        "" => String::new(),
        model => format!(" on {}", ShownText::new(model)),
    };
    out.print_line(format_args!("agent   {}{on}", ShownText::new(&outcome.agent)));
    out.print_line(format_args!("task    {}", ShownText::clip_line(run.text().trim(), 200)));
    out.print_line(format_args!("status  {word}"));
    if let Some(error) = &outcome.error {
        out.print_line(format_args!("reason  {}", ShownText::new(&error.to_string())));
    }
    out.print_line(format_args!("used    {}", format_usage(outcome)));
    out.print_line("");
    print_calls(outcome, out);
    print_subagents(outcome, out);
    print_failures(outcome, out);
    print_server_stderr(outcome, out);
    print_denials(outcome, out);
    print_host_advice(outcome, of, out);
    if let Some(hint) = resume_hint(*status, session.kind, &session.id) {
        out.note(hint);
    }
}

/// The command that resumes an interrupted turn; `None` = there is nothing to resume.
pub(crate) fn resume_hint(
    status: MessageStatus,
    kind: SessionKind,
    session: &str,
) -> Option<String> {
    let team = match kind {
        SessionKind::Team => " --agent NAME",
        SessionKind::Chat | SessionKind::Run | SessionKind::Api => "",
    };
    (status == MessageStatus::Interrupted).then(|| {
        format!("the program ended during this; `belljar chat --resume {session}{team}` resumes it")
    })
}

/// Prints one row for each subagent, with or without tool calls.
fn print_subagents(outcome: &Outcome, out: &TerminalOutput) {
    if outcome.children.is_empty() {
        return;
    }
    out.print_line("");
    let headings = ["subagent", "ended", ">steps", ">tokens", ">calls", "task"];
    let mut table = TextTable::new(out, &headings).with_cut(MAX_TASK);
    let mut left: Vec<(usize, &ChildSummary)> = Vec::new();
    left.extend(outcome.children.iter().rev().map(|child| (0, child)));
    while let Some((depth, child)) = left.pop() {
        let total = child.outcome.total;
        let name = child.outcome.agent.rsplit('/').next().unwrap_or_default();
        let name = match child.origin {
            ChildOrigin::Fork => format!("fork of {name}"),
            ChildOrigin::Preset | ChildOrigin::Team => name.to_owned(),
        };
        let name = ShownText::new(&name);
        table.push_row([
            plain_cell(format!("{}→ {name}#{}", "  ".repeat(depth), child.spawn_index)),
            styled_cell(status_style(child.outcome.status), child.outcome.status),
            plain_cell(table::format_count(total.steps)),
            plain_cell(table::format_count(total.input_tokens.saturating_add(total.output_tokens))),
            plain_cell(table::format_count(total.tool_calls)),
            plain_cell(ShownText::new(child.task.trim())),
        ]);
        left.extend(child.outcome.children.iter().rev().map(|child| (depth + 1, child)));
    }
    table.print_to(out);
}

/// Prints the error of each call that failed without a refusal.
fn print_failures(outcome: &Outcome, out: &TerminalOutput) {
    let receipts = outcome.all_receipts().into_iter();
    let failed: Vec<_> = receipts
        .filter(|call| call.receipt.denials.is_empty())
        .filter_map(|call| Some((call, call.error.as_deref()?)))
        .collect();
    if failed.is_empty() {
        return;
    }
    out.print_line("");
    let mut table = TextTable::new(out, &["failed", "agent", "why"]);
    for (call, why) in failed {
        table.push_row([
            styled_cell(TextStyle::Yellow, ShownText::new(&call.tool)),
            plain_cell(below_root(&call.agent)),
            plain_cell(ShownText::clip_line(
                &crash_message(call).unwrap_or_else(|| why.to_owned()),
                MAX_WHY,
            )),
        ]);
    }
    table.print_to(out);
}

/// Prints the last stderr lines of MCP servers that are programs, for each failed call to one.
fn print_server_stderr(outcome: &Outcome, out: &TerminalOutput) {
    let receipts = outcome.all_receipts().into_iter();
    let failed = receipts.filter(|call| call.error.is_some() && call.tool.starts_with(OF_SERVERS));
    let lines = failed.flat_map(|call| call.receipt.logs.iter().map(move |line| (call, line)));
    for (call, line) in lines.take(MAX_COMPLAINTS) {
        let (tool, stream) = (ShownText::new(&call.tool), ShownText::clip_line(&line.level, 20));
        out.print_line(format_args!(
            "{tool}: {stream}: {}",
            ShownText::clip_line(&line.message, MAX_WHY)
        ));
    }
}

/// Prints a line for each crashed tool of a run, with the panic message from the tool's stderr: the model
/// learned only of the crash.
pub(crate) fn print_crashes(outcome: &Outcome, out: &TerminalOutput) {
    let receipts = outcome.all_receipts().into_iter();
    let crashed = receipts.filter_map(|call| Some((call, crash_message(call)?)));
    for (call, why) in crashed.take(MAX_LISTED) {
        let tool = ShownText::new(&call.receipt.tool).to_string();
        out.print_warning(format_args!("`{tool}`: {}", ShownText::clip_line(&why, MAX_WHY)));
    }
}

/// The panic message on the stderr of a crashed tool; `None` = the call did not crash, or stderr has no such
/// message.
fn crash_message(call: &CallReceipt) -> Option<String> {
    let CallEnding::Trapped(_) = &call.receipt.ending else { return None };
    Some(format!("the tool crashed: {}", crash::panic_message(&call.receipt.stderr)?))
}

/// Prints the refusals of the sandbox, with the facts that only the operator sees.
pub(crate) fn print_denials(outcome: &Outcome, out: &TerminalOutput) {
    let denials: Vec<_> = outcome
        .all_receipts()
        .into_iter()
        .flat_map(|call| call.receipt.denials.iter().map(move |denial| (call, denial)))
        .collect();
    if !denials.is_empty() {
        out.print_line("");
        let mut table = TextTable::new(out, &["refused", "agent", "operation", "facts"]);
        for (call, denial) in denials {
            table.push_row([
                styled_cell(TextStyle::Red, denial.code),
                plain_cell(below_root(&call.agent)),
                plain_cell(ShownText::new(&denial.what)),
                plain_cell(ShownText::new(&denial.facts)),
            ]);
        }
        table.print_to(out);
    }
}

/// Prints, for each host refused to a tool, the `belljar explain` command that shows what would allow the
/// request.
fn print_host_advice(outcome: &Outcome, of: &TenantArg, out: &TerminalOutput) {
    let mut said = BTreeSet::new();
    for call in outcome.all_receipts() {
        for target in call.receipt.denials.iter().filter_map(refused::denied_target) {
            let agent = call.agent.rsplit('/').next().unwrap_or_default();
            let agent = agent.split('#').next().unwrap_or_default();
            let command = of.format_command(&explain_command(agent, &call.receipt.tool, &target));
            if said.len() < MAX_LISTED && said.insert(command.clone()) {
                out.note(format_args!("`{}` says what would allow it", ShownText::new(&command)));
            }
        }
    }
}

/// The usage of a run, on one line.
pub(crate) fn format_usage(outcome: &Outcome) -> String {
    let total = outcome.total;
    let time = outcome.ended.duration_since(outcome.started);
    let time = u64::try_from(time.as_micros()).unwrap_or(0);
    format!(
        "{}, {} tokens in ({} cached), {} out, {}, {} fuel, {}",
        table::format_quantity(total.steps, "step"),
        table::format_count(total.input_tokens),
        table::format_count(total.cached_tokens),
        table::format_count(total.output_tokens),
        table::format_quantity(total.tool_calls, "tool call"),
        table::format_fuel(total.fuel),
        table::format_micros(time)
    )
}

/// The columns of [`print_calls`]; `>` marks columns of numbers.
const HEADINGS: &[&str] = &[
    "agent", "tool", "ended", ">fuel", ">time", ">memory", ">read", ">written", ">sent", ">refused",
];

type Cell = (String, Option<TextStyle>);

/// Prints one row for each tool call of the run and its subagents.
pub(crate) fn print_calls(outcome: &Outcome, out: &TerminalOutput) {
    let receipts = outcome.all_receipts();
    if receipts.is_empty() {
        out.print_line("no tool was called");
        return;
    }
    let mut depths = CallDepths::default();
    let mut rows: Vec<Vec<Cell>> =
        receipts.into_iter().map(|call| call_row(call, depths.depth_of(call))).collect();
    let mut headings = HEADINGS.to_vec();
    // Columns without any value are left out, to keep the others wide.
    for heading in [">written", ">sent", ">refused"] {
        let at = headings.iter().position(|found| *found == heading);
        let Some(at) = at else { continue };
        let empty =
            |row: &Vec<Cell>| row.get(at).is_none_or(|(text, _)| text == "0" || text == "0 B");
        if rows.iter().all(empty) {
            headings.remove(at);
            rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
    }
    let mut table = TextTable::new(out, &headings);
    rows.into_iter().for_each(|row| table.push_row(row));
    table.print_to(out);
}

/// The nesting depth of each call, for the indent in the table. A call made by a tool comes after the call of
/// that tool.
#[derive(Default)]
struct CallDepths<'a>(HashMap<(&'a str, &'a str), usize>);

impl<'a> CallDepths<'a> {
    /// The depth of a call: 0 for a call of the model, 1 for a call made by the called tool.
    fn depth_of(&mut self, call: &'a CallReceipt) -> usize {
        let above = call.parent.as_deref().and_then(|parent| self.0.get(&(&*call.agent, parent)));
        let depth = above.map_or(0, |above| above + 1);
        self.0.insert((&call.agent, &call.call_id), depth);
        depth
    }
}

/// The row of one call in the table.
fn call_row(call: &CallReceipt, depth: usize) -> Vec<Cell> {
    let CallReceipt { tool, agent, receipt, .. } = call;
    let refused = receipt.denials.len() as u64 + receipt.denials_dropped;
    let below = match depth {
        0 => String::new(),
        depth => format!("{}└ ", "  ".repeat(depth - 1)),
    };
    vec![
        plain_cell(below_root(agent)),
        plain_cell(format!("{below}{}", ShownText::new(tool))),
        format_ending(receipt),
        plain_cell(table::format_fuel(receipt.fuel)),
        plain_cell(table::format_micros(receipt.times.total)),
        plain_cell(table::format_size(receipt.peak_memory)),
        plain_cell(table::format_size(receipt.bytes.read)),
        plain_cell(table::format_size(receipt.bytes.written)),
        plain_cell(table::format_size(receipt.bytes.sent)),
        if refused == 0 { plain_cell(refused) } else { styled_cell(TextStyle::Red, refused) },
    ]
}

/// An agent's path without the name of the agent at the root, which all paths have.
fn below_root(agent: &str) -> String {
    match agent.split_once('/') {
        Some((_, child)) => format!("→ {}", ShownText::new(child)),
        None => ShownText::new(agent).to_string(),
    }
}

/// The ending of a call in a few words, coloured.
fn format_ending(receipt: &Receipt) -> (String, Option<TextStyle>) {
    let (style, word, detail) = match &receipt.ending {
        CallEnding::Completed => (TextStyle::Green, "completed", None),
        CallEnding::ToolError(kind) => (TextStyle::Yellow, "tool error", Some(kind)),
        CallEnding::Trapped(trap) => (TextStyle::Red, "trapped", Some(trap)),
        CallEnding::Exhausted(which) => (TextStyle::Red, "exhausted", Some(which)),
        CallEnding::TimedOut => (TextStyle::Red, "timed out", None),
        CallEnding::Cancelled => (TextStyle::Yellow, "cancelled", None),
        CallEnding::BadOutput(why) => (TextStyle::Red, "bad output", Some(why)),
        CallEnding::Refused(why) => (TextStyle::Red, "refused", Some(why)),
        CallEnding::HostFault(why) => (TextStyle::Red, "host fault", Some(why)),
    };
    let text = match detail {
        None => word.to_owned(),
        Some(detail) => ShownText::clip_line(&format!("{word}: {detail}"), MAX_ENDING).to_string(),
    };
    styled_cell(style, text)
}
