//! `belljar grant` and `belljar explain`, and what they change for a run.

use crate::kit::World;
use crate::run::{TASK, world};

const WRITER: &str = "---\nname: writer\ndescription: Writes.\ntools: [file_read, file_write]\nvisibility: user-facing\n---\nYou write.\n";

#[test]
fn a_blocked_agent_does_not_run_until_what_it_lacks_is_granted() {
    let (world, transcript) = world();
    world.home_file("belljar.toml", "[agents]\noverlay = 'never'\n");
    world.home_file("agents/writer.md", WRITER);
    let args = ["run", "--agent", "writer", "--transcript", &transcript, TASK];
    let done = world.run(&args).exits(4);
    assert!(done.stderr.contains("`belljar grant writer --asked`"), "{}", done.stderr);
    assert!(done.stderr.contains("file_write"), "{}", done.stderr);

    world.run(&["explain", "writer", "file_write"]).exits(4).says("grants");
    world.run(&["grant", "writer", "--tool", "file_write", "--yes"]).exits(0);
    world.run(&["explain", "writer", "file_write"]).exits(0);
    // The call is allowed; without a mount that can be written to, its path is not.
    world.run(&["explain", "writer", "file_write", "/workspace/a"]).exits(4);
    world.run(&["explain", "writer", "file_read"]).exits(0);
}

#[test]
fn a_partial_run_goes_on_with_what_is_granted() {
    let (world, transcript) = world();
    world.home_file("belljar.toml", "[agents]\noverlay = 'never'\n");
    world.home_file("agents/general-purpose.md", &WRITER.replace("writer", "general-purpose"));
    world.run(&["run", "--transcript", &transcript, TASK]).exits(4);
    let done = world.run(&["run", "--partial", "--transcript", &transcript, TASK]).exits(0);
    assert_eq!(done.stdout, "It says that the tide turns at six.\n");
}

#[test]
fn grant_shows_the_difference_keeps_comments_and_needs_a_yes() {
    let world = World::new();
    let text = "# my settings\n[grants.writer] # for notes\nhosts = [\"https://a.test\"]\n";
    let path = world.home_file("belljar.toml", text);
    world.home_file("agents/writer.md", WRITER);
    let args = ["grant", "writer", "--tool", "file_write=ask", "--host", "https://b.test"];
    world.run(&args).exits(2).complains("--yes");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);

    let mut yes = args.to_vec();
    yes.extend(["--mount", "/workspace:read-write", "--limit", "steps=50", "--yes"]);
    let done = world.run(&yes).exits(0);
    assert!(done.stdout.lines().any(|line| line.starts_with('+')), "{}", done.stdout);
    let new = std::fs::read_to_string(&path).unwrap();
    for part in ["# my settings", "# for notes", "https://a.test", "https://b.test", "read-write"] {
        assert!(new.contains(part), "no `{part}` in\n{new}");
    }
    world.run(&["explain", "writer", "file_write"]).exits(0).says("after asking you");
    world.run(&yes).exits(0).says("nothing to change");
}

#[test]
fn explain_and_the_list_name_the_field_that_decides() {
    let world = World::new();
    let file = "---\nname: quiet\ndescription: d\nmaxSubagentDepth: 0\n---\nYou look.\n";
    world.home_file("agents/quiet.md", file);
    let field = "`maxSubagentDepth` on line 4";
    world.run(&["explain", "quiet", "spawn_agent"]).exits(4).says(field);
    world.run(&["agents", "list"]).says(field);
    world.run(&["explain", "quiet", "file_read"]).exits(0);
}

#[test]
fn explain_names_the_source_that_decides() {
    let world = World::new();
    world.home_file("agents/writer.md", WRITER);
    let done = world.run(&["explain", "writer", "web_fetch"]).exits(4);
    done.says("agent definition").says("refuses");
    let done = world.run(&["explain", "writer", "file_read", "/workspace/a", "--write"]).exits(4);
    done.says("manifest");
    world.run(&["explain", "writer", "file_read", "/workspace/a"]).exits(0);
    let done =
        world.run(&["explain", "writer", "file_read", "https://a.test/x", "--json"]).exits(4);
    assert_eq!(done.json()["permission"], "deny");
}

#[test]
fn bad_rules_are_refused_before_anything_is_written() {
    let world = World::new();
    for args in [
        ["--host", "ftp://a"],
        ["--tool", "1x"],
        ["--tool", "file_read=maybe"],
        ["--mount", "workspace:read"],
        ["--mount", "/workspace:admin"],
        ["--limit", "stepz=4"],
        ["--limit", "steps=many"],
        ["--secret", "no such"],
    ] {
        let done = world.run(&["grant", "writer", args[0], args[1], "--yes"]).exits(2);
        assert!(done.stderr.contains("error:"), "{args:?}");
    }
    assert_eq!(world.home_state(), []);
}

#[test]
fn an_unknown_key_is_named_and_the_right_one_suggested() {
    let world = World::new();
    world.home_file("belljar.toml", "[grants.scout]\ntoolz = [\"file_read\"]\n");
    for args in [&["agents", "list"][..], &["run", "x"], &["doctor"]] {
        let done = world.run(args);
        assert_ne!(done.code, 0);
        let all = format!("{}{}", done.stdout, done.stderr);
        assert!(all.contains("toolz") && all.contains("`tools`"), "{args:?}: {all}");
        assert!(all.contains("belljar.toml:2:1"), "{args:?}: {all}");
    }
}

#[test]
fn a_workspace_file_may_not_widen() {
    let world = World::new();
    world.file(".belljar/belljar.toml", "project_override = true\n[models.x]\nkind = \"openai\"\n");
    world.run(&["agents", "list"]).exits(2).complains("project_override").complains("models");
}

#[test]
fn a_grant_that_would_have_no_effect_is_told_and_one_that_stops_all_is_refused() {
    let world = World::new();
    world.home_file("agents/writer.md", WRITER);
    let args = ["grant", "writer", "--tool", "web_fetch", "--mount", "/data:/no/such/place:read"];
    world
        .run(&args)
        .exits(2)
        .complains("the agent's own list of tools leaves it out")
        .complains("there is no directory `/no/such/place`");
    world.run(&["grant", "writer", "--limit", "steps=0"]).exits(2).complains("no agent can run");
}

#[test]
fn a_name_in_the_configuration_that_nothing_has_is_told_with_the_one_meant() {
    let world = World::new();
    world.home_file("agents/writer.md", WRITER);
    let text = "[grants.wirter]\ntools = []\n[grants.writer]\n\
                subagents = { allowed_agents = ['sumarizer'] }\n\
                [subagents]\nblocked_agents = ['writre', 'Writer']\n";
    world.home_file("belljar.toml", text);
    let checks = ["`home/wirter`", "`sumarizer`", "`writre`", "did you mean `writer`?"];
    let doctor = world.run(&["doctor"]).exits(0);
    let check = world.run(&["agents", "check"]);
    for found in [doctor.stdout, check.stderr] {
        for said in checks.into_iter().chain(["did you mean `summarizer`?", "belljar.toml:"]) {
            assert!(found.contains(said), "no {said} in:\n{found}");
        }
        assert!(!found.contains("names `Writer`"), "{found}");
    }
    world.home_file("teams/bad.yaml", "name: bad\n");
    world.run(&["doctor"]).exits(1).says("`belljar teams check`");
}

#[test]
fn a_granted_directory_that_is_not_there_is_told_before_anything_starts() {
    let world = World::new();
    let place = world.workspace().join("data");
    let mount = format!(
        "[grants.general-purpose]\nmounts = [{{ path = \"/data\", host = \"{}\", access = \"read\" }}]\n",
        place.display()
    );
    world.home_file("belljar.toml", &mount);
    let team = "name: t\ndescription: d\nstages:\n  - agent: general-purpose\n";
    world.home_file("teams/t.yaml", team);
    let transcript = "transcript: 1\nagents: [{agent: general-purpose, turns: [{say: ok}]}]\n";
    let transcript = world.other("t.yaml", transcript.as_bytes());
    let transcript = transcript.to_str().unwrap();
    let why = format!("there is no directory `{}`, which is mounted at `/data`", place.display());
    let run = ["run", "--partial", "--transcript", transcript, "x"];
    let start = ["teams", "run", "--transcript", transcript, "t", "x"];

    world.run(&["agents", "check", "general-purpose"]).exits(4).says(&why);
    world.run(&["agents", "check"]).exits(4).says("blocked").says(&why);
    world.run(&["agents", "list"]).exits(0).says("blocked").says(&why);
    world.run(&["teams", "check"]).exits(0).says("team `t`: blocked").complains(&why);
    world.run(&["doctor"]).exits(1).says(&why);
    world.run(&run).exits(4).complains(&why).complains("make the directory");
    world.run(&start).exits(4).complains(&why).complains("nothing was started");
    world.run(&["receipts"]).exits(0).complains("no runs");

    std::fs::create_dir(&place).unwrap();
    world.run(&["agents", "check"]).exits(0);
    world.run(&["teams", "check"]).exits(0).says("team `t`: ready");
    world.run(&["doctor"]).exits(0);
    world.run(&run).exits(0).says("ok");
}

#[test]
fn a_directory_beside_the_workspace_is_reached_by_its_guest_path_and_nothing_beside_it() {
    let world = World::new();
    let out = world.other("out/seen.txt", b"seen\n");
    let out = out.parent().unwrap();
    std::fs::create_dir(out.parent().unwrap().join("outer")).unwrap();
    let grant = format!(
        "[grants.general-purpose]\ntools = [\"file_read\", \"file_write\", \"file_list\"]\nmounts = [{{ path = \"/workspace\", access = \"read\" }}, {{ path = \"/out\", host = \"{}\", access = \"read-write\" }}]\n",
        out.display()
    );
    world.home_file("belljar.toml", &grant);
    let calls = "[{name: file_write, arguments: {path: /out/new.txt, content: fresh}}, {name: file_read, arguments: {path: /out/seen.txt}}, {name: file_list, arguments: {path: /out}}, {name: file_write, arguments: {path: /out/../outer/x, content: bad}}, {name: file_write, arguments: {path: x, content: bad}}]";
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: general-purpose\n    turns: [{{calls: {calls}}}, {{say: done}}]\n"
    );
    let transcript = world.other("mounts.yaml", transcript.as_bytes());
    let done = world.run(&["run", "--json", "--transcript", transcript.to_str().unwrap(), "x"]);
    let outcome = done.exits(0).json();
    let ending = |at: usize| outcome["receipts"][at]["receipt"]["ending"]["kind"].clone();
    assert_eq!(
        [ending(0), ending(1), ending(2)],
        ["completed", "completed", "completed"],
        "{outcome:#}"
    );
    assert_eq!(std::fs::read_to_string(out.join("new.txt")).unwrap(), "fresh");
    assert_eq!(outcome["receipts"][1]["receipt"]["paths_read"][0], "/out/seen.txt");
    assert!(ending(3) != "completed" && ending(4) != "completed", "{outcome:#}");
    assert!(!out.parent().unwrap().join("outer/x").exists(), "nothing beside it");
    assert!(!world.workspace().join("x").exists(), "nothing in the workspace");
}
