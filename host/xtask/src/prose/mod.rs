//! `cargo xtask prose`: measures the names and the comments of the code in `host/`.
//!
//! At a name of one word or a pronoun, a reader has to look elsewhere for the noun. The measures are rates,
//! for example pronouns in 1,000 words, so they can be compared with other projects. `cargo xtask tidy`
//! refuses a rate above its ceiling. A change that lowers a rate also lowers the ceiling; no change raises a
//! ceiling.
//!
//! For example, `struct State` counts as a type name of one word; `struct LoginState` does not.

mod count;

use std::collections::BTreeMap;

use crate::tidy::TreeFile;
use count::{WordCounts, count_words};

/// One row of the printed table.
struct ProseMeasure {
    name: &'static str,
    /// The present rate in this repository.
    now: f64,
    /// The highest rate that `cargo xtask tidy` accepts.
    ceiling: f64,
    /// The rate to reach: chosen from the rates of seven other projects.
    goal: f64,
}

/// Prints the table of measures.
pub(crate) fn print_table(files: &[TreeFile]) {
    let words = count_all(files);
    crate::print_line(&format!("{:<44} {:>7} {:>8} {:>6}", "measure", "now", "ceiling", "goal"));
    for measure in take_measures(&words) {
        let ProseMeasure { name, now, ceiling, goal } = measure;
        crate::print_line(&format!("{name:<44} {now:>7.1} {ceiling:>8.1} {goal:>6.1}"));
    }
    crate::print_line("names of types that stand in most modules:");
    for (name, modules) in frequent_types(&words) {
        crate::print_line(&format!("  {name} {modules}"));
    }
}

/// A message for each measure above its ceiling.
pub(crate) fn find_breaches(files: &[TreeFile]) -> Vec<String> {
    let words = count_all(files);
    let above = take_measures(&words).into_iter().filter(|measure| measure.now > measure.ceiling);
    above
        .map(|ProseMeasure { name, now, ceiling, .. }| {
            format!("prose: {name}: {now:.1}, more than {ceiling:.1}; see `cargo xtask prose`")
        })
        .collect()
}

fn count_all(files: &[TreeFile]) -> WordCounts {
    let mut words = WordCounts::default();
    for file in files.iter().filter(|file| is_measured(&file.path)) {
        count_words(&file.text, &mut words);
    }
    words
}

/// Whether a file is measured: code of the host, without tests, because the names of tests are sentences.
fn is_measured(path: &str) -> bool {
    path.starts_with("host/")
        && path.ends_with(".rs")
        && !path.contains("/tests/")
        && !path.ends_with("/tests.rs")
}

fn take_measures(words: &WordCounts) -> [ProseMeasure; 6] {
    let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    let rate = |part: usize| 1_000.0 * part as f64 / words.comment_words.max(1) as f64;
    let types = words.types.values().sum();
    let short_types =
        words.types.iter().filter(|(name, _)| is_one_word(name)).map(|(_, n)| n).sum();
    let measure = |name, now, ceiling, goal| ProseMeasure { name, now, ceiling, goal };
    [
        measure("types of one word, %", share(short_types, types), CEILINGS[0], 30.0),
        measure(
            "functions of one word, %",
            share(words.functions_of_one_word, words.functions),
            CEILINGS[1],
            45.0,
        ),
        measure("functions `of` and `of_...`", words.functions_of as f64, CEILINGS[2], 20.0),
        measure("pronouns in 1,000 words of comments", rate(words.pronouns), CEILINGS[3], 80.0),
        measure("clauses without a noun in 1,000 words", rate(words.clauses), CEILINGS[4], 1.0),
        // Here a higher rate is better, so there is no ceiling.
        measure("`for example` in 1,000 words", rate(words.examples), f64::INFINITY, 1.5),
    ]
}

/// Whether a type name is one word: the only capital letter is the first.
fn is_one_word(name: &str) -> bool {
    name.chars().skip(1).all(|letter| !letter.is_uppercase())
}

/// The names that most types share, up to ten, each with its number of types, from three types on.
fn frequent_types(words: &WordCounts) -> Vec<(&str, usize)> {
    let by_count: BTreeMap<_, _> = words.types.iter().map(|(name, n)| ((*n, name), ())).collect();
    let often = by_count.into_keys().rev().filter(|(n, _)| *n > 2).take(10);
    often.map(|(n, name)| (name.as_str(), n)).collect()
}

/// The ceilings of the first five measures. A change may lower a ceiling, and never raises one.
const CEILINGS: [f64; 5] = [10.0, 15.0, 2.0, 66.0, 0.6];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_above_its_ceiling_is_a_breach_and_tests_are_not_measured() {
        let text = "//! It is what it does: it, its, they, them.\nfn of_it() {}\n".repeat(300);
        let file = |path: &str| TreeFile { path: path.to_owned(), text: text.clone() };
        let found = find_breaches(&[file("host/a/src/b.rs")]);
        assert!(found.iter().any(|breach| breach.contains("pronouns")), "{found:?}");
        assert!(found.iter().any(|breach| breach.contains("`of_...`")), "{found:?}");
        for path in ["host/a/src/b/tests.rs", "host/a/tests/it/b.rs", "tests/e2e/b.rs"] {
            assert_eq!(find_breaches(&[file(path)]), [""; 0]);
        }
    }
}
