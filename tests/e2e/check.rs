//! `belljar agents check`: what each file is, what its agent would get, and the exit code.

use std::fs;
use std::path::PathBuf;

use crate::kit::World;

const READY: &str = "---\nname: reader\ndescription: d\ntools: Read\n---\nYou read.\n";
const BROKEN: &str =
    "---\nname: late\ndescription: Use it so: always.\ntools: Read, Grep\n---\nx\n";
const BLOCKED: &str = "---\nname: writer\ndescription: d\ntools: Read, Write, Frob\n---\nx\n";
const INVALID: &str = "---\nname: none\n---\nx\n";
const FENCED: &str = "# F\n\n```yaml\n---\nname: f\ndescription: d\ntools: []\n---\n```\n\nx\n";

fn library(world: &World) -> PathBuf {
    world.other("lib/one/reader.md", READY.as_bytes());
    world.other("lib/one/.hidden/late.md", BROKEN.as_bytes());
    world.other("lib/two/deep/writer.MD", BLOCKED.as_bytes());
    world.other("lib/two/README.md", b"# Two\n");
    world.other("lib/two/fenced.md", FENCED.as_bytes());
    let none = world.other("lib/two/none.md", INVALID.as_bytes());
    none.parent().unwrap().parent().unwrap().to_path_buf()
}

#[test]
fn every_file_is_one_entry_with_its_status_and_what_it_gets() {
    let world = World::without_overlays();
    let lib = library(&world);
    let done = world.run(&["agents", "check", "--json", lib.to_str().unwrap()]).exits(2).json();
    let entries = done.as_array().unwrap();
    let of = |end: &str| {
        let found = |e: &&serde_json::Value| e["path"].as_str().unwrap().ends_with(end);
        entries.iter().find(found).unwrap()
    };
    assert_eq!(entries.len(), 6);
    assert_eq!(of("reader.md")["status"], "ready");
    assert_eq!(of("reader.md")["dialect"], "claude-code");
    assert_eq!(of("reader.md")["tools"], serde_json::json!(["file_read"]));
    let late = of("late.md");
    assert_eq!(late["status"], "ready with warnings");
    assert_eq!(late["tools"], serde_json::json!(["file_read", "file_search"]));
    assert_eq!(
        (&late["diagnostics"][0]["line"], &late["diagnostics"][0]["column"]),
        (&3.into(), &23.into())
    );
    let writer = of("writer.MD");
    assert_eq!(writer["status"], "blocked");
    assert_eq!(writer["needs"], serde_json::json!([{ "tool": "file_write" }]));
    assert_eq!(writer["unavailable"][0]["name"], "Frob");
    assert_eq!(of("none.md")["status"], "invalid");
    assert_eq!(of("README.md")["status"], "not an agent");
    assert!(of("fenced.md")["reasons"][0].as_str().unwrap().contains("lenient = true"));
}

#[test]
fn the_exit_code_is_that_of_the_worst_file() {
    let world = World::without_overlays();
    let lib = library(&world);
    let check = |path: &str| world.run(&["agents", "check", lib.join(path).to_str().unwrap()]);
    check("one").exits(0).says("2 files: 1 ready, 1 ready with warnings");
    check("two/deep").exits(4).says("file_write");
    check("two").exits(2);
    check("two/README.md").exits(2).complains("not an agent");
    check("nowhere").exits(2).complains("cannot be read");
}

#[test]
fn a_table_has_a_row_for_each_library() {
    let world = World::without_overlays();
    let lib = library(&world);
    let done = world.run(&["agents", "check", "--by-library", lib.to_str().unwrap()]).exits(2);
    let row = |name: &str| -> Vec<String> {
        let line = done.stdout.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().skip(1).map(str::to_owned).collect()
    };
    assert_eq!(row("one"), ["2", "1", "1", "0", "0", "0"]);
    assert_eq!(row("two"), ["4", "0", "0", "1", "1", "2"]);
    assert_eq!(row("all"), ["6", "1", "1", "1", "1", "2"]);
}

/// A stranger's file that has the name of an agent with grants gets none of them.
#[test]
fn grants_count_for_the_agent_that_has_them_and_not_for_a_namesake() {
    let world = World::without_overlays();
    world.home_file(
        "belljar.toml",
        "[grants.writer]\ntools = { file_read = \"allow\", file_write = \"allow\" }\n",
    );
    let text = BLOCKED.replace(", Frob", "");
    let own = world.home_file("agents/writer.md", &text);
    let foreign = world.other("lib/writer.md", text.as_bytes());
    world.run(&["agents", "check", own.to_str().unwrap()]).exits(0).says("ready");
    world.run(&["agents", "check", foreign.to_str().unwrap()]).exits(4).says("blocked");
}

#[test]
fn unusual_shapes_are_read_with_the_option_or_the_setting() {
    let world = World::new();
    let path = world.other("lib/fenced.md", FENCED.as_bytes());
    let path = path.to_str().unwrap();
    world.run(&["agents", "check", path]).exits(2).complains("--lenient");
    world.run(&["agents", "check", "--lenient", path]).exits(0).says("ready");
    world.home_file("belljar.toml", "[agents]\nlenient = true\n");
    world.run(&["agents", "check", path]).exits(0).says("ready");
    world.home_file("agents/fenced.md", FENCED);
    world.run(&["agents", "list"]).exits(0).says("f ");
}

#[test]
fn a_fixed_file_loads_with_the_same_tools_and_nothing_is_overwritten() {
    let world = World::new();
    let lib = library(&world);
    let one = lib.join("one");
    let one = one.to_str().unwrap();
    world.run(&["agents", "check", "--fix", one]).exits(0).says("late.md.fixed");
    let again = world.run(&["agents", "check", "--fix", one]).exits(1);
    again.complains("is there already");
    let found = world.run(&["agents", "check", "--json", one]).exits(0).json();
    assert_eq!(found.as_array().unwrap().len(), 2, "what was written is not found as an agent");
    fs::remove_file(lib.join("one/.hidden/late.md.fixed")).unwrap();
    fs::remove_file(lib.join("one/reader.md.fixed")).unwrap();
    world.run(&["agents", "check", "--fix", "--in-place", one]).exits(0);
    let after = world.run(&["agents", "check", "--json", one]).exits(0).json();
    for (before, after) in found.as_array().unwrap().iter().zip(after.as_array().unwrap()) {
        assert_eq!(after["status"], "ready");
        assert_eq!(after["dialect"], "canonical");
        assert_eq!((&before["name"], &before["tools"]), (&after["name"], &after["tools"]));
    }
    let text = fs::read_to_string(lib.join("one/.hidden/late.md")).unwrap();
    assert!(text.ends_with("---\nx\n"), "{text}");
}

#[test]
fn hostile_names_and_paths_reach_the_terminal_escaped() {
    let world = World::new();
    let text =
        "---\nname: \"\\e[2J\\u202e\"\ndescription: \"a: \u{1b}\"\ntools: [\"\\u202ex\"]\n---\nx";
    world.other("lib/a\u{202e}.md", text.as_bytes());
    let path = world.other("lib/b.md", text.replace('\u{1b}', "").as_bytes());
    let done = world.run(&["agents", "check", path.parent().unwrap().to_str().unwrap()]);
    let all = format!("{}{}", done.stdout, done.stderr);
    assert!(!all.contains('\u{1b}') && !all.contains('\u{202e}'), "{all:?}");
}

#[test]
fn json_shows_what_a_screen_would_not_and_keeps_its_value() {
    let world = World::new();
    let hostile = "a \u{202e} turned b \u{9b}2J c \u{200b} d";
    let text = READY.replace("description: d", &format!("description: '{hostile}'"));
    world.other("lib/reader.md", text.as_bytes());
    world.other("lib/plain.md", READY.replace("reader", "plain").as_bytes());
    let lib = world.home().parent().unwrap().join("lib");
    let hidden = |text: &str| text.chars().any(|c| "\u{202e}\u{9b}\u{200b}".contains(c));
    for args in [&["agents", "check", "--json"][..], &["agents", "add", "--json"]] {
        let done = world.run(&[args, &[lib.to_str().unwrap()]].concat());
        assert!(!hidden(&done.stdout), "{args:?}: {}", done.stdout);
        assert!(done.json().to_string().contains("plain"), "{args:?}");
    }
    // What an agent says of itself comes back as it was.
    world.home_file("agents/reader.md", &text);
    let shown = world.run(&["agents", "show", "reader", "--json"]);
    assert!(!hidden(&shown.stdout), "{}", shown.stdout);
    if shown.code == 0 {
        assert!(shown.stdout.contains("\\u202e"), "{}", shown.stdout);
        assert!(shown.json().to_string().contains(hostile), "{}", shown.stdout);
    }
}
