//! Overlays, from a stranger's agent that is granted nothing to a directory that its owner has decided
//! about.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::kit::server::{Server, key};
use crate::kit::{Done, World};

const STRANGER: &str = "---
name: tidy
description: Tidies.
tools: Read, Write, Edit, Bash
---
You tidy.
";

const SCRIPT: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: tidy
    turns:
      - calls:
          - {name: Write, arguments: {file_path: /workspace/new.md, content: "new\n"}}
          - {name: Bash, arguments: {command: "sed -i s/two/2/ list.txt && rm gone.txt && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit && cat list.txt"}}
      - expect: {results: [{name: Write}, {name: Bash, contains: "2"}]}
        say: tidied
"#;

/// A workspace with three files, and a stranger's agent that changes all of them.
fn world() -> World {
    filled(World::new())
}

fn filled(world: World) -> World {
    world.file("list.txt", "one\ntwo\nthree\n");
    world.file("gone.txt", "gone\n");
    world.file("kept.txt", "kept\n");
    world.home_file("agents/tidy.md", STRANGER);
    world.home_file("script.yaml", SCRIPT);
    world.home_file("belljar.toml", "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n");
    world
}

fn json_of(world: &World, args: &[&str]) -> Value {
    serde_json::from_str(&world.run(args).exits(0).stdout).unwrap()
}

fn read(world: &World, name: &str) -> Option<String> {
    fs::read_to_string(world.workspace().join(name)).ok()
}

/// Adds to the operator's settings.
fn append(world: &World, more: &str) {
    let path = world.home().join("belljar.toml");
    let text = fs::read_to_string(&path).unwrap() + more;
    fs::write(path, text).unwrap();
}

/// The layers of all sessions of the command line.
fn layers(world: &World) -> Vec<PathBuf> {
    let root = world.home().join("sessions/store/belljar.overlays/local");
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn a_strangers_agent_works_at_once_and_its_owner_decides() {
    let world = world();
    let done = world.run(&["run", "--agent", "tidy", "tidy up"]).exits(0).says("tidied");
    done.complains("in an overlay; 1 would run later by itself");
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\ntwo\nthree\n"));
    assert!(read(&world, "new.md").is_none() && read(&world, "gone.txt").is_some());

    let changes = json_of(&world, &["changes", "--json"]);
    let files = changes["places"][0]["files"].as_array().unwrap();
    let paths: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    for path in ["list.txt", "gone.txt", "new.md", ".git/hooks/pre-commit"] {
        assert!(paths.contains(&path), "{paths:?}");
    }
    assert!(!paths.contains(&"kept.txt"), "{paths:?}");

    let stat = world.run(&["changes", "--stat"]).exits(0);
    stat.says("deleted  gone.txt").says("changed  list.txt");

    // A path, then the rest; what would run later stays.
    world.run(&["apply", "new.md", "--yes"]).exits(0);
    assert_eq!(read(&world, "new.md").as_deref(), Some("new\n"));
    assert!(read(&world, "gone.txt").is_some(), "not yet");
    world.run(&["apply", "--yes"]).exits(3).complains(".git/hooks/pre-commit");
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\n2\nthree\n"));
    assert!(read(&world, "gone.txt").is_none() && read(&world, ".git/hooks/pre-commit").is_none());
    world.run(&["undo"]).exits(0);
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\ntwo\nthree\n"));
    assert!(read(&world, "gone.txt").is_some());
    world.run(&["discard", "--yes"]).exits(0);
    world.run(&["changes"]).says("nothing is changed");
    assert_eq!(read(&world, "kept.txt").as_deref(), Some("kept\n"));
}

#[test]
fn a_run_and_the_list_of_its_changes_count_the_same() {
    let world = world();
    let script =
        SCRIPT.replace("mkdir -p .git/hooks &&", "rm -r .github && mkdir -p .git/hooks &&");
    world.home_file("script.yaml", &script);
    world.file(".github/workflows/ci.yml", "on: push\n");
    let run = world.run(&["run", "--agent", "tidy", "tidy up"]).exits(0);
    let stat = world.run(&["changes", "--stat"]).exits(0);
    let number = |text: &str| {
        let before = text.split_once(" would run later by themselves").unwrap().0;
        before.split([' ', '\n']).next_back().unwrap().parse::<usize>().unwrap()
    };
    assert_eq!(number(&run.stderr), number(&stat.stdout), "{}{}", run.stderr, stat.stdout);
    assert!(number(&run.stderr) > 1, "{}", run.stderr);
    let counted = json_of(&world, &["changes", "--json"])["places"][0]["stat"]["run_later"].clone();
    assert_eq!(counted, number(&run.stderr));
    assert_eq!(read(&world, ".github/workflows/ci.yml").as_deref(), Some("on: push\n"));
}

#[test]
fn a_file_that_changed_meanwhile_is_merged_or_left_and_never_overwritten() {
    let world = world();
    world.run(&["run", "--agent", "tidy", "tidy up"]).exits(0);
    world.file("list.txt", "one\ntwo\nthree\nfour\n");
    world.run(&["apply", "list.txt", "--yes"]).exits(0);
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\n2\nthree\nfour\n"), "merged");
    world.run(&["undo"]).exits(0);
    world.file("list.txt", "one\nzwei\nthree\n");
    let left = world.run(&["apply", "list.txt", "--yes"]).exits(3).complains("list.txt");
    left.complains("line 2: yours -, the agent's + @@\n-zwei\n+2\n");
    world.run(&["changes", "list.txt"]).exits(0).says("-zwei\n+2\n");
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\nzwei\nthree\n"), "left");
    world.run(&["apply", "list.txt", "--theirs", "list.txt", "--yes"]).exits(0);
    let theirs = Some("one\n2\nthree\n");
    assert_eq!(read(&world, "list.txt").as_deref(), theirs, "by the owner's word");
    world.file("list.txt", "mine\n");
    world.run(&["undo"]).exits(1).complains("list.txt");
    assert_eq!(read(&world, "list.txt").as_deref(), Some("mine\n"), "not taken back");
}

#[test]
fn nothing_is_decided_without_a_word_and_wrong_words_say_so() {
    let world = world();
    world.run(&["changes"]).exits(2).complains("no run of this workspace");
    world.run(&["run", "--agent", "tidy", "tidy up"]).exits(0);
    world.run(&["apply"]).exits(2).complains("--yes");
    world.run(&["apply", "--yes", "../list.txt"]).exits(2).complains("leads out");
    world.run(&["apply", "--yes", "/etc/passwd"]).exits(2).complains("no directory");
    world.run(&["apply", "--yes", "nowhere.txt"]).exits(2).complains("no change `nowhere.txt`");
    world.run(&["discard"]).exits(2).complains("--yes");
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\ntwo\nthree\n"));
    assert!(
        json_of(&world, &["changes", "--json"])["places"][0]["stat"]["files"].as_u64() > Some(3)
    );
}

/// INV-510.
#[cfg(target_os = "linux")]
#[test]
fn a_no_to_what_would_run_later_is_said_as_what_it_is() {
    let world = world();
    world.run(&["run", "--agent", "tidy", "tidy up"]).exits(0);
    let mut terminal = crate::kit::terminal::Terminal::start(&world, &["apply"]);
    terminal.until("[y/N]");
    terminal.types("y\n");
    terminal.until("that would run later? [y/N]");
    terminal.types("n\n");
    terminal.until("what would run later stays in the overlay");
    let (code, text) = terminal.ends();
    assert_eq!(code, 3, "{text}");
    assert!(!text.contains("nothing is applied"), "{text}");
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\n2\nthree\n"));
    assert!(read(&world, ".git/hooks/pre-commit").is_none(), "the neighbour");
    // A no to all of it is one.
    let mut terminal = crate::kit::terminal::Terminal::start(&world, &["apply"]);
    terminal.until("[y/N]");
    terminal.types("n\n");
    terminal.until("nothing is applied");
    assert!(read(&world, ".git/hooks/pre-commit").is_none());
}

#[test]
fn a_word_that_is_no_change_is_named_wherever_it_stands() {
    let world = world();
    world.run(&["run", "--agent", "tidy", "tidy up"]).exits(0);
    for words in [
        &["changes", "nope"][..],
        &["changes", "list.txt", "nope"],
        &["apply", "--yes", "list.txt", "nope"],
    ] {
        world.run(words).exits(2).complains("no run, no session and no change `nope`");
    }
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\ntwo\nthree\n"));
    world.run(&["changes", "list.txt"]).exits(0).says("+2");
}

#[test]
fn an_overlay_goes_with_its_session_and_a_run_that_keeps_nothing_leaves_none() {
    let world = world();
    world.run(&["run", "--no-save", "--agent", "tidy", "tidy up"]).exits(0);
    assert_eq!(layers(&world), Vec::<PathBuf>::new());
    // As a run that was killed leaves it.
    let left = world.home_file("sessions/store/overlays-dead/run/0/layer/lock", "");
    world.home_file("sessions/store/overlays-dead/lock", "");
    world.run(&["run", "--agent", "tidy", "tidy up"]).exits(0);
    assert!(!left.exists());
    assert_eq!(layers(&world).len(), 1);
    world.run(&["sessions", "rm", "--all", "--yes"]).exits(0);
    assert_eq!(layers(&world), Vec::<PathBuf>::new());
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\ntwo\nthree\n"));
}

#[test]
fn without_overlays_an_agent_that_wants_to_write_is_blocked_as_before() {
    let world = world();
    append(&world, "[agents]\noverlay = 'never'\n");
    let done = world.run(&["run", "--agent", "tidy", "tidy up"]).exits(4);
    done.complains("tool `file_write` is not given");
    let why = world.run(&["explain", "tidy", "file_write"]).exits(4);
    why.says("`overlay = \"never\"` under `[agents]` leaves none");
    append(&world, "overlay_bytes = 'many'\n");
    world.run(&["agents", "list"]).exits(2).complains("overlay_bytes");
}

/// A mount that was granted to be written gives no tool that nobody granted.
#[test]
fn a_writable_mount_brings_no_tool_that_is_there_for_overlays() {
    let world = world();
    let mount = "[grants.tidy]\nmounts = [{ path = '/workspace', access = 'read-write' }]\n";
    append(&world, mount);
    let done = world.run(&["run", "--agent", "tidy", "tidy up"]).exits(4);
    let done = done.complains("`shell`").complains("`mounts` in `[grants.tidy]` makes a directory");
    done.complains("takes away the tools that are there for overlays").complains("add_tools");
    let why = world.run(&["explain", "tidy", "file_write"]).exits(4);
    why.says("`mounts` makes a directory itself writable: name it under `add_tools`");
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\ntwo\nthree\n"));
    world.run(&["grant", "tidy", "--asked", "--yes"]).exits(0);
    let named = world.run(&["agents", "list"]).exits(0);
    assert!(!named.stderr.contains("takes away"), "it names its tools: {}", named.stderr);
    world.run(&["run", "--agent", "tidy", "tidy up"]).exits(0);
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\n2\nthree\n"), "by its owner's word");
}

#[test]
fn all_overlays_of_a_home_hold_no_more_than_they_may() {
    let world = world();
    append(&world, "[agents]\noverlay_files = 8\n");
    world.run(&["run", "--agent", "tidy", "tidy up"]).exits(0);
    // The second has to share with the first.
    let second = world.run(&["run", "--json", "--agent", "tidy", "tidy up"]);
    second.says("all overlays together");
    world.run(&["doctor"]).says("overlays");
    world.run(&["discard", "--yes"]).exits(0);
    let first = layers(&world);
    assert_eq!(first.len(), 1, "{first:?}");
    world.run(&["discard", "--yes"]).exits(0);
    world.run(&["run", "--agent", "tidy", "tidy up"]).exits(0).says("tidied");
}

const LOOKING: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: tidy
    turns:
      - calls:
          - {name: Bash, arguments: {command: "test -e sessions/store -o -e own/sessions/store && echo seen || echo hidden; echo x > new.md && echo written"}}
      - expect: {results: [{name: Bash, contains: RESULT}]}
        say: looked
"#;

#[test]
fn a_home_that_lies_in_the_workspace_is_no_obstacle_and_its_sessions_are_not_seen() {
    let world = filled(World::with_home_in_workspace());
    world.run(&["run", "--agent", "tidy", "tidy up"]).exits(0).says("tidied");
    let changes = json_of(&world, &["changes", "--json"]);
    assert!(!changes.to_string().contains("sessions"), "{changes}");
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\ntwo\nthree\n"));
    // From the home itself, where nothing may be written, and from the workspace.
    for (dir, result) in [(world.home(), "hidden"), (world.workspace(), "\"hidden\\nwritten\"")] {
        world.home_file("script.yaml", &LOOKING.replace("RESULT", result));
        let mut command = world.command(&["run", "--agent", "tidy", "look"]);
        Done::of(command.current_dir(dir).output().unwrap()).exits(0).says("looked");
    }
    assert!(!world.home().join("new.md").exists());
    world.run(&["apply", "--yes"]).exits(0);
    assert_eq!(read(&world, "new.md").as_deref(), Some("x\n"));
}

const IN_A_WORKTREE: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: tidy
    turns:
      - expect: {tools: [Read, Write, Bash, EnterWorktree, ExitWorktree]}
        calls: [{name: EnterWorktree, arguments: {path: /workspace/other}}]
      - expect: {results: [{name: EnterWorktree, is_error: true, contains: there is no other worktree}]}
        calls: [{name: EnterWorktree, arguments: {name: feature/one}}]
      - calls:
          - {name: Write, arguments: {file_path: /workspace/new.md, content: "new\n"}}
          - {name: Bash, arguments: {command: "rm gone.txt; echo more >> list.txt; ls"}}
      - calls: [{name: ExitWorktree, arguments: {action: remove}}]
      - expect: {results: [{name: ExitWorktree, is_error: true, contains: /workspace/gone.txt}]}
        calls: [{name: ExitWorktree, arguments: {action: keep}}]
      - expect: {results: [{name: ExitWorktree, is_error: false, contains: 3 of its changes}]}
        calls: [{name: Bash, arguments: {command: "cat list.txt new.md; ls"}}]
      - expect: {results: [{name: Bash, contains: more}]}
        say: kept
"#;

/// Under the names that Claude Code has for it.
#[test]
fn a_worktree_is_entered_and_left_and_replays_without_a_difference() {
    let world = world();
    let tools = STRANGER
        .replace("Read, Write, Edit, Bash", "Read, Write, Bash, EnterWorktree, ExitWorktree");
    world.home_file("agents/tidy.md", &tools);
    world.home_file("script.yaml", IN_A_WORKTREE);
    world.run(&["run", "--agent", "tidy", "tidy up"]).exits(0).says("kept");
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\ntwo\nthree\n"));
    world.run(&["replay", "latest"]).exits(0);
    world.run(&["apply", "--yes"]).exits(0);
    assert_eq!(read(&world, "list.txt").as_deref(), Some("one\ntwo\nthree\nmore\n"));
    assert_eq!(read(&world, "new.md").as_deref(), Some("new\n"));
    assert!(read(&world, "gone.txt").is_none() && read(&world, "kept.txt").is_some());
    // Without overlays it is a tool that does not work here, and a warning.
    append(
        &world,
        "[agents]\noverlay = 'never'\n[grants.tidy]\nadd_tools = ['file_write', 'shell']\n",
    );
    let why = world.run(&["explain", "tidy", "worktree"]).exits(4);
    why.says("the agent has no overlay");
}

const CHAT: &str = r#"
transcript: 1
agents:
  - agent: tidy
    turns:
      - calls: [{name: Write, arguments: {file_path: /workspace/new.md, content: "new\n"}}]
      - say: written
      - calls: [{name: Read, arguments: {file_path: /workspace/new.md}}]
      - expect: {results: [{name: Read, contains: new}]}
        say: read
"#;

#[test]
fn a_chat_sees_its_changes_from_turn_to_turn_and_after_it_was_left() {
    let world = world();
    let script = world.other("chat.yaml", CHAT.as_bytes());
    let args = ["chat", "--agent", "tidy", "--transcript", script.to_str().unwrap()];
    let done = world.run_with_stdin(&args, "write\n/changes\nread\n").exits(0);
    done.says("new.md").says("read").complains("in an overlay: `/changes`");
    assert!(read(&world, "new.md").is_none());
    world.run(&["changes", "--stat"]).says("new.md");
    world.run(&["apply", "--yes"]).exits(0);
    assert_eq!(read(&world, "new.md").as_deref(), Some("new\n"));
}

/// Each tenant has changes of its own, and no tenant sees or decides about another's.
#[test]
fn a_tenants_changes_are_its_own_over_http_and_on_the_command_line() {
    let world = World::new();
    for name in ["red", "blue"] {
        world.run(&["tenants", "add", name]).exits(0);
        let home = format!("{}/home", world.tenant(name));
        world.home_file(&format!("{home}/agents/tidy.md"), STRANGER);
        world.home_file(&format!("{home}/script.yaml"), CHAT);
        world.home_file(
            &format!("{home}/belljar.toml"),
            "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n",
        );
    }
    let (red, blue) = (key(&world, "red", "member"), key(&world, "blue", "member"));
    let server = Server::start(&world, &[]);
    let bearer = |key: &str| format!("authorization: Bearer {key}\r\n");
    let say = |key: &str, session: Option<&str>| -> Value {
        let body = match session {
            None => json!({"agent": "tidy", "text": "write"}),
            Some(id) => json!({"session": id, "text": "read"}),
        };
        let (status, body) = server.post("/v1/chat", &bearer(key), &body.to_string());
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    };
    let first = say(&red, None);
    let session = first["session"].as_str().unwrap().to_owned();
    let path = |what: &str| format!("/v1/sessions/{session}/{what}");
    let (status, body) = server.get(&path("changes"), Some(&red));
    assert_eq!(status, 200, "{body}");
    let changes: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(changes["places"][0]["files"][0]["path"], "new.md");
    let (status, body) = server.get(&path("changes?patch=true"), Some(&red));
    assert!(status == 200 && body.contains("+new") && !body.contains("/home"), "{body}");
    for what in ["apply", "discard", "undo"] {
        let (status, _) = server.post(&path(what), &bearer(&blue), "{}");
        assert_eq!(status, 404, "{what}");
    }
    assert_eq!(server.get(&path("changes"), Some(&blue)).0, 404);
    let workspace = world.home().join(world.workspace_of("red"));
    assert!(!workspace.join("new.md").exists());
    let (status, body) = server.post(&path("apply"), &bearer(&red), "{\"paths\": [\"../x\"]}");
    assert_eq!(status, 400, "{body}");
    let (status, body) = server.post(&path("apply"), &bearer(&red), "{}");
    assert_eq!(status, 200, "{body}");
    assert_eq!(fs::read_to_string(workspace.join("new.md")).unwrap(), "new\n");
    let (status, _) = server.post(&path("undo"), &bearer(&red), "{}");
    assert_eq!(status, 200);
    assert!(!workspace.join("new.md").exists());
    let again = say(&red, Some(&session));
    assert_eq!(again["status"], "completed", "its overlay has it again: {again:#}");
    world.run(&["changes", "--tenant", "red", &session]).exits(0).says("new.md");
    world.run(&["changes", "--tenant", "blue", &session]).exits(2);
    let (status, _) = server.delete(&format!("/v1/sessions/{session}"), &red);
    assert_eq!(status, 200);
    world.run(&["changes", "--tenant", "red"]).exits(2);
}

#[test]
fn code_that_the_next_build_or_test_run_executes_is_said_once_in_every_list() {
    let said = |files: &[&str]| {
        let world = filled(World::new());
        let write = |name: &&str| {
            format!(
                "          - {{name: Write, arguments: {{file_path: /workspace/{name}, content: x}}}}\n"
            )
        };
        let calls: String = files.iter().map(write).collect();
        let script = format!(
            "transcript: 1\nagents:\n  - agent: tidy\n    turns:\n      - calls:\n{calls}      - say: tidied\n"
        );
        world.home_file("script.yaml", &script);
        world.run(&["run", "--agent", "tidy", "go"]).exits(0);
        let looked = world.run(&["changes", "--stat"]).exits(0);
        let applied = world.run(&["apply", "--yes"]).exits(0);
        let told = |done: Done| format!("{}{}", done.stdout, done.stderr);
        (told(looked), told(applied))
    };
    for (files, line) in [
        (&["a.py"][..], Some("1 file is code that your next build or test run executes")),
        (
            &["a.py", "src/b.rs", "notes.md"],
            Some("2 files are code that your next build or test run executes"),
        ),
        (&["notes.md"], None),
    ] {
        let (looked, applied) = said(files);
        for told in [looked, applied] {
            let lines =
                told.lines().filter(|one| one.contains("code that your next")).collect::<Vec<_>>();
            assert_eq!(lines, line.into_iter().collect::<Vec<_>>(), "{files:?}: {told}");
        }
    }
}
