//! The README and the guide in `host/docs/`: what they show is what happens.
//!
//! Each page is a story: its commands are run in order, by `sh`, in one fresh home and one fresh
//! workspace. Hidden comments say what a reader needs not see:
//!
//! - `<!-- guide: file PATH -->`: the block below is written to this file; `append` adds to it.
//!   A path below `~/` is in the home, any other in the workspace. With the text in the comment
//!   itself, until a line `-->`, the file is one that the reader does not see.
//! - `<!-- guide: files NAME -->`: the files of `tests/e2e/guide/files/NAME` are put where they
//!   belong, from `~/` on; one that ends in `.append` is added to the file without that ending.
//! - `<!-- guide: exits N -->`: the last command of the block below exits with N; others with 0.
//! - `<!-- guide: background -->`: the command below runs until the page ends; the page goes on
//!   once it has printed what the block shows.
//! - `<!-- guide: not run: REASON -->`: the commands below are only parsed: each `belljar` of
//!   them is run with `--help` at its end, which fails where a subcommand or a flag is unknown.
//! - `<!-- guide: not settings: REASON -->`: the TOML below is not for `belljar.toml`.
//!
//! The READMEs below `guest-sdk` and `tools` are told the same way, those of projects in a copy of
//! the project. What builds a guest is run by `cargo xtask test guests`, and parsed here.
//!
//! In a `console` block a command stands after `$ `, and below it what it prints to stdout and
//! stderr; nothing below it = not compared. `...` on a line of its own stands for any lines,
//! `[..]` inside a line for any text. White space counts as one space, since columns are as wide
//! as what they hold, and blank lines do not count.

mod page;
mod story;

use std::path::{Path, PathBuf};

use page::Page;
use story::Story;

/// Pages on which no command is run, and why.
const NOTHING_TO_RUN: &[(&str, &str)] = &[
    ("host/docs/README.md", "it is the table of contents"),
    (EMBEDDING, "its programs are examples, which `cargo test` runs"),
];

/// The page whose blocks are Rust, and the programs that they are taken from.
const EMBEDDING: &str = "host/docs/embedding.md";
const EXAMPLES: &[&str] = &[
    "host/sandbox/examples/call_tool.rs",
    "host/agent/examples/run_agent.rs",
    "host/agent/examples/spawn_events.rs",
    "host/agent/examples/many_runs.rs",
];

/// Where the pages are that stand beside tools and what they are made with.
const READMES: &[&str] = &["guest-sdk", "tools"];

/// How each page but the table of contents goes on after its title.
const OPENING: &str = "After this page you can ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The pages of the guide, relative to the root.
fn guide() -> Vec<String> {
    let folder = std::fs::read_dir(root().join("host/docs")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<_> = names
        .filter(|name| Path::new(name).extension().is_some_and(|ending| ending == "md"))
        .map(|name| format!("host/docs/{name}"))
        .collect();
    pages.sort();
    pages
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// The faults of a page, and how many of its commands were run.
fn problems(path: &str, text: &str) -> (Vec<String>, usize) {
    match Page::parse(path, text) {
        Ok(page) => Story::beside(&root(), &page).tell(&page),
        Err(problem) => (vec![problem], 0),
    }
}

/// The pages beside what tool authors read and copy, relative to the root.
fn readmes() -> Vec<String> {
    let mut found = Vec::new();
    for folder in READMES {
        readmes_below(Path::new(folder), &mut found);
    }
    found.sort();
    found
}

fn readmes_below(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() && entry.file_name() != "target" {
            readmes_below(&path, found);
        } else if entry.file_name() == "README.md" {
            found.push(path.to_str().unwrap().to_owned());
        }
    }
}

/// Commands of projects, which need a toolchain, are run by `tests/guests/readmes.rs`; here they
/// are parsed.
#[test]
fn every_command_of_the_readmes_of_tools_and_sdk_runs_or_says_why_not() {
    let pages = readmes();
    assert!(pages.len() > 10, "{pages:?}");
    // The template's is that of the project that `tools new` writes.
    let text = |path: &String| text(path).replace("{{name}}", "word_count");
    let found: Vec<_> = pages.iter().flat_map(|path| problems(path, &text(path)).0).collect();
    assert!(found.is_empty(), "{} problems\n\n{}\n", found.len(), found.join("\n\n"));
}

#[test]
fn every_command_of_readme_and_guide_does_what_the_page_says() {
    let mut pages = guide();
    pages.push("README.md".to_owned());
    let mut found = Vec::new();
    for path in &pages {
        let (problems, ran) = problems(path, &text(path));
        found.extend(problems);
        if ran == 0 && !NOTHING_TO_RUN.iter().any(|(page, _reason)| page == path) {
            found.push(format!("{path}: no command of it was run"));
        }
    }
    assert!(found.is_empty(), "{} problems\n\n{}\n", found.len(), found.join("\n\n"));
}

#[test]
fn every_page_says_first_what_its_reader_can_do_at_its_end() {
    let contents = text("host/docs/README.md");
    for path in guide().iter().filter(|path| *path != "host/docs/README.md") {
        let text = text(path);
        let mut lines = text.lines().filter(|line| !line.is_empty());
        assert!(lines.next().unwrap_or_default().starts_with("# "), "{path} has no title");
        assert!(lines.next().unwrap_or_default().starts_with(OPENING), "{path}: no `{OPENING}`");
        let link = format!("({})", path.trim_start_matches("host/docs/"));
        assert!(contents.contains(&link), "{path} is not in the table of contents");
    }
}

#[test]
fn the_programs_of_the_page_on_embedding_are_parts_of_examples() {
    let examples: String = EXAMPLES.iter().map(|path| text(path)).collect();
    let page = text(EMBEDDING);
    let blocks: Vec<&str> =
        page.split("```rust\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        assert!(examples.contains(block), "no example has:\n{block}");
    }
    for example in EXAMPLES {
        let name = example.rsplit('/').next().unwrap();
        assert!(page.contains(name), "{EMBEDDING} does not name {name}");
    }
}

#[test]
fn a_page_that_lies_is_found_at_its_line() {
    let lie = |text: &str| {
        let (problems, _ran) = problems("page.md", text);
        assert_eq!(problems.len(), 1, "{text}\n{problems:?}");
        problems.into_iter().next().unwrap()
    };
    let other_words = lie("```console\n$ belljar limits\nlimits [..]\n```\n");
    assert!(other_words.starts_with("page.md:2: "), "{other_words}");
    let no_such_flag = "<!-- guide: not run: a test -->\n```console\n$ belljar run --fast x\n```\n";
    assert!(lie(no_such_flag).contains("--fast"));
    assert!(lie("Text.\n\nUse `belljar agentz list` for it.\n").starts_with("page.md:3: "));
    assert!(lie("```console\n$ belljar explain nobody file_read\n```\n").contains("exited with"));
    assert!(lie("```toml\n[modells.a]\nkind = \"openai\"\n```\n").contains("modells"));
    assert!(lie("```sh\nbelljar limits\n```\n").contains("console"));
    assert!(lie("```text\nbelljar limitz\n```\n").contains("console"));
    assert!(lie("<!-- guide: exits 4 -->\n").contains("no block"));
}

#[test]
fn a_page_that_is_right_has_no_problem() {
    let text = "<!-- guide: file .belljar/agents/a.md\n---\nname: a\ndescription: d\ntools: \
                [mcp__a__b]\n---\nHello.\n-->\n<!-- guide: exits 4 -->\n```console\n$ belljar agents \
                check a # nobody has its only tool\n...\nblocked[..]\n...\n```\n\n```toml\n\
                keep_runs = 3\n```\n\nSee `belljar run --help`.\n";
    let (problems, ran) = problems("page.md", text);
    assert_eq!((problems, ran), (Vec::new(), 1));
}
