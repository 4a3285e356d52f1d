//! `belljar init` and the models that it finds.

use std::time::{Duration, Instant};

use belljar_kit::peers::{HttpPeer, Reply};

use crate::kit::{Done, World};

/// A server that gives each connection this reply, and then says no more until the client is gone.
fn server(reply: Reply) -> String {
    HttpPeer::with_reply(reply.then_stall()).url("")
}

fn json(body: &str) -> Reply {
    Reply::new("200 OK", "content-type: application/json\r\n", body)
}

fn config(world: &World) -> String {
    std::fs::read_to_string(world.home().join("belljar.toml")).unwrap()
}

/// `init` without a terminal, asking these servers.
fn init(world: &World, servers: &[&str]) -> Done {
    let mut args = vec!["init"];
    servers.iter().for_each(|url| args.extend(["--model-at", url]));
    world.run(&args)
}

#[test]
fn the_first_server_with_a_model_is_set_up_and_said_aloud() {
    let world = World::new();
    let empty = server(json(r#"{"data":[]}"#));
    let good = r#"{"data":[{"id":"nomic-embed-text"},{"id":"qwen3:8b","max_model_len":32768},{"id":"b"}]}"#;
    let good = server(json(good));
    let done = init(&world, &[&empty, &good]).exits(0);
    let done = done.says("wrote `[models.local]`").says(&format!("qwen3:8b at {good}/v1"));
    done.complains("not a list of models").complains("found too: b at").complains("to change it");
    let text = config(&world);
    let section = format!(
        "[models.local]\nkind = \"openai\"\nbase_url = \"{good}/v1\"\nmodel = \"qwen3:8b\"\ncontext_tokens = 32768\n"
    );
    assert!(text.contains(&section) && text.contains("main = \"local\""), "{text}");
    world.run(&["doctor"]).says("local (openai:qwen3:8b)");

    // What is configured stays, and that is said.
    let done = init(&world, &[&good]).exits(0).says("kept  the models of").says("local");
    assert!(!done.stdout.contains("wrote"), "{}", done.stdout);
    assert_eq!(config(&world), text);
}

#[test]
fn a_model_is_added_to_settings_that_have_none_and_nothing_else_changes() {
    let world = World::new();
    let mine = "# mine\nkeep_runs = 3\n\n[grants.scout] # hers\ntools = []\n";
    world.home_file("belljar.toml", mine);
    let good = server(json(r#"{"data":[{"id":"m"}]}"#));
    init(&world, &[&good]).exits(0);
    assert!(config(&world).starts_with(mine), "{}", config(&world));
    assert!(config(&world).contains("[models.local]"), "{}", config(&world));
}

#[test]
fn a_key_in_the_environment_is_named_and_never_written() {
    let world = World::new();
    let key = "sk-very-secret-0123456789";
    for (variable, section) in [
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("OPENAI_API_KEY", "openai"),
        ("OPENROUTER_API_KEY", "openrouter"),
    ] {
        drop(std::fs::remove_file(world.home().join("belljar.toml")));
        let mut command = world.command(&["init", "--yes"]);
        let done = Done::of(command.env(variable, key).output().unwrap()).exits(0);
        assert!(!done.stdout.contains(key) && !done.stderr.contains(key));
        done.says(&format!("`[models.{section}]`")).says(variable);
        let text = config(&world);
        assert!(text.contains(&format!("key_env = \"{variable}\"")), "{text}");
        assert!(
            world
                .home_state()
                .iter()
                .all(|(_, bytes)| !bytes.windows(9).any(|w| w == b"sk-very-s"))
        );
        let doctor = Done::of(world.command(&["doctor"]).env(variable, key).output().unwrap());
        doctor.exits(0).says(&format!("{section} ("));
    }
}

#[test]
fn a_hostile_server_costs_no_more_than_its_time_and_writes_nothing() {
    let world = World::new();
    init(&world, &["http://127.0.0.1:1"]).exits(5);
    let before = config(&world);
    let endless = Reply::bytes("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    let names = r#"{"data":[{"id":"a\u001b]0;pwned\u0007"},{"id":"b\nc"},{"id":"\u202eevil"}]}"#;
    let servers = [
        server(endless.clone()),
        server(endless.then_repeat(chunk)),
        server(Reply::default()),
        server(Reply::bytes("\x1b[31mnot http at all\r\n\r\n")),
        server(json("{\"data\": [{\"id\": ")),
        server(json(names)),
        server(json(&"[".repeat(100_000))),
        server(Reply::redirect("302 Found", "http://127.0.0.1:9/")),
        server(Reply::status("401 No")),
    ];
    let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
    let begun = Instant::now();
    let done = init(&world, &servers).exits(5);
    // All at once: far less than one after the other, on however slow a machine.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(done.stderr.matches("no model at http://127.0.0.1:").count(), servers.len());
    assert!(!done.stderr.contains('\u{1b}') && !done.stderr.contains("pwned"), "{}", done.stderr);
    let done = done.complains("no whole answer within").complains("it wants a key");
    done.complains("[models.main]");
    assert_eq!(config(&world), before);
}

#[test]
fn wrong_addresses_are_refused_and_looking_can_be_left_out() {
    let world = World::new();
    for wrong in ["127.0.0.1:8080", "ftp://a", "http://user:key@h"] {
        init(&world, &[wrong]).exits(2).complains("is not the address of a server");
    }
    let mut quiet = world.command(&["init", "--no-model"]);
    let done = Done::of(quiet.env("OPENAI_API_KEY", "sk-x").output().unwrap()).exits(0);
    assert!(!done.stdout.contains("models."), "{}", done.stdout);
    world.run(&["init", "--no-model", "--model-at", "http://h"]).exits(2);
    let workspace = world.workspace();
    let at = ["init", "--workspace", workspace.to_str().unwrap(), "--model-at", "http://h"];
    world.run(&at).exits(2).complains("a workspace's own settings name no model");
}
