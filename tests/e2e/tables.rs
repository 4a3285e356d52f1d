//! Every list of the command line, on terminals of 80 and 200 columns and without one, of things
//! that strangers named and described: long, wide, and hostile.

use std::io::Read as _;
use std::process::Command;

use unicode_width::UnicodeWidthStr as _;

use crate::kit::{Done, World};

/// A stranger's description of a thing: two columns for each character, a terminal's own commands,
/// and a word that has no end.
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
pub(crate) fn world() -> World {
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

/// The output of a command to a terminal that is so wide.
fn on_terminal(world: &World, args: &[&str], columns: usize) -> String {
    terminal(world, args, columns, ("", "2>/dev/null"))
}

/// Its output there with its messages beside it.
pub(crate) fn with_errors(world: &World, args: &[&str], columns: usize) -> String {
    // Of a line that moves, what stands there in the end.
    let shown = terminal(world, args, columns, ("", ""));
    shown.lines().map(|line| format!("{}\n", line.rsplit('\r').next().unwrap())).collect()
}

/// With variables given to it, and its streams as the shell writes them.
pub(crate) fn terminal(
    world: &World,
    args: &[&str],
    columns: usize,
    (given, streams): (&str, &str),
) -> String {
    let quoted: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    let belljar = env!("CARGO_BIN_EXE_belljar");
    let quoted = quoted.join(" ");
    let line =
        format!("stty cols {columns} rows 50; exec env {given} '{belljar}' {quoted} {streams}");
    let own = world.command(&[]);
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(world.workspace()).env_clear();
    script.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let done = script.env("TERM", "xterm-256color").output().unwrap();
    String::from_utf8(done.stdout).unwrap().replace("\r\n", "\n")
}

/// The text without the colours that belljar itself gives.
pub(crate) fn without_styles(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, code)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = code.split_once('m').unwrap().1;
    }
    plain + rest
}

/// Whether a line may be longer than the terminal: a single word or a command to copy, which nobody
/// could put together again; and texts of files, which are shown as they are.
fn is_one_piece(args: &[&str], line: &str) -> bool {
    let is_file = args.contains(&"inspect") && line.trim_start().starts_with('"');
    let line = line.trim();
    is_file || !line.contains(' ') || line.starts_with('`')
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
                if line.width() > columns && !is_one_piece(args, line) {
                    found.push(format!("{args:?}, {} of {columns}: {line}", line.width()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} lines\n{}", found.len(), found.join("\n"));
}

/// A list that names as many tools as fit.
const NAMES_SOME_TOOLS: &[&str] = &["agents", "list"];

/// Ids, names, digests and paths that a list shows, as far as they fit on a line.
fn words_to_copy(world: &World, list: &[&str]) -> Vec<String> {
    let of = |args: &[&str], field: &str| -> Vec<String> {
        let listed = world.run(args).json();
        let rows = listed.as_array().unwrap().iter();
        rows.map(|row| row[field].as_str().unwrap().to_owned()).collect()
    };
    let mut words = of(&["sessions", "list", "--json"], "id");
    words.extend(of(&["receipts", "--json"], "id"));
    words.extend(of(&["keys", "list", "--json"], "id"));
    words.extend(of(&["tenants", "list", "--json"], "name"));
    if list != NAMES_SOME_TOOLS {
        words.extend(of(&["tools", "list", "--json"], "name"));
    }
    words.push("a-research-assistant-with-a-long-name".to_owned());
    words
}

#[test]
fn an_id_or_a_name_is_never_split_over_lines() {
    let world = world();
    let (all, fewer) = (words_to_copy(&world, &[]), words_to_copy(&world, NAMES_SOME_TOOLS));
    for args in LISTS {
        let words = if *args == NAMES_SOME_TOOLS { &fewer } else { &all };
        // On a terminal that is wide enough for everything, all words are whole.
        let wide = without_styles(&on_terminal(&world, args, 2_000));
        let shown: Vec<_> = words.iter().filter(|word| wide.contains(word.as_str())).collect();
        for columns in [80, 200] {
            let printed = without_styles(&on_terminal(&world, args, columns));
            for word in &shown {
                assert!(
                    printed.contains(word.as_str()),
                    "{word} at {columns}: {args:?}\n{printed}"
                );
            }
        }
    }
}

#[test]
fn a_wide_terminal_is_used_and_a_narrow_one_has_no_column_of_single_words() {
    let world = world();
    let of = |columns| without_styles(&on_terminal(&world, &["tools", "list"], columns));
    let json = world.run(&["tools", "list", "--json"]).json();
    let longest = json.as_array().unwrap().iter().map(|tool| tool["description"].as_str().unwrap());
    let longest = longest.max_by_key(|text| text.len()).unwrap();
    assert!(longest.len() > 100, "{longest}");
    let wide = of(200);
    assert!(wide.lines().any(|line| line.width() > 170), "{wide}");
    // The more room there is, the more tools of an agent are named.
    let tools = |columns| {
        let shown = without_styles(&on_terminal(&world, NAMES_SOME_TOOLS, columns));
        shown.matches("file_").count()
    };
    assert!(tools(200) > tools(80), "{} and {}", tools(200), tools(80));
    let narrow = of(80);
    assert!(narrow.lines().count() < 4 * json.as_array().unwrap().len(), "{narrow}");
}

#[test]
fn what_is_said_on_a_terminal_breaks_between_words() {
    let world = world();
    world.home_file(
        "agents/wants.md",
        "---\nname: wants\ndescription: d\ntools: [file_read, file_write, shell]\n---\nx\n",
    );
    let model = "[models.main]\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\n\
         [agents]\noverlay = 'never'\n";
    world.home_file("belljar.toml", model);
    let whole = world.run(&["run", "--agent", "wants", "task"]).exits(4).stderr;
    let words: Vec<&str> = whole.split_whitespace().collect();
    for columns in [40, 80] {
        let line = ["run", "--agent", "wants", "task"];
        let shown = without_styles(&with_errors(&world, &line, columns));
        for word in words.iter().filter(|word| word.width() <= columns) {
            assert!(shown.contains(word), "{word} at {columns}:\n{shown}");
        }
        let breakable = |line: &&str| line.width() > columns && !is_one_piece(&[], line);
        assert_eq!(shown.lines().find(breakable), None, "{columns}:\n{shown}");
        // A command stays one line, so that it is copied as it is.
        let command = whole.split('`').find(|code| code.starts_with("belljar grant")).unwrap();
        assert!(shown.contains(command), "{command} at {columns}:\n{shown}");
    }
}

#[test]
fn whoever_waits_at_a_terminal_for_a_component_to_be_compiled_is_told_which() {
    // It is many times larger than what takes the second after which a person is told, and this cache
    // knows nothing.
    let world = World::new();
    let packed =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/conformance/components/go.wasm.deflate");
    let mut bytes = Vec::new();
    let packed = std::fs::File::open(packed).unwrap();
    flate2::read::DeflateDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    let large = world.other("large.wasm", &bytes);
    let cache = format!("BELLJAR_CACHE='{}'", world.home().join("cold").to_str().unwrap());
    let inspect = ["tools", "inspect", large.to_str().unwrap()];
    let shown = terminal(&world, &inspect, 200, (&cache, ""));
    assert!(shown.contains("compiling `large.wasm` for its first use"), "{shown}");
    let again = without_styles(&terminal(&world, &inspect, 200, (&cache, "")));
    assert!(!again.contains("compiling") && again.contains("digest  sha256:"), "{again}");
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
