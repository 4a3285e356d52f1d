//! `belljar agents`: good files, bad files, and the rest of the folder.

use crate::kit::World;

const GOOD: &str = "---\nname: scout\ndescription: Finds files.\ntools: [file_list]\nvisibility: user-facing\n---\nYou find files.\n";

#[test]
fn one_bad_file_never_stops_the_others() {
    let world = World::new();
    world.home_file("agents/scout.md", GOOD);
    world.home_file("agents/broken.md", "---\nname: [\n---\nx\n");
    world.home_file("agents/README.md", "# Agents\n\nWhat is here.\n");
    world.home_file("agents/drafts/later.md", "---\nname: [\n---\n");
    let bad = world.home().join("agents/bytes.md");
    std::fs::write(&bad, b"---\nname: x\n---\n\xff\xfe").unwrap();
    let done = world.run(&["agents", "list"]).exits(2);
    let done = done.says("scout").complains("broken.md").complains("bytes.md");
    assert!(!done.stderr.contains("README") && !done.stderr.contains("later"), "{}", done.stderr);
    let list = world.run(&["agents", "list", "--json"]).json();
    assert!(list.to_string().contains("scout"), "{list}");
}

#[test]
fn blocked_agents_are_listed_by_a_line_each_and_one_command_stands_for_all() {
    let world = World::new();
    for name in ["a", "b"] {
        let asks = "mounts: [{path: /one, access: read}, {path: /two, access: read}]\ntools";
        let text = GOOD.replace("name: scout", &format!("name: {name}")).replace("tools", asks);
        world.home_file(&format!("agents/{name}.md"), &text);
    }
    let list = world.run(&["agents", "list"]).exits(0).stdout;
    let lines = |of: &str| list.lines().filter(|line| line.contains(of)).count();
    assert_eq!(
        (lines(": blocked: "), lines("(and 1 more)"), lines("belljar grant")),
        (2, 2, 1),
        "{list}"
    );
    world.run(&["agents", "show", "a"]).exits(0).says("/one").says("/two").says("belljar grant a");
}

#[test]
fn a_tool_that_nobody_has_is_shown_as_missing() {
    let world = World::new();
    world.home_file("agents/w.md", &GOOD.replace("[file_list]", "[file_list, mcp__wiki__find]"));
    let shown = world.run(&["agents", "show", "scout"]).exits(0).stdout;
    let line = shown.lines().find(|line| line.contains("mcp__wiki__find")).unwrap();
    assert!(line.starts_with("tool ") && line.ends_with("missing: nobody has it here"), "{shown}");
}

#[test]
fn a_blocked_agent_is_listed_with_its_reason() {
    let world = World::without_overlays();
    world.home_file("agents/w.md", &GOOD.replace("[file_list]", "[file_write]"));
    world.run(&["agents", "list"]).exits(0).says("blocked").says("file_write");
}

#[test]
fn a_missing_field_is_reported_with_its_place_and_a_hint() {
    let world = World::new();
    let path = world.other("a.md", b"---\nname: a\nvisibility: user-facing\n---\nbody\n");
    let done = world.run(&["agents", "check", path.to_str().unwrap()]).exits(2);
    done.complains("a.md").complains("description").complains("hint:");
}

#[test]
fn a_yaml_bomb_and_a_hundred_megabytes_each_get_one_diagnostic() {
    let world = World::new();
    let mut bomb =
        "---\nname: bomb\ndescription: d\nvisibility: user-facing\na: &a [x, x]\n".to_owned();
    for (name, below) in ('b'..'z').zip('a'..'y') {
        bomb.push_str(&format!("{name}: &{name} [*{below}, *{below}, *{below}, *{below}]\n"));
    }
    bomb.push_str("---\nbody\n");
    let bomb = world.other("bomb.md", bomb.as_bytes());
    let huge = world.other("huge.md", b"---\nname: huge\n");
    std::fs::File::options().write(true).open(&huge).unwrap().set_len(100 << 20).unwrap();
    for path in [bomb, huge] {
        let done = world.run(&["agents", "check", path.to_str().unwrap()]).exits(2);
        assert_eq!(done.stderr.matches("error:").count(), 1, "{}", done.stderr);
    }
}

#[test]
fn show_prints_rights_and_limits_and_suggests_for_a_misspelt_name() {
    let world = World::new();
    world.home_file("agents/scout.md", GOOD);
    world
        .run(&["agents", "show", "scout"])
        .exits(0)
        .says("file_list")
        .says("/workspace")
        .says("steps");
    let shown = world.run(&["agents", "show", "scout", "--json"]).exits(0).json();
    assert_eq!(shown["id"], "home/scout");
    world.run(&["agents", "show", "scuot"]).exits(2).complains("scout");
}

#[test]
fn hostile_text_reaches_the_terminal_escaped() {
    let world = World::new();
    world.home_file("agents/e.md", &GOOD.replace("Finds files.", "\"a\\e[2Jb\\u202ec\""));
    for args in [&["agents", "list"][..], &["agents", "show", "scout"]] {
        let done = world.run(args);
        let all = format!("{}{}", done.stdout, done.stderr);
        assert!(!all.contains('\u{1b}') && !all.contains('\u{202e}'), "{all:?}");
    }
}

#[test]
fn a_workspace_agent_that_repeats_a_home_agents_name_is_reported_and_skipped() {
    let world = World::new();
    world.home_file("agents/scout.md", GOOD);
    world.file(".belljar/agents/scout.md", &GOOD.replace("Finds files.", "An impostor."));
    let done = world.run(&["agents", "list"]).complains("scout");
    assert!(!done.stdout.contains("impostor"), "{}", done.stdout);
}

#[test]
fn a_stock_agent_stands_back_for_the_persons_own_even_where_that_one_is_broken() {
    let world = World::new();
    let stock = |world: &World| {
        let list = world.run(&["agents", "list", "--json"]).json();
        let agents = list.as_array().unwrap().clone();
        let built_in =
            |agent: &&serde_json::Value| agent["path"].as_str().unwrap().starts_with("built-in");
        agents.iter().filter(built_in).count()
    };
    assert_eq!(stock(&world), 4);
    world.home_file("agents/summarizer.md", "---\nname: [\n---\nx\n");
    assert_eq!(stock(&world), 3);
    world.home_file("agents/mine.md", &GOOD.replace("scout", "general-purpose"));
    assert_eq!(stock(&world), 2);
    let done = world.run(&["agents", "list"]);
    assert!(!done.stderr.contains("built-in"), "{}", done.stderr);
}

#[test]
fn a_check_shows_the_line_with_a_mark_and_the_list_stays_one_line_each() {
    let world = World::new();
    let text =
        "---\nname: a\ndescription: d\nvisibility: user-facing\ntools: [file_reed]\n---\nx\n";
    let path = world.home_file("agents/a.md", text);
    let expected = format!(
        "{}:5:9: error: tool `file_reed` does not exist\n   ╭────\n \
         4 │ visibility: user-facing\n 5 │ tools: [file_reed]\n   \
         ·         ─────────\n   ╰────\n  hint: did you mean `file_read`?\n",
        path.display()
    );
    let done = world.run(&["agents", "check", path.to_str().unwrap()]).exits(2);
    assert_eq!(done.stderr, expected);
    let list = world.run(&["agents", "list"]).exits(2);
    assert!(list.stderr.contains("a.md:5:9: error:") && !list.stderr.contains('│'));
    let json = world.run(&["agents", "check", path.to_str().unwrap(), "--json"]).exits(2);
    assert!(!json.stdout.contains('│'), "{}", json.stdout);
}

#[test]
fn a_broken_settings_file_shows_its_line_but_no_key_that_stands_in_it() {
    let world = World::new();
    let text = "[models.m]\nkind = \"openai\"\nmodel = \"x\"\nkey = \"sk-hidden\"\n";
    world.home_file("belljar.toml", text);
    let done = world.run(&["agents", "list"]).exits(2);
    let done = done.complains("belljar.toml:4:1: error:").complains("4 │ key = …");
    assert!(!done.stderr.contains("hidden"), "{}", done.stderr);
}

#[test]
fn check_takes_a_name_and_does_not_pass_a_file_that_is_no_agent() {
    let world = World::new();
    let built_in = world.run(&["agents", "check", "summarizer"]).exits(0);
    built_in.says("ready").says("built-in").says("agent `summarizer`");
    world.run(&["init"]).exits(0);
    world.run(&["agents", "check", "summarizer"]).exits(0).says("ready").says("agent `summarizer`");
    world.run(&["agents", "check", "sumarizer"]).exits(2).complains("cannot be read");
    let note = world.file("note.md", "# A note\n\nNothing more.\n");
    world.run(&["agents", "check", note.to_str().unwrap()]).exits(2).complains("not an agent");
    let folder = note.parent().unwrap().to_str().unwrap();
    world.run(&["agents", "check", folder]).exits(0).says("not an agent");
}

#[test]
fn a_pattern_that_takes_a_whole_tool_away_is_said() {
    let world = World::new();
    let agent = |denied: &str| {
        let text =
            format!("---\nname: tidy\ndescription: d\ndisallowedTools: [{denied}]\n---\nTidy.\n");
        world.home_file("agents/tidy.md", &text);
        world.run(&["agents", "check"])
    };
    let done = agent("\"Bash(rm *)\"");
    let told = format!("{}{}", done.stdout, done.stderr);
    assert!(told.contains("takes all of `shell` away"), "{told}");
    let explained = world.run(&["explain", "tidy", "shell"]).says("not allowed");
    assert_ne!(explained.code, 0);
    // The neighbours: a name alone says what it takes, and other tools stay.
    for denied in ["Bash", "\"Bash(*)\""] {
        let done = agent(denied);
        let told = format!("{}{}", done.stdout, done.stderr);
        assert!(!told.contains("takes all of"), "{told}");
    }
    world.run(&["explain", "tidy", "file_read"]).exits(0);
}

#[test]
fn whom_an_agent_may_call_is_shown_and_explained_by_name() {
    let world = World::new();
    let put = |name: &str, more: &str| {
        let text = format!("---\nname: {name}\ndescription: d\n{more}---\nDo.\n");
        world.home_file(&format!("agents/{name}.md"), &text);
    };
    put("scout", "visibility: user-facing\n");
    put("other", "visibility: user-facing\n");
    put("lead", "tools: Agent(scout), Read\n");
    put("alone", "visibility: user-facing\ntools: [file_read]\n");
    world.run(&["agents", "show", "lead"]).exits(0).says("may call: scout");
    world.run(&["agents", "show", "alone"]).exits(0).says("may call no other agent");
    let shown = world.run(&["agents", "show", "lead", "--json"]).exits(0).json();
    assert_eq!(shown["may_call"], serde_json::json!(["scout"]));
    world.run(&["explain", "lead", "spawn_agent", "scout"]).exits(0).says("allowed");
    for (name, why) in [("other", "does not let it call"), ("nobody", "there is no agent")] {
        let refused = world.run(&["explain", "lead", "spawn_agent", name]);
        assert_ne!(refused.code, 0);
        let refused = refused.says(why);
        assert!(!refused.stdout.contains("--mount"), "{}", refused.stdout);
    }
    assert_ne!(world.run(&["explain", "alone", "spawn_agent", "scout"]).code, 0);
}

#[test]
fn a_worktree_that_is_refused_is_not_among_the_rights() {
    let world = World::new();
    let text = "---\nname: tidy\ndescription: d\n---\nTidy.\n";
    world.home_file("agents/tidy.md", text);
    let shown = world.run(&["agents", "show", "tidy"]).exits(0);
    assert!(!shown.stdout.contains("worktree"), "{}", shown.stdout);
    assert_ne!(world.run(&["explain", "tidy", "worktree"]).code, 0);
    world.home_file(
        "agents/asks.md",
        "---\nname: asks\ndescription: d\ntools: [worktree, file_write]\n---\nTidy.\n",
    );
    world.run(&["explain", "asks", "worktree"]).exits(0);
    world.run(&["agents", "show", "asks"]).exits(0).says("worktree");
}

const FETCHES: &str = "
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - calls: [{name: web_fetch, arguments: {url: 'https://tides.test/x'}}]
      - say: done
";

/// INV-513.
#[test]
fn a_tool_of_the_network_without_a_host_says_so_before_its_call_and_behind_it() {
    let world = World::new();
    let transcript = world.other("t.yaml", FETCHES.as_bytes());
    let row = |world: &World| {
        let shown = world.run(&["agents", "show", "general-purpose"]).exits(0).stdout;
        let tools = shown.lines().filter(|line| line.starts_with("tool "));
        let tools: Vec<String> = tools.map(|line| line.trim_end().to_owned()).collect();
        let of = |name: &str| tools.iter().find(|line| line.contains(name)).unwrap().clone();
        (of(" web_fetch "), of(" file_read "))
    };
    let (web, file) = row(&world);
    assert!(web.ends_with("allow, but no host is granted") && file.ends_with("allow"), "{web}");
    let run = ["run", "--transcript", transcript.to_str().unwrap(), "look at https://tides.test/x"];
    let done = world.run(&run).exits(0).complains("no host is granted to this tool");
    let done = done.complains("belljar grant general-purpose --host https://tides.test");
    assert!(!done.stderr.contains("wasi:"), "{}", done.stderr);
    let receipt = world.run(&["receipts", "latest"]).exits(0).says("no host is granted");
    assert!(!receipt.stdout.contains("wasi:"), "{}", receipt.stdout);
    world.run(&["grant", "general-purpose", "--host", "https://tides.test", "--yes"]).exits(0);
    assert!(row(&world).0.ends_with("allow"), "{:?}", row(&world));
}

#[test]
fn a_stock_agent_for_people_does_not_say_that_nobody_is_there() {
    let world = World::new();
    let listed = world.run(&["agents", "list", "--json"]).exits(0).json();
    let mut looked = 0;
    for agent in listed.as_array().unwrap() {
        let name = agent["name"].as_str().unwrap();
        let shown = world.run(&["agents", "show", name, "--json"]).exits(0).json();
        let body = shown["body"].as_str().unwrap().to_lowercase();
        for word in ["nobody can answer", "you work alone", "cannot ask"] {
            assert!(!body.contains(word), "{name}: {word}");
        }
        looked += 1;
    }
    assert!(looked >= 4, "{listed}");
}
