//! Files that are made to hurt: each gets one clear answer, soon.

#![expect(clippy::disallowed_methods, reason = "a bomb is told by the time it takes")]

use std::path::Path;
use std::time::{Duration, Instant};

use belljar_definition::{MAX_DEFINITION, MAX_FRONTMATTER, Parsed, parse_agent};

use crate::show::{agent, errors, known, manifest};

/// Far more than any of these takes on a slow machine, far less than a bomb that goes off.
const SOON: Duration = Duration::from_secs(5);

fn quick(text: impl AsRef<[u8]>) -> String {
    let start = Instant::now();
    let answer = agent(text);
    assert!(start.elapsed() < SOON, "took {:?}", start.elapsed());
    assert_eq!(answer.lines().next(), Some("invalid"), "{answer}");
    let answer = answer.lines().skip(1).collect::<Vec<_>>().join("\n");
    assert!(answer.len() < 2_000, "{} bytes", answer.len());
    answer
}

fn file(yaml: &str) -> String {
    format!("---\nname: s\ndescription: d\n{yaml}\n---\nbody")
}

#[test]
fn alias_bombs_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..10 {
        let uses = vec![format!("*a{}", n - 1); 9].join(", ");
        bomb += &format!("a{n}: &a{n} [{uses}]\n");
    }
    insta::assert_snapshot!(quick(file(&bomb)), @r#"
    agents/scout.md:8:10: error: the frontmatter is not valid YAML: more than 32 aliases, or aliases of aliases
      hint: write the values out instead of anchors and aliases
    "#);
}

/// Shown on a terminal, this file seems to have a short list of tools.
#[test]
fn a_carriage_return_that_hides_a_line_is_refused() {
    insta::assert_snapshot!(quick(file("tools: [file_write] #\rtools: [file_read]   #")), @r#"
    agents/scout.md:4:22: error: the frontmatter is not valid YAML: a carriage return that ends no line
      hint: save the file with ordinary line endings
    "#);
}

#[test]
fn merge_keys_are_refused() {
    insta::assert_snapshot!(quick(file("base: &b {a: 1}\nc:\n  <<: *b")), @r#"
    agents/scout.md:6:3: error: the frontmatter is not valid YAML: merge keys are not read
      hint: write the values out instead of anchors and aliases
    "#);
}

#[test]
fn depth_bombs_are_refused() {
    insta::assert_snapshot!(quick(file(&format!("a: {}", "[".repeat(30_000)))), @r#"
    agents/scout.md:4:20: error: the frontmatter is not valid YAML: nested deeper than 16 levels
      hint: flatten it
    "#);
    let maps: String = (0..200).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    insta::assert_snapshot!(quick(file(&format!("b:\n{maps}"))), @r#"
    agents/scout.md:21:17: error: the frontmatter is not valid YAML: nested deeper than 16 levels
      hint: flatten it
    "#);
}

#[test]
fn size_bombs_are_refused() {
    insta::assert_snapshot!(quick(file(&format!("a: {}", "x".repeat(MAX_FRONTMATTER)))), @r#"
    agents/scout.md:1:1: error: the frontmatter has 65563 bytes, at most 65536 are read
      hint: move prose below the closing `---`
    "#);
    let many = "[".to_owned() + &"1,".repeat(MAX_FRONTMATTER / 2 - 200) + "]";
    insta::assert_snapshot!(quick(file(&format!("a: {many}"))), @r#"
    agents/scout.md:4:19991: error: the frontmatter is not valid YAML: more than 10000 values
      hint: move data below the closing `---`
    "#);
    let text = file("") + &"x".repeat(MAX_DEFINITION);
    insta::assert_snapshot!(quick(text), @r#"
    agents/scout.md: error: the file has 1048612 bytes; an agent definition has at most 1048576
      hint: move long reference text to files that the agent reads when it needs them
    "#);
}

#[test]
fn a_hundred_megabytes_are_refused_by_their_length() {
    let bytes = vec![b'-'; 100 << 20];
    let start = Instant::now();
    let Parsed::Invalid { diagnostics } = parse_agent(Path::new("a.md"), &bytes, &known()) else {
        panic!("taken for an agent");
    };
    assert!(start.elapsed() < SOON);
    insta::assert_snapshot!(diagnostics[0].to_string(), @r#"
    a.md: error: the file has 104857600 bytes; an agent definition has at most 1048576
      hint: move long reference text to files that the agent reads when it needs them
    "#);
}

#[test]
fn a_flood_of_findings_is_cut() {
    let keys: String = (0..2_000).map(|n| format!("key{n}: 1\n")).collect();
    let answer = agent(file(&format!("visibility: internal\n{keys}")));
    assert!(answer.lines().count() < 130, "{}", answer.lines().count());
    assert!(answer.contains("more findings in this file are not listed"), "{answer}");
}

#[test]
fn invalid_utf8_is_placed() {
    insta::assert_snapshot!(quick(b"---\nname: s\ndescription: caf\xe9\n---\nbody"), @r#"
    agents/scout.md:3:17: error: the file is not UTF-8 from here on
      hint: save it as UTF-8
    "#);
    insta::assert_snapshot!(agent(b"# caf\xe9\n"), @"NoFrontmatter: the file does not begin with `---`, so it has no frontmatter");
}

#[test]
fn control_characters_in_yaml_are_refused() {
    insta::assert_snapshot!(quick(file("a: \u{1}\u{1b}[2J")), @r#"agents/scout.md:4:4: error: the frontmatter is not valid YAML: unexpected character: `\u{1}'"#);
}

#[test]
fn toml_bombs_are_refused() {
    let start = Instant::now();
    let deep = errors(&format!("a = {}", "[".repeat(100_000)));
    assert!(deep.contains("not valid TOML"), "{deep}");
    let dotted = errors(&format!("{}a = 1", "a.".repeat(100_000)));
    assert!(dotted.contains("belljar.toml"), "{dotted}");
    let long = errors(&"#".repeat(2 << 20));
    insta::assert_snapshot!(long, @"belljar.toml: error: the file has 2097152 bytes, at most 1048576 are read");
    assert!(manifest(&"[a]\n".repeat(10_000)).len() < 60_000);
    assert!(start.elapsed() < SOON, "took {:?}", start.elapsed());
}
