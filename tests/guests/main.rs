//! A new tool project, as its author meets it: written, built, inspected and called.
//!
//! Needs a toolchain for `wasm32-wasip2`; `cargo xtask test-guests` runs it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::{Command, Output};

fn belljar(home: &Path, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_belljar"))
        .args(arguments)
        .env("BELLJAR_HOME", home)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn succeed(output: Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    out
}

#[test]
fn a_new_tool_project_builds_and_answers_and_stays_in_its_mount() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = |arguments: &[&str]| belljar(home.path(), folder.path(), arguments);
    succeed(run(&["tools", "new", "word_count"]));
    let again = run(&["tools", "new", "word_count"]);
    assert!(!again.status.success(), "a project that is there is not written over");
    succeed(run(&["tools", "build", "word_count"]));

    let component = "word_count/tool.wasm";
    let inspected = succeed(run(&["tools", "inspect", component]));
    assert!(inspected.contains("word_count"), "{inspected}");
    assert!(!inspected.contains("wasi:http"), "a file tool imports no network: {inspected}");

    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(workspace.join("three.txt"), "one two three\n").unwrap();
    let called = succeed(run(&[
        "tools",
        "call",
        component,
        r#"{"path":"three.txt"}"#,
        "--workspace",
        "workspace",
    ]));
    assert!(called.contains('3'), "{called}");

    std::fs::write(folder.path().join("outside.txt"), "secret words").unwrap();
    let escape = run(&[
        "tools",
        "call",
        component,
        r#"{"path":"../outside.txt"}"#,
        "--workspace",
        "workspace",
    ]);
    assert!(!escape.status.success(), "a path outside the mount is refused");
    let text = String::from_utf8_lossy(&escape.stdout).into_owned()
        + &String::from_utf8_lossy(&escape.stderr);
    assert!(!text.contains("secret words"), "{text}");
}
