//! Rules about public names. A name a crate exports is used outside of the crate, or is listed here as
//! useful for embedders only. And two crates do not export types of the same name, because a reader would
//! have to look up each use.

use std::collections::{BTreeMap, BTreeSet};

use super::TreeFile;

/// Exported names no crate of this workspace uses, by crate. These are types an embedder meets in a public
/// signature and may have to write, and traits that documentation refers to.
const FOR_EMBEDDERS: &[(&str, &[&str])] = &[
    (
        "host/agent",
        &[
            "AgentBuildError",
            "CallerSchemas",
            "Finding",
            "MemberOutcome",
            "NoAsker",
            "NoJournal",
            "PlannedChild",
            "StageOutcome",
        ],
    ),
    (
        "host/overlay",
        &["ApplyRecovery", "ChangeConflict", "KeptCopies", "OriginalState", "OverlayError"],
    ),
    ("host/conformance", &["ConformanceError"]),
    (
        "host/definition",
        &[
            "AgentIdError",
            "CommandSpec",
            "ContextSetting",
            "DefaultGrant",
            "MAX_SKILL",
            "MAX_TEAM",
            "MAX_TOML",
            "McpOauthSetting",
            "NarrowingField",
            "NotKept",
            "SkippedFile",
            "SourceSnippet",
            "SubagentPolicy",
            "TaskTemplate",
            "ToolSetting",
            "ToolTranslation",
            "UnavailableTool",
        ],
    ),
    ("host/guest_build", &["FoundToolchain"]),
    ("host/mcp", &["AcceptedError", "LeftOut", "ServerError"]),
    (
        "host/model",
        &[
            "ConfigError",
            "EndpointError",
            "KeyError",
            "RecordingError",
            "RoleAlias",
            "RoleAssignment",
            "ScriptMismatch",
            "UnplayedTurns",
        ],
    ),
    ("host/policy", &["HostList", "HostPattern", "InvalidName", "Port"]),
    ("host/prove", &["AttackKind", "SoakReport", "scene"]),
    (
        "host/sandbox",
        &[
            "CallBytes",
            "CallTimes",
            "Import",
            "JarBuildError",
            "JarError",
            "LogLine",
            "RECEIPT_VERSION",
        ],
    ),
    ("host/server", &["NoKeys", "ProblemKind", "StdioError"]),
    ("host/session", &["RECORD_VERSION"]),
    ("host/store", &["MAX_AGENTS_BYTES", "MAX_JSON_BYTES", "MAX_TENANT_NAME", "UnknownWord"]),
];

/// Type names that several crates may export: a type of another project, and two types `Kind` (of attacks,
/// of problems) that are never used together.
const SHARED: &[&str] = &["CancellationToken", "Kind"];

/// The folders whose code counts as a user of host crates.
const USERS: &[&str] = &["host/", "tests/"];

pub(super) fn find_breaches(files: &[TreeFile]) -> Vec<String> {
    let code = |file: &&TreeFile| {
        file.path.ends_with(".rs")
            && USERS.iter().any(|folder| file.path.starts_with(folder))
            // A name in `FOR_EMBEDDERS` is not a use.
            && !file.path.ends_with("tidy/public.rs")
    };
    let words: Vec<(&str, BTreeSet<&str>)> = files
        .iter()
        .filter(code)
        .map(|file| (file.path.as_str(), distinct_words(&file.text)))
        .collect();
    let mut breaches = shared_type_breaches(files);
    for file in files {
        let Some(root) = file.path.strip_suffix("/src/lib.rs") else { continue };
        if !root.starts_with("host/") {
            continue;
        }
        let own = format!("{root}/src/");
        let listed = FOR_EMBEDDERS.iter().find(|(path, _)| *path == root);
        let listed = listed.map_or(&[][..], |(_, names)| names);
        let used = |name: &str| {
            words.iter().any(|(path, words)| !path.starts_with(&own) && words.contains(name))
        };
        let public = exported_names(&file.text);
        for name in public.iter().filter(|name| !used(name) && !listed.contains(&name.as_str())) {
            breaches.push(format!(
                "{}: `{name}` is public and used by nothing outside; make it `pub(crate)`, or list \
                 it for embedders in host/xtask/src/tidy/public.rs",
                file.path
            ));
        }
        for name in listed.iter().filter(|name| used(name) || !public.contains(**name)) {
            breaches.push(format!(
                "host/xtask/src/tidy/public.rs: `{name}` of {root} needs no place in the list"
            ));
        }
    }
    breaches
}

/// Types of the same name that two crates export.
fn shared_type_breaches(files: &[TreeFile]) -> Vec<String> {
    let mut first: BTreeMap<String, &str> = BTreeMap::new();
    let mut breaches = Vec::new();
    for file in files {
        if !file.path.starts_with("host/") || !file.path.ends_with("/src/lib.rs") {
            continue;
        }
        // A type that is re-exported from another crate of the workspace is the same type.
        let own = |statement: &&str| !statement.contains(concat!("pub use ", "belljar_"));
        let own: String = file.text.split_inclusive(';').filter(own).collect();
        let is_type = |name: &String| {
            name.starts_with(char::is_uppercase) && !SHARED.contains(&name.as_str())
        };
        for name in exported_names(&own).into_iter().filter(is_type) {
            match first.get(&name) {
                None => drop(first.insert(name, &file.path)),
                Some(other) => breaches.push(format!(
                    "{}: `{name}` is the name of another type in {other}; say what this one is",
                    file.path
                )),
            }
        }
    }
    breaches
}

/// The names a crate's root exports, by `pub use` and `pub mod`.
fn exported_names(root: &str) -> BTreeSet<String> {
    let code: String =
        root.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let mut names = BTreeSet::new();
    for statement in code.split(';') {
        if let Some((_, path)) = statement.split_once("pub use ") {
            // The name of each part is the text after the last `::`, `{` or ` as `.
            for part in path.split([',', '}']) {
                let name = part.rsplit(['{', ':', ' ']).find(|word| !word.trim().is_empty());
                names.extend(name.map(|name| name.trim().to_owned()));
            }
        } else if let Some((_, module)) = statement.rsplit_once("pub mod ") {
            names.insert(module.trim().to_owned());
        }
    }
    names
}

fn distinct_words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TreeFile {
        TreeFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn the_names_of_a_root_are_read_in_every_form() {
        let root = "mod a;\npub mod b;\npub use a::One; // pub use a::No;\npub use a::{\n    Two, \
                    c::Three, d::{Four as Five},\n};\n";
        let names: Vec<String> = exported_names(root).into_iter().collect();
        assert_eq!(names, ["Five", "One", "Three", "Two", "b"]);
    }

    #[test]
    fn a_public_name_that_nothing_outside_uses_is_a_breach() {
        let library = file("host/a/src/lib.rs", "pub use b::{Used, Unused};");
        let inside = file("host/a/src/b.rs", "pub struct Unused; pub struct Used;");
        let outside = file("host/c/src/main.rs", "use a::Used;");
        let found = find_breaches(&[library, inside, outside]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`Unused` is public"), "{found:?}");
    }

    #[test]
    fn a_name_of_two_types_is_a_breach_and_one_type_shown_twice_is_none() {
        let first = file("host/a/src/lib.rs", "pub use b::Thing;\npub use c::run;");
        let other = file("host/d/src/lib.rs", "pub use e::Thing;\npub use f::run;");
        let again = file("host/g/src/lib.rs", concat!("pub use ", "belljar_a::Thing;"));
        let found = shared_type_breaches(&[first, other, again]);
        assert!(matches!(found.as_slice(), [one] if one.starts_with("host/d/")), "{found:?}");
    }

    #[test]
    fn a_listed_name_that_is_used_or_gone_leaves_the_list() {
        let library = file("host/server/src/lib.rs", "pub use b::Other;");
        let outside = file("host/c/src/main.rs", "use a::Other;");
        let found = find_breaches(&[library, outside]);
        assert!(found.iter().any(|found| found.contains("`NoKeys`")), "{found:?}");
    }
}
