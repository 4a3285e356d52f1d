//! The loop of a tool's author: change, build, install, be told what changes, and go on.

use crate::kit::Author;

/// The tool of the template with another body.
fn body(text: &str) -> String {
    TOOL.replace("BODY", text)
}

const TOOL: &str = r#"//! A tool.

use belljar_guest::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file.
    path: String,
}

fn word_count(args: Args) -> ToolResult {
    BODY
}

belljar_guest::tools! {
    word_count(Args): "Counts the words of a text file.", hints: read_only | idempotent;
}
"#;

#[test]
fn a_tool_that_fails_says_why_to_its_author() {
    let author = Author::new();
    author.source(&body(
        r#"eprintln!("reading {}", args.path);
    let words: Vec<&str> = Vec::new();
    Ok(Output::text(words[words.len() + 7]))"#,
    ));
    author.run(&["tools", "build", "word_count"]).succeeds();
    let call = ["tools", "call", "word_count/tool.wasm", r#"{"path": "three.txt"}"#];
    let failed = author.run(&call).fails(1);
    failed.complains("stderr: reading three.txt");
    failed.complains("the tool crashed: it panicked at src/lib.rs:15:");
    failed.complains("index out of bounds: the len is 0 but the index is 7");

    author.source(&body("std::process::exit(if args.path.is_empty() { 0 } else { 3 })"));
    author.run(&["tools", "build", "word_count"]).succeeds();
    let exited = author.run(&call).fails(1);
    exited.complains("it exited with a failure");
    assert!(!exited.err.contains("status 1"), "{}", exited.err);
}

#[test]
fn a_file_with_two_tools_is_called_by_name() {
    let author = Author::new();
    let two = body("Ok(Output::text(args.path))")
        .replace("fn word_count", "fn other(args: Args) -> ToolResult {\n    Ok(Output::text(args.path.to_uppercase()))\n}\n\nfn word_count")
        .replace("idempotent;\n}", "idempotent;\n    other(Args): \"Shouts.\";\n}");
    author.source(&two);
    author.run(&["tools", "build", "word_count"]).succeeds();
    let call = |more: &[&str]| {
        let call = ["tools", "call", "word_count/tool.wasm", r#"{"path": "a"}"#];
        author.run(&[&call[..], more].concat())
    };
    let several = call(&[]).fails(2);
    several.complains("`word_count`");
    several.complains("`--tool NAME`");
    assert_eq!(call(&["--tool", "word_count"]).succeeds().out, "a\n");
    assert_eq!(call(&["--tool", "other"]).succeeds().out, "A\n");
}

#[test]
fn a_pinned_tool_is_installed_again_only_with_a_yes_and_after_what_changes_is_shown() {
    let author = Author::new();
    let install = ["tools", "build", "word_count", "--install"];
    let first = author.run(&install).succeeds();
    first.says("tool word_count (read-only, idempotent)");
    first.says("asks for mounts (read)");
    let grant = ["grant", "general-purpose", "--tool", "word_count", "--yes"];
    author.run(&grant).succeeds();
    let again = author.run(&install).succeeds();
    again.says("nothing to change");
    let (pinned, installed) = (author.config(), author.installed());

    let wider = body("Ok(Output::text(args.path))")
        .replace("path: String,", "path: String,\n    /// All of them.\n    all: Option<bool>,")
        .replace("Counts the words", "Tells the name");
    author.source(&wider);
    author.manifest("manifest = 1\ndescription = \"d\"\nmounts = \"read-write\"\n");
    let refused = author.run(&install).fails(2);
    refused.says("-Counts the words of a text file.");
    refused.says("+Tells the name of a text file.");
    refused.says("+    \"all\":");
    refused.says("+mounts = \"read-write\"");
    refused.complains("nothing is installed");
    assert_eq!((author.config(), author.installed()), (pinned.clone(), installed.clone()));

    let done = author.run(&[&install[..], &["--yes"]].concat()).succeeds();
    done.says("pinned sha256:");
    assert_ne!(author.config(), pinned);
    assert_ne!(author.installed(), installed);
    // It is used at once: what is pinned is what is there.
    let listed = author.run(&["tools", "list"]).succeeds();
    listed.says("Tells the name of a text file.");
    assert!(!listed.err.contains("pin"), "{}", listed.err);

    // Other code with the same words is said to be just that.
    author.source(&wider.replace("Output::text(args.path)", "Output::text(args.path + \"!\")"));
    let code = author.run(&[&install[..], &["--yes"]].concat()).succeeds();
    code.says("its code changes");
}

#[test]
fn a_component_that_lies_of_itself_is_not_installed() {
    let author = Author::new();
    author.run(&["tools", "build", "word_count", "--install"]).succeeds();
    author.run(&["grant", "general-purpose", "--tool", "word_count", "--yes"]).succeeds();
    let (pinned, installed) = (author.config(), author.installed());
    let install = ["tools", "build", "word_count", "--install", "--yes"];
    let honest = body("Ok(Output::text(args.path))");

    let endless = "long ".repeat(20_000);
    author.source(&honest.replace("Counts the words", &endless));
    let lied = author.run(&install).fails(1);
    lied.complains("`word_count` is not installed: `describe` lies");
    assert_eq!((author.config(), author.installed()), (pinned.clone(), installed.clone()));

    author.source(&honest.replace("word_count(", "file_read("));
    let taken = author.run(&install).fails(1);
    taken.complains("its tool `file_read` has a name of belljar's own");
    assert_eq!((author.config(), author.installed()), (pinned, installed));
    // The neighbour of before is there and works.
    let call = ["tools", "call", "word_count", r#"{"path": "three.txt"}"#];
    author.run(&call).succeeds().says("3 words");
}

#[test]
fn a_tool_is_installed_for_a_tenant_with_the_same_look_and_question_and_nowhere_else() {
    let author = Author::new();
    author.run(&["tenants", "add", "red"]).succeeds();
    assert!(!author.is_stored("install_tool"));
    let install = ["tools", "build", "word_count", "--install", "--tenant", "red"];
    let first = author.run(&install).succeeds();
    first.says("tool word_count (read-only, idempotent)");
    first.complains("`belljar grant AGENT --tool word_count --tenant red` lets an agent call it");
    let grant = ["grant", "general-purpose", "--tool", "word_count", "--tenant", "red", "--yes"];
    author.run(&grant).succeeds();
    author.run(&install).succeeds().says("nothing to change");
    let before = author.state_of("red");
    assert!(before.0.contains("digest = \"sha256:"), "{}", before.0);

    author
        .source(&body("Ok(Output::text(args.path))").replace("Counts the words", "Tells the name"));
    let refused = author.run(&install).fails(2);
    refused.says("+Tells the name of a text file.");
    refused.complains("nothing is installed");
    assert_eq!(author.state_of("red"), before);
    author.run(&[&install[..], &["--yes"]].concat()).succeeds().says("pinned sha256:");
    assert_ne!(author.state_of("red"), before);

    let call = ["tools", "call", "word_count", r#"{"path": "three.txt"}"#];
    let reds = author.run(&[&call[..], &["--tenant", "red"]].concat()).succeeds();
    reds.says("three.txt");
    // The operator's own home has none of it, and neither has its list.
    author.run(&call).fails(2).complains("there is no tool `word_count`");
    assert_eq!(author.config(), "");
    // An auditor finds who was given which component.
    assert!(author.is_stored("install_tool"));
}
