//! The tables against names that programs' own documentation gives.

use std::path::Path;

use serde::Deserialize;

use super::name::{NamePattern, PathPattern};
use super::table::LaterTables;
use super::*;

fn name(path: &str) -> Option<&'static str> {
    by_name(Path::new(path), false)
}

#[test]
fn the_tables_are_read_and_each_row_has_a_reason_and_a_source() {
    let table = LaterTables::parse_tables().unwrap();
    assert!(table.rows.len() > 60 && table.written_patterns().count() > 1500);
    for row in &table.rows {
        assert!(row.source.len() > 5 && !row.names.is_empty(), "{}", row.program);
    }
    assert!(table.languages.len() > 10);
}

#[test]
fn every_row_is_met_in_every_spelling() {
    for (pattern, row) in LaterTables::parse_tables().unwrap().written_patterns() {
        let path = pattern.replace("**", "some/thing").replace('*', "a");
        let upper = path.to_uppercase();
        let wide: String = path.chars().map(wide).collect();
        let mut hidden = path.clone();
        hidden.insert(1, '\u{200c}');
        for path in [&path, &upper, &wide, &hidden] {
            assert!(name(path).is_some(), "{path}");
        }
        let deep = format!("deep/er/{path}");
        assert!(row.top || name(&deep).is_some(), "{deep}");
    }
}

/// The full-width letter, which is the same one in compatible form.
fn wide(c: char) -> char {
    match c {
        'a'..='z' => char::from_u32(c as u32 - 'a' as u32 + 0xff41).unwrap(),
        other => other,
    }
}

#[test]
fn no_row_stands_twice() {
    let mut seen = std::collections::HashSet::new();
    let all = LaterTables::parse_tables().unwrap();
    let twice: Vec<String> = all
        .written_patterns()
        .map(|(name, _)| name)
        .filter(|it| !seen.insert(it.to_lowercase()))
        .collect();
    assert_eq!(twice, [""; 0]);
}

/// Names of programs' documentation, and ordinary ones.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    program: Vec<Program>,
    ordinary: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    name: String,
    /// Pages of documentation, or of a catalogue of names, that give these.
    source: Vec<String>,
    runs: Vec<String>,
}

fn names() -> Names {
    toml::from_str(include_str!("names.toml")).unwrap()
}

#[test]
fn names_of_programs_documentation_are_met() {
    let all = names().program;
    assert!(all.iter().map(|program| program.runs.len()).sum::<usize>() >= 900);
    for program in &all {
        let pages = program.source.iter().all(|page| page.starts_with("https://"));
        assert!(pages && !program.source.is_empty(), "{}", program.name);
    }
    let missed = all.iter().flat_map(|program| {
        let missed = program.runs.iter().filter(|path| name(path).is_none());
        missed.map(|path| format!("{}: {path}", program.name))
    });
    assert_eq!(missed.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn ordinary_names_are_not_met() {
    let met = names().ordinary.into_iter().filter_map(|path| Some((name(&path)?, path)));
    assert_eq!(met.collect::<Vec<_>>(), []);
}

/// Elsewhere these are ordinary: `docs/tools.md`, `src/features/auth.ts`.
#[test]
fn names_of_the_top_are_met_there_alone() {
    for path in ["TOOLS.md", "knowledge.md", "library/a.py", "features/a.js"] {
        assert!(name(path).is_some(), "{path}");
        assert_eq!(name(&format!("src/{path}")), None, "{path}");
    }
}

#[test]
fn a_name_that_ends_as_tools_own_files_do_is_met() {
    for path in ["Fakefile", "a/TOMORROWFILE", "wm/tomorrowrc"] {
        assert_eq!(name(path), Some(OWN_FILE), "{path}");
    }
    for path in ["file", "profile.rb", "lib/file.txt", "main.src", "a-file", "of_a_file"] {
        assert_eq!(name(path), None, "{path}");
    }
    for dir in ["src", "a/profile"] {
        assert_eq!(by_name(Path::new(dir), true), None, "{dir}");
    }
}

#[test]
fn a_directory_is_no_file_of_its_name() {
    for dir in ["build", "config", "docs/update", "tasks"] {
        assert_eq!(by_name(Path::new(dir), true), None, "{dir}");
    }
    assert!(by_name(Path::new("build"), false).is_some());
    assert!(by_name(Path::new(".git"), true).is_some());
}

/// A workspace may be such a directory itself.
#[test]
fn the_place_of_the_workspace_counts() {
    for (above, path) in
        [("/p/.github", "workflows/x.yml"), ("/p/.git", "config"), ("/p/.claude", "settings.json")]
    {
        assert!(by_place(Path::new(above), Path::new(path), false).is_some(), "{above} {path}");
    }
    // A directory far above is a person's choice of a path, and has no meaning.
    let far = Path::new("/p/.claude/worktrees/a");
    assert_eq!(by_place(far, Path::new("src/a.rs"), false), None);
}

#[test]
fn names_are_read_as_the_most_generous_file_system_does() {
    for path in [
        ".GIT/Hooks/pre-commit",
        ".gi\u{200c}t/config",
        "ma\u{212a}efile",
        "package.json.",
        "package.json::$DATA",
        "MAKEFILE ",
        ".vsc\u{34f}ode/tasks.json",
        "GIT~1/config.txt",
        ".some-tool-of-tomorrow/settings",
        ".vscode/tasks.json",
        "PACKAGE@SWIFT-5.9.SWIFT",
        "plug\u{ff49}ns.sbt",
        "SiteCustomize/__init__.py",
    ] {
        assert!(name(path).is_some(), "{path:?}");
    }
}

/// INV-561.
#[test]
fn a_name_that_is_no_text_is_judged_by_its_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let name = |name: &[u8]| by_name(Path::new(OsStr::from_bytes(name)), false);
    for plain in [&b"caf\xe9.txt"[..], b"d\xff/in.md", b"\xff\xfe", b"src/\xe9.rs"] {
        assert_eq!(name(plain), None, "{plain:?}");
    }
    // Names as read by a file system that drops invalid bytes, and names with invalid bytes in another part.
    for runs in [
        &b"Make\xfffile"[..],
        b"\xff.git/config",
        b".\xe9rc",
        b"d\xff/Makefile",
        b".github/workflows/\xe9.yml",
        b"\xffpackage.json",
    ] {
        assert!(name(runs).is_some(), "{runs:?}");
    }
}

#[test]
fn a_pattern_is_matched_in_one_pass() {
    let many = PathPattern::new(&"*a".repeat(40)).unwrap();
    assert!(many.matches_beginning(&["a".repeat(5000)], false));
    assert!(!many.matches_beginning(&[format!("{}b", "a".repeat(5000))], false));
    for (pattern, like, unlike) in [
        ("a*b", &["ab", "axb", "abb"][..], &["a", "b", "aba"][..]),
        ("a*a", &["aa", "aba"], &["a"]),
        ("*.y*ml", &[".yml", "x.yaml"], &["x.yml.txt", "yml"]),
        ("a*b*c", &["abc", "a-b-c"], &["acb", "ac"]),
        ("exact", &["exact"], &["exactly", "xexact"]),
    ] {
        let pattern = PathPattern::new(pattern).unwrap();
        let first: &NamePattern = pattern.first_name().unwrap();
        like.iter().for_each(|name| assert!(first.is_like(name), "{name}"));
        unlike.iter().for_each(|name| assert!(!first.is_like(name), "{name}"));
    }
    assert_eq!(PathPattern::new("a/**/b"), None);
    assert_eq!(PathPattern::new("a//b"), None);
    assert_eq!(name::expand_braces("a.{b,c}").unwrap(), ["a.b", "a.c"]);
    assert_eq!(name::expand_braces("a.{b"), None);
    assert_eq!(name::expand_braces(&"{a,b}".repeat(30)), None);
}

#[test]
fn source_text_is_code_and_what_people_read_is_not() {
    for path in ["src/lib.rs", "a/B.PY", "test/x.test.ts", "x.sql"] {
        assert!(is_code(Path::new(path)), "{path}");
    }
    for path in ["README.md", "a.txt", "LICENSE", "data.csv", "src/py"] {
        assert!(!is_code(Path::new(path)), "{path}");
    }
}
