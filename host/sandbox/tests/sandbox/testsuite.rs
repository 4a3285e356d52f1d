//! Commands by other authors: runs the compiled tests of WASI preview 1 in `tests/peers/wasi-testsuite`.
//! Each test is adapted like an installed command, and runs as a tool in a jar.
//!
//! With `BELLJAR_WASI_TESTSUITE=DIR`, a checkout of the suite's branch with compiled tests, all tests of the
//! suite for preview 1 run, including the tests in Rust. Each runs with the directory that `--dir ROOT::/`
//! would give.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use belljar_kit::TestHost;
use belljar_policy::MountAccess;
use belljar_sandbox::{CommandForm, OutputPart, Wasm};
use serde_json::{Value, json};

/// Tests that fail here, each with the reason: the adapter behaves the same on every host.
const DEVIATIONS: &[(&str, &str)] = &[
    ("args_get-multiple-arguments", HEAP),
    ("environ_get-multiple-variables", HEAP),
    (
        "fd_write-to-invalid-fd",
        "the adapter answers a write of nothing before it looks for the file",
    ),
];

/// Further tests of the whole suite that fail here; see `host/docs/programs.md`.
const DEVIATIONS_OF_WHOLE: &[(&str, &str)] = &[
    ("nofollow_errors", LINKS),
    ("path_exists", LINKS),
    ("path_link", "a link to `name/`, which is not there, is answered as no directory"),
    ("path_symlink_trailing_slashes", LINKS),
    ("readlink", LINKS),
    ("symlink_create", LINKS),
    ("symlink_filestat", LINKS),
];

const LINKS: &str = "it makes a symbolic link, which no program can here";

const HEAP: &str = "its heap takes all memory that is there when it first allocates, also the page in \
                    which the adapter keeps its state since the call before";

fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/wasi-testsuite")
}

/// The environment variable with the directory of the whole suite.
const WHOLE: &str = "BELLJAR_WASI_TESTSUITE";

/// A test of the suite.
struct Case {
    name: String,
    /// The guest path of the test's files.
    at: &'static str,
    wasm: Vec<u8>,
    /// The test's description. An empty object if there is none.
    says: Value,
    folder: PathBuf,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for language in ["assemblyscript", "c"] {
        cases.extend(in_folder(&suite().join(language), "/workspace"));
    }
    if let Some(whole) = std::env::var_os(WHOLE) {
        let tests = Path::new(&whole).join("tests");
        for language in ["assemblyscript", "c", "rust"] {
            let folder = tests.join(language).join("testsuite/wasm32-wasip1");
            cases.extend(in_folder(&folder, "/"));
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

fn in_folder(folder: &Path, at: &'static str) -> Vec<Case> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "wasm") {
            continue;
        }
        let says = fs::read(path.with_extension("json"));
        let says = says.map_or_else(|_| json!({}), |it| serde_json::from_slice(&it).unwrap());
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let wasm = fs::read(&path).unwrap();
        cases.push(Case { name, at, wasm, says, folder: folder.to_owned() });
    }
    cases
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::write(to, fs::read(&path).unwrap()).unwrap();
        }
    }
}

/// Runs a test in a workspace of its own. The error describes the difference.
async fn run(case: &Case) -> Result<(), String> {
    let host = TestHost::new();
    let component =
        host.sandbox.adapt_module(&case.wasm).await.map_err(|error| error.to_string())?;
    let env: BTreeMap<String, String> =
        serde_json::from_value(case.says["env"].clone()).unwrap_or_default();
    let form = CommandForm::default().with_environment(&env)?.with_workspace_at(case.at)?;
    let wasm = Wasm::new(component).with_name(case.name.as_str()).with_form(form);
    let mut builder = host.builder([wasm]);
    builder.access = case.says["root"].as_str().map(|root| {
        copy(&case.folder.join(root), host.path());
        MountAccess::ReadWrite
    });
    let jar = host.build(builder).await;
    let tool = jar.names().remove(0);
    let arguments = json!({ "args": case.says["args"] });
    let result = jar.call(tool.as_str(), &arguments.to_string()).await;
    let said = result.receipt.stderr;
    let output = result.outcome.map_err(|error| format!("{error}; it said {said:?}"))?;
    let Some(OutputPart::Json(head)) = output.parts.first() else {
        return Err("no head".to_owned());
    };
    let head: Value = serde_json::from_str(head).unwrap();
    let expected = case.says["exit_code"].as_u64().unwrap_or(0);
    if head["exit_code"].as_u64() != Some(expected) {
        return Err(format!("it ended with {head}, not with {expected}"));
    }
    // If the description does not mention the output, any output is correct.
    let Some(stdout) = case.says["stdout"].as_str() else { return Ok(()) };
    match output.parts.get(1) {
        Some(OutputPart::Text(text)) if text == stdout => Ok(()),
        None if stdout.is_empty() => Ok(()),
        other => Err(format!("it wrote {other:?}")),
    }
}

#[tokio::test]
async fn commands_that_nobody_here_wrote_run_as_tools() {
    let cases = cases();
    assert!(cases.len() >= 25, "{} tests", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let mut all = DEVIATIONS.iter().chain(DEVIATIONS_OF_WHOLE);
        let deviates = all.any(|(name, _)| *name == case.name);
        match (run(case).await, deviates) {
            (Ok(()), false) | (Err(_), true) => {}
            (Err(why), false) => wrong.push(format!("{}: {why}", case.name)),
            (Ok(()), true) => wrong.push(format!("{} passes: take it off the list", case.name)),
        }
    }
    assert!(wrong.is_empty(), "of {} tests:\n{}", cases.len(), wrong.join("\n"));
    for (name, why) in DEVIATIONS {
        assert!(cases.iter().any(|case| case.name == *name), "{name} ({why}) is not in the suite");
    }
}
