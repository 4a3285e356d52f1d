//! Every list of the command line, on terminals of 80 and 200 columns and without one, of things
//! that strangers named and described: long, wide, and hostile.

use std::process::Command;

use unicode_width::UnicodeWidthStr as _;

use crate::kit::{Done, World};

/// What a stranger writes about a thing: two columns for each character, a terminal's own
/// commands, and a word that has no end.
const DESCRIPTION: &str = "潮汐表を読み、索引を作り、要点を一行ずつ答える担当者です。🦀🦀 \\e[2J\\u202E \
    https://host.test/a/very/long/path/that/has/no/space/in/it/and/goes/on/until/nobody/reads/it";

/// Every command that prints a table.
const LISTS: &[&[&str]] = &[
    &["agents", "list"],
    &["agents", "list", "--verbose"],
    &["agents", "show", "a-research-assistant-with-a-long-name"],
    &["agents", "check"],
    &["agents", "check", "--by-library", ".."],
    &["agents", "libraries"],
    &["tools", "list"],
    &["tools", "aliases"],
    &["tools", "inspect", "shell"],
    &["teams", "list"],
    &["skills", "list"],
    &["drafts", "list"],
    &["sessions", "list"],
    &["receipts"],
    &["receipts", "latest"],
    &["keys", "list"],
    &["tenants", "list"],
    &["limits"],
    &["explain", "a-research-assistant-with-a-long-name", "file_read", "/workspace/x"],
    &["doctor"],
    &["prove", "--sandbox", "files-absolute-path"],
];

/// A home in which every list has something to show.
fn world() -> World {
    let world = World::new();
    let agent = |name: &str, description: &str| {
        format!(
            "---\nname: {name}\ndescription: \"{description}\"\ntools: [file_find, file_list, \
             file_read, file_search]\n---\nYou read.\n"
        )
    };
    let name = "a-research-assistant-with-a-long-name";
    world.home_file(&format!("agents/{name}.md"), &agent(name, DESCRIPTION));
    world.home_file("drafts/agents/waits.md", &agent("waits", DESCRIPTION));
    world.home_file("drafts/agents/bad.md", "---\nname: bad\n---\nx\n");
    let team = format!(
        "name: a-team\ndescription: \"{DESCRIPTION}\"\nstages:\n  - agent: {name}\n  - agent: \
         general-purpose\n"
    );
    world.home_file("teams/a-team.yaml", &team);
    let skill = format!(
        "---\nname: a-skill\ndescription: \"{DESCRIPTION}\"\ntriggers: [\"{DESCRIPTION}\"]\n---\nx\n"
    );
    world.home_file("skills/a-skill.md", &skill);
    let source = world.other("src/zoo/reader.md", agent("reader", DESCRIPTION).as_bytes());
    let source = source.parent().unwrap().to_str().unwrap();
    world.run(&["agents", "add", source, "--yes"]).exits(0);
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: {name}\n    turns:\n      - calls: [{{name: file_read, \
         arguments: {{path: ../../etc/passwd}}}}, {{name: file_read, arguments: {{path: \
         nothing-here.txt}}}}]\n      - say: Nothing.\n"
    );
    let transcript = world.other("transcript.yaml", transcript.as_bytes());
    let transcript = transcript.to_str().unwrap();
    let task = format!("{DESCRIPTION}\u{1b}]0;title\u{7}\u{202e}");
    world.run(&["run", "--agent", name, "--transcript", transcript, &task]).exits(0);
    world.run(&["tenants", "add", "a-tenant-with-a-long-name"]).exits(0);
    let key = [
        "keys",
        "create",
        "--scope",
        "member",
        "--tenant",
        "a-tenant-with-a-long-name",
        "--name",
        "漢字の鍵 🦀",
    ];
    world.run(&key).exits(0);
    world
}

/// What a command prints to a terminal that is so wide.
fn on_terminal(world: &World, args: &[&str], columns: usize) -> String {
    let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    let belljar = env!("CARGO_BIN_EXE_belljar");
    let line =
        format!("stty cols {columns} rows 50; exec '{belljar}' {} 2>/dev/null", quoted.join(" "));
    let own = world.command(&[]);
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(world.workspace()).env_clear();
    script.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let done = script.env("TERM", "xterm-256color").output().unwrap();
    String::from_utf8(done.stdout).unwrap().replace("\r\n", "\n")
}

/// The text without the colours that belljar itself gives.
fn without_styles(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, code)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = code.split_once('m').unwrap().1;
    }
    plain + rest
}

/// Whether a line may be longer than the terminal: sentences, commands to copy and paths, which
/// are no cells of a table.
fn is_prose(args: &[&str], line: &str) -> bool {
    const SENTENCES: &[&str] = &["task ", "used ", "allowed: "];
    let shows_text = ["show", "check", "inspect"].iter().any(|word| args.contains(word));
    let is_alone = args == ["receipts", "latest"] && !line.contains("  ");
    let is_sentence = SENTENCES.iter().any(|start| line.starts_with(start));
    shows_text || is_alone || is_sentence || line.contains("made in")
}

#[test]
fn no_table_is_wider_than_the_terminal_and_none_lets_a_stranger_speak_to_it() {
    let world = world();
    let mut found = Vec::new();
    for args in LISTS {
        for columns in [80, 200] {
            let printed = on_terminal(&world, args, columns);
            assert!(printed.lines().count() > 1, "{args:?} prints no table:\n{printed}");
            for line in without_styles(&printed).lines() {
                if line.chars().any(|c| c.is_control() || c == '\u{202e}') {
                    found.push(format!("{args:?} shows {line:?}"));
                }
                if line.width() > columns && !is_prose(args, line) {
                    found.push(format!("{args:?}, {} of {columns}: {line}", line.width()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} lines\n{}", found.len(), found.join("\n"));
}

#[test]
fn without_a_terminal_every_row_is_one_line() {
    let world = world();
    let rows = |args: &[&str]| {
        let done: Done = world.run(args).exits(0);
        assert!(!done.stdout.chars().any(|c| c != '\n' && c.is_control()), "{}", done.stdout);
        done.stdout
    };
    let agents = rows(&["agents", "list"]);
    let json = world.run(&["agents", "list", "--json"]).json();
    assert_eq!(agents.lines().count(), json.as_array().unwrap().len() + 1, "{agents}");
    for line in agents.lines() {
        let fields: Vec<&str> = line.split("  ").filter(|field| !field.trim().is_empty()).collect();
        assert_eq!(fields.len(), 5, "{line}");
    }
    assert!(agents.contains("4: file_find, file_list, file_read, …"), "{agents}");
    assert!(
        rows(&["agents", "list", "-v"]).contains("4: file_find, file_list, file_read, file_search")
    );
    let keys = rows(&["keys", "list"]);
    assert_eq!(keys.lines().count(), 2, "{keys}");
}
