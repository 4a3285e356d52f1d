//! `--tenant` and `--data`: every command about agents, tools, grants, receipts and sessions takes
//! them in the same way, or says why it does not.

use std::collections::BTreeSet;
use std::fs;

use crate::kit::World;

const PROBE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../prove/prebuilt/probe.wasm");

/// A mark of all that is the tenant's own: no command of the operator's own shows it.
const REDS: &str = "reds-";

/// A command, its code, and what it says of the tenant's own things.
type Row = (&'static [&'static str], i32, &'static str);

/// Those that take a tenant, in an order in which each finds what it needs.
const TAKE: &[Row] = &[
    (&["agents", "list"], 0, "reds-agent"),
    (&["agents", "show", "reds-agent"], 0, "reds-agent"),
    (&["agents", "check"], 0, "reds-agent.md"),
    (&["agents", "libraries"], 0, "belljar agents add SOURCE --tenant red"),
    (&["agents", "add", "SOURCE", "--name", "reds-zoo", "--yes"], 0, "library/reds-zoo/NAME"),
    (&["agents", "libraries"], 0, "reds-zoo"),
    (&["agents", "update", "reds-zoo"], 0, "nothing changed in library `reds-zoo`"),
    (&["agents", "remove", "reds-zoo"], 0, "removed library `reds-zoo`"),
    (&["add", "SOURCE", "--name", "reds-farm", "--yes"], 0, "library/reds-farm/NAME"),
    (&["marketplaces", "add", "SOURCE"], 0, "marketplace `reds-market`"),
    (&["marketplaces", "list"], 0, "reds-market"),
    (&["marketplaces", "update", "reds-market"], 0, "updated marketplace `reds-market`"),
    (&["plugins", "search", "reds"], 0, "reds-plug@reds-market"),
    (&["plugins", "add", "reds-plug", "--yes"], 0, "installed plugin `reds-market/reds-plug`"),
    (&["plugins", "list"], 0, "reds-market/reds-plug"),
    (&["plugins", "show", "reds-plug"], 0, "reds-plug:reds-tide"),
    (&["plugins", "update", "reds-plug", "--yes"], 0, "nothing changed in plugin"),
    (&["plugins", "disable", "reds-plug"], 0, "disabled plugin"),
    (&["plugins", "enable", "reds-plug"], 0, "enabled plugin"),
    (&["plugins", "connect", "reds-plug", "reds-sea", "--yes"], 0, "[mcp.reds-plug-reds-sea]"),
    (&["plugins", "remove", "reds-plug"], 0, "removed plugin"),
    (&["marketplaces", "remove", "reds-market"], 0, "removed marketplace"),
    (&["teams", "list"], 0, "reds-team"),
    (&["teams", "check"], 0, "reds-team"),
    (&["skills", "list"], 0, "reds-skill"),
    (&["skills", "check", "reds-skill"], 0, "skill `reds-skill`"),
    (&["commands", "list"], 0, "/reds-command"),
    (&["commands", "check", "reds-command"], 0, "command `/reds-command`"),
    (&["context", "reds-agent", "go"], 5, "model"),
    (&["drafts", "list"], 0, "agents/reds-draft"),
    (&["drafts", "promote", "agents/reds-draft"], 0, "reds-draft.md"),
    (&["tools", "list"], 0, "probe"),
    (&["tools", "inspect", "probe"], 0, "tool probe"),
    (
        &["tools", "call", "probe", r#"{"steps": [{"do": "say", "text": "reds-call"}]}"#],
        0,
        "reds-call",
    ),
    (&["tools", "call", "file_read", r#"{"path": "reds-note.txt"}"#], 0, "reds-own words"),
    (&["grant", "reds-agent", "--tool", "probe", "--yes"], 0, "+probe = \"allow\""),
    (&["explain", "reds-agent", "probe"], 0, "allowed"),
    (&["revoke", "reds-agent", "--tool", "probe", "--yes"], 0, "-probe = \"allow\""),
    (&["tools", "remove", "probe", "--yes"], 0, "removed"),
    (&["tools", "add", PROBE, "--yes"], 0, "installed in"),
    (&["mcp", "list"], 0, "reds-server"),
    (&["mcp", "review", "reds-server"], 1, "`reds-server` did not say what it offers"),
    (&["mcp", "login", "reds-server"], 1, "no token of `reds-server`"),
    (&["mcp", "logout", "reds-server"], 0, "no token of `reds-server`"),
    (&["receipts"], 0, "no runs in"),
    (&["replay", "0192"], 2, "there is no run"),
    (&["changes"], 2, "changed anything in an overlay"),
    (&["apply", "--yes"], 2, "changed anything in an overlay"),
    (&["discard", "--yes"], 2, "changed anything in an overlay"),
    (&["undo"], 2, "changed anything in an overlay"),
    (&["sessions", "list"], 0, "there are no sessions"),
    (&["sessions", "show", "0192"], 2, "session"),
    (&["sessions", "export", "0192"], 2, "session"),
    (&["sessions", "rm", "--all", "--yes"], 0, "0 sessions are deleted"),
];

/// A command that installs: it needs a compiler for guests, and has a test where there is one.
const BUILDS: &[&str] = &["tools", "build", "project", "--install"];

/// Those that are nobody's.
const REFUSE: &[&[&str]] = &[
    &["run", "go"],
    &["chat"],
    &["acp"],
    &["mcp"],
    &["teams", "run", "reds-team", "go"],
    &["tools", "new", "word_count"],
    &["tools", "aliases"],
    &["tools", "test", "conformance.wasm"],
];

/// Commands that are about the server, its keys and tenants, or this installation as a whole.
const OTHERS: &[&str] = &[
    "backup",
    "completions",
    "demo",
    "doctor",
    "init",
    "keys-create",
    "keys-list",
    "keys-logins",
    "keys-open-to-this-machine",
    "keys-revoke",
    "limits",
    "mcp-config",
    "prove",
    "restore",
    "serve",
    "tenants-add",
    "tenants-disable",
    "tenants-list",
    "tenants-rm",
];

/// A machine with a tenant `red` that has one of everything.
fn world() -> World {
    let world = World::new();
    world.run(&["tenants", "add", "red"]).exits(0);
    let root = world.tenant("red");
    let home = |path: &str, text: &str| world.home_file(&format!("{root}/home/{path}"), text);
    let agent = |name: &str| {
        format!(
            "---\nname: {name}\ndescription: d\ntools: [probe, file_read]\nmaxTurns: 3\n---\nx\n"
        )
    };
    home("agents/reds-agent.md", &agent("reds-agent"));
    home("drafts/agents/reds-draft.md", &agent("reds-draft"));
    home(
        "teams/reds-team.yaml",
        "name: reds-team\ndescription: d\nstages:\n  - agent: reds-agent\n",
    );
    home("skills/reds-skill.md", "---\nname: reds-skill\ndescription: d\n---\nx\n");
    home("commands/reds-command.md", "Do $ARGUMENTS.\n");
    home("tools/probe/tool.toml", "manifest = 1\ndescription = \"A probe.\"\n");
    fs::copy(PROBE, world.home().join(&root).join("home/tools/probe/tool.wasm")).unwrap();
    let digest =
        world.run(&["tools", "inspect", PROBE, "--json"]).exits(0).json()["digest"].clone();
    let grants = "[grants.reds-agent.tools]\nfile_read = \"allow\"\nprobe = \"ask\"\n";
    // Nobody listens there.
    let server = "[mcp.reds-server]\nurl = \"http://127.0.0.1:1/mcp\"\n";
    home("belljar.toml", &format!("[tools.probe]\ndigest = {digest}\n\n{grants}\n{server}"));
    world.home_file(&format!("{root}/workspace/reds-note.txt"), "reds-own words\n");
    let source = agent("reader").replace("probe, ", "");
    world.other("source/reader.md", source.as_bytes());
    let market = r#"{"name": "reds-market", "owner": {"name": "red"},
        "plugins": [{"name": "reds-plug", "source": "./reds-plug"}]}"#;
    world.other("source/.claude-plugin/marketplace.json", market.as_bytes());
    let skill = "---\nname: reds-tide\ndescription: d\n---\nx\n";
    world.other("source/reds-plug/skills/reds-tide/SKILL.md", skill.as_bytes());
    let servers = r#"{"reds-sea": {"url": "https://example.org/mcp"}}"#;
    world.other("source/reds-plug/.mcp.json", servers.as_bytes());
    world
}

/// The row's words, with the paths that they stand for.
fn words(world: &World, row: &[&str]) -> Vec<String> {
    let source = world.home().with_file_name("source");
    row.iter().map(|word| word.replace("SOURCE", source.to_str().unwrap())).collect()
}

#[test]
fn every_command_about_agents_tools_and_sessions_takes_a_tenant_in_the_same_way() {
    let world = world();
    let elsewhere = world.home().with_file_name("elsewhere");
    for (row, code, text) in TAKE {
        let row = words(&world, row);
        let with = |more: &[&str]| {
            let row = row.iter().map(String::as_str);
            world.run(&row.chain(more.iter().copied()).collect::<Vec<_>>())
        };
        // There is nobody of that name, and nothing at that place.
        with(&["--tenant", "nobody"]).exits(2).complains("there is no tenant `nobody`");
        let there = ["--tenant", "red", "--data", elsewhere.to_str().unwrap()];
        with(&there).exits(2).complains("there is no tenant `red`");
        let done = with(&["--tenant", "red"]).exits(*code);
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(said.contains(text), "no `{text}` in what {row:?} says:\n{said}");
    }
    // Where the data root is named besides, it is the same tenant.
    let data = world.home().join("sessions");
    let args = ["agents", "list", "--tenant", "red", "--data", data.to_str().unwrap()];
    world.run(&args).exits(0).says("reds-agent");
}

#[test]
fn what_is_a_tenants_is_not_in_the_operators_own_lists() {
    let world = world();
    for args in [
        ["agents", "list"],
        ["teams", "list"],
        ["skills", "list"],
        ["commands", "list"],
        ["drafts", "list"],
    ] {
        let done = world.run(&args).exits(0);
        assert!(!done.stdout.contains(REDS), "{args:?}: {}", done.stdout);
    }
    let tools = world.run(&["tools", "list"]).exits(0);
    assert!(!tools.stdout.contains("probe"), "{}", tools.stdout);
}

#[test]
fn a_command_that_is_nobodys_refuses_a_tenant_with_its_reason() {
    let world = world();
    for row in REFUSE {
        let done = world.run(&[row, &["--tenant", "red"][..]].concat()).exits(2);
        assert!(done.stderr.contains("`--tenant` has no place here: "), "{row:?}: {}", done.stderr);
        assert!(done.stderr.contains("hint: "), "{row:?}: {}", done.stderr);
    }
    assert!(!world.workspace().join("word_count").exists());
    // A tool that is not installed is nobody's either.
    world.run(&["tools", "new", "word_count", "--dir", "project"]).exits(0);
    let built = world.run(&["tools", "build", "project", "--tenant", "red"]).exits(2);
    built.complains("add `--install`");
    let built = world.run(&[BUILDS, &["--tenant", "nobody"]].concat()).exits(2);
    built.complains("there is no tenant `nobody`");
    assert!(!world.workspace().join("project/tool.wasm").exists());
}

#[test]
fn no_command_is_left_out_of_these_tables() {
    let world = World::new();
    let pages = world.home().with_file_name("pages");
    world.run(&["man", pages.to_str().unwrap()]).exits(0);
    let of = |row: &[&str]| {
        let leaf = row.iter().take_while(|word| !word.starts_with('-') && !word.contains(' '));
        leaf.copied().collect::<Vec<_>>().join("-")
    };
    let rows = TAKE.iter().map(|(row, ..)| *row).chain(REFUSE.iter().copied()).chain([BUILDS]);
    let known: Vec<String> = rows.map(of).collect();
    let mut missing = BTreeSet::new();
    let names: Vec<String> = fs::read_dir(&pages)
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .map(|name| name.trim_end_matches(".1").trim_start_matches("belljar").to_owned())
        .map(|name| name.trim_start_matches('-').to_owned())
        .collect();
    for name in &names {
        let is_group = names.iter().any(|other| other.starts_with(&format!("{name}-")));
        let is_known = known.iter().any(|it| it == name || it.starts_with(&format!("{name}-")));
        if !name.is_empty() && !is_group && !is_known && !OTHERS.contains(&name.as_str()) {
            missing.insert(name);
        }
    }
    assert!(missing.is_empty(), "neither take nor refuse a tenant: {missing:?}");
}
