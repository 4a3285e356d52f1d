//! Rule: each invariant of the pages in `host/docs/security/` names code and tests that exist.
//!
//! A table row of these pages is `| INV-n | claim | code | test |`. The code cell names files, and the test
//! cell names test functions, both in backticks. The claim is short; details are a paragraph `**INV-n.**
//! ...` below the table. A row of the table of host work ends with names of tests, attacks or test files.
//! The front page `host/SECURITY.md` lists all pages.

use std::collections::BTreeMap;

use super::TreeFile;

const FRONT: &str = "host/SECURITY.md";

/// The folder of the pages.
const PAGES: &str = "host/docs/security/";

/// The page with the table of host work, and the heading of that table.
const HOST_WORK_PAGE: &str = "host/docs/security/host-work.md";
const HOST_WORK: &str = "## Host work on a stranger's data";

/// The most characters of a claim: two or three sentences, as many as a reader takes in at once.
const MAX_CLAIM: usize = 300;

/// A table row of a page.
struct InvariantRow<'a> {
    page: &'a str,
    line: &'a str,
}

impl InvariantRow<'_> {
    /// The id of the invariant, for example `INV-1`.
    fn id(&self) -> &str {
        self.line.trim_matches('|').split('|').next().unwrap_or_default().trim()
    }
}

/// Checks the front page, every row of the pages, and the citations in comments.
pub(super) fn find_breaches(files: &[TreeFile]) -> Vec<String> {
    let Some(front) = files.iter().find(|file| file.path == FRONT) else {
        return vec![format!("`{FRONT}` is missing")];
    };
    let is_page = |file: &&TreeFile| file.path.starts_with(PAGES) && file.path.ends_with(".md");
    let pages: Vec<_> = files.iter().filter(is_page).collect();
    let rows: Vec<_> = pages.iter().flat_map(|page| find_rows(page)).collect();
    if rows.is_empty() {
        return vec![format!("`{PAGES}` lists no invariant")];
    }
    let mut breaches = front_page_breaches(front, &pages);
    breaches.extend(rows.iter().flat_map(|row| row_breaches(row, files)));
    breaches.extend(repeated_id_breaches(&rows));
    breaches.extend(detail_breaches(&pages));
    breaches.extend(citation_breaches(files, &rows));
    match pages.iter().find(|page| page.path == HOST_WORK_PAGE) {
        Some(page) => breaches.extend(host_work(&page.text, files)),
        None => breaches.push(format!("`{HOST_WORK_PAGE}` is missing")),
    }
    breaches
}

fn find_rows(page: &TreeFile) -> impl Iterator<Item = InvariantRow<'_>> {
    let lines = page.text.lines().filter(|line| line.starts_with("| INV-"));
    lines.map(|line| InvariantRow { page: &page.path, line })
}

/// Faults of the front page: a page that the front page does not list, or a row on the front page itself.
fn front_page_breaches(front: &TreeFile, pages: &[&TreeFile]) -> Vec<String> {
    let is_listed = |page: &TreeFile| {
        let link = page.path.strip_prefix("host/").unwrap_or(&page.path);
        front.text.contains(&format!("]({link}) |"))
    };
    let missing = pages.iter().filter(|page| !is_listed(page));
    let mut breaches: Vec<_> = missing
        .map(|page| format!("{FRONT}: `{}` is not in the list of areas", page.path))
        .collect();
    for row in find_rows(front) {
        breaches
            .push(format!("{FRONT}: {} belongs to the page of its area in `{PAGES}`", row.id()));
    }
    breaches
}

/// Ids with more than one row, on the same page or on several pages.
fn repeated_id_breaches(rows: &[InvariantRow<'_>]) -> Vec<String> {
    let mut pages = BTreeMap::<_, Vec<_>>::new();
    for row in rows {
        pages.entry(row.id()).or_default().push(row.page);
    }
    let several = pages.into_iter().filter(|(_, pages)| pages.len() > 1);
    several.map(|(id, pages)| format!("{id} has several rows: in {}", pages.join(", "))).collect()
}

/// Paragraphs with details of an id without row on the same page.
fn detail_breaches(pages: &[&TreeFile]) -> Vec<String> {
    let mut breaches = Vec::new();
    for page in pages {
        for line in page.text.lines().filter(|line| line.starts_with("**INV-")) {
            let id = line.trim_start_matches('*').split('.').next().unwrap_or_default();
            if !find_rows(page).any(|row| row.id() == id) {
                breaches.push(format!("{}: details of {id}, which has no row there", page.path));
            }
        }
    }
    breaches
}

/// Faults in the table of host work: each row has five cells, and the last cell names a proof that exists.
fn host_work(page: &str, files: &[TreeFile]) -> Vec<String> {
    const PAGE: &str = HOST_WORK_PAGE;
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
        if test_names(proof).next().is_none() || cells.iter().any(|cell| cell.is_empty()) {
            breaches.push(format!("{PAGE}: host work `{work}` lacks a cell, or names no test"));
        }
        for name in test_names(proof).filter(|name| !has_proof(files, name)) {
            breaches
                .push(format!("{PAGE}: host work `{work}` names `{name}`, which does not exist"));
        }
        breaches
    })
    .collect()
}

/// Whether a name is the name of a test, of an attack of `prove`, or of a test file.
fn has_proof(files: &[TreeFile], name: &str) -> bool {
    let attack = format!("\"{name}\",");
    let attacks = || files.iter().filter(|file| file.path.starts_with("host/prove/src/"));
    has_test(files, name)
        || files.iter().any(|file| file.path == name)
        || attacks().any(|file| file.text.contains(&attack))
}

/// Checks a row: four cells, a short claim, and existing code files and tests.
fn row_breaches(row: &InvariantRow<'_>, files: &[TreeFile]) -> Vec<String> {
    let InvariantRow { page, line } = row;
    let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [id, claim, code, tests] = cells.as_slice() else {
        return vec![format!("{page}: this row does not have four cells: {line}")];
    };
    let mut breaches = Vec::new();
    let length = claim.chars().count();
    if length > MAX_CLAIM {
        breaches.push(format!(
            "{page}: the claim of {id} has {length} characters, more than {MAX_CLAIM}; \
             details go below the table"
        ));
    }
    for (what, cell) in [("code", code), ("test", tests)] {
        if test_names(cell).next().is_none() {
            breaches.push(format!("{page}: {id} names no {what}"));
        }
    }
    for path in test_names(code).filter(|path| !files.iter().any(|file| file.path == *path)) {
        breaches.push(format!("{page}: {id} names `{path}`, which does not exist"));
    }
    for test in test_names(tests).filter(|test| !has_test(files, test)) {
        breaches.push(format!("{page}: {id} names the test `{test}`, which does not exist"));
    }
    breaches
}

/// Comments that cite an invariant without a row.
fn citation_breaches(files: &[TreeFile], rows: &[InvariantRow<'_>]) -> Vec<String> {
    let known = |id: &str| rows.iter().any(|row| row.id().strip_prefix("INV-") == Some(id));
    let mut breaches = Vec::new();
    for file in
        files.iter().filter(|file| file.path.ends_with(".rs") && !file.path.contains("xtask"))
    {
        for cited in file.text.split("INV-").skip(1) {
            let id: String = cited.chars().take_while(char::is_ascii_digit).collect();
            if !id.is_empty() && !known(&id) {
                breaches.push(format!("{}: INV-{id} has no row in `{PAGES}`", file.path));
            }
        }
    }
    breaches
}

fn test_names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn has_test(files: &[TreeFile], name: &str) -> bool {
    let definition = format!("fn {name}(");
    files.iter().any(|file| file.path.ends_with(".rs") && file.text.contains(&definition))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with a front page that lists the areas, the page of host work, and a page of invariants with a
    /// test.
    fn make_tree(front: &str, rows: &str) -> Vec<TreeFile> {
        let file = |path: &str, text: String| TreeFile { path: path.into(), text };
        vec![
            file(FRONT, format!("| [a](docs/security/a.md) | b |\n{front}\n")),
            file("host/docs/security/a.md", format!("{rows}\n")),
            file(HOST_WORK_PAGE, format!("{HOST_WORK}\n")),
            file("src/a.rs", "fn holds() { /* INV-1 */ }".into()),
        ]
    }

    const LISTED: &str = "| [w](docs/security/host-work.md) | w |";

    fn make_row(id: u32, claim: &str) -> String {
        format!("| INV-{id} | {claim} | `src/a.rs` | `holds` |\n")
    }

    #[test]
    fn a_row_without_its_test_is_a_breach() {
        let claim = "é".repeat(MAX_CLAIM);
        assert_eq!(find_breaches(&make_tree(LISTED, &make_row(1, &claim))), [""; 0]);
        let missing = make_row(1, "a claim").replace("holds", "missing");
        assert_eq!(find_breaches(&make_tree(LISTED, &missing)).len(), 1);
        assert_eq!(
            find_breaches(&make_tree(LISTED, &make_row(2, "a claim"))).len(),
            1,
            "INV-1 is cited"
        );
    }

    #[test]
    fn a_claim_that_is_too_long_is_a_breach() {
        let claim = "é".repeat(MAX_CLAIM + 1);
        let [breach] = &find_breaches(&make_tree(LISTED, &make_row(1, &claim)))[..] else {
            panic!("one breach expected");
        };
        assert!(breach.contains("INV-1 has 301 characters"), "{breach}");
    }

    #[test]
    fn an_id_that_stands_twice_is_a_breach_on_one_page_and_on_two() {
        let twice = make_row(1, "a") + &make_row(1, "b");
        let [breach] = &find_breaches(&make_tree(LISTED, &twice))[..] else {
            panic!("one breach expected");
        };
        assert!(breach.starts_with("INV-1 has several rows"), "{breach}");
        let mut files = make_tree(LISTED, &make_row(1, "a"));
        files[2].text.push_str(&make_row(1, "b"));
        assert!(find_breaches(&files)[0].contains("a.md, host/docs/security/host-work.md"));
    }

    #[test]
    fn a_page_outside_of_the_list_of_areas_is_a_breach() {
        let [breach] = &find_breaches(&make_tree("", &make_row(1, "a")))[..] else {
            panic!("one breach expected");
        };
        assert!(
            breach.contains("`host/docs/security/host-work.md` is not in the list"),
            "{breach}"
        );
        let on_the_front = format!("{LISTED}\n{}", make_row(3, "a"));
        assert!(
            find_breaches(&make_tree(&on_the_front, &make_row(1, "a")))[0]
                .contains("INV-3 belongs to")
        );
    }

    #[test]
    fn details_stand_on_the_page_of_their_row() {
        let page = make_row(1, "a") + "\n**INV-1.** More.\n";
        assert_eq!(find_breaches(&make_tree(LISTED, &page)), [""; 0]);
        let page = make_row(1, "a") + "\n**INV-12.** More.\n";
        assert!(find_breaches(&make_tree(LISTED, &page))[0].contains("details of INV-12"));
    }

    #[test]
    fn a_row_of_host_work_names_a_test_an_attack_or_a_file_that_exists() {
        let page = |cells: &str| {
            format!("{HOST_WORK}\n\n| a | b |\n| --- |\n{cells}\n\n## Other\n| x |\n")
        };
        let files = [
            TreeFile { path: "src/a.rs".into(), text: "fn holds() {}".into() },
            TreeFile { path: "host/prove/src/a.rs".into(), text: "id: \"cpu-loop\",".into() },
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
