//! The component of the tool `shell` does what bash and dash do, in a jar.
//!
//! Needs both shells and their utilities, so `cargo xtask test-guests` runs it and `cargo test`
//! does not. The same cases run natively in `tools/shell/tests/compare.rs`.
//! `BELLJAR_TOOLS_DIR` names another folder of components than `tools/prebuilt`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::path::{Path, PathBuf};

use belljar_kit::{JarBuilder, TestHost, text};
use belljar_policy::Access;
use belljar_sandbox::Wasm;
use belljar_shell_cases::{Build, Case, Outcome, Reference, Report, Said, Tree, WORKSPACE, load};

/// How a non-zero exit code ends an answer.
const CODE: &str = "[belljar: exit code ";

/// How an answer says that there is none.
const NOTHING: &str = "[belljar: no output]\n";

#[tokio::test(flavor = "multi_thread")]
async fn the_component_does_what_bash_and_dash_do() {
    let reference = Reference::new();
    let mut report = Report::default();
    let (host, wasm) = (TestHost::new(), component());
    for case in load() {
        empty(host.path());
        let seen = run(&host, &wasm, &case).await;
        report.add(&case, &reference.run(&case), &seen);
    }
    println!("{}", report.summary());
    let faults = report.verdict(Build::Component);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn component() -> Wasm {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("BELLJAR_TOOLS_DIR")
        .map_or_else(|| root.join("tools/prebuilt"), PathBuf::from);
    Wasm::new(std::fs::read(folder.join("shell.wasm")).expect("the component is there"))
}

/// One host serves all cases, each in a jar of its own over an emptied workspace.
async fn run(host: &TestHost, wasm: &Wasm, case: &Case) -> Outcome {
    case.fill(host.path());
    let builder = JarBuilder { access: Some(Access::ReadWrite), ..host.builder([wasm.clone()]) };
    let jar = host.build(builder).await;
    let arguments = serde_json::json!({ "command": case.script }).to_string();
    let result = jar.call("shell", &arguments).await;
    jar.jar.close().await;
    let (said, code) = match &result.outcome {
        Ok(_) => split(&text(&result)),
        Err(error) => (error.to_string(), -1),
    };
    let tree = Tree::read(host.path(), WORKSPACE);
    Outcome { said: Said::Together(said), code, tree }
}

fn empty(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// The exit code, and what stands before it.
fn split(answer: &str) -> (String, i32) {
    let answer = if answer == NOTHING { "" } else { answer };
    let Some(start) = answer.rfind(CODE) else { return (answer.to_owned(), 0) };
    let code = answer[start + CODE.len()..].trim_end().trim_end_matches(']');
    (answer[..start].to_owned(), code.parse().expect("a code"))
}
