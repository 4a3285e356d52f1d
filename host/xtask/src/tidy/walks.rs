//! The walks of `host/ARCHITECTURE.md` name functions that exist in the file of their hop.
//!
//! A hop is a row `| number | files | functions |`. Paths in its second cell are relative to `host/`; the first names
//! of its third cell are functions, for example `` `run` → `perform`: what happens ``. Names after the first word of
//! prose are free.

use super::TreeFile;

const PAGE: &str = "host/ARCHITECTURE.md";

/// The walk of a turn over HTTP, from its heading.
const CHAT_TURN: &str = "### A turn of a chat over HTTP";

/// The most functions of that walk: what a reader follows in one sitting.
const MAX_TURN_FUNCTIONS: usize = 14;

pub(super) fn find_breaches(files: &[TreeFile]) -> Vec<String> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return vec![format!("`{PAGE}` is missing")];
    };
    let hops: Vec<_> = page.text.lines().filter_map(parse_hop).collect();
    let mut breaches: Vec<_> = hops.iter().flat_map(|hop| hop_breaches(hop, files)).collect();
    let turn = page.text.split(CHAT_TURN).nth(1).and_then(|rest| rest.split("\n#").next());
    let functions: usize = turn
        .into_iter()
        .flat_map(str::lines)
        .filter_map(parse_hop)
        .map(|hop| hop.functions.len())
        .sum();
    if functions == 0 || functions > MAX_TURN_FUNCTIONS {
        breaches.push(format!(
            "{PAGE}: `{CHAT_TURN}` names {functions} functions; it should name 1 to {MAX_TURN_FUNCTIONS}"
        ));
    }
    breaches
}

/// One row of a walk.
struct WalkHop<'a> {
    files: Vec<&'a str>,
    functions: Vec<&'a str>,
}

/// The hop of a line that is a row with a number.
fn parse_hop(line: &str) -> Option<WalkHop<'_>> {
    let mut cells = line.trim_matches('|').split('|').map(str::trim);
    cells.next()?.parse::<u32>().ok()?;
    let files = quoted_texts(cells.next()?).collect();
    let mut rest = cells.next()?;
    let mut functions = Vec::new();
    while let Some((name, after)) = rest.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
        functions.push(name);
        let next = ["→", ","].iter().find_map(|mark| after.trim_start().strip_prefix(mark));
        match next {
            Some(next) => rest = next.trim_start(),
            None => break,
        }
    }
    Some(WalkHop { files, functions })
}

/// The texts between backticks.
fn quoted_texts(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Files and functions of a hop that do not exist.
fn hop_breaches(hop: &WalkHop<'_>, files: &[TreeFile]) -> Vec<String> {
    let Some(first) = hop.files.first() else {
        return vec![format!("{PAGE}: a hop names no file")];
    };
    let folder = first.rsplit_once('/').map_or("", |(folder, _)| folder);
    let text_of_file = |path: &str| {
        let whole = [format!("host/{path}"), format!("host/{folder}/{path}")];
        files.iter().find(|file| whole.contains(&file.path)).map(|file| file.text.as_str())
    };
    let mut breaches = Vec::new();
    let mut texts = Vec::new();
    for path in hop.files.iter().filter(|path| path.ends_with(".rs")) {
        match text_of_file(path) {
            Some(text) => texts.push(text),
            None => breaches.push(format!("{PAGE}: a hop names `{path}`, which does not exist")),
        }
    }
    for name in &hop.functions {
        let bare = name.rsplit("::").next().unwrap_or(name);
        let defined = format!("fn {bare}");
        let is_defined = texts.iter().any(|text| {
            text.match_indices(&defined)
                .any(|(at, _)| text[at + defined.len()..].starts_with(['(', '<']))
        });
        if !texts.is_empty() && !is_defined {
            breaches.push(format!("{PAGE}: `{first}` has no function `{name}`"));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TreeFile {
        TreeFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_walk_that_names_what_is_not_there_is_a_breach() {
        let page = "\
### A turn of a chat over HTTP

| hop | file | function |
| --- | --- | --- |
| 1 | `a/src/b.rs` | `run` → `B::go`: as `free` says |
| 2 | `a/src/b.rs`, `c.rs` | `store_turn` |
| 3 | `a/src/d.rs` | everything is done |
";
        let code = file("host/a/src/b.rs", "fn run() {}\nimpl B { pub fn go<T>(self) {} }");
        let beside = file("host/a/src/c.rs", "async fn store_turn(");
        let found = |page: &str, beside: &str| {
            let page = file(PAGE, page);
            let beside = file("host/a/src/c.rs", beside);
            find_breaches(&[
                page,
                file("host/a/src/b.rs", &code.text),
                beside,
                file("host/a/src/d.rs", ""),
            ])
        };
        assert_eq!(found(page, &beside.text), [""; 0]);
        assert_eq!(
            found(page, "fn store_turns("),
            ["host/ARCHITECTURE.md: `a/src/b.rs` has no function `store_turn`"]
        );
        let gone = page.replace("`c.rs`", "`gone.rs`");
        assert_eq!(
            found(&gone, &beside.text),
            [
                "host/ARCHITECTURE.md: a hop names `gone.rs`, which does not exist",
                "host/ARCHITECTURE.md: `a/src/b.rs` has no function `store_turn`"
            ]
        );
        let long = page.replace("`run` →", &"`run` → ".repeat(MAX_TURN_FUNCTIONS));
        assert!(found(&long, &beside.text)[0].contains("names 16 functions"));
        assert!(found("", &beside.text)[0].contains("names 0 functions"));
    }
}
