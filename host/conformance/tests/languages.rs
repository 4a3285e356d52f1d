//! Runs the whole conformance suite with the component of every language, and compares the results with the
//! table in the guide.
//!
//! Environment variables: `BELLJAR_WRITE_DOCS=1` writes the table in `host/docs/languages.md` instead of
//! comparing it. `BELLJAR_CONFORMANCE_DIR` names another folder of components, for example the components
//! that `cargo xtask test guests --all` has just built. `BELLJAR_CONFORMANCE_ONLY=c,go` runs only these
//! languages, and ignores the table.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use belljar_conformance::{CaseResult, CaseVerdict, SuiteStage};
use belljar_sandbox::{Sandbox, SandboxConfig, Wasm};
use flate2::read::DeflateDecoder;

/// The file name of a language's component, and the language's name in the table.
const LANGUAGES: &[(&str, &str)] = &[
    ("rust", "Rust"),
    ("python", "Python"),
    ("javascript", "JavaScript"),
    ("c", "C"),
    ("cpp", "C++"),
    ("go", "Go"),
    ("zig", "Zig"),
    ("assemblyscript", "AssemblyScript"),
];

/// The lines before and after the table in the guide.
const BEGIN: &str = "<!-- made by host/conformance/tests/languages.rs -->";
const END: &str = "<!-- end -->";

#[tokio::test(flavor = "multi_thread")]
async fn every_language_passes_what_it_offers_and_the_guide_has_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let folder = std::env::var_os("BELLJAR_CONFORMANCE_DIR")
        .map_or_else(|| root.join("tests/conformance/components"), PathBuf::from);
    let (mut results, mut failures) = (BTreeMap::new(), Vec::new());
    let only = std::env::var("BELLJAR_CONFORMANCE_ONLY").ok();
    let chosen =
        |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|one| one == name));
    for (name, title) in LANGUAGES.iter().filter(|(name, _)| chosen(name)) {
        let begun = Instant::now();
        let verdicts = verdicts(name, unpacked(&folder, name)).await;
        for verdict in &verdicts {
            if let CaseResult::Fail(why) = &verdict.result {
                failures.push(format!("{name}: {}: {}: {why}", verdict.group, verdict.case));
            }
        }
        println!("{name}: {} cases in {:.1} s", verdicts.len(), begun.elapsed().as_secs_f64());
        results.insert(*title, verdicts);
    }
    assert!(failures.is_empty(), "{} faults:\n{}", failures.len(), failures.join("\n"));
    if only.is_some() {
        return;
    }
    compare(&root.join("host/docs/languages.md"), &table(&results));
}

/// Changes the conformance component of C in two places: one tool reports that its subject is not possible,
/// another tool answers wrongly.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_fails_and_what_is_not_possible_is_told_with_its_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut wasm = unpacked(&root.join("tests/conformance/components"), "c");
    replace(&mut wasm, b"Answers the text.", b"not possible: why");
    replace(&mut wasm, b"reported", b"repotred");
    let verdicts = verdicts("changed", wasm).await;
    let of = |case: &str| &verdicts.iter().find(|verdict| verdict.case == case).unwrap().result;
    assert_eq!(*of("an empty text is an answer"), CaseResult::NotOffered("why".to_owned()));
    assert!(
        matches!(of("progress arrives in order"), CaseResult::Fail(why) if why.contains("repotred"))
    );
    // The other cases pass.
    assert_eq!(*of("a file is read"), CaseResult::Pass);
    assert_eq!(*of("each level arrives with its message"), CaseResult::Pass);
}

fn unpacked(folder: &Path, name: &str) -> Vec<u8> {
    let packed = std::fs::read(folder.join(format!("{name}.wasm.deflate")));
    let packed = packed.unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut wasm = Vec::new();
    DeflateDecoder::new(packed.as_slice()).read_to_end(&mut wasm).unwrap();
    wasm
}

async fn verdicts(name: &str, wasm: Vec<u8>) -> Vec<CaseVerdict> {
    // The cache saves time: compiling an interpreter takes longer than all cases.
    let cache_dir = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance-cache"));
    let sandbox = Sandbox::new(SandboxConfig { cache_dir, ..SandboxConfig::default() }).unwrap();
    let stage = SuiteStage::new().unwrap();
    let run = belljar_conformance::run_cases(&sandbox, &Wasm::new(wasm), &stage).await;
    run.unwrap_or_else(|error| panic!("{name}: {error}: {:?}", std::error::Error::source(&error)))
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
}

/// The table: a row for each subject, a column for each language.
fn table(results: &BTreeMap<&str, Vec<CaseVerdict>>) -> String {
    let columns: Vec<(&str, &Vec<CaseVerdict>)> =
        LANGUAGES.iter().filter_map(|(_, title)| Some((*title, results.get(title)?))).collect();
    let mut groups: Vec<&str> = Vec::new();
    for verdict in columns.iter().flat_map(|(_, verdicts)| verdicts.iter()) {
        if !groups.contains(&verdict.group.as_str()) {
            groups.push(&verdict.group);
        }
    }
    let mut text = String::new();
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    writeln!(text, "| | {} |", titles.join(" | ")).unwrap();
    writeln!(text, "| --- |{}", " --- |".repeat(titles.len())).unwrap();
    for group in &groups {
        let cells: Vec<String> =
            columns.iter().map(|(_, verdicts)| cell(verdicts, group)).collect();
        writeln!(text, "| {group} | {} |", cells.join(" | ")).unwrap();
    }
    let mut notes = String::new();
    for (title, verdicts) in &columns {
        for verdict in *verdicts {
            if let CaseResult::NotOffered(reason) = &verdict.result {
                writeln!(notes, "- {title}: *{}* is not possible: {reason}.", verdict.case)
                    .unwrap();
            }
        }
    }
    let cases = columns.first().map_or(0, |(_, verdicts)| verdicts.len());
    writeln!(text, "\nEach passes what it can offer of {cases} cases.").unwrap();
    if !notes.is_empty() {
        writeln!(text, "\n{}", notes.trim_end()).unwrap();
    }
    text
}

fn cell(verdicts: &[CaseVerdict], group: &str) -> String {
    let of_group: Vec<_> = verdicts.iter().filter(|verdict| verdict.group == group).collect();
    let passed = of_group.iter().filter(|verdict| verdict.result == CaseResult::Pass).count();
    match passed == of_group.len() {
        true => format!("pass ({passed})"),
        false => format!("{passed} of {}", of_group.len()),
    }
}

fn compare(page: &Path, table: &str) {
    let text = std::fs::read_to_string(page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page has no table");
    let (found, after) = rest.split_once(END).expect("the page has no end of its table");
    let made = format!("\n\n{table}\n");
    if std::env::var_os("BELLJAR_WRITE_DOCS").is_some() {
        std::fs::write(page, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
        return;
    }
    assert!(
        found == made,
        "`{}` shows other results: run this test with BELLJAR_WRITE_DOCS=1",
        page.display()
    );
}
