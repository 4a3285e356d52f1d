//! The hints of messages: each names a command or a setting that helps.

use belljar_kit::peers::{HttpPeer, Reply};

use crate::kit::World;

const SCOUT: &str = "---\nname: scout\ndescription: d\ntools: [file_read]\n---\nYou look.\n";

#[test]
fn a_model_that_gives_no_answer_is_told_with_the_key_of_its_section() {
    for (status, body, error, hint) in [
        ("401 Unauthorized", "{}", "refused the key", "`key_env` or `key_file` of `[models.far]`"),
        ("404 Not Found", "{}", "HTTP 404", "`model` and `base_url` of `[models.far]`"),
        (
            "200 OK",
            "<html>It works!</html>",
            "could not be understood",
            "`base_url` of `[models.far]`",
        ),
    ] {
        let world = World::new();
        let json = "content-type: application/json\r\n";
        let url = HttpPeer::with_reply(Reply::new(status, json, body)).url("/v1");
        world.home_file(
            "belljar.toml",
            &format!("[models.far]\nkind = 'openai'\nbase_url = '{url}'\nmodel = 'x'\n[roles]\nmain = 'far'\n"),
        );
        world.run(&["run", "-q", "look"]).exits(1).complains(error).complains(hint);
        let done = world.run_with_stdin(&["chat", "-q"], "look\n").exits(1);
        done.complains(error).complains(hint);
        world.run(&["sessions", "show", "latest"]).exits(0).says("why: ").says(error);
        world.run(&["replay", "latest"]).exits(0).says("no tool was called");
    }
}

#[test]
fn without_a_model_init_is_named() {
    World::new().run(&["run", "look"]).exits(5).complains("`belljar init` finds a key");
}

#[test]
fn a_word_that_is_no_file_and_no_agent_is_told_with_the_agent_that_is_meant() {
    let world = World::new();
    world.home_file("agents/scout.md", SCOUT);
    world.home_file("agents/plain.md", "You look.\n");
    world.run(&["agents", "check", "scot"]).exits(2).complains("did you mean `scout`?");
    world.run(&["agents", "check", "zzzz"]).exits(2).complains("`belljar agents list` shows all");
    // Without frontmatter it is no agent; whoever put it there is told which file that is.
    let missed = world.run(&["run", "--agent", "plain", "look"]).exits(2);
    missed.complains("plain.md` could not be understood; see `belljar agents check`");
}

#[test]
fn explain_says_where_to_look_on_for_agents_and_for_hosts() {
    let world = World::new();
    let refused = world.run(&["explain", "general-purpose", "spawn_agent", "nobody"]).exits(4);
    assert!(!refused.stdout.contains("belljar tools list"), "{}", refused.stdout);
    refused.says("`belljar agents show general-purpose` lists whom it may call");
    world
        .run(&["explain", "general-purpose", "web_fetch", "docs.rs/serde"])
        .exits(4)
        .says("`docs.rs/serde` was taken for a path")
        .says("`https://docs.rs/serde`");
    let path = world.run(&["explain", "general-purpose", "web_fetch", "/workspace/a.md"]).exits(4);
    assert!(!path.stdout.contains("taken for a path"), "{}", path.stdout);
}

#[test]
fn a_grant_says_what_its_agent_still_lacks() {
    let world = World::new();
    world.home_file("agents/scout.md", SCOUT);
    let done = world.run(&["grant", "scout", "--tool", "file_list", "--yes"]).exits(0);
    done.complains("leaves it out; add it to `tools` in").complains("scout.md`");
    let done = world.run(&["grant", "scout", "--mount", "/data:/no/such:read", "--yes"]).exits(0);
    done.complains("`home/scout` is still blocked");
    for wrong in ["/workspace", "/workspace:write", "/data:/srv"] {
        let refused = world.run(&["grant", "scout", "--mount", wrong, "--yes"]).exits(2);
        refused.complains("`read`, `overlay` or `read-write`");
    }
}

#[test]
fn arguments_and_components_that_cannot_be_read_are_told_with_what_to_write() {
    let world = World::new();
    let refused = world.run(&["tools", "call", "file_read", "notes.md"]).exits(2);
    refused.complains("not JSON").complains("`'{\"name\": \"value\"}'`");
    for args in [&["tools", "inspect", "x/tool.wasm"][..], &["tools", "call", "x/tool.wasm", "{}"]]
    {
        world.run(args).exits(2).complains("`belljar tools build PROJECT`");
    }
}

#[test]
fn models_that_a_library_names_and_nobody_configured_are_told_before_it_is_installed() {
    let world = World::new();
    let settings = "[models.main]\nkind = 'scripted'\nmodel = 'x.yaml'\n";
    world.home_file("belljar.toml", settings);
    let agent = |name: &str, model: &str| {
        format!("---\nname: {name}\ndescription: d\nmodel: {model}\ntools: Read\n---\nDo.\n")
    };
    world.file("lib/a.md", &agent("a", "GPT-9"));
    world.file("lib/b.md", &agent("b", "sonnet"));
    let done = world.run(&["agents", "add", "lib", "--yes"]).exits(0);
    done.complains("1 agent of it cannot run as written").complains("`GPT-9`");
    world.run(&["agents", "show", "library/lib/a"]).says("GPT-9 (not configured: `--model NAME`");
    let other = world.run(&["agents", "show", "library/lib/b"]).exits(0);
    assert!(!other.stdout.contains("not configured"), "{}", other.stdout);
    world.home_file("agents/plain.md", "---\nname: plain\ndescription: d\n---\nDo.\n");
    world.run(&["agents", "check", "plain"]).exits(0).says("agent `plain` (any program)");
}

#[test]
fn tenants_are_told_by_name() {
    let world = World::new();
    world.run(&["tenants", "add", "acme"]).exits(0);
    world.run(&["tenants", "add", "acme"]).exits(2).complains("there is a tenant `acme` already");
    world.run(&["tenants", "disable", "nope"]).exits(2).complains("`belljar tenants list`");
    world.run(&["tenants", "disable", "acme"]).exits(0).complains("what runs goes on");
    let again = world.run(&["tenants", "disable", "acme", "--enable"]).exits(0);
    assert!(!again.stderr.contains("what runs goes on"), "{}", again.stderr);
}

#[test]
fn a_session_that_is_not_there_is_told_with_the_list_of_those_that_are() {
    let world = World::new();
    let settings = "[models.main]\nkind = 'scripted'\nmodel = 'x.yaml'\n[roles]\nmain = 'main'\n";
    world.home_file("belljar.toml", settings);
    let refused = world.run_with_stdin(&["chat", "--resume", "zzz"], "").exits(2);
    refused.complains("`belljar sessions list`");
}

#[test]
fn help_names_the_home_and_the_exit_codes_of_what_answers_by_one() {
    let world = World::new();
    world.run(&["--help"]).exits(0).says("BELLJAR_HOME=DIR").says("BELLJAR_CACHE=DIR");
    for command in ["explain", "doctor", "apply", "run"] {
        world.run(&[command, "--help"]).exits(0).says("Exit codes:");
    }
}
