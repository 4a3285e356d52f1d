//! Rule: one word for one thing. Type names of the host do not use the second names the glossary in
//! `host/docs/contributing/words.md` rules out.
//!
//! A row of the glossary is `| word | meaning | second names |`. For example, the row of `jar` lists
//! `container`, so a type `ContainerState` of the host is a breach. A name of another project, such as
//! `OciContainer`, belongs in a comment or in that project's format, not in a type of the host.

use std::collections::{BTreeMap, BTreeSet};

use super::TreeFile;

const PAGE: &str = "host/docs/contributing/words.md";

/// The heading above the table.
const HEADING: &str = "## Glossary";

/// The fewest words of the glossary. With fewer, the table was probably not found, and no name would be
/// checked.
const MIN_WORDS: usize = 30;

/// Names each type of the host whose name contains a second name of the glossary.
pub(super) fn find_breaches(files: &[TreeFile]) -> Vec<String> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return vec![format!("`{PAGE}` is missing")];
    };
    let (second_names, mut breaches) = read_glossary(&page.text);
    let code =
        files.iter().filter(|file| file.path.starts_with("host/") && file.path.ends_with(".rs"));
    for file in code {
        for (number, line) in file.text.lines().enumerate() {
            let Some(name) = defined_type(line) else { continue };
            for (second, word) in second_names.iter().filter(|(second, _)| has_word(name, second)) {
                breaches.push(format!(
                    "{}:{}: the type `{name}` says `{second}`; the glossary says `{word}`",
                    file.path,
                    number + 1
                ));
            }
        }
    }
    breaches
}

/// Reads the glossary. Returns the word of each second name, and faults of the table itself.
fn read_glossary(page: &str) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut words, mut second_names, mut breaches) =
        (BTreeSet::new(), BTreeMap::new(), Vec::new());
    let table = page.split(HEADING).nth(1).unwrap_or_default();
    for row in table.lines().filter(|line| line.starts_with("| ")).skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [word, meaning, others] = cells.as_slice() else {
            breaches.push(format!("{PAGE}: this row does not have three cells: {row}"));
            continue;
        };
        if meaning.is_empty() || !words.insert((*word).to_owned()) {
            breaches.push(format!("{PAGE}: `{word}` has no meaning, or two rows"));
        }
        for second in others.split(',').map(str::trim).filter(|second| !second.is_empty()) {
            second_names.insert(second.to_owned(), (*word).to_owned());
        }
    }
    if words.len() < MIN_WORDS {
        breaches.push(format!("{PAGE}: {} words stand below `{HEADING}`", words.len()));
    }
    let both = second_names.keys().filter(|second| words.contains(*second));
    breaches.extend(both.map(|word| format!("{PAGE}: `{word}` is a word and a second name")));
    (second_names, breaches)
}

/// The name of the type that a line defines, if any.
fn defined_type(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let rest =
        ["struct ", "enum ", "trait ", "union "].iter().find_map(|kind| line.strip_prefix(kind))?;
    rest.split(|letter: char| !letter.is_alphanumeric()).next()
}

/// Whether a type name such as `TenantQuota` contains a glossary word, for example `quota` or `working
/// copy`.
fn has_word(name: &str, word: &str) -> bool {
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    let wanted: String =
        word.split([' ', '-']).filter(|part| !part.is_empty()).map(capital).collect();
    name.match_indices(&wanted)
        .any(|(at, _)| name[at + wanted.len()..].chars().next().is_none_or(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The breaches of some code by a glossary with these rows and [`MIN_WORDS`] filler words.
    fn found(rows: &str, code: &str) -> Vec<String> {
        let filler: String = (1..=MIN_WORDS).map(|n| format!("| w{n} | a meaning | |\n")).collect();
        let page =
            format!("{HEADING}\n\n| word | meaning | not |\n| --- | --- | --- |\n{filler}{rows}");
        let file =
            |path: &str, text: &str| TreeFile { path: path.to_owned(), text: text.to_owned() };
        find_breaches(&[file(PAGE, &page), file("host/a/src/b.rs", code), file("tests/b.rs", code)])
    }

    #[test]
    fn a_type_with_a_second_name_is_a_breach() {
        let rows = "| jar | stores | container |\n| overlay | a view | working copy |\n";
        let code = "pub(crate) struct ContainerState;\nenum Contained {}\npub trait WorkingCopy {}\n// struct Container\n";
        assert_eq!(
            found(rows, code),
            [
                "host/a/src/b.rs:1: the type `ContainerState` says `container`; the glossary says `jar`",
                "host/a/src/b.rs:3: the type `WorkingCopy` says `working copy`; the glossary says `overlay`",
            ]
        );
    }

    #[test]
    fn a_word_has_one_row_and_one_meaning() {
        for rows in
            ["| w1 | again | |\n", "| jar | | |\n", "| jar | stores | w1 |\n", "| jar | stores |\n"]
        {
            assert_eq!(found(rows, "").len(), 1, "{rows}");
        }
        let page = TreeFile { path: PAGE.to_owned(), text: String::new() };
        assert!(find_breaches(&[page])[0].contains("0 words"));
    }
}
