//! `belljar prove`: attacks this machine's belljar, and shows the result of each attack.
//!
//! Attacks on the sandbox run without the OS sandbox, which could hide gaps of the sandbox. Attacks on the OS
//! sandbox run in children behind it. Attacks on the server and on the agent for editors run against
//! processes started like every `belljar serve` and `belljar acp`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use belljar_policy::ShownText;
use belljar_prove::{
    AcpPart, AttackReport, LibrariesPart, ProvePart, ServerPart, ServerSetup, Suite, SuiteOptions,
};
use serde_json::json;

use crate::args::ProveArgs;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, create_private};
use crate::setup::host;
use crate::setup::walls;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{self, TextTable, plain_cell, styled_cell};

/// The most characters of what a successful attack reached, below the table.
const MAX_WHY: usize = 2_000;

/// Runs the command: chooses the attacks, makes them, and prints a report for each.
pub(crate) fn run(
    args: &ProveArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let parts = named_parts(args, places)?;
    let chosen: Vec<(&dyn ProvePart, Vec<&'static str>)> = parts
        .iter()
        .map(|part| (&**part, chosen_attacks(&**part, args.only.as_deref())))
        .filter(|(_, ids)| !ids.is_empty())
        .collect();
    if chosen.is_empty() {
        let word = ShownText::clip_line(args.only.as_deref().unwrap_or_default(), 80);
        return Err(Failure::usage(format!("no attack has `{word}` in its name"))
            .with_hint("names begin with what is attacked: cpu, memory, output, files, network, secrets, component, agents, server, acp, wall, libraries"));
    }
    let begun = Instant::now();
    let (reports, cut) = host::make_runtime()?.block_on(run_attacks(&chosen, out))?;
    let took = begun.elapsed();
    let through = reports.iter().filter(|report| !report.is_stopped()).count();
    if args.json {
        out.print_json(&json!({
            "attacks": reports,
            "made": reports.len(),
            "got_through": through,
            "seconds": took.as_secs_f64(),
        }))?;
    } else {
        print_reports(&reports, through, took, out);
    }
    Ok(match (through, cut) {
        (0, false) => CommandExit::Completed,
        (0, true) => CommandExit::Cancelled,
        _ => CommandExit::Failed,
    })
}

/// The parts that the command line names; without a name, all.
fn named_parts(args: &ProveArgs, places: &HomePaths) -> Result<Vec<Box<dyn ProvePart>>, Failure> {
    let all = !(args.sandbox || args.server || args.editor || args.wall || args.libraries);
    let mut parts: Vec<Box<dyn ProvePart>> = Vec::new();
    if all || args.sandbox {
        parts.push(Box::new(sandbox_suite(places)?));
    }
    if all || args.server {
        parts.push(Box::new(server_part(places)?));
    }
    if all || args.editor {
        parts.push(Box::new(editor_part(places)?));
    }
    if all || args.libraries {
        parts.push(Box::new(LibrariesPart::new(attacked_program()?)));
    }
    #[cfg(target_os = "linux")]
    if all || args.wall {
        parts.push(Box::new(crate::commands::inspect::prove_wall::wall_part()?));
    }
    Ok(parts)
}

fn chosen_attacks(part: &dyn ProvePart, only: Option<&str>) -> Vec<&'static str> {
    part.attack_ids().into_iter().filter(|id| only.is_none_or(|word| id.contains(word))).collect()
}

/// The path of the attacked program, which is this program.
fn attacked_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::new(format!("failed to find the running program: {error}")))
}

/// The part that attacks the sandbox, which is set up as for every run: components are compiled in a child.
fn sandbox_suite(places: &HomePaths) -> Result<Suite, Failure> {
    let compiler = walls::make_compiler()?;
    // Without a cache, the attackers' components are compiled each time.
    let cache_dir = create_private(&places.cache).is_ok().then(|| places.cache.clone());
    Suite::new(SuiteOptions { compiler, cache_dir, probe: None }).map_err(Failure::from)
}

/// The part that attacks a server: this program, in temporary directories.
fn server_part(places: &HomePaths) -> Result<ServerPart, Failure> {
    let cache_dir = create_private(&places.cache).is_ok().then(|| places.cache.clone());
    Ok(ServerPart::new(ServerSetup { program: attacked_program()?, cache_dir }))
}

/// The part that attacks the agent for editors: `belljar acp` of this program, each time in temporary
/// directories.
fn editor_part(places: &HomePaths) -> Result<AcpPart, Failure> {
    let cache = create_private(&places.cache).is_ok().then(|| places.cache.clone());
    Ok(AcpPart::new(attacked_program()?, cache))
}

/// Makes the attacks one after another, so that time and memory can be measured for each. Also returns
/// whether a person stopped it before the last attack.
async fn run_attacks(
    chosen: &[(&dyn ProvePart, Vec<&'static str>)],
    out: &TerminalOutput,
) -> Result<(Vec<AttackReport>, bool), Failure> {
    let number: usize = chosen.iter().map(|(_, ids)| ids.len()).sum();
    let attacks = table::format_quantity(number as u64, "attack");
    out.note(format_args!("{attacks}, one after the other; Ctrl-C ends it"));
    let mut reports = Vec::with_capacity(number);
    let mut enough = std::pin::pin!(tokio::signal::ctrl_c());
    for (part, ids) in chosen {
        part.prepare().await.map_err(Failure::from)?;
        for id in ids {
            // A running attack is completed even after an interrupt, so that it leaves nothing behind.
            let mut cut = false;
            let mut running = std::pin::pin!(part.make_attack(id));
            let report = loop {
                tokio::select! {
                    report = &mut running => break report,
                    _ = &mut enough, if !cut => cut = true,
                }
            };
            reports.push(report);
            if cut {
                return Ok((reports, true));
            }
        }
    }
    Ok((reports, false))
}

/// Prints a table of the attacks, and the details of successful ones.
fn print_reports(reports: &[AttackReport], through: usize, took: Duration, out: &TerminalOutput) {
    let headings = ["attack", "", "stopped by", ">time", ">memory", ">neighbour", ">at worst"];
    let mut table = TextTable::new(out, &headings);
    for report in reports {
        let (style, word) = if report.is_stopped() {
            (TextStyle::Green, "stopped")
        } else {
            (TextStyle::Red, "ESCAPED")
        };
        table.push_row([
            plain_cell(report.id),
            styled_cell(style, word),
            plain_cell(report.stopped_by),
            plain_cell(format_duration(report.elapsed)),
            plain_cell(table::format_size(report.memory_growth_bytes)),
            plain_cell(format_duration(report.neighbour_median)),
            plain_cell(format_duration(report.neighbour_worst)),
        ]);
    }
    table.print_to(out);
    for report in reports {
        if let Err(why) = &report.result {
            out.print_line("");
            out.print_line(out.paint(TextStyle::Red, report.id));
            out.print_line(format_args!("  {}", ShownText::clip_line(why, MAX_WHY)));
        }
    }
    let answers: usize = reports.iter().map(|report| report.neighbour_calls).sum();
    let slowest = reports.iter().map(|report| report.neighbour_worst).max().unwrap_or_default();
    out.print_line("");
    let verdict = if through == 0 {
        out.paint(TextStyle::Green, "none got through")
    } else {
        out.paint(TextStyle::Red, format_args!("{through} got through"))
    };
    out.print_line(format_args!(
        "{} made in {:.1} s, {verdict}; the neighbour answered {} meanwhile, its slowest answer took {}",
        table::format_quantity(reports.len() as u64, "attack"),
        took.as_secs_f64(),
        table::format_quantity(answers as u64, "time"),
        format_duration(slowest),
    ));
}

fn format_duration(time: Duration) -> String {
    table::format_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}
