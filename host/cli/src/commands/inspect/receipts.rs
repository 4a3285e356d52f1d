//! `belljar receipts`: the stored runs, and one run's tool calls.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use belljar_agent::{CallReceipt, ChildOrigin, ChildSummary, Outcome};
use belljar_policy::{Shown, ShownPath as _};
use belljar_sandbox::{Ending, Receipt};
use belljar_session::{Recorded, Turn, find_run, newest_runs};
use belljar_store::{MessageStatus, SessionKind, Store};
use serde_json::{Value, json};

use crate::args::ReceiptsArgs;
use crate::args::server::TenantArg;
use crate::commands::run::refused::explain_command;
use crate::commands::tools::{crash, refused};
use crate::setup::data::{failed, in_store};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::whose::{Whose, part_of};
use crate::term::out::{Out, Style};
use crate::term::progress::{message_style, status_style};
use crate::term::table::{self, Table, plain, styled};

/// Runs that the list shows; `--json` lists all.
const MAX_LISTED: usize = 20;

/// Characters of a task in the list.
const MAX_TASK: usize = 60;

/// Characters of what a failed call said.
const MAX_WHY: usize = 300;

/// How the names of tools of MCP servers begin.
const OF_SERVERS: &str = "mcp__";

/// Lines of MCP servers that are shown.
const MAX_COMPLAINTS: usize = 40;

/// Characters of an ending in the table.
const MAX_ENDING: usize = 60;

pub(crate) fn run(args: &ReceiptsArgs, places: &Places, out: &Out) -> Result<Exit, Failure> {
    // Runs of the command line are in the home, even if a server has another data root.
    let elsewhere = args.of.tenant.is_some() || args.of.data.data.is_some();
    let path = if elsewhere { args.of.root(places)?.store() } else { places.store() };
    if !path.exists() && args.of.other().is_none() {
        return none(args, &path, out);
    }
    if !path.exists() {
        return Whose::find(&args.of, places).map(|_| Exit::Completed);
    }
    in_store(&path, async |store| look(args, &part_of(&args.of, store).await?, out).await)
}

async fn look(args: &ReceiptsArgs, store: &Store, out: &Out) -> Result<Exit, Failure> {
    let Some(name) = &args.run else {
        let most = if args.json { usize::MAX } else { MAX_LISTED };
        let (runs, more) = newest_runs(store, most).await.map_err(failed)?;
        if runs.is_empty() {
            return none(args, store.path(), out);
        }
        list(&runs, more, args.json, out)?;
        return Ok(Exit::Completed);
    };
    let run = find_run(store, name).await.map_err(|error| {
        let failure = failed(error);
        let usage = failure.exit == Exit::Usage;
        if usage { failure.hint("`belljar receipts` lists the runs") } else { failure }
    })?;
    if args.json {
        out.json(&run)?;
    } else {
        show(&run, &args.of, out);
    }
    Ok(Exit::Completed)
}

/// Nothing was run yet.
fn none(args: &ReceiptsArgs, store: &Path, out: &Out) -> Result<Exit, Failure> {
    match &args.run {
        None if args.json => out.json(&Vec::<Value>::new())?,
        None => out.note(format_args!("no runs in {}", store.shown())),
        Some(name) => {
            let name = Shown::clipped(name, 64);
            return Err(Failure::usage(format!("there is no run `{name}`"))
                .hint("`belljar receipts` lists the runs"));
        }
    }
    Ok(Exit::Completed)
}

fn list(runs: &[Turn], more: bool, json: bool, out: &Out) -> Result<(), Failure> {
    if json {
        let rows: Vec<_> = runs.iter().map(summary).collect();
        return out.json(&rows);
    }
    let headings = ["run", "agent", "status", ">calls", ">tokens", "task"];
    let mut table = Table::new(out, &headings).cut(MAX_TASK);
    for run in runs {
        let Recorded { status, outcome, .. } = &run.state;
        let total = outcome.total;
        table.row([
            plain(&run.run),
            // A bare name means the home's.
            plain(Shown::new(outcome.agent.strip_prefix("home/").unwrap_or(&outcome.agent))),
            styled(message_style(*status), status),
            plain(table::count(total.tool_calls)),
            plain(table::count(total.input_tokens.saturating_add(total.output_tokens))),
            plain(Shown::new(run.text().trim())),
        ]);
    }
    table.print(out);
    if more {
        out.note("there are older runs; `--json` lists all");
    }
    Ok(())
}

fn summary(run: &Turn) -> Value {
    let Recorded { session, status, outcome, .. } = &run.state;
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

fn show(run: &Turn, of: &TenantArg, out: &Out) {
    let Recorded { session, status, outcome, .. } = &run.state;
    let word = out.paint(message_style(*status), status);
    out.line(format_args!("run     {}", run.run));
    if session.id != run.run.as_str() {
        out.line(format_args!("session {}", session.id));
    }
    // A team has no model of its own.
    let on = match outcome.model.as_str() {
        "" => String::new(),
        model => format!(" on {}", Shown::new(model)),
    };
    out.line(format_args!("agent   {}{on}", Shown::new(&outcome.agent)));
    out.line(format_args!("task    {}", Shown::clipped(run.text().trim(), 200)));
    out.line(format_args!("status  {word}"));
    if let Some(error) = &outcome.error {
        out.line(format_args!("reason  {}", Shown::new(&error.to_string())));
    }
    out.line(format_args!("used    {}", usage(outcome)));
    out.line("");
    print(outcome, out);
    subagents(outcome, out);
    failures(outcome, out);
    complaints(outcome, out);
    denials(outcome, out);
    ways(outcome, of, out);
    if let Some(hint) = resume_hint(*status, session.kind, &session.id) {
        out.note(hint);
    }
}

/// How to resume an interrupted turn.
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

/// One row for each subagent, with or without tool calls.
fn subagents(outcome: &Outcome, out: &Out) {
    if outcome.children.is_empty() {
        return;
    }
    out.line("");
    let headings = ["subagent", "ended", ">steps", ">tokens", ">calls", "task"];
    let mut table = Table::new(out, &headings).cut(MAX_TASK);
    let mut left: Vec<(usize, &ChildSummary)> = Vec::new();
    left.extend(outcome.children.iter().rev().map(|child| (0, child)));
    while let Some((depth, child)) = left.pop() {
        let total = child.outcome.total;
        let name = child.outcome.agent.rsplit('/').next().unwrap_or_default();
        let name = match child.origin {
            ChildOrigin::Fork => format!("fork of {name}"),
            ChildOrigin::Preset | ChildOrigin::Team => name.to_owned(),
        };
        let name = Shown::new(&name);
        table.row([
            plain(format!("{}→ {name}#{}", "  ".repeat(depth), child.spawn_index)),
            styled(status_style(child.outcome.status), child.outcome.status),
            plain(table::count(total.steps)),
            plain(table::count(total.input_tokens.saturating_add(total.output_tokens))),
            plain(table::count(total.tool_calls)),
            plain(Shown::new(child.task.trim())),
        ]);
        left.extend(child.outcome.children.iter().rev().map(|child| (depth + 1, child)));
    }
    table.print(out);
}

/// Why calls failed that nothing refused.
fn failures(outcome: &Outcome, out: &Out) {
    let receipts = outcome.all_receipts().into_iter();
    let failed: Vec<_> = receipts
        .filter(|call| call.receipt.denials.is_empty())
        .filter_map(|call| Some((call, call.error.as_deref()?)))
        .collect();
    if failed.is_empty() {
        return;
    }
    out.line("");
    let mut table = Table::new(out, &["failed", "agent", "why"]);
    for (call, why) in failed {
        table.row([
            styled(Style::Yellow, Shown::new(&call.tool)),
            plain(below_root(&call.agent)),
            plain(Shown::clipped(&crashed(call).unwrap_or_else(|| why.to_owned()), MAX_WHY)),
        ]);
    }
    table.print(out);
}

/// The last stderr of MCP servers that are commands, if a call failed.
fn complaints(outcome: &Outcome, out: &Out) {
    let receipts = outcome.all_receipts().into_iter();
    let failed = receipts.filter(|call| call.error.is_some() && call.tool.starts_with(OF_SERVERS));
    let lines = failed.flat_map(|call| call.receipt.logs.iter().map(move |line| (call, line)));
    for (call, line) in lines.take(MAX_COMPLAINTS) {
        let (tool, stream) = (Shown::new(&call.tool), Shown::clipped(&line.level, 20));
        out.line(format_args!("{tool}: {stream}: {}", Shown::clipped(&line.message, MAX_WHY)));
    }
}

/// The crashed tools of a run with their own messages, a line each: the model learned only of the crash.
pub(crate) fn crashes(outcome: &Outcome, out: &Out) {
    let receipts = outcome.all_receipts().into_iter();
    let crashed = receipts.filter_map(|call| Some((call, crashed(call)?)));
    for (call, why) in crashed.take(MAX_LISTED) {
        let tool = Shown::new(&call.receipt.tool).to_string();
        out.warning(format_args!("`{tool}`: {}", Shown::clipped(&why, MAX_WHY)));
    }
}

/// The tool's own words about its crash.
fn crashed(call: &CallReceipt) -> Option<String> {
    let Ending::Trapped(_) = &call.receipt.ending else { return None };
    Some(format!("the tool crashed: {}", crash::panic(&call.receipt.stderr)?))
}

/// The refusals of the sandbox, with the facts that only the operator sees.
pub(crate) fn denials(outcome: &Outcome, out: &Out) {
    let denials: Vec<_> = outcome
        .all_receipts()
        .into_iter()
        .flat_map(|call| call.receipt.denials.iter().map(move |denial| (call, denial)))
        .collect();
    if !denials.is_empty() {
        out.line("");
        let mut table = Table::new(out, &["refused", "agent", "operation", "facts"]);
        for (call, denial) in denials {
            table.row([
                styled(Style::Red, denial.code),
                plain(below_root(&call.agent)),
                plain(Shown::new(&denial.what)),
                plain(Shown::new(&denial.facts)),
            ]);
        }
        table.print(out);
    }
}

/// The way to find the remedy for hosts refused to the tools.
fn ways(outcome: &Outcome, of: &TenantArg, out: &Out) {
    let mut said = BTreeSet::new();
    for call in outcome.all_receipts() {
        for target in call.receipt.denials.iter().filter_map(refused::target) {
            let agent = call.agent.rsplit('/').next().unwrap_or_default();
            let agent = agent.split('#').next().unwrap_or_default();
            let command = of.command(&explain_command(agent, &call.receipt.tool, &target));
            if said.len() < MAX_LISTED && said.insert(command.clone()) {
                out.note(format_args!("`{}` says what would allow it", Shown::new(&command)));
            }
        }
    }
}

/// The use of a run, on one line.
pub(crate) fn usage(outcome: &Outcome) -> String {
    let total = outcome.total;
    let time = outcome.ended.duration_since(outcome.started);
    let time = u64::try_from(time.as_micros()).unwrap_or(0);
    format!(
        "{}, {} tokens in ({} cached), {} out, {}, {} fuel, {}",
        table::some(total.steps, "step"),
        table::count(total.input_tokens),
        table::count(total.cached_tokens),
        table::count(total.output_tokens),
        table::some(total.tool_calls, "tool call"),
        table::fuel(total.fuel),
        table::micros(time)
    )
}

/// The columns of [`print()`]; `>` marks numbers.
const HEADINGS: &[&str] = &[
    "agent", "tool", "ended", ">fuel", ">time", ">memory", ">read", ">written", ">sent", ">refused",
];

type Cell = (String, Option<Style>);

/// One row for each tool call of the run and its subagents.
pub(crate) fn print(outcome: &Outcome, out: &Out) {
    let receipts = outcome.all_receipts();
    if receipts.is_empty() {
        out.line("no tool was called");
        return;
    }
    let mut depths = Depths::default();
    let mut rows: Vec<Vec<Cell>> =
        receipts.into_iter().map(|call| row(call, depths.of(call))).collect();
    let mut headings = HEADINGS.to_vec();
    // Columns that hold nothing in any row would only make the others narrow.
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
    let mut table = Table::new(out, &headings);
    rows.into_iter().for_each(|row| table.row(row));
    table.print(out);
}

/// The nesting depth of each call. A nested call comes after its outer call.
#[derive(Default)]
struct Depths<'a>(HashMap<(&'a str, &'a str), usize>);

impl<'a> Depths<'a> {
    /// 0 = the model made it.
    fn of(&mut self, call: &'a CallReceipt) -> usize {
        let above = call.parent.as_deref().and_then(|parent| self.0.get(&(&*call.agent, parent)));
        let depth = above.map_or(0, |above| above + 1);
        self.0.insert((&call.agent, &call.call_id), depth);
        depth
    }
}

fn row(call: &CallReceipt, depth: usize) -> Vec<Cell> {
    let CallReceipt { tool, agent, receipt, .. } = call;
    let refused = receipt.denials.len() as u64 + receipt.denials_dropped;
    let below = match depth {
        0 => String::new(),
        depth => format!("{}└ ", "  ".repeat(depth - 1)),
    };
    vec![
        plain(below_root(agent)),
        plain(format!("{below}{}", Shown::new(tool))),
        ending(receipt),
        plain(table::fuel(receipt.fuel)),
        plain(table::micros(receipt.times.total)),
        plain(table::size(receipt.peak_memory)),
        plain(table::size(receipt.bytes.read)),
        plain(table::size(receipt.bytes.written)),
        plain(table::size(receipt.bytes.sent)),
        if refused == 0 { plain(refused) } else { styled(Style::Red, refused) },
    ]
}

/// An agent's path without the common name at the root.
fn below_root(agent: &str) -> String {
    match agent.split_once('/') {
        Some((_, child)) => format!("→ {}", Shown::new(child)),
        None => Shown::new(agent).to_string(),
    }
}

/// How a call ended, in a few words.
fn ending(receipt: &Receipt) -> (String, Option<Style>) {
    let (style, word, detail) = match &receipt.ending {
        Ending::Completed => (Style::Green, "completed", None),
        Ending::ToolError(kind) => (Style::Yellow, "tool error", Some(kind)),
        Ending::Trapped(trap) => (Style::Red, "trapped", Some(trap)),
        Ending::Exhausted(which) => (Style::Red, "exhausted", Some(which)),
        Ending::TimedOut => (Style::Red, "timed out", None),
        Ending::Cancelled => (Style::Yellow, "cancelled", None),
        Ending::BadOutput(why) => (Style::Red, "bad output", Some(why)),
        Ending::Refused(why) => (Style::Red, "refused", Some(why)),
        Ending::HostFault(why) => (Style::Red, "host fault", Some(why)),
    };
    let text = match detail {
        None => word.to_owned(),
        Some(detail) => Shown::clipped(&format!("{word}: {detail}"), MAX_ENDING).to_string(),
    };
    styled(style, text)
}
