//! `belljar grant --asked`: from a blocked agent to one that runs with exactly what it asks for.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kit::server::{Server, key};
use crate::kit::{Done, NO_OVERLAYS, World};

const FIXER: &str = "---\nname: fixer\ndescription: Fixes.\ntools: [file_read, file_edit, shell]\nhosts: [\"https://docs.test\"]\nvisibility: user-facing\n---\nYou fix.\n";

/// The words of the first `belljar grant` command in a text.
fn hinted(text: &str) -> Vec<String> {
    let from = text.find("belljar grant ").unwrap_or_else(|| panic!("no command in:\n{text}"));
    let command = text[from..].split(['`', '\n']).next().unwrap();
    command.split_whitespace().skip(1).map(str::to_owned).collect()
}

fn run(world: &World, words: &[String], more: &[&str]) -> Done {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(more.iter().copied()).collect();
    world.run(&words)
}

fn shown(world: &World, agent: &str) -> Value {
    world.run(&["agents", "show", agent, "--json"]).exits(0).json()
}

/// The tools that the grants give an agent.
fn granted(world: &World, agent: &str) -> BTreeSet<String> {
    let shown = shown(world, agent);
    shown["grants"]["tools"].as_object().unwrap().keys().cloned().collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn config(world: &World) -> String {
    let text = std::fs::read_to_string(world.home().join("belljar.toml")).unwrap_or_default();
    text.replace(NO_OVERLAYS, "")
}

#[test]
fn the_command_that_a_blocked_agent_names_makes_it_ready_with_what_it_asks_for_and_no_more() {
    let world = World::without_overlays();
    world.home_file("agents/fixer.md", FIXER);
    let calls = "[{name: file_edit, arguments: {path: a.txt, old_text: one, new_text: two}}, {name: file_write, arguments: {path: b.txt, content: x}}]";
    let script = format!(
        "transcript: 1\nagents:\n  - agent: fixer\n    turns: [{{calls: {calls}}}, {{say: done}}]\n"
    );
    let script = world.other("script.yaml", script.as_bytes());
    let go = ["run", "--agent", "fixer", "--json", "--transcript", script.to_str().unwrap(), "x"];

    let command = hinted(&world.run(&go).exits(4).stderr);
    assert_eq!(command, ["grant", "fixer", "--asked"]);
    let chat = world.run(&["chat", "--agent", "fixer", "--transcript", script.to_str().unwrap()]);
    for said in [
        chat.exits(4).stderr,
        world.run(&["agents", "list"]).exits(0).stdout,
        world.run(&["agents", "show", "fixer"]).exits(0).stdout,
        world.run(&["agents", "check", "fixer"]).exits(4).stdout,
    ] {
        assert_eq!(hinted(&said), command);
        let about = &said[said.find("tool `file_edit`").unwrap()..];
        assert!(!about.contains("todo_write") && !about.contains("clarify"), "{said}");
    }

    let asked = run(&world, &command, &[]).exits(2).complains("--yes");
    asked.says(
        "`home/fixer` asks to, and with this may, call file_edit, call shell and reach https://docs.test",
    );
    assert_eq!(config(&world), "", "nothing is written without a yes");
    run(&world, &command, &["--yes"]).exits(0).complains("`home/fixer` is ready");

    assert_eq!(granted(&world, "fixer"), set(&["file_edit", "file_read", "shell"]));
    world.run(&["agents", "check", "fixer"]).exits(0);
    for tool in ["file_read", "file_edit", "shell"] {
        world.run(&["explain", "fixer", tool]).exits(0);
    }
    for tool in ["file_write", "clarify", "todo_write", "web_fetch"] {
        world.run(&["explain", "fixer", tool]).exits(4);
    }
    let outcome = world.run(&go).exits(0).json();
    let ending = |at: usize| outcome["receipts"][at]["receipt"]["ending"]["kind"].as_str();
    assert_ne!(ending(1), Some("completed"), "a tool that it never asked for: {outcome:#}");
    assert!(!world.workspace().join("b.txt").exists());
    run(&world, &command, &[]).exits(0).says("nothing to change");
}

#[test]
fn what_writes_is_left_out_of_a_read_only_grant_and_named() {
    let world = World::without_overlays();
    let file = FIXER.replace("hosts:", "mounts: [{path: /workspace, access: read-write}]\nhosts:");
    world.home_file("agents/fixer.md", &file.replace("file_read,", "file_read, web_fetch,"));
    world.home_file("belljar.toml", "[defaults.user-facing]\ntools = [\"file_read\"]\n");
    let done = world.run(&["grant", "fixer", "--asked", "--read-only", "--yes"]).exits(0);
    let done = done.says("call web_fetch and reach https://docs.test");
    let done = done.says("unable to call file_edit, call shell and write in /workspace");
    done.complains("still blocked: tool `file_edit`").complains("--partial");
    assert_eq!(granted(&world, "fixer"), set(&["file_read", "web_fetch"]));
    assert!(!config(&world).contains("read-write"), "{}", config(&world));
    world.run(&["explain", "fixer", "shell"]).exits(4);
    world.run(&["explain", "fixer", "web_fetch", "https://docs.test/x"]).exits(0);
    let again = world.run(&["grant", "fixer", "--asked", "--read-only", "--yes"]).exits(4);
    again.complains("nothing is granted").complains("`--read-only` leaves it unable");
}

#[test]
fn what_cannot_be_granted_as_it_is_asked_stays_blocked_and_is_named() {
    let world = World::without_overlays();
    let file = "---\nname: far\ndescription: d\ntools: [shell]\nmounts: [{path: /data, access: read}]\n---\nb\n";
    world.home_file("agents/far.md", file);
    let list = world.run(&["agents", "list"]).exits(0);
    let command = hinted(&list.stdout);
    let wanted = ["grant", "far", "--asked", "--mount", "/data:/path/to/directory:read"];
    assert_eq!(command, wanted);
    let done = world.run(&["grant", "far", "--asked", "--yes"]).exits(0);
    done.says("`--mount /data:/path/to/directory:read`").complains("still blocked: mount `/data`");
    let mount = format!("/data:{}:read", world.workspace().display());
    world.run(&["grant", "far", "--asked", "--mount", &mount, "--yes"]).exits(0);
    world.run(&["agents", "check", "far"]).exits(0);

    let file = "---\nname: odd\ndescription: d\ntools: [mcp__some__tool]\n---\nb\n";
    world.home_file("agents/odd.md", file);
    let before = config(&world);
    let done = world.run(&["grant", "odd", "--asked", "--yes"]).exits(4);
    done.complains("stays blocked: tool `mcp__some__tool`");
    assert_eq!(config(&world), before);
}

#[test]
fn an_agent_of_a_workspace_is_granted_what_it_asks_for_from_anywhere() {
    let world = World::new();
    world.file(".belljar/agents/fixer.md", FIXER);
    let command = hinted(&world.run(&["agents", "show", "fixer"]).exits(0).stdout);
    let elsewhere = world.other("elsewhere/a", b"");
    let words: Vec<&str> = command.iter().map(String::as_str).chain(["--yes"]).collect();
    let mut typed = world.command(&words);
    typed.current_dir(elsewhere.parent().unwrap());
    Done::of(typed.output().unwrap()).exits(0);
    world.run(&["agents", "check", "fixer"]).exits(0);
}

#[test]
fn a_granted_tool_brings_along_only_those_that_the_agent_asks_for() {
    let world = World::without_overlays();
    world.home_file("agents/fixer.md", FIXER);
    let done = world.run(&["grant", "fixer", "--tool", "shell", "--yes"]).exits(0);
    assert_eq!(granted(&world, "fixer"), set(&["file_read", "shell"]));
    done.complains("`belljar grant fixer --mount /workspace:read-write`");

    // Of an agent that takes whatever it is given, the defaults stay, and are not written down.
    world.home_file("agents/all.md", "---\nname: all\ndescription: d\n---\nb\n");
    world.run(&["grant", "all", "--tool", "shell", "--yes"]).exits(0);
    let has = granted(&world, "all");
    assert!(has.contains("file_search") && has.contains("shell"), "{has:?}");
    let text = config(&world);
    assert!(text.contains("[grants.all]\nadd_tools = [\"shell\"]\n"), "{text}");
}

/// Installs a library of three agents: one that is ready, one that is blocked, one that nothing
/// unblocks.
fn with_library() -> World {
    let (world, source) = library();
    world.run(&["agents", "add", &source, "--yes"]).exits(0).says("belljar grant --library lib");
    world
}

/// The same library where nothing is installed yet, and its directory.
fn library() -> (World, String) {
    let world = World::without_overlays();
    let agent = |name: &str, tools: &str| {
        let text = format!("---\nname: {name}\ndescription: d\ntools: [{tools}]\n---\nb\n");
        world.other(&format!("lib/{name}.md"), text.as_bytes());
    };
    agent("reader", "file_read");
    agent("writer", "file_read, file_write");
    agent("runner", "file_write, shell");
    agent("odd", "mcp__some__tool");
    let source = world.other("lib/x.txt", b"");
    let source = source.parent().unwrap().to_str().unwrap().to_owned();
    (world, source)
}

fn with_installed_library() -> World {
    let (world, source) = library();
    world.run(&["agents", "add", &source, "--yes"]).exits(0);
    world
}

#[test]
fn a_library_is_granted_what_it_asks_for_in_one_decision() {
    let world = with_library();
    let done = world.run(&["grant", "--library", "lib"]).exits(2).complains("--yes");
    let done = done.says("library `lib`: 4 agents; ready: 1, and 3 with this");
    let done = done.says("this lets 2 agents call file_write").says("this lets 1 agent call shell");
    done.says("blocked all the same: 1 agent").says("odd: tool `mcp__some__tool`");
    assert_eq!(config(&world), "");

    let done = world.run(&["grant", "--library", "lib", "--asked", "--yes"]).exits(0);
    done.complains("of 4 agents in library `lib`, 3 are ready");
    assert_eq!(granted(&world, "library/lib/writer"), set(&["file_read", "file_write"]));
    assert_eq!(granted(&world, "library/lib/runner"), set(&["file_write", "shell"]));
    assert!(!config(&world).contains("reader") && !config(&world).contains("odd"));
    world.run(&["grant", "--library", "lib", "--yes"]).exits(4).complains("no grant is written");
}

/// INV-205.
#[test]
fn a_whole_library_is_granted_once_and_nobody_else_has_it() {
    let world = with_installed_library();
    let whole = ["grant", "library/lib/*", "--tool", "shell=ask", "--limit", "steps=7"];
    world.run(&whole).exits(2).says("[grants.\"library/lib/*\"]").complains("--yes");
    assert_eq!(config(&world), "");
    let yes: Vec<&str> = whole.iter().copied().chain(["--yes"]).collect();
    world.run(&yes).exits(0).complains("it holds for agents that an update brings, too");
    let text = config(&world);
    assert!(
        text.contains("[grants.\"library/lib/*\"]\nadd_tools = { shell = \"ask\" }\n"),
        "{text}"
    );
    for agent in ["runner", "reader"] {
        let grants = shown(&world, &format!("library/lib/{agent}"))["grants"].clone();
        assert_eq!(
            (&grants["tools"]["shell"], &grants["limits"]["steps"]),
            (&"ask".into(), &7.into())
        );
    }
    let why = world.run(&["explain", "library/lib/runner", "shell"]).exits(0);
    why.says("`[grants.\"library/lib/*\"]` holds for it, as for each agent of its library");
    let why = world.run(&["explain", "library/lib/runner", "shell", "--json"]).exits(0).json();
    assert_eq!(why["library_section"], "[grants.\"library/lib/*\"]");
    // An agent of another library, even one that begins with the same letters, has nothing of it.
    let other = "---\nname: runner\ndescription: d\ntools: [shell]\n---\nb\n";
    let source = world.other("more/runner.md", other.as_bytes());
    let source = source.parent().unwrap().to_str().unwrap().to_owned();
    world.run(&["agents", "add", &source, "--name", "lib-2", "--yes"]).exits(0);
    assert_ne!(shown(&world, "library/lib-2/runner")["grants"]["limits"]["steps"], 7);
    let why = world.run(&["explain", "library/lib-2/runner", "shell", "--json"]).json();
    assert!(why.get("library_section").is_none(), "{why}");
    // Its own section wins, key by key.
    let own = ["grant", "library/lib/runner", "--limit", "steps=9", "--yes"];
    world.run(&own).exits(0);
    let grants = shown(&world, "library/lib/runner")["grants"].clone();
    assert_eq!((&grants["tools"]["shell"], &grants["limits"]["steps"]), (&"ask".into(), &9.into()));

    // Who takes the library away, or adds another of its name, hears of it.
    world
        .run(&["agents", "remove", "lib"])
        .exits(0)
        .complains("each of its agents, by `library/lib/*`");
    world.run(&["doctor"]).says("there is no such library");
    let again = ["agents", "add", &source, "--name", "lib", "--yes"];
    world
        .run(&again)
        .exits(0)
        .complains("they will have them: `library/lib/runner`, `library/lib/*`");
    let back = ["revoke", "library/lib/*", "--all", "--yes"];
    world.run(&back).exits(0);
    let text = config(&world);
    assert!(!text.contains("lib/*") && text.contains("[grants.\"library/lib/runner\"]"), "{text}");
    world.run(&back).exits(1).complains("has no grant for `library/lib/*`");
}

#[test]
fn a_whole_library_is_named_exactly_and_granted_rights_by_name() {
    let world = with_installed_library();
    for (args, why) in [
        (&["grant", "library/lib/*", "--asked", "--yes"][..], "belljar grant --library lib"),
        (&["grant", "library/lib/*", "--yes"], "nothing to grant"),
        (&["grant", "library/libb/*", "--tool", "shell", "--yes"], "no library is called `libb`"),
        (&["grant", "library/*/*", "--tool", "shell", "--yes"], "not an agent identity"),
        (&["grant", "library/lib/r*", "--tool", "shell", "--yes"], "not an agent identity"),
    ] {
        world.run(args).exits(2).complains(why);
    }
    assert_eq!(config(&world), "");
}

#[test]
fn a_read_only_grant_of_a_library_writes_nothing_for_those_that_only_write() {
    let world = with_library();
    let done = world.run(&["grant", "--library", "lib", "--read-only", "--yes"]).exits(4);
    done.says("writer: tool `file_write`").complains("no grant is written");
    assert_eq!(config(&world), "");
}

#[test]
fn wrong_uses_are_refused_and_nothing_is_written() {
    let world = with_library();
    world.home_file("agents/fixer.md", FIXER);
    for (args, why) in [
        (&["grant", "fixer", "--asked", "--tool", "shell"][..], "cannot be used with"),
        (&["grant", "fixer", "--library", "lib"], "cannot be used with"),
        (&["grant", "--library", "lib", "--host", "https://a.test"], "cannot be used with"),
        (&["grant", "--library", "libb"], "no library is called `libb`"),
        (&["grant", "fixre", "--asked"], "fixer"),
        (&["grant", "Not An Agent", "--asked"], "no agent is called `Not An Agent`"),
        (&["grant", "not*an", "--asked"], "not an agent identity"),
        (&["grant", "writer", "--asked"], "grant to that identity"),
        (&["grant", "fixer", "--read-only", "--tool", "shell"], "`--read-only` says how much"),
        (&["grant", "fixer"], "`--asked` grants what the agent asks for"),
        (&["grant"], "AGENT"),
    ] {
        let mut yes = args.to_vec();
        yes.push("--yes");
        let done = world.run(&yes).exits(2);
        assert!(done.stderr.contains(why), "{args:?}: no `{why}` in:\n{}", done.stderr);
    }
    assert_eq!(config(&world), "");
}

#[test]
fn a_tenants_agent_is_granted_what_it_asks_for_and_the_audit_log_says_so() {
    let world = World::without_overlays();
    world.run(&["tenants", "add", "acme"]).exits(0);
    let home = world.tenant("acme");
    world.home_file(&format!("{home}/home/agents/fixer.md"), FIXER);
    world.home_file(&format!("{home}/home/belljar.toml"), "");
    world.run(&["grant", "fixer", "--asked", "--tenant", "acme", "--yes"]).exits(0);
    let own = world.home().join(&home).join("home/belljar.toml");
    let text = std::fs::read_to_string(own).unwrap();
    assert!(text.contains("tools = [\"file_edit\", \"file_read\", \"shell\"]"), "{text}");
    assert_eq!(config(&world), "", "the operator's own is another file");
    let key = key(&world, "acme", "admin");
    let server = Server::start(&world, &[]);
    let (status, log) = server.get("/v1/audit", Some(&key));
    assert_eq!(status, 200, "{log}");
    for part in ["home/fixer", "\"file_edit\":\"allow\"", "https://docs.test"] {
        assert!(log.contains(part), "no `{part}` in {log}");
    }
}

#[test]
fn what_the_operator_denies_by_name_is_granted_by_no_wish_of_a_file() {
    let world = World::new();
    world.home_file("agents/fixer.md", FIXER);
    let tools = "{ file_read = 'allow', shell = 'deny' }";
    world.home_file("belljar.toml", &format!("[grants.fixer]\ntools = {tools}\n"));
    let done = world.run(&["grant", "fixer", "--asked", "--yes"]).exits(0);
    done.says("denies it shell").says("`--tool shell`");
    world.run(&["explain", "fixer", "shell"]).exits(4);
    world.run(&["explain", "fixer", "file_edit"]).exits(0);
    world.run(&["grant", "fixer", "--tool", "shell", "--yes"]).exits(0);
    world.run(&["explain", "fixer", "shell"]).exits(0);
}
