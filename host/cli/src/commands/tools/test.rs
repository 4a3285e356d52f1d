//! `belljar tools test`: a conformance component against the suite of cases.

use std::path::{Path, PathBuf};

use belljar_conformance::{CaseResult, CaseVerdict, SuiteStage};
use belljar_policy::Shown;
use serde_json::{Value, json};

use crate::commands::tools::read_component;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::host;
use crate::setup::walls::{Through, Walls};
use crate::term::out::{Out, Style};
use crate::term::table::{Table, plain, styled};

/// Runs the suite and prints a row for each case. A case that the component offers no tool for fails
/// nothing.
pub(super) fn run(
    component: &Path,
    json: bool,
    places: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    let wasm = read_component(&component.to_string_lossy())?;
    // Before the OS sandbox goes up, because listening on a new address is refused behind it.
    let stage = SuiteStage::new()
        .map_err(|error| Failure::new(format!("the suite has no place to run: {error}")))?;
    let directory = stage.directory().to_path_buf();
    let through = Through {
        temporary: directory.parent().map(Path::to_path_buf).into_iter().collect::<Vec<PathBuf>>(),
        write: vec![directory],
        ..Through::default()
    };
    walls.up(places, &through)?;
    let sandbox = host::sandbox(places, out)?;
    let verdicts = host::runtime()?
        .block_on(belljar_conformance::run(&sandbox, &wasm, &stage))
        .map_err(|error| Failure::from(anyhow::Error::from(error)))?;
    if json {
        out.json(&verdicts.iter().map(as_json).collect::<Vec<_>>())?;
    } else {
        print(&verdicts, out);
    }
    let failed = verdicts.iter().any(|verdict| matches!(verdict.result, CaseResult::Fail(_)));
    Ok(if failed { Exit::Failed } else { Exit::Completed })
}

fn print(verdicts: &[CaseVerdict], out: &Out) {
    let mut table = Table::new(out, &["", "about", "case", ""]);
    for CaseVerdict { group, case, result } in verdicts {
        let (style, word, why) = word(result);
        table.row([styled(style, word), plain(group), plain(case), plain(Shown::new(why))]);
    }
    table.print(out);
    let count =
        |wanted: &str| verdicts.iter().filter(|verdict| word(&verdict.result).1 == wanted).count();
    out.note(format_args!(
        "{} cases: {} pass, {} fail, {} not offered",
        verdicts.len(),
        count("pass"),
        count("fail"),
        count("not offered")
    ));
}

fn word(result: &CaseResult) -> (Style, &'static str, &str) {
    match result {
        CaseResult::Pass => (Style::Green, "pass", ""),
        CaseResult::Fail(why) => (Style::Red, "fail", why),
        CaseResult::NotOffered(why) => (Style::Yellow, "not offered", why),
    }
}

fn as_json(verdict: &CaseVerdict) -> Value {
    let (_, result, why) = word(&verdict.result);
    json!({ "about": verdict.group, "case": verdict.case, "result": result, "why": why })
}
