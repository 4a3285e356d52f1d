//! Directories whose names would move the cursor and turn the line around: a clone's directory is
//! named by a stranger. No command lets such a name reach the terminal as it is.

use crate::kit::World;

const NAME: &str = "w\u{1b}[2J\u{202e}x";

const AGENT: &str = "---\nname: good\ndescription: d\ntools: [file_read]\n---\nx\n";

const SETTINGS: &str =
    "[models.s]\nkind = \"scripted\"\nmodel = \"s.yaml\"\n[roles]\nmain = \"s\"\n";

const TRANSCRIPT: &str = "transcript: 1\neach_run: true\nagents:\n  - agent: general-purpose\n    turns:\n      - say: hi\n";

/// Every command that says where something is, after `{w}` (the workspace), `{h}` (the home).
const COMMANDS: &[&[&str]] = &[
    &["doctor"],
    &["agents", "list"],
    &["agents", "show", "good"],
    &["agents", "show", "{id}"],
    &["agents", "check"],
    &["agents", "check", "{w}"],
    &["agents", "check", "{w}/nothing"],
    &["agents", "check", "--fix", "{w}/.belljar/agents"],
    &["agents", "libraries"],
    &["agents", "add", "{w}/nothing"],
    &["agents", "add", "{w}", "--yes"],
    &["agents", "libraries"],
    &["agents", "update"],
    &["agents", "remove", "w"],
    &["grant", "good", "--tool", "file_write", "--yes"],
    &["grant", "{id}", "--tool", "file_write", "--yes"],
    &["grant", "{id}", "--tool", "file_write", "--mount", "{w}=/data", "--yes"],
    &["grant", "reader", "--tool", "file_read", "--mount", "{w}=/data", "--yes"],
    &["revoke", "good", "--tool", "file_write", "--yes"],
    &["revoke", "{id}", "--all", "--yes"],
    &["explain", "good", "file_write", "/workspace/a"],
    &["explain", "{id}", "file_write"],
    &["explain", "reader", "file_read", "/data/a"],
    &["init"],
    &["init", "--workspace", "."],
    &["teams", "list"],
    &["teams", "check", "{w}/none.yaml"],
    &["teams", "run", "{w}/none.yaml", "x"],
    &["skills", "list"],
    &["skills", "check", "{w}"],
    &["drafts", "list"],
    &["drafts", "promote", "agents/none"],
    &["tools", "list"],
    &["tools", "inspect", "{w}/none.wasm"],
    &["tools", "call", "file_list", "{}"],
    &["tools", "call", "{w}/none.wasm", "{}"],
    &["tools", "new", "mine", "{w}/mine"],
    &["tools", "new", "{w}/mine"],
    &["tools", "build", "{w}/no"],
    &["run", "hi"],
    &["run", "--record", "{w}/no/x", "hi"],
    &["run", "--transcript", "{w}/no", "hi"],
    &["run", "--attach", "{w}/none", "hi"],
    &["run", "--agent", "{id}", "hi"],
    &["chat"],
    &["receipts"],
    &["replay", "latest"],
    &["replay", "latest", "--record", "{w}/no/x"],
    &["sessions", "list"],
    &["keys", "list"],
    &["tenants", "add", "acme"],
    &["tenants", "list"],
    &["tenants", "rm", "acme", "--yes"],
    &["-C", "{w}/no", "agents", "list"],
    &["-C", "{w}/no", "run", "hi"],
    &["serve", "--listen", "{w}"],
    &["frob", "{w}"],
    &["agents", "{w}"],
    &["agents", "list", "--json"],
    &["doctor", "--json"],
    &["demo"],
];

#[test]
fn the_name_of_a_directory_never_reaches_the_terminal_as_it_is() {
    let world = World::named(NAME);
    world.file(".belljar/agents/good.md", AGENT);
    world.home_file("belljar.toml", SETTINGS);
    world.home_file("s.yaml", TRANSCRIPT);
    let workspace = world.workspace().canonicalize().unwrap().display().to_string();
    let home = world.home().display().to_string();
    let id = format!("workspace:{workspace}/good");
    let mut named = 0;
    for command in COMMANDS {
        let fill = |word: &&str| {
            word.replace("{w}", &workspace).replace("{h}", &home).replace("{id}", &id)
        };
        let args: Vec<String> = command.iter().map(fill).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let done = world.run(&args);
        let all = format!("{}{}", done.stdout, done.stderr);
        assert!(!all.contains('\u{1b}') && !all.contains('\u{202e}'), "{command:?}: {all:?}");
        named += usize::from(all.contains("202e"));
    }
    assert!(named > 25, "{named} commands name the directory; what do the others say?");
}

#[test]
fn settings_that_are_broken_are_named_without_what_their_path_hides() {
    let world = World::named(NAME);
    world.home_file("belljar.toml", "nonsense = [");
    for args in
        [&["agents", "list"][..], &["doctor"], &["run", "x"], &["grant", "a", "--tool", "b"]]
    {
        let done = world.run(args);
        let all = format!("{}{}", done.stdout, done.stderr);
        assert!(!all.contains('\u{1b}') && !all.contains('\u{202e}'), "{args:?}: {all:?}");
        assert!(all.contains("\\u{202e}"), "{args:?}: {all:?}");
    }
}
