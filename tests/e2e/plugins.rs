//! `belljar plugins` and `belljar marketplaces`: strangers' plugins, shown before they are there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::kit::terminal::Terminal;
use crate::kit::{Done, World};

const SKILL: &str =
    "---\nname: tides\ndescription: How tide tables are read.\n---\nAbove the datum.\n";

/// A marketplace in a directory beside the home: a plugin of everything, and some that cannot be used.
fn market(world: &World) -> PathBuf {
    let list = json!({
        "name": "harbour",
        "owner": { "name": "Ann" },
        "renames": { "old-pilot": "pilot", "sunk": null },
        "plugins": [
            { "name": "pilot", "source": "./plugins/pilot", "description": "Finds the way", "tags": ["sea"] },
            { "name": "loose", "source": "./", "strict": false, "skills": ["./shared/tides"] },
            { "name": "needy", "source": "./plugins/needy" },
            { "name": "runner", "source": { "source": "command", "command": "touch pwned" } },
            { "name": "near", "source": { "source": "url", "url": "https://127.0.0.1:9/x.git" } },
            { "name": "nearer", "source": { "source": "archive", "url": "https://localhost/x.zip" } },
            { "name": "private", "source": { "source": "npm", "package": "x", "registry": "https://example.org" } },
            { "name": "outside", "source": "./../other" },
        ],
    });
    file(world, ".claude-plugin/marketplace.json", &list.to_string());
    file(world, "shared/tides/SKILL.md", SKILL);
    pilot(world, "1.0.0", "Read, Grep", "Look first.");
    let needy = r#"{"name": "needy", "dependencies": ["pilot", {"name": "needy"}, {"name": "x", "marketplace": "elsewhere"}]}"#;
    file(world, "plugins/needy/.claude-plugin/plugin.json", needy);
    file(world, "plugins/needy/skills/tides/SKILL.md", SKILL);
    world.home().parent().unwrap().join("src/market")
}

fn file(world: &World, path: &str, text: &str) {
    world.other(&format!("src/market/{path}"), text.as_bytes());
}

/// The plugin of everything.
fn pilot(world: &World, version: &str, tools: &str, prompt: &str) {
    let own = |path: &str, text: &str| file(world, &format!("plugins/pilot/{path}"), text);
    let manifest = json!({ "name": "pilot", "version": version, "author": { "name": "Ann" },
        "userConfig": { "KEY": { "type": "string", "sensitive": true, "required": true } } });
    own(".claude-plugin/plugin.json", &manifest.to_string());
    let agent =
        format!("---\nname: scout\ndescription: Looks ahead.\ntools: {tools}\n---\n{prompt}\n");
    own("agents/scout.md", &agent);
    own(
        "agents/captain.md",
        "---\nname: captain\ndescription: Leads.\ntools: Agent(pilot:scout)\n---\nLead.\n",
    );
    own("skills/tides/SKILL.md", SKILL);
    own("skills/tides/tables.txt", "3.2 m\n");
    own("commands/log/entry.md", "Write an entry about $ARGUMENTS.\n");
    own(
        "hooks/hooks.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "touch pwned"}]}]}}"#,
    );
    own(
        ".mcp.json",
        r#"{"mcpServers": {"buoy": {"command": "npx", "args": ["-y", "buoy@latest"]}, "chart": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${CHART}"}}}}"#,
    );
    own(".lsp.json", r#"{"sea": {"command": "sea-lsp"}}"#);
    own("bin/horn", "#!/bin/sh\n");
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn plugins(world: &World, args: &[&str]) -> Done {
    world.run(&[&["plugins"], args].concat())
}

fn known(world: &World) -> PathBuf {
    let source = market(world);
    world.run(&["marketplaces", "add", text(&source)]).exits(0);
    source
}

/// The ids of all agents.
fn ids(world: &World) -> Vec<String> {
    let list = world.run(&["agents", "list", "--json"]).json();
    list.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

fn skills(world: &World) -> Vec<String> {
    let list = world.run(&["skills", "list", "--json"]).json();
    list.as_array().unwrap().iter().map(|it| it.to_string()).collect()
}

#[test]
fn a_plugin_of_a_marketplace_is_shown_whole_and_installed_under_both_names() {
    let world = World::without_overlays();
    let source = market(&world);
    let added = world.run(&["marketplaces", "add", text(&source)]).exits(0);
    let added = added.says("marketplace `harbour` of Ann: 8 plugins");
    added.says("`runner` cannot be added").says("`outside` cannot be added");
    plugins(&world, &["search", "sea"]).exits(0).says("pilot@harbour").says("Finds the way");
    let done = plugins(&world, &["add", "pilot@harbour", "--yes"]).exits(0);
    assert!(done.stdout.lines().count() <= 25, "{}", done.stdout);
    done.says("plugin harbour/pilot 1.0.0 from directory")
        .says("agents")
        .says("captain, scout")
        .says("hook 1: PreToolUse of Bash: runs `touch pwned`")
        .says("server buoy: would start `npx -y buoy@latest`")
        .says("in whatever version it has then")
        .says("server chart: https://example.org/mcp (wants CHART)")
        .says("LSP servers")
        .says("programs in bin/")
        .says("asks for settings: KEY (string, a secret)")
        .says("suspicious: nothing")
        .says("installed plugin `harbour/pilot`");
    assert!(ids(&world).contains(&"library/harbour/pilot/scout".to_owned()), "{:?}", ids(&world));
    // By each of its names, for grants too.
    for name in ["scout", "pilot:scout", "library/harbour/pilot/scout"] {
        let shown = world.run(&["agents", "show", name, "--json"]).exits(0).json();
        assert_eq!(shown["id"], "library/harbour/pilot/scout", "{name}");
    }
    let grant = ["grant", "library/harbour/pilot/*", "--limit", "steps=9", "--yes"];
    world.run(&grant).exits(0);
    world.run(&["explain", "library/harbour/pilot/scout", "file_read"]).exits(0);
    assert!(skills(&world).iter().any(|it| it.contains("harbour/pilot")), "{:?}", skills(&world));
    let listed = plugins(&world, &["list"]).exits(0);
    listed.says("harbour/pilot").says("1.0.0").says("ok");
    let shown = plugins(&world, &["show", "pilot"]).exits(0);
    shown.says("/pilot:log:entry").says("pilot:tides").says("mcp__plugin_pilot_buoy__TOOL");
    // A command is called by the plugin's name and its own, with the folder or without.
    let commands = world.run(&["commands", "list"]).exits(0);
    commands.says("harbour:pilot:entry");
    // Nothing of it ran, and its old name finds it.
    assert!(!source.join("pwned").exists() && !world.workspace().join("pwned").exists());
    plugins(&world, &["show", "old-pilot@harbour"]).exits(0).says("is called `pilot` now");
    plugins(&world, &["show", "sunk@harbour"]).exits(2).complains("withdrawn");
}

#[test]
fn what_cannot_be_added_says_why_and_leaves_nothing() {
    let world = World::new();
    let source = known(&world);
    let before = world.home_state();
    for (args, why) in [
        (&["add", "runner", "--yes"][..], "starts no program that a marketplace names"),
        // INV-636: a stranger's list names no address of this machine.
        (&["add", "near", "--yes"], "an address of this machine"),
        (&["add", "nearer", "--yes"], "an address of this machine"),
        (&["add", "private", "--yes"], "in another registry"),
        (&["add", "outside", "--yes"], "leaves the plugin"),
        (&["add", "pylot", "--yes"], "did you mean `pilot`"),
        (&["add", "pilot@nowhere", "--yes"], "no marketplace is called"),
        (&["add", "pilot", "--rev", "main"], "named by its place"),
        (&["add", text(&source), "--folder", "../x"], "leaves the plugin"),
        (&["add", text(&source), "--folder", "nowhere"], "no folder `nowhere`"),
        (&["remove", "pilot"], "none is"),
    ] {
        plugins(&world, args).exits(2).complains(why);
    }
    assert_eq!(world.home_state(), before);
    // The neighbour is unharmed.
    plugins(&world, &["add", "pilot", "--yes"]).exits(0);
    plugins(&world, &["add", "pilot", "--yes"]).exits(2).complains("belljar plugins update");
}

#[test]
fn without_a_terminal_nothing_is_installed_unless_it_is_said() {
    let world = World::new();
    known(&world);
    plugins(&world, &["add", "pilot"]).exits(2).says("scout").complains("nobody to ask");
    let report = plugins(&world, &["add", "pilot", "--json"]).exits(0).json();
    assert_eq!(report["installed"], Value::Bool(false));
    assert_eq!(report["hooks"][0]["command"], "touch pwned");
    assert_eq!(report["mcp_servers"][0]["tools"], "mcp__plugin_pilot_buoy__");
    assert!(!ids(&world).iter().any(|id| id.starts_with("library")));
    let report = plugins(&world, &["add", "pilot", "--json", "--yes"]).exits(0).json();
    assert_eq!(report["installed"], Value::Bool(true));
    assert!(ids(&world).contains(&"library/harbour/pilot/scout".to_owned()));
}

#[test]
fn a_disabled_plugin_gives_no_agent_and_no_skill_until_it_is_enabled() {
    let world = World::new();
    known(&world);
    plugins(&world, &["add", "pilot", "--yes"]).exits(0);
    plugins(&world, &["disable", "pilot"]).exits(0).says("disabled");
    assert!(!ids(&world).iter().any(|id| id.contains("pilot")));
    assert!(!skills(&world).iter().any(|it| it.contains("pilot")));
    plugins(&world, &["list"]).exits(0).says("disabled");
    plugins(&world, &["enable", "pilot"]).exits(0);
    assert!(ids(&world).contains(&"library/harbour/pilot/scout".to_owned()));
    plugins(&world, &["remove", "pilot@harbour"]).exits(0).says("removed");
    assert!(!ids(&world).iter().any(|id| id.contains("pilot")));
    world.run(&["marketplaces", "remove", "harbour"]).exits(0);
    plugins(&world, &["list"]).exits(0);
}

#[test]
fn an_update_shows_every_difference_in_rights_and_in_text_for_a_model() {
    let world = World::new();
    known(&world);
    plugins(&world, &["add", "pilot", "--yes"]).exits(0);
    plugins(&world, &["update", "pilot", "--yes"]).exits(0).says("nothing changed");
    pilot(&world, "1.1.0", "Read, Grep, Bash", "Look first, then act.");
    let own = |path: &str, text: &str| file(&world, &format!("plugins/pilot/{path}"), text);
    own("skills/tides/SKILL.md", &SKILL.replace("Above", "Far above"));
    own("skills/tides/tables.txt", "4.0 m\n");
    own("skills/knots/SKILL.md", &SKILL.replace("tides", "knots"));
    own(
        "hooks/hooks.json",
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "date"}]}]}}"#,
    );
    let looked = plugins(&world, &["update", "pilot"]).exits(2);
    looked
        .says("+ agent scout: asks: shell")
        .says("~ agent scout: prompt: 1 lines more, 1 lines less")
        .says("+ skill knots")
        .says("~ skill tides: 1 lines more, 1 lines less")
        .says("+ hook Stop: runs `date`")
        .says("- hook PreToolUse of Bash")
        .says("other files")
        .complains("nobody to ask");
    let before = world.run(&["agents", "show", "pilot:scout", "--json"]).json();
    assert!(!before.to_string().contains("then act"));
    plugins(&world, &["update", "pilot", "--yes"]).exits(0).says("updated");
    let after = world.run(&["agents", "show", "pilot:scout", "--json"]).json();
    assert!(after.to_string().contains("then act"), "{after}");
    plugins(&world, &["list"]).exits(0).says("1.1.0");
}

#[test]
fn a_file_that_is_changed_after_the_installation_is_not_used() {
    let world = World::new();
    known(&world);
    plugins(&world, &["add", "pilot", "--yes"]).exits(0);
    let list = plugins(&world, &["list", "--json"]).exits(0).json();
    let dir = PathBuf::from(list[0]["directory"].as_str().unwrap());
    fs::write(dir.join("agents/scout.md"), "---\nname: scout\ndescription: x\n---\nEvil.\n")
        .unwrap();
    fs::write(dir.join("skills/tides/SKILL.md"), SKILL.replace("Above", "Evil")).unwrap();
    assert!(!ids(&world).contains(&"library/harbour/pilot/scout".to_owned()));
    assert!(ids(&world).contains(&"library/harbour/pilot/captain".to_owned()));
    assert!(!skills(&world).iter().any(|it| it.contains("harbour/pilot")));
    plugins(&world, &["list"]).exits(2).says("changed on disk").complains("plugins update");
    plugins(&world, &["update", "pilot", "--yes"]).exits(0).says("are put right");
    assert!(ids(&world).contains(&"library/harbour/pilot/scout".to_owned()));
}

#[test]
fn an_entry_without_a_manifest_of_its_own_and_a_plugin_that_needs_others() {
    let world = World::new();
    known(&world);
    let loose = plugins(&world, &["add", "loose", "--yes"]).exits(0);
    loose.says("plugin harbour/loose").says("tides");
    let shown = plugins(&world, &["show", "loose", "--json"]).exits(0).json();
    assert_eq!(shown["skills"].as_array().unwrap().len(), 1, "{shown}");
    let needy = plugins(&world, &["add", "needy", "--yes"]).exits(0);
    needy
        .says("needs `pilot`: `belljar plugins add pilot@harbour`")
        .says("needs `x`, from another marketplace than its own allows");
}

#[test]
fn a_plugin_by_its_place_has_one_name_and_no_library_shares_it() {
    let world = World::new();
    let source = market(&world);
    let place = source.join("plugins/pilot");
    plugins(&world, &["add", text(&place), "--yes"]).exits(0).says("installed plugin `pilot`");
    assert!(ids(&world).contains(&"library/pilot/scout".to_owned()));
    // A marketplace without a name is not the lack of one.
    for name in ["pilot@", "/pilot", "pilot@*"] {
        plugins(&world, &["remove", name]).exits(2).complains("no plugin is called");
    }
    assert!(ids(&world).contains(&"library/pilot/scout".to_owned()));
    let taken = world.run(&["agents", "add", text(&place), "--name", "pilot", "--yes"]);
    taken.exits(2).complains("plugin `pilot`");
    plugins(&world, &["remove", "pilot"]).exits(0);
    world.run(&["agents", "add", text(&place), "--name", "pilot", "--yes"]).exits(0);
    plugins(&world, &["add", text(&place), "--yes"]).exits(2).complains("library `pilot` already");
}

#[test]
fn rights_that_are_granted_already_are_said_before_a_plugin_has_them() {
    let world = World::new();
    known(&world);
    let grants = "[grants.\"library/harbour/pilot/*\"]\ntools = ['file_read']\n\
                  [grants.\"library/harbour/pilot/mate\"]\ntools = ['grep_search']\n\
                  [grants.\"library/harbour/other/scout\"]\ntools = ['file_list']\n";
    world.home_file("belljar.toml", grants);
    for args in [&["show", "pilot"][..], &["add", "pilot", "--yes"], &["show", "pilot"]] {
        let told = plugins(&world, args).exits(0);
        let told = told.complains("`library/harbour/pilot/*`");
        let told = told.complains("`library/harbour/pilot/mate`");
        let mut warned = told.stderr.lines().filter(|line| line.contains("grants rights"));
        assert!(warned.all(|line| !line.contains("harbour/other")), "{}", told.stderr);
        let told = told.stdout.lines().find(|line| line.starts_with("agent scout asks for: "));
        let (_, gets) = told.unwrap().split_once("; under the present grants: ").unwrap();
        assert!(gets.contains("file_read"), "{gets}");
    }
    // An update of the known agents brings nobody new to rights, and a new agent is named with them.
    pilot(&world, "1.1.0", "Read", "Look well.");
    let done = plugins(&world, &["update", "pilot", "--yes"]).exits(0);
    assert!(!done.stderr.contains("grants rights"), "{}", done.stderr);
    let mate = "---\nname: mate\ndescription: Helps.\ntools: Read, Grep\n---\nHelp.\n";
    file(&world, "plugins/pilot/agents/mate.md", mate);
    let before = world.home_state();
    let asked = plugins(&world, &["update", "pilot"]).exits(2);
    asked.says("+ agent mate").complains("`library/harbour/pilot/mate`");
    assert_eq!(world.home_state(), before);
    assert!(!ids(&world).contains(&"library/harbour/pilot/mate".to_owned()));
    assert!(ids(&world).contains(&"library/harbour/pilot/scout".to_owned()));
}

#[test]
fn a_plugin_of_a_marketplace_is_no_folder_here_and_no_repository() {
    let world = World::new();
    known(&world);
    for place in ["pilot", "harbour/pilot"] {
        let folder = world.workspace().join(place).join(".claude-plugin");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("plugin.json"), r#"{"name": "evil"}"#).unwrap();
    }
    for name in ["pilot", "harbour/pilot"] {
        let shown = plugins(&world, &["show", name]).exits(0);
        shown.says("plugin harbour/pilot 1.0.0 from directory");
        plugins(&world, &["add", name, "--yes"]).exits(0).says("installed plugin `harbour/pilot`");
        plugins(&world, &["remove", "harbour/pilot"]).exits(0);
    }
    plugins(&world, &["add", "pilot", "--yes"]).exits(0);
    // Also once the marketplace is forgotten, its name is nobody's at another place.
    world.run(&["marketplaces", "remove", "harbour"]).exits(0);
    fs::remove_dir_all(world.workspace().join("harbour")).unwrap();
    let before = world.home_state();
    for name in ["harbour/loose", "harbour/pilot"] {
        let refused = plugins(&world, &["add", name, "--yes"]).exits(2);
        refused.complains("no marketplace is called `harbour`");
    }
    assert_eq!(world.home_state(), before);
    plugins(&world, &["list"]).exits(0).says("harbour/pilot");
}

#[test]
fn a_plugin_that_is_taken_from_elsewhere_is_said_before_an_update() {
    let world = World::new();
    let source = known(&world).canonicalize().unwrap();
    plugins(&world, &["add", "pilot", "--yes"]).exits(0);
    // The marketplace lists it at another place now, with the same files.
    let moved = source.parent().unwrap().join("moved");
    fs::rename(&source, &moved).unwrap();
    let list = world.home().join("libraries/lock.toml");
    let text_of_list = fs::read_to_string(&list).unwrap();
    let (before, markets) = text_of_list.split_once("[markets").unwrap();
    let markets = markets.replace(text(&source), text(&moved));
    fs::write(&list, format!("{before}[markets{markets}")).unwrap();
    let said = format!("~ source: directory {} -> directory {}", text(&source), text(&moved));
    let state = world.home_state();
    plugins(&world, &["update", "pilot"]).exits(2).says(&said).complains("nobody to ask");
    assert_eq!(world.home_state(), state);
    let report = plugins(&world, &["update", "pilot", "--json"]).exits(0).json();
    assert_eq!(report["from_source"]["path"], text(&source));
    assert_eq!(report["source"]["path"], text(&moved));
    plugins(&world, &["update", "pilot", "--yes"]).exits(0).says("updated");
    plugins(&world, &["update", "pilot", "--yes"]).exits(0).says("nothing changed");
    // A list says it of its entries.
    let list = moved.join(".claude-plugin/marketplace.json");
    let other = fs::read_to_string(&list).unwrap().replace("./plugins/needy", "./plugins/pilot");
    fs::write(&list, other).unwrap();
    let told = world.run(&["marketplaces", "update", "harbour"]).exits(0);
    assert!(told.stdout.lines().any(|line| line == "~ other source: needy"), "{}", told.stdout);
}

#[test]
fn a_plugin_that_was_changed_while_the_question_waited_is_not_updated() {
    let world = World::new();
    known(&world);
    plugins(&world, &["add", "pilot", "--yes"]).exits(0);
    pilot(&world, "6.6.6", "Read, Bash", "Look well.");
    let mut terminal = Terminal::start(&world, &["plugins", "update", "pilot"]);
    terminal.until("apply this update?");
    plugins(&world, &["disable", "pilot"]).exits(0);
    let before = world.home_state();
    terminal.types("y\n");
    let (code, shown) = terminal.ends();
    assert_ne!(code, 0, "{shown}");
    assert!(shown.contains("plugin `harbour/pilot` has been changed meanwhile"), "{shown}");
    assert_eq!(world.home_state(), before);
    plugins(&world, &["list"]).exits(0).says("1.0.0").says("disabled");
    plugins(&world, &["update", "pilot", "--yes"]).exits(0).says("updated");
}

#[test]
fn a_suspicious_file_of_a_skill_is_named_once() {
    let world = World::new();
    known(&world);
    let tables = |text: &str| file(&world, "plugins/pilot/skills/tides/tables.txt", text);
    tables("3.2 m\n4 m \u{202e}\n");
    let said = "skills/tides/tables.txt:2: hidden-character";
    plugins(&world, &["add", "pilot", "--yes"]).exits(0).says(said);
    let shown = plugins(&world, &["show", "pilot", "--json"]).exits(0).json();
    assert_eq!(shown["suspicious_files"][0]["path"], "skills/tides/tables.txt");
    assert_eq!(shown["suspicious_files"].as_array().unwrap().len(), 1, "{shown}");
    // An update says it of changed files only.
    pilot(&world, "1.1.0", "Read, Grep", "Look well.");
    tables("3.2 m\n4 m \u{202e}\n");
    plugins(&world, &["update", "pilot", "--yes"]).exits(0).says("suspicious: nothing");
    tables("9.9 m\n4 m \u{202e}\n");
    plugins(&world, &["update", "pilot", "--yes"]).exits(0).says(said);
}

#[test]
fn links_and_files_that_look_like_belljars_own_are_left_out() {
    let world = World::new();
    let source = market(&world);
    let place = source.join("plugins/pilot");
    fs::write(world.home().parent().unwrap().join("secret.md"), SKILL).unwrap();
    std::os::unix::fs::symlink("../../../../secret.md", place.join("agents/link.md")).unwrap();
    fs::create_dir(place.join("skills/linked")).unwrap();
    std::os::unix::fs::symlink("../../../../../secret.md", place.join("skills/linked/SKILL.md"))
        .unwrap();
    file(&world, "plugins/pilot/.belljar/marketplace.json", "{}");
    let added = plugins(&world, &["add", text(&place), "--yes"]).exits(0);
    added.says("left out: agents/link.md").says("it is a link").says("belljar's own");
    assert!(!ids(&world).contains(&"library/pilot/link".to_owned()));
    let skills: Vec<String> = skills(&world);
    assert_eq!(skills.iter().filter(|it| it.contains("library/pilot")).count(), 1, "{skills:?}");
}

#[test]
fn the_operators_own_agent_keeps_its_name_beside_a_plugins() {
    let world = World::new();
    known(&world);
    world.home_file(
        "agents/pilot-scout.md",
        "---\nname: pilot:scout\ndescription: Mine.\ntools: []\n---\nMine.\n",
    );
    plugins(&world, &["add", "pilot", "--yes"]).exits(0);
    let shown = world.run(&["agents", "show", "pilot:scout", "--json"]).exits(0).json();
    assert_eq!(shown["id"], "home/pilot-scout");
}

#[test]
fn a_marketplace_of_a_known_name_from_elsewhere_is_refused() {
    let world = World::new();
    let source = known(&world);
    plugins(&world, &["add", "pilot", "--yes"]).exits(0);
    let list = json!({ "name": "harbour", "owner": { "name": "Eve" }, "plugins": [] });
    world.other("src/eve/.claude-plugin/marketplace.json", list.to_string().as_bytes());
    let eve = source.parent().unwrap().join("eve");
    let refused = world.run(&["marketplaces", "add", text(&eve)]);
    refused.exits(2).complains("there is a marketplace `harbour` already");
    world.run(&["marketplaces", "remove", "harbour"]).exits(0).complains("1 plugin of it stay");
    world
        .run(&["marketplaces", "add", text(&eve)])
        .exits(2)
        .complains("another marketplace of that name");
    // Its own place is welcome again.
    world.run(&["marketplaces", "add", text(&source)]).exits(0);
    world.run(&["marketplaces", "update", "harbour"]).exits(0).says("updated");
    world.run(&["marketplaces", "list"]).exits(0).says("harbour");
}

fn git(at: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(at)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_plugin_comes_from_the_commit_at_which_its_list_was_read() {
    let world = World::new();
    let source = market(&world);
    git(&source, &["init", "--quiet", "--initial-branch=main"]);
    git(&source, &["add", "."]);
    git(&source, &["commit", "--quiet", "-m", "one"]);
    let first = git(&source, &["rev-parse", "HEAD"]);
    world.run(&["marketplaces", "add", text(&source)]).exits(0);
    // The source goes on, and the list that a person has seen does not.
    pilot(&world, "6.6.6", "Bash", "Worse.");
    git(&source, &["commit", "--quiet", "-a", "-m", "two"]);
    let added = plugins(&world, &["add", "pilot", "--yes"]).exits(0);
    added.says("plugin harbour/pilot 1.0.0").says(&format!("commit {first}"));
    plugins(&world, &["update", "pilot", "--yes"]).exits(0).says("nothing changed");
    world.run(&["marketplaces", "update", "harbour"]).exits(0);
    plugins(&world, &["update", "pilot", "--yes"]).exits(0).says("+ agent scout: asks: shell");
    plugins(&world, &["list"]).exits(0).says("6.6.6");
    // A commit that is gone is no other one.
    let list = fs::read_to_string(world.home().join("libraries/lock.toml")).unwrap();
    let second = git(&source, &["rev-parse", "HEAD"]);
    assert!(list.contains(&second), "{list}");
    fs::write(world.home().join("libraries/lock.toml"), list.replace(&second, &"0".repeat(40)))
        .unwrap();
    plugins(&world, &["update", "pilot", "--yes"]).exits(2);
    plugins(&world, &["list"]).exits(0).says("6.6.6");
}

#[test]
fn a_server_of_a_plugin_is_off_until_the_operator_names_it() {
    let world = World::new();
    let source = known(&world);
    let servers = json!({ "mcpServers": {
        "chart": { "url": "https://example.org/mcp", "headers": { "Authorization": "Bearer ${CHART}" } },
        "own": { "command": "${CLAUDE_PLUGIN_ROOT}/bin/horn", "args": ["--at", "${CLAUDE_PLUGIN_ROOT}"],
            "env": { "LOUD": "yes", "KEY": "${KEY}" } },
        "lost": { "command": "no-such-program-here" },
        "odd": { "command": "sh", "args": ["${WORKSPACE}"] },
    } });
    fs::write(source.join("plugins/pilot/.mcp.json"), servers.to_string()).unwrap();
    plugins(&world, &["add", "pilot", "--yes"]).exits(0);
    let before = world.home_state();
    plugins(&world, &["connect", "pilot", "chart"])
        .exits(2)
        .says("https://example.org/mcp")
        .complains("nobody to ask");
    for (server, why) in [
        ("lost", "there is no program `no-such-program-here`"),
        ("odd", "a variable that belljar does not know"),
        ("gone", "has no server `gone`"),
    ] {
        plugins(&world, &["connect", "pilot", server, "--yes"]).exits(2).complains(why);
    }
    assert_eq!(world.home_state(), before);
    plugins(&world, &["connect", "pilot", "chart", "--yes"]).exits(0).complains("mcp review");
    plugins(&world, &["connect", "pilot", "own", "--yes"]).exits(0).says("left out: `KEY`");
    let settings = fs::read_to_string(world.home().join("belljar.toml")).unwrap();
    for line in [
        "[mcp.pilot-chart]",
        "url = \"https://example.org/mcp\"",
        "secrets = [\"pilot_chart_chart\"]",
        "called = \"plugin_pilot_chart\"",
        "host = \"https://example.org\"",
        "prefix = \"Bearer \"",
        "env = \"CHART\"",
        "[mcp.pilot-own]",
        "env = { LOUD = \"yes\" }",
    ] {
        assert!(settings.contains(line), "no {line} in\n{settings}");
    }
    assert!(!settings.contains("network"), "{settings}");
    world.run(&["mcp", "list"]).says("pilot-chart").says("not accepted yet");
    plugins(&world, &["connect", "pilot", "chart", "--yes"]).exits(2).complains("already");
}

#[test]
fn a_command_of_a_plugin_is_called_by_either_of_its_names_while_the_plugin_is_in_use() {
    let world = World::new();
    let turns = "      - expect: {last_user_contains: \"Write an entry about the storm.\"}\n        say: Written.\n";
    let script = format!("transcript: 1\nagents:\n  - agent: general-purpose\n    turns:\n{turns}");
    world.home_file("script.yaml", &script);
    let model = "[models.main]\nkind = \"scripted\"\nmodel = \"script.yaml\"\n";
    world.home_file("belljar.toml", model);
    known(&world);
    plugins(&world, &["add", "pilot", "--yes"]).exits(0);
    for name in ["pilot:entry", "pilot:log:entry", "harbour:pilot:entry"] {
        world.run(&["run", "--command", name, "the storm"]).exits(0).says("Written.");
    }
    // Not by the names of others, and not once the plugin is out of use.
    world.run(&["run", "--command", "harbour:entry", "the storm"]).exits(2);
    plugins(&world, &["disable", "pilot"]).exits(0);
    world.run(&["run", "--command", "pilot:entry", "the storm"]).exits(2);
    world.run(&["run", "Write an entry about the storm."]).exits(0);
}
