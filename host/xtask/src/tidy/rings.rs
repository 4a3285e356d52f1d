//! Rule: inside a crate, imports run one way. Modules that import each other in a ring are really one module
//! in several files. A ring of up to three modules is allowed, for modules that would be harder to read if
//! split.

use std::collections::{BTreeMap, BTreeSet};

use super::TreeFile;

/// The most modules of an allowed ring.
const MOST: usize = 3;

/// The beginning of an inline test module. Imports of tests do not count.
const TESTS: &str = "#[cfg(test)]\nmod tests {";

/// The imports of one crate, by module.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Names each ring of more than [`MOST`] modules.
pub(super) fn find_breaches(files: &[TreeFile]) -> Vec<String> {
    let mut crates: BTreeMap<&str, Vec<(String, &str)>> = BTreeMap::new();
    for file in files {
        let Some((root, inner)) = file.path.split_once("/src/") else { continue };
        if !root.starts_with("host/") || !inner.ends_with(".rs") || is_test(inner) {
            continue;
        }
        crates.entry(root).or_default().push((module_path(inner), &file.text));
    }
    let mut breaches = Vec::new();
    for (root, modules) in crates {
        for ring in
            find_rings(&module_imports(&modules)).into_iter().filter(|ring| ring.len() > MOST)
        {
            breaches.push(format!(
                "{root}: {} modules import each other: {}; move what they share below them",
                ring.len(),
                ring.join(", ")
            ));
        }
    }
    breaches
}

fn is_test(inner: &str) -> bool {
    inner.ends_with("tests.rs") || inner.contains("tests/")
}

/// The path of a module by its file: `a/b.rs` and `a/b/mod.rs` are `a::b`; the crate's root is empty.
fn module_path(inner: &str) -> String {
    let path = inner.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if ["lib", "main", "mod"].contains(&path) { String::new() } else { path.replace('/', "::") }
}

fn module_imports(modules: &[(String, &str)]) -> Imports {
    let known: BTreeSet<&str> = modules.iter().map(|(name, _)| name.as_str()).collect();
    let mut imports = Imports::new();
    for (name, text) in modules {
        let text = text.split(TESTS).next().unwrap_or_default();
        let code: String = text.lines().map(without_comment).collect::<Vec<_>>().join("\n");
        let mut found = BTreeSet::new();
        for path in imported_paths(&code) {
            let Some(absolute) = absolute_path(name, &path) else { continue };
            // The longest beginning of the path that names a module; the rest names items in the module.
            let target = (1..=absolute.len()).rev().find_map(|end| {
                let path = absolute.get(..end)?.join("::");
                known.contains(path.as_str()).then_some(path)
            });
            found.extend(target.filter(|target| target != name));
        }
        imports.insert(name.clone(), found);
    }
    imports
}

fn without_comment(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// The imported paths that begin with `crate`, `super` or `self`. A group in braces gives several paths.
fn imported_paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = code.get(..at).and_then(|before| before.chars().next_back());
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                continue;
            }
            collect_paths(code.get(at..).unwrap_or_default(), &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Reads paths such as `a::b::{c, d::e}` from the beginning of `text`. Returns the rest of the text.
fn collect_paths<'t>(
    mut text: &'t str,
    begun: &mut Vec<String>,
    found: &mut Vec<Vec<String>>,
) -> &'t str {
    let depth = begun.len();
    loop {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        if !word.is_empty() {
            begun.push(word.to_owned());
        }
        text = match rest.strip_prefix("::") {
            Some(more) if more.starts_with('{') => {
                let mut inner = more.get(1..).unwrap_or_default().trim_start();
                while !inner.is_empty() && !inner.starts_with('}') {
                    inner = collect_paths(inner, begun, found);
                    // Skips an alias (`as x`), and a comma.
                    let next = inner.find([',', '}']).unwrap_or(inner.len());
                    inner = inner.get(next..).unwrap_or_default();
                    inner = inner.strip_prefix(',').unwrap_or(inner).trim_start();
                }
                begun.truncate(depth);
                return inner.strip_prefix('}').unwrap_or(inner);
            }
            Some(more) if !word.is_empty() => more,
            _ => {
                found.push(begun.clone());
                begun.truncate(depth);
                return rest;
            }
        };
    }
}

/// A path relative to the crate's root.
fn absolute_path(module: &str, path: &[String]) -> Option<Vec<String>> {
    let mut base: Vec<String> = match path.first()?.as_str() {
        "crate" => Vec::new(),
        _ => module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect(),
    };
    for part in path {
        match part.as_str() {
            "crate" | "self" => {}
            "super" => {
                base.pop()?;
            }
            name => base.push(name.to_owned()),
        }
    }
    Some(base)
}

/// The sets of modules in which every module reaches every other, by Tarjan's algorithm.
fn find_rings(imports: &Imports) -> Vec<Vec<String>> {
    let mut search = RingSearch::over_imports(imports);
    for module in imports.keys() {
        if !search.index.contains_key(module.as_str()) {
            search.visit_module(module);
        }
    }
    search.rings
}

struct RingSearch<'a> {
    imports: &'a Imports,
    index: BTreeMap<&'a str, usize>,
    open: Vec<&'a str>,
    rings: Vec<Vec<String>>,
}

impl<'a> RingSearch<'a> {
    fn over_imports(imports: &'a Imports) -> Self {
        Self { imports, index: BTreeMap::new(), open: Vec::new(), rings: Vec::new() }
    }

    /// Visits a module and the modules that it imports. Returns the lowest number that is reached; if that
    /// is the module's own, the modules visited since are a ring.
    fn visit_module(&mut self, module: &'a str) -> usize {
        let own = self.index.len();
        self.index.insert(module, own);
        self.open.push(module);
        let mut lowest = own;
        for next in self.imports.get(module).into_iter().flatten() {
            let next = next.as_str();
            match self.index.get(next) {
                None => lowest = lowest.min(self.visit_module(next)),
                Some(seen) if self.open.contains(&next) => lowest = lowest.min(*seen),
                Some(_) => {}
            }
        }
        if lowest == own {
            let from = self.open.iter().position(|open| *open == module).unwrap_or_default();
            let mut ring: Vec<String> =
                self.open.split_off(from).into_iter().map(str::to_owned).collect();
            ring.sort();
            if ring.len() > 1 {
                self.rings.push(ring);
            }
        }
        lowest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TreeFile {
        TreeFile { path: format!("host/a/src/{path}.rs"), text: text.to_owned() }
    }

    #[test]
    fn four_modules_in_a_ring_are_a_breach_and_three_are_none() {
        let four = [
            file("b", "use crate::c::C;"),
            file("c/mod", "use super::{b, d::{D, E}};\nmod x;"),
            file("d", "fn f() { crate::e::g() }"),
            file("e", "use crate::{\n    b::B as Other,\n};"),
        ];
        let found = find_breaches(&four);
        assert!(found[0].contains("4 modules") && found[0].contains("b, c, d, e"), "{found:?}");
        let three = [&four[0], &four[1], &file("d", "use crate::b::B;")]
            .map(|file| TreeFile { path: file.path.clone(), text: file.text.clone() });
        assert!(find_breaches(&three).is_empty());
    }

    #[test]
    fn comments_tests_and_what_is_no_module_tie_nothing() {
        let one_way = [
            file("b", "use crate::c::C;\nuse crate::B;"),
            file("c", "//! [`crate::d`]\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}"),
            file("d", "use crate::b::B;\nuse other_crate::c;"),
        ];
        assert!(find_breaches(&one_way).is_empty());
        let imports = module_imports(&[
            ("a::b".to_owned(), "use super::c::{self, D};"),
            ("a::c".to_owned(), ""),
        ]);
        assert!(imports["a::b"].contains("a::c"));
    }
}
