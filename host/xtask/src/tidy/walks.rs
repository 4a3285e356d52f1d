//! Rule: the walks of `host/ARCHITECTURE.md` (step-by-step paths through the code) name functions that exist
//! in the stated files.
//!
//! A path is whole, for example `` `server/src/http/gate.rs` ``: relative to `host/`, or to the root of the repository.
//! A hop is a row `| number | files | functions |`. The first names of its third cell are functions, for example
//! `` `run` → `perform`: what happens ``. Names after the first word of prose are free.

use std::collections::BTreeSet;
use std::path::Path;

use super::TreeFile;

const PAGE: &str = "host/ARCHITECTURE.md";

/// Walks with a bound, by their heading: the most functions that a reader follows in one sitting.
const BOUNDED_WALKS: &[(&str, usize)] = &[
    ("### A turn of a chat over HTTP", 14),
    ("### A tool call over MCP", 12),
    ("### An event on its way to the page", 8),
];

/// Names in the form of a path that are no file of the repository.
const FOREIGN_PATHS: &[&str] = &["mcp/NAME.json"];

pub(super) fn find_breaches(root: &Path, files: &[TreeFile]) -> Vec<String> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return vec![format!("`{PAGE}` is missing")];
    };
    let hops: Vec<_> = page.text.lines().filter_map(parse_hop).collect();
    let mut breaches: Vec<_> = hops.iter().flat_map(|hop| hop_breaches(hop, files)).collect();
    breaches.extend(missing_paths(root, &page.text));
    for (heading, most) in BOUNDED_WALKS {
        let walk = page.text.split(heading).nth(1).and_then(|rest| rest.split("\n#").next());
        let hops = walk.into_iter().flat_map(str::lines).filter_map(parse_hop);
        let functions: usize = hops.map(|hop| hop.functions.len()).sum();
        if functions == 0 || functions > *most {
            breaches.push(format!(
                "{PAGE}: `{heading}` names {functions} functions; it should name 1 to {most}"
            ));
        }
    }
    breaches
}

/// Paths of the page that are neither a file nor a directory.
fn missing_paths(root: &Path, page: &str) -> Vec<String> {
    // Code blocks have no paths.
    let paths = page.split("```").step_by(2).flat_map(quoted_texts).filter(|text| is_path(text));
    let exists = |path: &str| root.join("host").join(path).exists() || root.join(path).exists();
    let missing: BTreeSet<&str> = paths.filter(|path| !exists(path)).collect();
    let breach =
        |path| format!("{PAGE}: `{path}` does not exist; write the whole path from `host/`");
    missing.into_iter().map(breach).collect()
}

/// Whether a quoted text has the form of a path: a name with a slash in it, or of a Rust file.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let inner = text.trim_end_matches('/').contains('/') && !text.starts_with('/');
    text.chars().all(plain)
        && (inner || text.ends_with('/') || text.ends_with(".rs"))
        && !FOREIGN_PATHS.contains(&text)
}

/// One row of a walk.
struct WalkHop<'a> {
    files: Vec<&'a str>,
    functions: Vec<&'a str>,
}

/// The hop in a line, if the line is a table row that begins with a number.
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

/// Names files and functions of a hop that do not exist.
fn hop_breaches(hop: &WalkHop<'_>, files: &[TreeFile]) -> Vec<String> {
    let Some(first) = hop.files.first() else {
        return vec![format!("{PAGE}: a hop names no file")];
    };
    let text_of_file = |path: &str| {
        let whole = format!("host/{path}");
        files.iter().find(|file| file.path == whole).map(|file| file.text.as_str())
    };
    let mut breaches = Vec::new();
    let texts: Vec<&str> = hop.files.iter().filter_map(|path| text_of_file(path)).collect();
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

    /// A directory with empty files at these paths.
    fn tree_of(paths: &[&str]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for path in paths {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        tree
    }

    #[test]
    fn a_walk_that_names_what_is_not_there_is_a_breach() {
        let walk = "\
| hop | file | function |
| --- | --- | --- |
| 1 | `a/src/b.rs` | `run` → `B::go`: as `free` says |
| 2 | `a/src/b.rs`, `a/src/c.rs` | `store_turn` |
| 3 | `a/src/d.rs` | everything is done |
";
        let page: String =
            BOUNDED_WALKS.iter().map(|(heading, _)| format!("{heading}\n\n{walk}\n")).collect();
        let tree = tree_of(&["host/a/src/b.rs", "host/a/src/c.rs", "host/a/src/d.rs"]);
        let found = |page: &str, beside: &str| {
            let files = [
                file(PAGE, page),
                file("host/a/src/b.rs", "fn run() {}\nimpl B { pub fn go<T>(self) {} }"),
                file("host/a/src/c.rs", beside),
                file("host/a/src/d.rs", ""),
            ];
            find_breaches(tree.path(), &files)
        };
        let beside = "async fn store_turn(";
        assert_eq!(found(&page, beside), [""; 0]);
        let unknown = "host/ARCHITECTURE.md: `a/src/b.rs` has no function `store_turn`";
        assert_eq!(found(&page, "fn store_turns("), [unknown; BOUNDED_WALKS.len()]);
        let gone = found(&page.replace("`a/src/c.rs`", "`c.rs`"), beside);
        assert!(gone.last().is_some_and(|last| last.contains("`c.rs` does not exist")), "{gone:?}");
        let long = page.replace("`run` →", &"`run` → ".repeat(20));
        assert!(found(&long, beside)[0].contains("names 22 functions"));
        assert!(found("", beside)[0].contains("names 0 functions"));
    }

    #[test]
    fn a_path_of_the_page_is_whole_and_exists() {
        let page = "`a/src/b.rs` `a/src/` `tools/x` `b.rs` `a/src/gone.rs` `a/sr` `a` `read/write`\n\
                    ```text\nDIR/`x/y`\n```\n`/mcp` `mcp/NAME.json` `belljar.toml` `a/*/b`";
        let tree = tree_of(&["host/a/src/b.rs", "tools/x/tool.toml"]);
        let missing = missing_paths(tree.path(), page).join("\n");
        for path in ["a/src/gone.rs", "a/sr", "b.rs", "read/write"] {
            assert!(missing.contains(&format!("`{path}` does not exist")), "{path}: {missing}");
        }
        assert_eq!(missing.lines().count(), 4, "{missing}");
    }
}
