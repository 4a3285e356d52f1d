//! Commands that a person is to copy. In lists, hints and errors each stands between backticks, and no
//! terminal is so narrow that one is broken over lines.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::kit::World;
use crate::tables::{self, with_errors, without_styles};

/// Command lines that are answered with a command, or that might be; most of them are errors.
const LINES: &[&[&str]] = &[
    &["agents", "list"],
    &["agents", "show", "wants"],
    &["agents", "show", "nobody"],
    &["agents", "check"],
    &["agents", "check", "wants"],
    &["agents", "update", "nobody"],
    &["agents", "remove", "nobody"],
    &["agents", "add", "SOURCE", "--name", "another", "--yes"],
    &["agents", "add", "SOURCE", "--name", "zoo", "--yes"],
    &["agents", "libraries"],
    &["run", "--agent", "wants", "a task"],
    &["run", "--agent", "nobody", "a task"],
    &["run", "a task"],
    &["run"],
    &["chat", "--resume", "0"],
    &["chat", "--tenant", "red"],
    &["explain", "wants", "shell"],
    &["explain", "wants", "file_write", "/workspace/a/file/somewhere.txt", "--write"],
    &["explain", "wants", "web_fetch", "https://tides.test/a/path"],
    &["explain", "wants", "nothing"],
    &["grant", "nobody", "--tool", "shell", "--yes"],
    &["grant", "wants", "--yes"],
    &["grant", "wants", "--read-only", "--yes"],
    &["grant", "wants", "--tool", "file_write", "--yes"],
    &["revoke", "wants", "--tool", "file_read", "--yes"],
    &["revoke", "nobody", "--all", "--yes"],
    &["tools", "list"],
    &["tools", "call", "nothing", "{}"],
    &["tools", "call", "file_read", "[]"],
    &["tools", "call", "file_write", r#"{"path": "a.txt", "content": "x"}"#],
    &["tools", "call", "web_fetch", r#"{"url": "https://tides.test/a"}"#],
    &["tools", "inspect", "nothing"],
    &["tools", "build", "."],
    &["tools", "aliases", "--tenant", "red"],
    &["teams", "check"],
    &["teams", "run", "a-team", "a task"],
    &["teams", "run", "nobody", "a task"],
    &["skills", "check", "nothing"],
    &["commands", "check", "nothing"],
    &["run", "--command", "nothing"],
    &["drafts", "list"],
    &["drafts", "promote", "agents/nobody"],
    &["sessions", "list"],
    &["sessions", "show", "nothing"],
    &["receipts", "nothing"],
    &["replay", "nothing"],
    &["keys", "create", "--tenant", "nobody", "--scope", "admin", "--name", "x"],
    &["keys", "revoke", "nothing"],
    &["keys", "open-to-this-machine", "--yes"],
    &["tenants", "rm", "nobody", "--yes"],
    &["tenants", "disable", "nobody"],
    &["serve", "--listen", "0.0.0.0:0"],
    &["serve", "--listen", "nowhere"],
    &["restore", "nothing.tar.gz"],
    &["init", "--no-model"],
    &["limits"],
    &["doctor"],
];

/// Words behind `belljar` that make a command of it.
const SUBCOMMANDS: &[&str] = &[
    "agents", "backup", "chat", "commands", "demo", "doctor", "drafts", "explain", "grant", "init",
    "keys", "limits", "prove", "receipts", "replay", "restore", "revoke", "run", "serve",
    "sessions", "skills", "teams", "tenants", "tools",
];

fn world() -> World {
    let world = tables::world();
    let wants = "---\nname: wants\ndescription: d\ntools: [file_read, file_write, shell, web_fetch]\n\
        mounts: [{path: /data, access: read-write}, {path: /other, access: read}]\nmaxTurns: 3\n---\nx\n";
    world.home_file("agents/wants.md", wants);
    world
}

/// The line with the paths that it stands for.
fn words(world: &World, line: &[&str]) -> Vec<String> {
    let source = world.home().with_file_name("src").join("zoo");
    line.iter().map(|word| word.replace("SOURCE", source.to_str().unwrap())).collect()
}

/// The texts between backticks that begin with a program's name.
fn commands(text: &str) -> Vec<&str> {
    let programs = ["apt-get ", "belljar ", "chmod ", "chown ", "rustup "];
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter(|code| programs.iter().any(|program| code.starts_with(program))).collect()
}

/// Commands that stand in no backticks.
fn bare(text: &str) -> Vec<String> {
    let is_bare = |line: &str| {
        let mut from = 0;
        line.match_indices("belljar ").any(|(at, program)| {
            let before = &line[from..at];
            from = at;
            let word = line[at + program.len()..].split(|c: char| !c.is_ascii_lowercase()).next();
            let is_command = word.is_some_and(|word| SUBCOMMANDS.contains(&word));
            is_command && !before.ends_with(['`', '.', '/']) && !line.starts_with("Usage: ")
        })
    };
    text.lines().filter(|line| is_bare(line)).map(str::to_owned).collect()
}

#[test]
fn a_command_in_a_message_stands_in_backticks_and_on_one_line_of_any_terminal() {
    let world = world();
    let (mut found, mut seen) = (Vec::new(), 0);
    for line in LINES {
        let line = words(&world, line);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let done = world.run(&line);
        let whole = format!("{}{}", done.stdout, done.stderr);
        found.extend(bare(&whole).into_iter().map(|text| format!("{line:?} bare: {text}")));
        // Again, as far as it says the same: what was granted is granted.
        for columns in [40, 80, 200] {
            let shown = without_styles(&with_errors(&world, &line, columns));
            let again = world.run(&line);
            let again = format!("{}{}", again.stdout, again.stderr);
            let same = commands(&again);
            for command in commands(&whole).into_iter().filter(|it| same.contains(it)) {
                seen += 1;
                if !shown.contains(command) {
                    found.push(format!("{line:?} at {columns}: `{command}` in\n{shown}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} found\n{}", found.len(), found.join("\n"));
    assert!(seen > 60, "{seen} commands are seen");
}

#[test]
fn the_command_of_another_program_is_whole_too() {
    let world = world();
    let config = world.home_file("belljar.toml", "# others may write this\n");
    fs::set_permissions(&config, fs::Permissions::from_mode(0o666)).unwrap();
    let done = world.run(&["agents", "list"]).exits(2);
    let [command] = commands(&done.stderr)[..] else { panic!("{}", done.stderr) };
    assert!(command.starts_with("chmod go-w /"), "{command}");
    for columns in [20, 80] {
        let shown = without_styles(&with_errors(&world, &["agents", "list"], columns));
        assert!(shown.contains(command), "{columns}:\n{shown}");
    }
}

#[test]
fn a_bare_command_is_known_from_a_sentence() {
    assert_eq!(bare("to allow it: belljar grant x").len(), 1);
    assert!(bare("`belljar grant x`; this belljar reads version 1; Usage: no").is_empty());
    assert_eq!(
        commands("a `b` `belljar run x`, `chmod go-w y`"),
        ["belljar run x", "chmod go-w y"]
    );
}
