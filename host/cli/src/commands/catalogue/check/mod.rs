//! `belljar agents check`: the kinds of files, the agents' future rights, and faults.

mod files;
mod fix;
mod report;
mod verdict;

use std::path::{Path, PathBuf};

use belljar_agent::{Host, canonical};
use belljar_definition::{Catalog, CatalogEntry, Diagnostic, Severity};
use serde_json::Value;

use self::verdict::{Judge, Kind, Verdict};
use crate::args::CheckArgs;
use crate::args::server::TenantArg;
use crate::commands::catalogue::agents;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::walls::{Through, Walls};
use crate::setup::whose::Whose;
use crate::term::out::Out;

pub(crate) fn run(
    args: &CheckArgs,
    of: &TenantArg,
    operator: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    let mut through = Through { read: args.paths.clone(), ..Through::default() };
    if args.fix {
        // A file is written beside the old one, and renamed to it.
        through.write = args.paths.iter().map(|path| folder(path)).collect();
    }
    let whose = Whose::behind(of, operator, walls, through)?;
    let host = whose.host(out)?;
    let workspace = canonical(&whose.places.workspace).map_err(agents::not_found)?;
    let judge = Judge::new(&host, &workspace, args.lenient);
    let (verdicts, problems) = if args.paths.is_empty() {
        (judge.catalog(&host.library.catalog()), host.library.problems())
    } else {
        (judge_paths(&args.paths, &host, &judge)?, Vec::new())
    };
    if args.json {
        let rows: Vec<Value> = verdicts.iter().map(Verdict::as_json).collect();
        out.json(&rows)?;
    } else {
        if args.by_library {
            report::by_library(&args.paths, &verdicts, out);
        } else {
            report::lines(&verdicts, out);
        }
        if verdicts.len() != 1 {
            report::summary(&verdicts, out);
        }
        other_problems(&problems, &verdicts, out);
    }
    if args.paths.is_empty() {
        out.diagnostics(&agents::unknown(&host, &workspace));
    }
    let fixed = if args.fix {
        fix::run(&verdicts, (judge.known(), &workspace), args.in_place, out)
    } else {
        Exit::Completed
    };
    Ok(exit(&verdicts, &problems).worst(fixed))
}

fn folder(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_path_buf();
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

fn judge_paths(paths: &[PathBuf], host: &Host, judge: &Judge<'_>) -> Result<Vec<Verdict>, Failure> {
    let mut verdicts = Vec::new();
    let catalog = host.library.catalog();
    for path in paths {
        let agent = named(path, &catalog);
        let path = match agent {
            // An agent of belljar's own has no file.
            Some(agent) if !agent.definition.path.exists() => {
                verdicts.push(judge.entry(agent));
                continue;
            }
            Some(agent) => &agent.definition.path,
            None => path,
        };
        let mut found = files::judge(&files::find(path)?, judge);
        if !path.is_dir() {
            found.iter_mut().for_each(Verdict::must_be_an_agent);
        }
        verdicts.extend(found);
    }
    Ok(verdicts)
}

/// The agent of this name, where no file is meant.
fn named<'a>(path: &Path, catalog: &'a Catalog) -> Option<&'a CatalogEntry> {
    if path.exists() { None } else { catalog.find(path.to_str()?).ok() }
}

/// Faults of folders and links, which stand in no file's verdict.
fn other_problems(problems: &[Diagnostic], verdicts: &[Verdict], out: &Out) {
    let told = |found: &Diagnostic| verdicts.iter().any(|verdict| verdict.path == found.path);
    let left: Vec<_> = problems.iter().filter(|found| !told(found)).cloned().collect();
    out.diagnostics(&left);
}

/// By the worst of the files.
fn exit(verdicts: &[Verdict], problems: &[Diagnostic]) -> Exit {
    let error = |found: &Diagnostic| found.severity == Severity::Error;
    let has = |kind| verdicts.iter().any(|verdict| verdict.kind == kind);
    let errors = verdicts.iter().flat_map(|verdict| &verdict.diagnostics).chain(problems);
    if has(Kind::Invalid) || errors.into_iter().any(error) {
        Exit::Usage
    } else if has(Kind::Blocked) {
        Exit::NotAllowed
    } else {
        Exit::Completed
    }
}
