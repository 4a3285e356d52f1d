//! `cargo xtask dev`: builds after each change of a source file, then runs the tests near the changed files.
//!
//! For example, a change of `tests/e2e/hints.rs` runs the tests `hints::` of the binary `e2e`, and a change of
//! `host/policy/src/budget.rs` runs all tests of the crate `policy`. Only these tests are built.
#![allow(clippy::print_stderr, reason = "progress of a developer command")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use walkdir::WalkDir;

/// The pause between two checks of the files. Reading the status of about two thousand files takes 10 ms, so
/// a shorter pause would keep a processor busy for nothing.
const POLL: Duration = Duration::from_millis(500);

/// The folders whose files are watched, relative to the root.
const WATCHED: &[&str] = &["host", "tests"];

#[derive(clap::Args)]
pub(crate) struct DevArguments {
    /// Build and test once, for the files that differ from the last commit, and end
    #[arg(long)]
    once: bool,
}

/// With `once`, tests the uncommitted files. Otherwise compares modification times at each [`POLL`], and
/// tests the changed files, without end.
pub(crate) fn run(root: &Path, arguments: &DevArguments) -> Result<()> {
    if arguments.once {
        let changed = list_uncommitted(root)?;
        ensure!(!changed.is_empty(), "no file differs from the last commit");
        return test_changed(root, &changed);
    }
    eprintln!("waiting for changes below {}; Ctrl-C ends", WATCHED.join(" and "));
    let mut before = read_stamps(root);
    loop {
        std::thread::sleep(POLL);
        let now = read_stamps(root);
        let paths = before.keys().chain(now.keys());
        let changed: BTreeSet<PathBuf> =
            paths.filter(|path| before.get(*path) != now.get(*path)).cloned().collect();
        before = now;
        if changed.is_empty() {
            continue;
        }
        match test_changed(root, &changed) {
            Ok(()) => eprintln!("ok; waiting for changes"),
            Err(error) => eprintln!("error: {error:#}; waiting for changes"),
        }
    }
}

/// The modification times of the watched source files.
fn read_stamps(root: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let is_source = |path: &Path| {
        path.extension().is_some_and(|ending| {
            ["rs", "toml", "sql", "json", "md"].iter().any(|it| ending == *it)
        })
    };
    let folders = WATCHED.iter().flat_map(|folder| {
        let walk = WalkDir::new(root.join(folder)).into_iter();
        walk.filter_entry(|entry| {
            entry.file_name() != "target" && entry.file_name() != "node_modules"
        })
    });
    let files = folders.filter_map(Result::ok).filter(|entry| is_source(entry.path()));
    files
        .filter_map(|file| Some((file.path().to_owned(), file.metadata().ok()?.modified().ok()?)))
        .collect()
}

/// The files that differ from the last commit, including new files, by `git status`.
fn list_uncommitted(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let output = Command::new("git")
        .args(["status", "--porcelain", "--untracked-files=all", "-z"])
        .current_dir(root)
        .output()
        .context("failed to start git")?;
    ensure!(
        output.status.success(),
        "git status failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.split('\0').filter_map(|line| line.get(3..)).map(|path| root.join(path)).collect())
}

/// Builds the tests near the changed files, and runs them.
fn test_changed(root: &Path, changed: &BTreeSet<PathBuf>) -> Result<()> {
    let builds = choose_builds(&read_metadata(root)?, changed);
    if builds.is_empty() {
        eprintln!("no test is near the changed files; `cargo test` runs all tests");
    }
    let mut failed = Vec::new();
    for build in builds {
        eprintln!("cargo test {}", build.join(" "));
        let messages = build_tests(root, &build)?;
        for (binary, TestRun { package, filters }) in choose_tests(&messages, changed) {
            let status = Command::new(&binary)
                .arg("--quiet")
                .args(&filters)
                .current_dir(&package)
                .env("CARGO_MANIFEST_DIR", &package)
                .status()
                .with_context(|| format!("failed to start `{}`", binary.display()))?;
            if !status.success() {
                failed.push(binary.display().to_string());
            }
        }
    }
    ensure!(failed.is_empty(), "tests failed in `{}`", failed.join("`, `"));
    Ok(())
}

/// Builds tests, and returns cargo's messages.
fn build_tests(root: &Path, arguments: &[String]) -> Result<String> {
    let built = crate::cargo_command()
        .args(["test", "--no-run", "--message-format", "json-render-diagnostics"])
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("failed to start cargo")?;
    ensure!(built.status.success(), "the tests do not build");
    String::from_utf8(built.stdout).context("cargo's messages are not UTF-8")
}

/// The packages, their targets and their dependencies, as cargo describes them.
fn read_metadata(root: &Path) -> Result<Value> {
    let output = crate::cargo_command()
        .args(["metadata", "--format-version", "1", "--quiet"])
        .current_dir(root)
        .output()
        .context("failed to start cargo")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata failed: {said}");
    serde_json::from_slice(&output.stdout).context("cargo's metadata is no JSON")
}

/// The arguments of `cargo test` for the targets near the changed files, one list a build.
///
/// A package without wasmtime is built by itself: a change of `host/policy` need not wait for the crates above it. The
/// other packages are built with the features of the whole workspace, because with other features cargo would compile
/// wasmtime once more.
fn choose_builds(metadata: &Value, changed: &BTreeSet<PathBuf>) -> Vec<Vec<String>> {
    let members = list_of(&metadata["workspace_default_members"]);
    let packages =
        list_of(&metadata["packages"]).filter(|it| members.clone().any(|id| *id == it["id"]));
    let (mut builds, mut together) = (Vec::new(), BTreeSet::new());
    for package in packages {
        let mut chosen = BTreeSet::new();
        for target in list_of(&package["targets"]).filter(|it| it["required-features"].is_null()) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (main, name) = (PathBuf::from(text(&target["src_path"])), text(&target["name"]));
            let manifest = PathBuf::from(text(&package["manifest_path"]));
            let kind = target["kind"][0].as_str().unwrap_or_default();
            let is_near = find_filters(&main, &manifest, kind == "test", changed).is_some();
            match kind {
                "lib" if is_near => chosen.insert(vec!["--lib".to_owned()]),
                "bin" | "test" if is_near => chosen.insert(vec![format!("--{kind}"), name]),
                _ => false,
            };
        }
        if chosen.is_empty() {
        } else if reaches_wasmtime(metadata, &package["id"]) {
            together.extend(chosen);
        } else {
            let name = package["name"].as_str().unwrap_or_default().to_owned();
            builds.push(
                [vec!["--package".to_owned(), name], chosen.into_iter().flatten().collect()]
                    .concat(),
            );
        }
    }
    if !together.is_empty() {
        builds.push(together.into_iter().flatten().collect());
    }
    builds
}

/// Whether a package or its tests are linked with wasmtime.
fn reaches_wasmtime(metadata: &Value, package: &Value) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![package.as_str().unwrap_or_default()]);
    while let Some(id) = open.pop() {
        if id.contains("#wasmtime@") || id.ends_with("/wasmtime") {
            return true;
        }
        if !seen.insert(id) {
            continue;
        }
        let node = list_of(&metadata["resolve"]["nodes"]).find(|node| node["id"] == id);
        let below = node.into_iter().flat_map(|node| list_of(&node["dependencies"]));
        open.extend(below.filter_map(Value::as_str));
    }
    false
}

fn list_of(value: &Value) -> std::slice::Iter<'_, Value> {
    value.as_array().map_or(&[][..], Vec::as_slice).iter()
}

/// The arguments of a run of a test binary.
#[derive(Debug, Default, PartialEq)]
struct TestRun {
    /// The folder of the binary's package, where the binary runs.
    package: PathBuf,
    /// Parts of names of the tests to run. If empty, all tests run.
    filters: BTreeSet<String>,
}

/// The test binaries near the changed files, by path, read from cargo's messages.
///
/// A changed file of a test binary runs the tests of the file's module. A changed file under `src` of a
/// package runs all tests that are inside the package's folder.
fn choose_tests(messages: &str, changed: &BTreeSet<PathBuf>) -> BTreeMap<PathBuf, TestRun> {
    let mut runs: BTreeMap<PathBuf, TestRun> = BTreeMap::new();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        let (Some(binary), Some(main), Some(manifest)) = (
            path(&message["executable"]),
            path(&message["target"]["src_path"]),
            path(&message["manifest_path"]),
        ) else {
            continue;
        };
        if message["profile"]["test"] != true {
            continue;
        }
        let is_tests = message["target"]["kind"] == serde_json::json!(["test"]);
        if let Some(filters) = find_filters(&main, &manifest, is_tests, changed) {
            let package = manifest.parent().unwrap_or(Path::new("")).to_owned();
            runs.insert(binary, TestRun { package, filters });
        }
    }
    runs
}

/// The parts of test names that the changed files choose of a target; `None` when no file is near the target.
fn find_filters(
    main: &Path,
    manifest: &Path,
    is_tests: bool,
    changed: &BTreeSet<PathBuf>,
) -> Option<BTreeSet<String>> {
    let (folder, package) = (main.parent()?, manifest.parent()?);
    let modules =
        changed.iter().filter(|_| is_tests).filter_map(|file| find_module(main, folder, file));
    let filters: BTreeSet<String> = modules.collect();
    let is_source =
        |file: &PathBuf| main.starts_with(package) && file.starts_with(package.join("src"));
    if filters.contains("") || changed.iter().any(is_source) {
        return Some(BTreeSet::new());
    }
    (!filters.is_empty()).then_some(filters)
}

/// The module of a file below a binary's folder, as a part of test names: `a::b::`; empty for the binary's own file.
fn find_module(main: &Path, folder: &Path, file: &Path) -> Option<String> {
    let below = file.strip_prefix(folder).ok()?;
    if file == main || below.extension().is_none_or(|ending| ending != "rs") {
        return Some(String::new());
    }
    let below = below.with_extension("");
    let names = below.iter().map(|name| name.to_string_lossy()).filter(|name| *name != "mod");
    Some(names.map(|name| format!("{name}::")).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn artifact(binary: &str, kind: &str, main: &str, package: &str) -> String {
        serde_json::json!({
            "executable": binary, "manifest_path": format!("{package}/Cargo.toml"),
            "target": { "kind": [kind], "src_path": main }, "profile": { "test": true },
        })
        .to_string()
    }

    #[test]
    fn a_changed_file_chooses_its_module_or_its_package() {
        let messages = [
            artifact("/t/e2e", "test", "/w/tests/e2e/main.rs", "/w/host/cli"),
            artifact("/t/cli", "lib", "/w/host/cli/src/lib.rs", "/w/host/cli"),
            artifact("/t/policy", "lib", "/w/host/policy/src/lib.rs", "/w/host/policy"),
            artifact("/t/it", "test", "/w/host/policy/tests/it/main.rs", "/w/host/policy"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ]
        .join("\n");
        let chosen = |files: &[&str]| {
            let runs = choose_tests(&messages, &files.iter().map(PathBuf::from).collect());
            let lines = runs.into_iter().map(|(binary, run)| {
                let filters: Vec<_> = run.filters.into_iter().collect();
                format!("{} {}", binary.display(), filters.join(" "))
            });
            lines.collect::<Vec<_>>()
        };
        assert_eq!(chosen(&["/w/tests/e2e/hints.rs"]), ["/t/e2e hints::"]);
        assert_eq!(
            chosen(&["/w/tests/e2e/mcp/mod.rs", "/w/tests/e2e/run.rs"]),
            ["/t/e2e mcp:: run::"]
        );
        assert_eq!(chosen(&["/w/tests/e2e/main.rs", "/w/tests/e2e/run.rs"]), ["/t/e2e "]);
        assert_eq!(chosen(&["/w/host/policy/src/budget.rs"]), ["/t/it ", "/t/policy "]);
        assert_eq!(chosen(&["/w/host/policy/tests/it/a.rs"]), ["/t/it a::"]);
        assert_eq!(chosen(&["/w/host/cli/src/main.rs"]), ["/t/cli "]);
        assert_eq!(chosen(&["/w/README.md"]), [""; 0]);
    }

    #[test]
    fn only_the_tests_near_a_change_are_built_and_those_without_wasmtime_alone() {
        let package = |name: &str, folder: &str, targets: Value| {
            let manifest = format!("/w/{folder}/Cargo.toml");
            json!({"id": name, "name": name, "manifest_path": manifest, "targets": targets})
        };
        let target = |kind: &str, name: &str, main: &str| json!({"kind": [kind], "name": name, "src_path": main});
        let mut slow = target("test", "slow", "/w/tests/slow/main.rs");
        slow["required-features"] = json!(["other-programs"]);
        let metadata = json!({
            "workspace_default_members": ["policy", "cli"],
            "packages": [
                package("policy", "host/policy", json!([
                    target("lib", "policy", "/w/host/policy/src/lib.rs"),
                    target("test", "it", "/w/host/policy/tests/it/main.rs"),
                ])),
                package("cli", "host/cli", json!([
                    target("bin", "belljar", "/w/host/cli/src/main.rs"),
                    target("test", "e2e", "/w/tests/e2e/main.rs"),
                    slow,
                ])),
                package("stranger", "elsewhere", json!([
                    target("lib", "stranger", "/w/elsewhere/src/lib.rs"),
                ])),
            ],
            "resolve": {"nodes": [
                {"id": "policy", "dependencies": ["registry#url@2.0.0"]},
                {"id": "cli", "dependencies": ["policy", "engine"]},
                {"id": "engine", "dependencies": ["registry#wasmtime@47.0.0"]},
            ]},
        });
        let built = |files: &[&str]| {
            let builds = choose_builds(&metadata, &files.iter().map(PathBuf::from).collect());
            builds.into_iter().map(|build| build.join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(built(&["/w/host/policy/src/a.rs"]), ["--package policy --lib --test it"]);
        assert_eq!(built(&["/w/host/policy/tests/it/a.rs"]), ["--package policy --test it"]);
        assert_eq!(
            built(&["/w/host/cli/src/a.rs", "/w/tests/e2e/a.rs"]),
            ["--bin belljar --test e2e"]
        );
        let both = built(&["/w/tests/e2e/a.rs", "/w/host/policy/tests/it/a.rs"]);
        assert_eq!(both, ["--package policy --test it", "--test e2e"]);
        for file in ["/w/elsewhere/src/lib.rs", "/w/tests/slow/a.rs", "/w/README.md"] {
            assert_eq!(built(&[file]), [""; 0], "{file}");
        }
    }
}
