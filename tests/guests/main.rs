//! A new tool project, as its author meets it: written, built, inspected and called.
//!
//! Needs a toolchain for `wasm32-wasip2`; `cargo xtask test-guests` runs it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod edit_loop;
mod kit;
#[path = "../e2e/guide/page.rs"]
mod page;
mod readmes;
#[path = "../e2e/guide/story.rs"]
mod story;

use kit::belljar;

#[test]
fn a_new_tool_project_builds_and_answers_and_stays_in_its_mount() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = |arguments: &[&str]| belljar(home.path(), folder.path(), arguments);
    run(&["tools", "new", "word_count"]).succeeds();
    // A project that is there is not written over.
    run(&["tools", "new", "word_count"]).fails(1);
    run(&["tools", "build", "word_count"]).succeeds();

    let component = "word_count/tool.wasm";
    let inspected = run(&["tools", "inspect", component]).succeeds().out;
    assert!(inspected.contains("word_count"), "{inspected}");
    assert!(!inspected.contains("wasi:http"), "a file tool imports no network: {inspected}");

    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(workspace.join("three.txt"), "one two three\n").unwrap();
    let called =
        run(&["tools", "call", component, r#"{"path":"three.txt"}"#, "--workspace", "workspace"])
            .succeeds()
            .out;
    assert!(called.contains('3'), "{called}");

    std::fs::write(folder.path().join("outside.txt"), "secret words").unwrap();
    let escape = run(&[
        "tools",
        "call",
        component,
        r#"{"path":"../outside.txt"}"#,
        "--workspace",
        "workspace",
    ])
    .fails(1);
    let text = escape.out + &escape.err;
    assert!(!text.contains("secret words"), "{text}");
}
