//! `belljar agents check`: judges agent files, and shows the rights that their agents would have.

mod files;
mod fix;
mod report;
mod verdict;

use std::path::{Path, PathBuf};

use belljar_agent::{Host, canonicalize_workspace};
use belljar_definition::{Catalog, CatalogEntry, Diagnostic, Severity};
use serde_json::Value;

use self::verdict::{FileJudge, JudgedFile, JudgedFileKind};
use crate::args::CheckArgs;
use crate::args::server::TenantArg;
use crate::commands::catalogue::agents;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::setup::whose::AgentOwner;
use crate::term::out::TerminalOutput;

/// Runs the command: judges the files, prints the verdicts, and with `--fix` writes corrected files.
pub(crate) fn run(
    args: &CheckArgs,
    of: &TenantArg,
    operator: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let mut through = WallGaps { read: args.paths.clone(), ..WallGaps::default() };
    if args.fix {
        // A new file is written beside the old one, and then renamed to it.
        through.write = args.paths.iter().map(|path| parent_folder(path)).collect();
    }
    let whose = AgentOwner::behind_wall(of, operator, walls, through)?;
    let host = whose.build_host(out)?;
    let workspace = canonicalize_workspace(&whose.places.workspace).map_err(agents::not_found)?;
    let judge = FileJudge::new(&host, &workspace, args.lenient);
    let (verdicts, problems) = if args.paths.is_empty() {
        (judge.judge_catalog(&host.library.catalog()), host.library.problems())
    } else {
        (judge_paths(&args.paths, &host, &judge)?, Vec::new())
    };
    if args.json {
        let rows: Vec<Value> = verdicts.iter().map(JudgedFile::as_json).collect();
        out.print_json(&rows)?;
    } else {
        if args.by_library {
            report::by_library(&args.paths, &verdicts, out);
        } else {
            report::print_lines(&verdicts, out);
        }
        if verdicts.len() != 1 {
            report::print_summary(&verdicts, out);
        }
        other_problems(&problems, &verdicts, out);
    }
    if args.paths.is_empty() {
        out.print_diagnostics(&agents::unknown_agents(&host, &workspace));
    }
    let fixed = if args.fix {
        fix::run(&verdicts, (judge.known_tools(), &workspace), args.in_place, out)
    } else {
        CommandExit::Completed
    };
    Ok(verdicts_exit(&verdicts, &problems).worse_of(fixed))
}

/// The directory of a path, which is the path itself if it is a directory.
fn parent_folder(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_path_buf();
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Judges the files for these paths: files, directories, or names of agents.
fn judge_paths(
    paths: &[PathBuf],
    host: &Host,
    judge: &FileJudge<'_>,
) -> Result<Vec<JudgedFile>, Failure> {
    let mut verdicts = Vec::new();
    let catalog = host.library.catalog();
    for path in paths {
        let agent = agent_by_name(path, &catalog);
        let path = match agent {
            // An agent that is part of belljar has no file.
            Some(agent) if !agent.definition.path.exists() => {
                verdicts.push(judge.judge_entry(agent));
                continue;
            }
            Some(agent) => &agent.definition.path,
            None => path,
        };
        let mut found = files::judge_files(&files::find_agent_files(path)?, judge);
        match path.is_dir() {
            true => found.retain(|file| !file.is_other_form()),
            false => found.iter_mut().for_each(JudgedFile::must_be_an_agent),
        }
        verdicts.extend(found);
    }
    Ok(verdicts)
}

/// The agent with this name; `None` = the word means a file.
fn agent_by_name<'a>(path: &Path, catalog: &'a Catalog) -> Option<&'a CatalogEntry> {
    if path.exists() { None } else { catalog.find_by_name(path.to_str()?).ok() }
}

/// Prints faults of folders and links, which are part of no file's verdict.
fn other_problems(problems: &[Diagnostic], verdicts: &[JudgedFile], out: &TerminalOutput) {
    let told = |found: &Diagnostic| verdicts.iter().any(|verdict| verdict.path == found.path);
    let left: Vec<_> = problems.iter().filter(|found| !told(found)).cloned().collect();
    out.print_diagnostics(&left);
}

/// The exit code for the worst of the files.
fn verdicts_exit(verdicts: &[JudgedFile], problems: &[Diagnostic]) -> CommandExit {
    let error = |found: &Diagnostic| found.severity == Severity::Error;
    let has = |kind| verdicts.iter().any(|verdict| verdict.kind == kind);
    let errors = verdicts.iter().flat_map(|verdict| &verdict.diagnostics).chain(problems);
    if has(JudgedFileKind::Invalid) || errors.into_iter().any(error) {
        CommandExit::Usage
    } else if has(JudgedFileKind::Blocked) {
        CommandExit::NotAllowed
    } else {
        CommandExit::Completed
    }
}
