//! Each invariant of `host/SECURITY.md` names code and tests that exist.
//!
//! A row of its table is `| INV-n | claim | code | test |`; the last two hold names in
//! backticks: files of the tree for the code, test functions for the tests. A row of the table of host work
//! ends with names of tests, of attacks or of files of tests.

use super::File;

const PAGE: &str = "host/SECURITY.md";

/// The heading of the table of host work.
const HOST_WORK: &str = "## Host work on a stranger's data";

pub(super) fn breaches(files: &[File]) -> Vec<String> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return vec![format!("`{PAGE}` is missing")];
    };
    let rows: Vec<_> = page.text.lines().filter(|line| line.starts_with("| INV-")).collect();
    if rows.is_empty() {
        return vec![format!("`{PAGE}` lists no invariant")];
    }
    let mut breaches: Vec<_> = rows.iter().flat_map(|row| row_breaches(row, files)).collect();
    breaches.extend(citations(files, &rows));
    breaches.extend(host_work(&page.text, files));
    breaches
}

/// The rows of the table of host work: five cells, of which the last names a proof that exists.
fn host_work(page: &str, files: &[File]) -> Vec<String> {
    let section = page.split(HOST_WORK).nth(1).and_then(|rest| rest.split("\n## ").next());
    let Some(section) = section else {
        return vec![format!("{PAGE}: the section `{HOST_WORK}` is missing")];
    };
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(2);
    rows.flat_map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [work, _worst, _bound, _end, proof] = cells.as_slice() else {
            return vec![format!("{PAGE}: this row does not have five cells: {row}")];
        };
        let mut breaches = Vec::new();
        if names(proof).next().is_none() || cells.iter().any(|cell| cell.is_empty()) {
            breaches.push(format!("{PAGE}: host work `{work}` lacks a cell, or names no test"));
        }
        for name in names(proof).filter(|name| !has_proof(files, name)) {
            breaches
                .push(format!("{PAGE}: host work `{work}` names `{name}`, which does not exist"));
        }
        breaches
    })
    .collect()
}

/// Whether a name is one of a test, of an attack of `prove`, or of a file of tests.
fn has_proof(files: &[File], name: &str) -> bool {
    let attack = format!("\"{name}\",");
    let attacks = || files.iter().filter(|file| file.path.starts_with("host/prove/src/"));
    has_test(files, name)
        || files.iter().any(|file| file.path == name)
        || attacks().any(|file| file.text.contains(&attack))
}

fn row_breaches(row: &str, files: &[File]) -> Vec<String> {
    let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [id, _claim, code, tests] = cells.as_slice() else {
        return vec![format!("{PAGE}: this row does not have four cells: {row}")];
    };
    let mut breaches = Vec::new();
    for (what, cell) in [("code", code), ("test", tests)] {
        if names(cell).next().is_none() {
            breaches.push(format!("{PAGE}: {id} names no {what}"));
        }
    }
    for path in names(code).filter(|path| !files.iter().any(|file| file.path == *path)) {
        breaches.push(format!("{PAGE}: {id} names `{path}`, which does not exist"));
    }
    for test in names(tests).filter(|test| !has_test(files, test)) {
        breaches.push(format!("{PAGE}: {id} names the test `{test}`, which does not exist"));
    }
    breaches
}

/// A comment that cites an invariant cites one that stands on the page.
fn citations(files: &[File], rows: &[&str]) -> Vec<String> {
    let known = |id: &str| rows.iter().any(|row| row.starts_with(&format!("| INV-{id} ")));
    let mut breaches = Vec::new();
    for file in
        files.iter().filter(|file| file.path.ends_with(".rs") && !file.path.contains("xtask"))
    {
        for cited in file.text.split("INV-").skip(1) {
            let id: String = cited.chars().take_while(char::is_ascii_digit).collect();
            if !id.is_empty() && !known(&id) {
                breaches.push(format!("{}: INV-{id} is not in {PAGE}", file.path));
            }
        }
    }
    breaches
}

fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn has_test(files: &[File], name: &str) -> bool {
    let definition = format!("fn {name}(");
    files.iter().any(|file| file.path.ends_with(".rs") && file.text.contains(&definition))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_its_test_is_a_breach() {
        let page = |test: &str| File {
            path: PAGE.into(),
            text: format!("| INV-1 | a claim | `src/a.rs` | `{test}` |\n{HOST_WORK}\n"),
        };
        let code = || File { path: "src/a.rs".into(), text: "fn holds() { /* INV-1 */ }".into() };
        assert!(breaches(&[page("holds"), code()]).is_empty());
        assert_eq!(breaches(&[page("missing"), code()]).len(), 1);
    }

    #[test]
    fn a_row_of_host_work_names_a_test_an_attack_or_a_file_that_exists() {
        let page = |cells: &str| {
            format!("{HOST_WORK}\n\n| a | b |\n| --- |\n{cells}\n\n## Other\n| x |\n")
        };
        let files = [
            File { path: "src/a.rs".into(), text: "fn holds() {}".into() },
            File { path: "host/prove/src/a.rs".into(), text: "id: \"cpu-loop\",".into() },
        ];
        let of = |cells: &str| host_work(&page(cells), &files);
        assert!(of("| work | worst | bound | end | `holds` `cpu-loop` `src/a.rs` |").is_empty());
        for wrong in [
            "| work | worst | bound | end | `missing` |",
            "| work | worst | bound | end | none |",
            "| work | worst |  | end | `holds` |",
            "| work | worst | bound | `holds` |",
        ] {
            assert_eq!(of(wrong).len(), 1, "{wrong}");
        }
        assert_eq!(host_work("no such section", &files).len(), 1);
    }
}
