//! `belljar tools test`: runs a conformance component through the suite of cases, for authors of SDKs.

use std::path::{Path, PathBuf};

use belljar_conformance::{CaseResult, CaseVerdict, SuiteStage};
use belljar_policy::ShownText;
use serde_json::{Value, json};

use crate::commands::tools::read_component;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host;
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell, styled_cell};

/// Runs the suite, and prints a row for each case. A case for which the component has no tool does not count
/// as failed.
pub(super) fn run(
    component: &Path,
    json: bool,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let wasm = read_component(&component.to_string_lossy())?;
    // Made before the OS sandbox is raised, because a new listening address is refused behind it.
    let stage = SuiteStage::new()
        .map_err(|error| Failure::new(format!("the suite has no place to run: {error}")))?;
    let directory = stage.directory().to_path_buf();
    let through = WallGaps {
        temporary: directory.parent().map(Path::to_path_buf).into_iter().collect::<Vec<PathBuf>>(),
        write: vec![directory],
        ..WallGaps::default()
    };
    walls.raise_for(places, &through)?;
    let sandbox = host::make_sandbox(places, out)?;
    let verdicts = host::make_runtime()?
        .block_on(belljar_conformance::run_cases(&sandbox, &wasm, &stage))
        .map_err(|error| Failure::from(anyhow::Error::from(error)))?;
    if json {
        out.print_json(&verdicts.iter().map(as_json).collect::<Vec<_>>())?;
    } else {
        print_verdicts(&verdicts, out);
    }
    let failed = verdicts.iter().any(|verdict| matches!(verdict.result, CaseResult::Fail(_)));
    Ok(if failed { CommandExit::Failed } else { CommandExit::Completed })
}

/// Prints a table of the cases, and the number of each result.
fn print_verdicts(verdicts: &[CaseVerdict], out: &TerminalOutput) {
    let mut table = TextTable::new(out, &["", "about", "case", ""]);
    for CaseVerdict { group, case, result } in verdicts {
        let (style, word, why) = result_word(result);
        table.push_row([
            styled_cell(style, word),
            plain_cell(group),
            plain_cell(case),
            plain_cell(ShownText::new(why)),
        ]);
    }
    table.print_to(out);
    let count = |wanted: &str| {
        verdicts.iter().filter(|verdict| result_word(&verdict.result).1 == wanted).count()
    };
    out.note(format_args!(
        "{} cases: {} pass, {} fail, {} not offered",
        verdicts.len(),
        count("pass"),
        count("fail"),
        count("not offered")
    ));
}

/// The result as a word, with its colour and the reason.
fn result_word(result: &CaseResult) -> (TextStyle, &'static str, &str) {
    match result {
        CaseResult::Pass => (TextStyle::Green, "pass", ""),
        CaseResult::Fail(why) => (TextStyle::Red, "fail", why),
        CaseResult::NotOffered(why) => (TextStyle::Yellow, "not offered", why),
    }
}

fn as_json(verdict: &CaseVerdict) -> Value {
    let (_, result, why) = result_word(&verdict.result);
    json!({ "about": verdict.group, "case": verdict.case, "result": result, "why": why })
}
