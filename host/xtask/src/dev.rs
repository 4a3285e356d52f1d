//! `cargo xtask dev`: builds after each change of a source file, then runs the tests near the changed files.
//!
//! For example, a change of `tests/e2e/hints.rs` runs the tests `hints::` of the binary `e2e`, and a change
//! of `host/policy/src/budget.rs` runs all tests of the crate `policy`. The builds use the features of the
//! README's test command, so neither command rebuilds the crates of the other.
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
        let changed: BTreeSet<PathBuf> = now
            .iter()
            .filter(|(path, time)| before.get(*path) != Some(*time))
            .map(|(path, _)| path.clone())
            .collect();
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

/// Builds all tests, and runs the tests near the changed files.
fn test_changed(root: &Path, changed: &BTreeSet<PathBuf>) -> Result<()> {
    let built = crate::cargo_command()
        .args(["test", "--no-run", "--message-format", "json-render-diagnostics"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("failed to start cargo")?;
    ensure!(built.status.success(), "the tests do not build");
    let messages = String::from_utf8(built.stdout).context("cargo's messages are not UTF-8")?;
    let runs = choose_tests(&messages, changed);
    if runs.is_empty() {
        eprintln!("built; no test binary is near the changed files");
    }
    for (binary, TestRun { package, filters }) in runs {
        let status = Command::new(&binary)
            .arg("--quiet")
            .args(&filters)
            .current_dir(&package)
            .env("CARGO_MANIFEST_DIR", &package)
            .status()
            .with_context(|| format!("failed to start `{}`", binary.display()))?;
        ensure!(status.success(), "tests of `{}` failed", binary.display());
    }
    Ok(())
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
        let (Some(folder), Some(package)) = (main.parent(), manifest.parent()) else { continue };
        let is_tests = message["target"]["kind"] == serde_json::json!(["test"]);
        let modules =
            changed.iter().filter(|_| is_tests).filter_map(|file| find_module(&main, folder, file));
        let mut filters: BTreeSet<String> = modules.collect();
        let is_whole = filters.remove("")
            || changed
                .iter()
                .any(|file| main.starts_with(package) && file.starts_with(package.join("src")));
        if is_whole {
            filters.clear();
        }
        if is_whole || !filters.is_empty() {
            runs.insert(binary, TestRun { package: package.to_owned(), filters });
        }
    }
    runs
}

/// The module of a file of a test binary, as the beginning of test names, for example `a::b::`. Empty for
/// the main file of the binary. `None` if the file is not in the binary's folder.
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
}
