//! Rule: between crates, imports run one way. A table lists which workspace crates each crate may depend on.

use super::TreeFile;

/// The allowed dependencies of each crate on other workspace crates, outside of tests.
const EDGES: &[(&str, &[&str])] = &[
    ("host/policy", &[]),
    ("host/work", &[]),
    ("host/received", &[]),
    ("host/definition", &["belljar-policy", "belljar-received"]),
    ("host/os_sandbox", &[]),
    ("host/engine", &[]),
    ("host/overlay", &["belljar-policy", "belljar-work"]),
    (
        "host/sandbox",
        &[
            "belljar-policy",
            "belljar-received",
            "belljar-work",
            "belljar-os-sandbox",
            "belljar-engine",
            "belljar-overlay",
        ],
    ),
    ("host/conformance", &["belljar-policy", "belljar-sandbox"]),
    (
        "host/mcp",
        &[
            "belljar-policy",
            "belljar-received",
            "belljar-os-sandbox",
            "belljar-sandbox",
            "belljar-work",
        ],
    ),
    ("host/model", &["belljar-received"]),
    ("host/store", &["belljar-policy"]),
    (
        "host/catalogue",
        &[
            "belljar-policy",
            "belljar-work",
            "belljar-definition",
            "belljar-os-sandbox",
            "belljar-sandbox",
            "belljar-mcp",
            "belljar-model",
        ],
    ),
    (
        "host/agent",
        &[
            "belljar-policy",
            "belljar-received",
            "belljar-work",
            "belljar-definition",
            "belljar-sandbox",
            "belljar-mcp",
            "belljar-model",
            "belljar-os-sandbox",
            "belljar-overlay",
            "belljar-catalogue",
        ],
    ),
    (
        "host/session",
        &[
            "belljar-policy",
            "belljar-work",
            "belljar-definition",
            "belljar-model",
            "belljar-store",
            "belljar-catalogue",
            "belljar-agent",
            "belljar-overlay",
        ],
    ),
    (
        "host/server",
        &[
            "belljar-policy",
            "belljar-received",
            "belljar-work",
            "belljar-overlay",
            "belljar-definition",
            "belljar-catalogue",
            "belljar-agent",
            "belljar-session",
            "belljar-store",
        ],
    ),
    (
        "host/acp",
        &[
            "belljar-policy",
            "belljar-received",
            "belljar-work",
            "belljar-overlay",
            "belljar-definition",
            "belljar-agent",
            "belljar-session",
            "belljar-store",
        ],
    ),
    (
        "host/cli",
        &[
            "belljar-policy",
            "belljar-received",
            "belljar-work",
            "belljar-acp",
            "belljar-overlay",
            "belljar-conformance",
            "belljar-definition",
            "belljar-sandbox",
            "belljar-mcp",
            "belljar-model",
            "belljar-catalogue",
            "belljar-agent",
            "belljar-session",
            "belljar-server",
            "belljar-store",
            "belljar-prove",
            "belljar-os-sandbox",
            "belljar-guest-build",
            // Only for the build script, which compiles the stock tools.
            "belljar-engine",
            "belljar-overlay",
        ],
    ),
    ("host/guest_build", &[]),
    ("host/xtask", &["belljar-engine", "belljar-guest-build"]),
    // The attacks run where tools and agents run; their guests stay on the other side.
    (
        "host/prove",
        &[
            "belljar-policy",
            "belljar-work",
            "belljar-definition",
            "belljar-sandbox",
            "belljar-model",
            "belljar-catalogue",
            "belljar-agent",
        ],
    ),
];

/// Crates of others that few crates of the host may name, by the beginning of the name: what runs strangers' code and
/// what confines the process is read in these crates alone.
const RESERVED: &[(&str, &[&str])] = &[
    ("wasmtime", &["host/engine", "host/sandbox", "host/xtask"]),
    ("landlock", &["host/os_sandbox"]),
    ("seccompiler", &["host/os_sandbox"]),
];

/// Crates that guests and hostile guests may name.
const GUEST_EDGES: &[&str] = &["belljar-guest"];

pub(super) fn find_breaches(files: &[TreeFile]) -> Vec<String> {
    let mut breaches = Vec::new();
    for file in files {
        let Some(folder) = file.path.strip_suffix("/Cargo.toml") else { continue };
        let allowed = if folder.starts_with("tools/") || folder.starts_with("host/prove/guests/") {
            GUEST_EDGES
        } else if let Some((_, allowed)) = EDGES.iter().find(|(path, _)| *path == folder) {
            allowed
        } else {
            continue;
        };
        let is_reserved = |name: &str| {
            let mut rows = RESERVED.iter().filter(|(begin, _)| name.starts_with(begin));
            rows.any(|(_, users)| !users.contains(&folder))
        };
        let is_refused = |name: &&str| match name.starts_with("belljar-") {
            true => !allowed.contains(name),
            false => is_reserved(name),
        };
        for name in dependencies(&file.text).filter(is_refused) {
            breaches
                .push(format!("{}: `{name}` is not an import that this crate may have", file.path));
        }
    }
    breaches
}

/// Names in `[dependencies]`; test-only dependencies are free.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    manifest.lines().filter_map(move |line| {
        if line.starts_with('[') {
            inside = line.trim() == "[dependencies]" || line.ends_with(".dependencies]");
        }
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let is_name = !name.is_empty() && !name.starts_with(['[', '#']);
        (inside && is_name).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_that_runs_the_wrong_way_is_a_breach() {
        let file =
            |text: &str| TreeFile { path: "host/policy/Cargo.toml".into(), text: text.into() };
        let wrong = file("[dependencies]\nbelljar-session.workspace = true\n");
        assert_eq!(find_breaches(&[wrong]).len(), 1);
        let test_only = file("[dev-dependencies]\nbelljar-kit.workspace = true\n");
        assert!(find_breaches(&[test_only]).is_empty());
    }

    #[test]
    fn an_engine_or_a_wall_is_named_by_its_own_crates_alone() {
        let file = |folder: &str, text: &str| TreeFile {
            path: format!("{folder}/Cargo.toml"),
            text: text.into(),
        };
        let runs = "[dependencies]\n# The engine.\nwasmtime-wasi.workspace = true\nserde = \"1\"\n";
        let walls = "[target.'cfg(unix)'.dependencies]\nlandlock.workspace = true\n";
        let tested = "[dev-dependencies]\nwasmtime.workspace = true\n";
        for (folder, text, breaches) in [
            ("host/sandbox", runs, 0),
            ("host/overlay", runs, 1),
            ("host/agent", walls, 1),
            ("host/os_sandbox", walls, 0),
            ("host/agent", tested, 0),
        ] {
            assert_eq!(find_breaches(&[file(folder, text)]).len(), breaches, "{folder}: {text}");
        }
    }
}
