//! A new tool project, as its author meets it: written, built, inspected and called.
//!
//! Needs a toolchain for `wasm32-wasip2`; `cargo xtask test guests` runs it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![expect(clippy::disallowed_methods, reason = "threads of tests, which end with their test")]

mod author;
mod edit_loop;
#[path = "../kit/binary/mod.rs"]
mod kit;
#[path = "../e2e/guide/page.rs"]
mod page;
mod readmes;
#[path = "../e2e/guide/story.rs"]
mod story;

use author::Author;

#[test]
fn a_new_tool_project_builds_and_answers_and_stays_in_its_mount() {
    let author = Author::new();
    // A project that is there is not written over.
    author.run(&["tools", "new", "word_count"]).exits(1);
    author.run(&["tools", "build", "word_count"]).exits(0);

    let component = "word_count/tool.wasm";
    let inspected = author.run(&["tools", "inspect", component]).exits(0).stdout;
    assert!(inspected.contains("word_count"), "{inspected}");
    assert!(!inspected.contains("wasi:http"), "a file tool imports no network: {inspected}");

    author.file("workspace/three.txt", "one two three\n");
    let call = |path: &str| {
        let arguments = format!(r#"{{"path":"{path}"}}"#);
        author.run(&["tools", "call", component, &arguments, "--workspace", "workspace"])
    };
    call("three.txt").exits(0).says("3");

    author.file("outside.txt", "secret words");
    let escape = call("../outside.txt").exits(1);
    let text = escape.stdout + &escape.stderr;
    assert!(!text.contains("secret words"), "{text}");
}
