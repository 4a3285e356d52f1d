//! The verdict over all cases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use serde::Deserialize;

use crate::case::folder;
use crate::{Case, Expected, Outcome};

/// Cases on which bash and dash agree: fewer would not be the test that was promised.
const MIN_AGREED: usize = 300;

/// Of those, how many of a hundred must pass.
const MIN_PERCENT: usize = 95;

/// The results of the cases so far.
#[derive(Debug, Default)]
pub struct Report {
    topics: BTreeMap<String, Row>,
    /// Failures of agreed cases: title and faults.
    failed: BTreeMap<String, Vec<String>>,
    /// Differences from bash where dash differs too.
    bash_only_failed: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Default)]
struct Row {
    agreed: usize,
    passed: usize,
    bash_only: usize,
    bash_only_passed: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownFailures {
    #[serde(default)]
    failure: Vec<KnownFailure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownFailure {
    case: String,
    reason: String,
    /// Only this build fails; absent: both.
    only: Option<Build>,
}

/// Which build of the shell runs the cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Build {
    /// A program of this machine.
    Native,
    /// The component, in jars.
    Component,
}

impl Report {
    /// Adds one case.
    pub fn add(&mut self, case: &Case, expected: &Expected, seen: &Outcome) {
        let row = self.topics.entry(case.topic.clone()).or_default();
        let (expected, ran, passed, failed) = match expected {
            Expected::Agreed(outcome) => {
                (outcome, &mut row.agreed, &mut row.passed, &mut self.failed)
            }
            Expected::BashOnly(outcome) => {
                (outcome, &mut row.bash_only, &mut row.bash_only_passed, &mut self.bash_only_failed)
            }
        };
        *ran += 1;
        let faults = seen.faults(expected);
        if faults.is_empty() {
            *passed += 1;
        } else {
            let before = failed.insert(case.title(), faults);
            assert!(before.is_none(), "two cases are called `{}`", case.title());
        }
    }

    /// The summary, and every difference.
    pub fn summary(&self) -> String {
        let mut text = String::from("topic             agreed passed   bash only passed\n");
        let mut all = Row::default();
        for (topic, row) in &self.topics {
            line(&mut text, topic, row);
            all.agreed += row.agreed;
            all.passed += row.passed;
            all.bash_only += row.bash_only;
            all.bash_only_passed += row.bash_only_passed;
        }
        line(&mut text, "all", &all);
        for (heading, failed) in [
            ("unlike bash and dash", &self.failed),
            ("unlike bash, where dash differs from it", &self.bash_only_failed),
        ] {
            for (title, faults) in failed {
                let _ = writeln!(text, "{heading}: {title}\n    {}", faults.join("\n    "));
            }
        }
        text
    }

    /// The faults of the result as a whole; empty when the test passes.
    pub fn verdict(&self, build: Build) -> Vec<String> {
        let known = known(build);
        let failed: BTreeSet<&String> = self.failed.keys().collect();
        let mut faults: Vec<String> = failed
            .iter()
            .filter(|title| !known.contains(**title))
            .map(|title| format!("`{title}` fails"))
            .collect();
        let stale = known.iter().filter(|title| !failed.contains(title));
        faults.extend(stale.map(|title| format!("`{title}` is listed as failing and passes")));
        let agreed: usize = self.topics.values().map(|row| row.agreed).sum();
        let passed: usize = self.topics.values().map(|row| row.passed).sum();
        if agreed < MIN_AGREED {
            faults.push(format!("bash and dash agree on {agreed} cases, fewer than {MIN_AGREED}"));
        }
        if passed * 100 < agreed * MIN_PERCENT {
            faults.push(format!("{passed} of {agreed} pass, less than {MIN_PERCENT} %"));
        }
        faults
    }
}

fn line(text: &mut String, name: &str, row: &Row) {
    let Row { agreed, passed, bash_only, bash_only_passed } = row;
    let _ = writeln!(text, "{name:16} {agreed:7}{passed:7}{bash_only:12}{bash_only_passed:7}");
}

fn known(build: Build) -> BTreeSet<String> {
    let path = folder().join("known_failures.toml");
    let text = fs::read_to_string(&path).expect("the list of known failures is there");
    let list: KnownFailures =
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for failure in &list.failure {
        assert!(!failure.reason.is_empty(), "`{}` needs a reason", failure.case);
    }
    let here =
        list.failure.into_iter().filter(|failure| failure.only.is_none_or(|only| only == build));
    here.map(|failure| failure.case).collect()
}
