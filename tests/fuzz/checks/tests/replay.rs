//! Every file of the corpus, and everything that the fuzzer ever found, through the same
//! functions as in the fuzzer, on a stable compiler.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use belljar_fuzz_checks::{Check, TARGETS};

fn fuzz_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Runs a target over a folder and says how many files there were. A failure names its file.
fn replay(folder: &str, target: &str, check: Check) -> usize {
    let dir = fuzz_dir().join(folder).join(target);
    let files = if dir.exists() { names(&dir) } else { BTreeSet::new() };
    for name in &files {
        let data = fs::read(dir.join(name)).unwrap();
        if std::panic::catch_unwind(|| check(&data)).is_err() {
            panic!("{folder}/{target}/{name} breaks a promise of `{target}`");
        }
    }
    files.len()
}

#[test]
fn every_seed_and_every_finding_keeps_its_promises() {
    for (target, check) in TARGETS {
        assert!(replay("corpus", target, *check) >= 5, "`{target}` has too few seeds");
        replay("regressions", target, *check);
    }
}

/// A folder or a binary without a function would never be replayed, and the reverse never be
/// fuzzed.
#[test]
fn targets_folders_and_binaries_are_the_same_set() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&fuzz_dir().join("corpus")), targets);
    let regressions = fuzz_dir().join("regressions");
    assert!(!regressions.exists() || names(&regressions).is_subset(&targets));
    let binaries = names(&fuzz_dir().join("fuzz_targets"));
    let binaries: BTreeSet<_> = binaries.iter().map(|name| name.replace(".rs", "")).collect();
    assert_eq!(binaries, targets);
}

/// A check that never fails would keep nothing.
#[test]
fn a_function_that_panics_is_reported_with_its_file() {
    let broken: Check = |data| assert!(data.len() < 9);
    let failed = std::panic::catch_unwind(|| replay("corpus", "gate", broken)).unwrap_err();
    let message = failed.downcast_ref::<String>().unwrap();
    assert!(message.starts_with("corpus/gate/") && message.ends_with("a promise of `gate`"));
}
