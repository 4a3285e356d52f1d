//! Each invariant of `host/SECURITY.md` names code and tests that exist.
//!
//! A row of its table is `| INV-n | claim | code | test |`; the last two hold names in
//! backticks: files of the tree for the code, test functions for the tests.

use super::File;

const PAGE: &str = "host/SECURITY.md";

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
    breaches
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
            text: format!("| INV-1 | a claim | `src/a.rs` | `{test}` |\n"),
        };
        let code = || File { path: "src/a.rs".into(), text: "fn holds() { /* INV-1 */ }".into() };
        assert!(breaches(&[page("holds"), code()]).is_empty());
        assert_eq!(breaches(&[page("missing"), code()]).len(), 1);
    }
}
