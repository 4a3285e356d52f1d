//! Names of files that are no text, names of any script, and places below the top of a repository.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::World;

const WORKER: &str = "---
name: worker
description: Works.
tools: [file_list, file_read, file_edit, file_write, file_find, file_search, shell]
---
You work.
";

/// A world in which the agent `worker` plays these turns.
fn world(turns: &str) -> World {
    let world = World::new();
    world.home_file("agents/worker.md", WORKER);
    world.home_file("script.yaml", &format!("transcript: 1\nagents:\n{turns}"));
    world.home_file("belljar.toml", "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n");
    world
}

fn odd(world: &World, name: &[u8]) -> PathBuf {
    world.workspace().join(OsStr::from_bytes(name))
}

#[test]
fn a_file_whose_name_is_no_text_is_listed_changed_and_applied() {
    let world = world(
        r#"
  - agent: worker
    turns:
      - calls: [{name: file_list, arguments: {path: .}}, {name: file_find, arguments: {pattern: "*.txt"}}]
      - expect:
          results:
            - {name: file_list, contains: 'caf\xE9.txt', is_error: false}
            - {name: file_find, contains: 'caf\x5CxE9.txt', is_error: false}
        calls:
          - {name: file_read, arguments: {path: 'caf\xE9.txt'}}
          - {name: file_edit, arguments: {path: 'd\xFF/in.txt', old_text: below, new_text: changed}}
          - {name: file_edit, arguments: {path: 'caf\xE9.txt', old_text: latin, new_text: changed}}
          - {name: shell, arguments: {command: 'cat caf*xE9.txt | sort; rm gone*'}}
      - expect:
          results:
            - {name: file_read, contains: latin, is_error: false}
            - {name: file_edit, is_error: false}
            - {name: file_edit, is_error: false}
            - {name: shell, contains: letters, is_error: false}
        say: done
"#,
    );
    fs::write(odd(&world, b"caf\xe9.txt"), "latin\n").unwrap();
    fs::write(odd(&world, b"caf\\xE9.txt"), "letters\n").unwrap();
    fs::write(odd(&world, b"gone\xfe"), "gone\n").unwrap();
    fs::create_dir(odd(&world, b"d\xff")).unwrap();
    fs::write(odd(&world, b"d\xff/in.txt"), "below\n").unwrap();
    world.run(&["run", "--agent", "worker", "go"]).exits(0).says("done");
    assert_eq!(fs::read(odd(&world, b"caf\xe9.txt")).unwrap(), b"latin\n");
    let listed = world.run(&["changes", "--stat"]).exits(0).says("3 files changed");
    let listed = listed.says("changed  caf\\xE9.txt ").says("d\\xFF/in.txt");
    assert!(!listed.stdout.contains('\u{fffd}') && !listed.stdout.contains("would run"));
    // INV-560: as it is listed, so it is typed.
    world.run(&["apply", "--yes", "caf\\xE9.txt"]).exits(0);
    assert_eq!(fs::read(odd(&world, b"caf\xe9.txt")).unwrap(), b"changed\n");
    assert_eq!(fs::read(odd(&world, b"d\xff/in.txt")).unwrap(), b"below\n");
    world.run(&["undo"]).exits(0);
    world.run(&["discard", "--yes", "caf\\x5CxE9.txt"]).exits(2).complains("no change");
    world.run(&["apply", "--yes"]).exits(0);
    assert_eq!(fs::read(odd(&world, b"caf\xe9.txt")).unwrap(), b"changed\n");
    assert_eq!(fs::read(odd(&world, b"caf\\xE9.txt")).unwrap(), b"letters\n");
    assert_eq!(fs::read(odd(&world, b"d\xff/in.txt")).unwrap(), b"changed\n");
    assert!(!odd(&world, b"gone\xfe").exists());
    world.run(&["undo"]).exits(0);
    assert_eq!(fs::read(odd(&world, b"caf\xe9.txt")).unwrap(), b"latin\n");
    assert!(odd(&world, b"gone\xfe").exists());
}

/// INV-561.
#[test]
fn a_name_that_is_no_text_is_judged_by_its_bytes_and_listed_as_it_is_typed() {
    let world = world(
        r#"
  - agent: worker
    turns:
      - calls:
          - {name: shell, arguments: {command: "echo a > 'n\\xFFotes.txt'; echo b > 'Make\\xFFfile'; echo c > '.\\xE9rc'"}}
          - {name: file_write, arguments: {path: "a\nb", content: "d\n"}}
          - {name: file_write, arguments: {path: "a\\nb", content: "e\n"}}
      - say: done
"#,
    );
    world.run(&["run", "--agent", "worker", "go"]).exits(0);
    let listed = world.run(&["changes", "--stat"]).exits(0).says("5 files changed");
    let listed = listed.says("2 would run later").says("Make\\xFFfile").says(".\\xE9rc");
    // A line end and the two letters that stand for one are not shown alike.
    listed.says("n\\xFFotes.txt").says("a\\nb ").says("a\\x5Cnb ");
    world.run(&["apply", "--yes", "a\\nb"]).exits(0);
    assert_eq!(fs::read(odd(&world, b"a\nb")).unwrap(), b"d\n");
    assert!(!odd(&world, b"a\\nb").exists());
    world.run(&["apply", "--yes"]).exits(3).complains("left: ");
    assert_eq!(fs::read(odd(&world, b"a\\nb")).unwrap(), b"e\n");
    assert!(odd(&world, b"n\xffotes.txt").exists() && !odd(&world, b"Make\xfffile").exists());
}

fn git(at: &Path, args: &[&str]) {
    let done = Command::new("git").args(args).current_dir(at).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_patch_is_taken_by_git_below_the_top_of_a_repository() {
    let world = world(
        r#"
  - agent: worker
    turns:
      - calls:
          - {name: shell, arguments: {command: "echo two > a.txt; mkdir new; echo n > 'new/x y'; rm gone; mv old moved"}}
      - say: done
"#,
    );
    let top = world.workspace();
    git(&top, &["init", "--quiet"]);
    for (name, text) in [
        ("sub/dir/a.txt", "one\n"),
        ("sub/dir/gone", "gone\n"),
        ("sub/dir/old", "old\n"),
        ("a.txt", "the top's\n"),
    ] {
        world.file(name, text);
    }
    let below = top.join("sub/dir");
    world.run(&["-C", "sub/dir", "run", "--agent", "worker", "go"]).exits(0);
    let patch = world.run(&["-C", "sub/dir", "changes", "--patch"]).exits(0);
    patch.says("diff --git a/sub/dir/a.txt b/sub/dir/a.txt");
    let patch = world.run(&["-C", "sub/dir", "changes", "--patch"]).stdout;
    let patch = world.other("patch", patch.as_bytes());
    git(&below, &["apply", patch.to_str().unwrap()]);
    let text = |name: &str| fs::read_to_string(below.join(name)).ok();
    assert_eq!(text("a.txt").as_deref(), Some("two\n"));
    assert_eq!(text("new/x y").as_deref(), Some("n\n"));
    assert_eq!(text("moved").as_deref(), Some("old\n"));
    assert!(text("gone").is_none() && text("old").is_none());
    assert_eq!(fs::read_to_string(top.join("a.txt")).unwrap(), "the top's\n");
    git(&top, &["apply", "--reverse", patch.to_str().unwrap()]);
    assert_eq!(text("a.txt").as_deref(), Some("one\n"));
}

#[test]
fn an_agent_of_any_script_is_run_granted_and_spawned_as_its_name_is_written() {
    let world = world(
        r#"
  - agent: 代码审查
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: "Pru\u0308fer", task: look}}]
      - expect: {results: [{name: spawn_agent, contains: geprüft}]}
        say: 好
  - agent: Prüfer
    turns:
      - say: geprüft
"#,
    );
    let agent = |name: &str, tools: &str| {
        format!("---\nname: {name}\ndescription: Reviews.\ntools: [{tools}]\n---\nYou review.\n")
    };
    world.home_file("agents/a.md", &agent("代码审查", "spawn_agent, file_read"));
    world.home_file("agents/b.md", &agent("Prüfer", "file_read"));
    world.home_file("agents/c.md", &agent("Prufer", "file_read"));
    world.run(&["agents", "list"]).exits(0).says("代码审查").says("rüfer").says("rufer");
    world.run(&["grant", "代码审查", "--limit", "steps=9", "--yes"]).exits(0);
    world.run(&["grant", "Pru\u{308}fer", "--limit", "steps=8", "--yes"]).exits(0);
    let settings = fs::read_to_string(world.home().join("belljar.toml")).unwrap();
    assert!(settings.contains("代码审查") && settings.contains("prüfer"), "{settings}");
    world.run(&["explain", "Prüfer", "file_read"]).exits(0);
    // INV-562: a name of several words too.
    world.home_file("agents/e.md", &agent("مراجع الكود", "file_read, file_write"));
    world.run(&["grant", "مراجع الكود", "--limit", "steps=7", "--yes"]).exits(0);
    world.run(&["explain", "مراجع الكود", "file_read"]).exits(0);
    let granted = || fs::read_to_string(world.home().join("belljar.toml")).unwrap();
    assert!(granted().contains("[grants.\"مراجع-الكود\"]"), "{}", granted());
    world.run(&["revoke", "مراجع الكود", "--all", "--yes"]).exits(0);
    assert!(!granted().contains("مراجع-الكود") && granted().contains("代码审查"), "{}", granted());
    world.run(&["run", "--agent", "代码审查", "go"]).exits(0).says("好");
    // What nobody sees is in no name.
    let hidden = world.home_file("agents/d.md", &agent("\"evil\\u202Ename\"", "file_read"));
    world.run(&["agents", "check", hidden.to_str().unwrap()]).says("others that are not seen");
    assert_ne!(world.run(&["run", "--agent", "evil\u{202e}name", "go"]).code, 0);
}

#[test]
fn a_skill_and_a_library_have_names_of_any_script() {
    let world = world("  - agent: Prüfer\n    turns: [{say: da}]\n");
    world.home_file(
        "skills/ueberblick.md",
        "---\nname: Überblick\ndescription: Sieht.\n---\nSieh.\n",
    );
    world.run(&["skills", "list"]).exits(0).says("berblick");
    let source = world.other(
        "bücher/prüfer.md",
        b"---\nname: Pr\xc3\xbcfer\ndescription: Prueft.\ntools: [file_read]\n---\nDu.\n",
    );
    let source = source.parent().unwrap().to_owned();
    world
        .run(&["agents", "add", source.to_str().unwrap(), "--yes"])
        .exits(0)
        .says("library/bücher");
    world.run(&["run", "--agent", "library/bu\u{308}cher/Prüfer", "go"]).exits(0).says("da");
    world.run(&["agents", "remove", "Bücher"]).exits(0);
}

#[test]
fn an_argument_that_is_a_whole_number_is_an_integer_however_a_model_writes_it() {
    let world = world(
        r#"
  - agent: worker
    turns:
      - calls:
          - {name: file_read, arguments: {path: a.txt, limit: 1.0, offset: 2.0}}
          - {name: file_find, arguments: {pattern: "*.txt", limit: 10.0}}
          - {name: file_list, arguments: {depth: 1.0}}
          - {name: file_search, arguments: {pattern: two, context: 1.0e+0}}
          - {name: file_read, arguments: {path: a.txt, limit: 1.5}}
      - expect:
          results:
            - {name: file_read, contains: two, is_error: false}
            - {name: file_find, contains: a.txt, is_error: false}
            - {name: file_list, is_error: false}
            - {name: file_search, contains: three, is_error: false}
            - {name: file_read, contains: limit, is_error: true}
        say: done
"#,
    );
    world.file("a.txt", "one\ntwo\nthree\n");
    world.run(&["run", "--agent", "worker", "go"]).exits(0).says("done");
    world
        .run(&["tools", "call", "file_read", r#"{"path":"a.txt","limit":1e0}"#])
        .exits(0)
        .says("one");
    let told = world.run(&["tools", "call", "file_read", r#"{"path":"a.txt","limit":1e30}"#]);
    assert_ne!(told.code, 0);
}

#[test]
fn a_grant_of_a_name_as_it_was_without_its_letters_is_told_wherever_it_no_longer_holds() {
    let world = world("  - agent: Café Reviewer\n    turns: [{say: ready}]\n");
    world.home_file(
        "agents/r.md",
        "---\nname: Café Reviewer\ndescription: Reviews.\n---\nYou review.\n",
    );
    let settings = "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n";
    let old = format!("{settings}[grants.caf-reviewer]\ntools = ['file_list']\n");
    world.home_file("belljar.toml", &old);
    for args in [&["run", "--agent", "Café Reviewer", "go"][..], &["doctor"], &["agents", "check"]]
    {
        let done = world.run(args);
        let told = format!("{}{}", done.stdout, done.stderr);
        assert!(told.contains("names `caf-reviewer`"), "{args:?}: {told}");
        assert!(told.contains("write `café-reviewer` in its place"), "{args:?}: {told}");
    }
    // By its name of today it holds, and nothing is told.
    for name in ["café-reviewer", "Café Reviewer"] {
        world.home_file("belljar.toml", &old.replace("caf-reviewer", &format!("'{name}'")));
        let shown = world.run(&["agents", "show", "Café Reviewer"]).exits(0);
        assert!(!shown.stderr.contains("in its place"), "{}", shown.stderr);
        world.run(&["explain", "Café Reviewer", "file_read"]).exits(4);
        world.run(&["explain", "Café Reviewer", "file_list"]).exits(0);
    }
}
