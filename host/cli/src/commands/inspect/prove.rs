//! `belljar prove`: attacks on this machine's belljar, made in this process, with the result of each.
//!
//! Attacks on the sandbox run without the OS sandbox, which must not hide gaps of the sandbox; attacks on the
//! OS sandbox run in children, behind it; attacks on the server and on the editors' agent run against
//! processes started like every `belljar serve` and `belljar acp`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use belljar_policy::Shown;
use belljar_prove::{AcpPart, Libraries, Options, ProvePart, Report, ServerPart, Setup, Suite};
use serde_json::json;

use crate::args::ProveArgs;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{Places, create_private};
use crate::setup::host;
use crate::setup::walls;
use crate::term::out::{Out, Style};
use crate::term::table::{self, Table, plain, styled};

/// Characters of what got through, below the table.
const MAX_WHY: usize = 2_000;

pub(crate) fn run(args: &ProveArgs, places: &Places, out: &Out) -> Result<Exit, Failure> {
    let parts = parts(args, places)?;
    let chosen: Vec<(&dyn ProvePart, Vec<&'static str>)> = parts
        .iter()
        .map(|part| (&**part, chosen(&**part, args.only.as_deref())))
        .filter(|(_, ids)| !ids.is_empty())
        .collect();
    if chosen.is_empty() {
        let word = Shown::clipped(args.only.as_deref().unwrap_or_default(), 80);
        return Err(Failure::usage(format!("no attack has `{word}` in its name"))
            .hint("names begin with what is attacked: cpu, memory, output, files, network, secrets, component, agents, server, acp, wall, libraries"));
    }
    let begun = Instant::now();
    let (reports, cut) = host::runtime()?.block_on(made(&chosen, out))?;
    let took = begun.elapsed();
    let through = reports.iter().filter(|report| !report.is_stopped()).count();
    if args.json {
        out.json(&json!({
            "attacks": reports,
            "made": reports.len(),
            "got_through": through,
            "seconds": took.as_secs_f64(),
        }))?;
    } else {
        show(&reports, through, took, out);
    }
    Ok(match (through, cut) {
        (0, false) => Exit::Completed,
        (0, true) => Exit::Cancelled,
        _ => Exit::Failed,
    })
}

/// The parts named on the command line; all without a name.
fn parts(args: &ProveArgs, places: &Places) -> Result<Vec<Box<dyn ProvePart>>, Failure> {
    let all = !(args.sandbox || args.server || args.editor || args.wall || args.libraries);
    let mut parts: Vec<Box<dyn ProvePart>> = Vec::new();
    if all || args.sandbox {
        parts.push(Box::new(suite(places)?));
    }
    if all || args.server {
        parts.push(Box::new(server(places)?));
    }
    if all || args.editor {
        parts.push(Box::new(editor(places)?));
    }
    if all || args.libraries {
        parts.push(Box::new(Libraries::new(program()?)));
    }
    #[cfg(target_os = "linux")]
    if all || args.wall {
        parts.push(Box::new(crate::commands::inspect::prove_wall::part()?));
    }
    Ok(parts)
}

fn chosen(part: &dyn ProvePart, only: Option<&str>) -> Vec<&'static str> {
    part.ids().into_iter().filter(|id| only.is_none_or(|word| id.contains(word))).collect()
}

/// The attacked program: this one.
fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::new(format!("failed to find the running program: {error}")))
}

/// The sandbox that is attacked: set up as for every run, components compiled in a child.
fn suite(places: &Places) -> Result<Suite, Failure> {
    let compiler = walls::compiler()?;
    // Without a cache the guests are compiled each time.
    let cache_dir = create_private(&places.cache).is_ok().then(|| places.cache.clone());
    Suite::new(Options { compiler, cache_dir, probe: None }).map_err(Failure::from)
}

/// The attacked server: this program, in temporary directories.
fn server(places: &Places) -> Result<ServerPart, Failure> {
    let cache_dir = create_private(&places.cache).is_ok().then(|| places.cache.clone());
    Ok(ServerPart::new(Setup { program: program()?, cache_dir }))
}

/// The attacked editors' agent: `belljar acp` of this program, each time in temporary directories.
fn editor(places: &Places) -> Result<AcpPart, Failure> {
    let cache = create_private(&places.cache).is_ok().then(|| places.cache.clone());
    Ok(AcpPart::new(program()?, cache))
}

/// Makes the attacks, one at a time: times and memory are each one's own. Also says whether a
/// person had enough before the last.
async fn made(
    chosen: &[(&dyn ProvePart, Vec<&'static str>)],
    out: &Out,
) -> Result<(Vec<Report>, bool), Failure> {
    let number: usize = chosen.iter().map(|(_, ids)| ids.len()).sum();
    let attacks = table::some(number as u64, "attack");
    out.note(format_args!("{attacks}, one after the other; Ctrl-C ends it"));
    let mut reports = Vec::with_capacity(number);
    let mut enough = std::pin::pin!(tokio::signal::ctrl_c());
    for (part, ids) in chosen {
        part.prepare().await.map_err(Failure::from)?;
        for id in ids {
            // The running attack is completed, so that it leaves nothing behind.
            let mut cut = false;
            let mut running = std::pin::pin!(part.make(id));
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

fn show(reports: &[Report], through: usize, took: Duration, out: &Out) {
    let headings = ["attack", "", "stopped by", ">time", ">memory", ">neighbour", ">at worst"];
    let mut table = Table::new(out, &headings);
    for report in reports {
        let (style, word) =
            if report.is_stopped() { (Style::Green, "stopped") } else { (Style::Red, "ESCAPED") };
        table.row([
            plain(report.id),
            styled(style, word),
            plain(report.stopped_by),
            plain(time(report.elapsed)),
            plain(table::size(report.memory_growth_bytes)),
            plain(time(report.neighbour_median)),
            plain(time(report.neighbour_worst)),
        ]);
    }
    table.print(out);
    for report in reports {
        if let Err(why) = &report.result {
            out.line("");
            out.line(out.paint(Style::Red, report.id));
            out.line(format_args!("  {}", Shown::clipped(why, MAX_WHY)));
        }
    }
    let answers: usize = reports.iter().map(|report| report.neighbour_calls).sum();
    let slowest = reports.iter().map(|report| report.neighbour_worst).max().unwrap_or_default();
    out.line("");
    let verdict = if through == 0 {
        out.paint(Style::Green, "none got through")
    } else {
        out.paint(Style::Red, format_args!("{through} got through"))
    };
    out.line(format_args!(
        "{} made in {:.1} s, {verdict}; the neighbour answered {} meanwhile, its slowest answer took {}",
        table::some(reports.len() as u64, "attack"),
        took.as_secs_f64(),
        table::some(answers as u64, "time"),
        time(slowest),
    ));
}

fn time(time: Duration) -> String {
    table::micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}
