//! The loop of a tool's author: change, build, install, see what changes, and again.

use crate::author::Author;

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
    author.run(&["tools", "build", "word_count"]).exits(0);
    let call = ["tools", "call", "word_count/tool.wasm", r#"{"path": "three.txt"}"#];
    author
        .run(&call)
        .exits(1)
        .complains("stderr: reading three.txt")
        .complains("the tool crashed: it panicked at src/lib.rs:15:")
        .complains("index out of bounds: the len is 0 but the index is 7");

    author.source(&body("std::process::exit(if args.path.is_empty() { 0 } else { 3 })"));
    author.run(&["tools", "build", "word_count"]).exits(0);
    let exited = author.run(&call).exits(1).complains("it exited with a failure");
    assert!(!exited.stderr.contains("status 1"), "{}", exited.stderr);
}

#[test]
fn a_file_with_two_tools_is_called_by_name() {
    let author = Author::new();
    let two = body("Ok(Output::text(args.path))")
        .replace("fn word_count", "fn other(args: Args) -> ToolResult {\n    Ok(Output::text(args.path.to_uppercase()))\n}\n\nfn word_count")
        .replace("idempotent;\n}", "idempotent;\n    other(Args): \"Shouts.\";\n}");
    author.source(&two);
    author.run(&["tools", "build", "word_count"]).exits(0);
    let call = |more: &[&str]| {
        let call = ["tools", "call", "word_count/tool.wasm", r#"{"path": "a"}"#];
        author.run(&[&call[..], more].concat())
    };
    call(&[]).exits(2).complains("`word_count`").complains("`--tool NAME`");
    assert_eq!(call(&["--tool", "word_count"]).exits(0).stdout, "a\n");
    assert_eq!(call(&["--tool", "other"]).exits(0).stdout, "A\n");
}

#[test]
fn a_pinned_tool_is_installed_again_only_with_a_yes_and_after_what_changes_is_shown() {
    let author = Author::new();
    let install = ["tools", "build", "word_count", "--install"];
    author
        .run(&install)
        .exits(0)
        .says("tool word_count (read-only, idempotent)")
        .says("asks for mounts (read)");
    let grant = ["grant", "general-purpose", "--tool", "word_count", "--yes"];
    author.run(&grant).exits(0);
    author.run(&install).exits(0).says("nothing to change");
    let (pinned, installed) = (author.config(), author.installed());

    let wider = body("Ok(Output::text(args.path))")
        .replace("path: String,", "path: String,\n    /// All of them.\n    all: Option<bool>,")
        .replace("Counts the words", "Tells the name");
    author.source(&wider);
    author.manifest("manifest = 1\ndescription = \"d\"\nmounts = \"read-write\"\n");
    author
        .run(&install)
        .exits(2)
        .says("-Counts the words of a text file.")
        .says("+Tells the name of a text file.")
        .says("+    \"all\":")
        .says("+mounts = \"read-write\"")
        .complains("nothing is installed");
    assert_eq!((author.config(), author.installed()), (pinned.clone(), installed.clone()));

    author.run(&[&install[..], &["--yes"]].concat()).exits(0).says("pinned sha256:");
    assert_ne!(author.config(), pinned);
    assert_ne!(author.installed(), installed);
    // It is used at once: what is pinned is what is there.
    let listed = author.run(&["tools", "list"]).exits(0).says("Tells the name of a text file.");
    assert!(!listed.stderr.contains("pin"), "{}", listed.stderr);

    // A manifest alone changes what the tool gets of the rights of those who were granted it.
    let (pinned, installed) = (author.config(), author.installed());
    author.manifest(
        "manifest = 1\ndescription = \"d\"\nmounts = \"read-write\"\nhosts = [\"https://*\"]\n",
    );
    let asked = author.run(&install).exits(2).says("+hosts = [\"https://*\"]");
    asked.complains("nothing is installed");
    assert_eq!((author.config(), author.installed()), (pinned.clone(), installed.clone()));
    author.run(&[&install[..], &["--yes"]].concat()).exits(0);
    assert_eq!(author.config(), pinned);
    assert_ne!(author.installed(), installed);

    // Other code with the same words is said to be just that.
    author.source(&wider.replace("Output::text(args.path)", "Output::text(args.path + \"!\")"));
    author.run(&[&install[..], &["--yes"]].concat()).exits(0).says("its code changes");
}

#[test]
fn a_component_that_lies_of_itself_is_not_installed() {
    let author = Author::new();
    author.run(&["tools", "build", "word_count", "--install"]).exits(0);
    author.run(&["grant", "general-purpose", "--tool", "word_count", "--yes"]).exits(0);
    let (pinned, installed) = (author.config(), author.installed());
    let install = ["tools", "build", "word_count", "--install", "--yes"];
    let honest = body("Ok(Output::text(args.path))");

    let endless = "long ".repeat(20_000);
    author.source(&honest.replace("Counts the words", &endless));
    author.run(&install).exits(1).complains("`word_count` is not installed: `describe` lies");
    assert_eq!((author.config(), author.installed()), (pinned.clone(), installed.clone()));

    author.source(&honest.replace("word_count(", "file_read("));
    author.run(&install).exits(1).complains("its tool `file_read` has a name of belljar's own");
    assert_eq!((author.config(), author.installed()), (pinned, installed));
    // The neighbour of before is there and works.
    let call = ["tools", "call", "word_count", r#"{"path": "three.txt"}"#];
    author.run(&call).exits(0).says("3 words");
}

#[test]
fn a_tool_is_installed_for_a_tenant_with_the_same_look_and_question_and_nowhere_else() {
    let author = Author::new();
    author.run(&["tenants", "add", "red"]).exits(0);
    assert!(!author.is_stored("install_tool"));
    let install = ["tools", "build", "word_count", "--install", "--tenant", "red"];
    let first = author.run(&install).exits(0).says("tool word_count (read-only, idempotent)");
    first.complains("`belljar grant AGENT --tool word_count --tenant red` lets an agent call it");
    let grant = ["grant", "general-purpose", "--tool", "word_count", "--tenant", "red", "--yes"];
    author.run(&grant).exits(0);
    author.run(&install).exits(0).says("nothing to change");
    let before = author.state_of("red");
    assert!(before.0.contains("digest = \"sha256:"), "{}", before.0);

    author
        .source(&body("Ok(Output::text(args.path))").replace("Counts the words", "Tells the name"));
    let refused = author.run(&install).exits(2).says("+Tells the name of a text file.");
    refused.complains("nothing is installed");
    assert_eq!(author.state_of("red"), before);
    author.run(&[&install[..], &["--yes"]].concat()).exits(0).says("pinned sha256:");
    assert_ne!(author.state_of("red"), before);

    let call = ["tools", "call", "word_count", r#"{"path": "three.txt"}"#];
    let reds = author.run(&[&call[..], &["--tenant", "red"]].concat()).exits(0);
    reds.says("three.txt");
    // The operator's own home has none of it, and neither has its list.
    author.run(&call).exits(2).complains("there is no tool `word_count`");
    assert_eq!(author.config(), "");
    // An auditor finds who was given which component.
    assert!(author.is_stored("install_tool"));
}
