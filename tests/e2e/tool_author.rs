//! `belljar tools call` as the author of a tool meets it: why a call failed, and what it lacks.

use std::io::Read as _;
use std::net::SocketAddr;

use belljar_kit::peers::{HttpPeer, Reply};
use serde_json::{Value, json};

use crate::kit::{Done, World};

/// A tool that does what its arguments say.
const PROBE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../prove/prebuilt/probe.wasm");

/// A secret of the author's.
const KEY: &str = "canary-7d1f0b6c2a94";

/// A world with the tool and its manifest, and the path of the component.
fn world(manifest: &str) -> (World, String) {
    let world = World::new();
    let manifest = format!("manifest = 1\ndescription = \"A probe.\"\n{manifest}");
    world.other("tool/tool.toml", manifest.as_bytes());
    let component = world.other("tool/probe.wasm", &std::fs::read(PROBE).unwrap());
    (world, component.to_str().unwrap().to_owned())
}

/// The call of the tool with these steps.
fn call<'a>(component: &'a str, steps: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["tools", "call", component, steps][..], more].concat()
}

fn steps(steps: &Value) -> String {
    json!({ "steps": steps }).to_string()
}

fn no_escape(done: &Done) {
    let text = format!("{}{}", done.stdout, done.stderr);
    assert!(!text.chars().any(|c| c != '\n' && c.is_control()), "{text:?}");
}

#[test]
fn a_panic_is_shown_with_its_place_its_message_and_what_the_tool_printed() {
    let (world, component) = world("");
    let steps = steps(&json!([
        {"do": "say", "text": "loading\u{1b}[2J the table\n", "stderr": true},
        {"do": "say", "text": "half a result\n"},
        {"do": "panic", "text": "no tide\u{202e} today"},
    ]));
    let done = world.run(&call(&component, &steps, &[])).exits(1);
    let done = done.complains("stderr: loading\\u{1b}[2J the table");
    let done = done.complains("stdout: half a result");
    let error = done.stderr.lines().find(|line| line.starts_with("error:")).unwrap();
    assert!(error.contains("the tool crashed: it panicked at "), "{error}");
    assert!(error.ends_with("no tide\\u{202e} today"), "{error}");
    no_escape(&done);
    // A program that reads JSON gets what it got.
    let told = world.run(&call(&component, &steps, &["--json"])).exits(1).json();
    let error = told["outcome"]["error"].as_str().unwrap();
    assert!(error.starts_with("the tool crashed: wasm trap:"), "{error}");
    // The neighbour is unharmed.
    world.file("note.txt", "six\n");
    world.run(&["tools", "call", "file_read", r#"{"path": "note.txt"}"#]).exits(0).says("six");
}

#[test]
fn a_flood_on_stderr_is_cut_and_counted() {
    let (world, component) = world("");
    let steps = steps(&json!([{"do": "stdio", "bytes": 300_000, "stderr": true}]));
    let done = world.run(&call(&component, &steps, &[])).exits(0);
    assert!(done.stderr.len() < 100_000, "{} bytes", done.stderr.len());
    done.complains("more of stdout and stderr are not kept");
}

#[test]
fn an_exit_without_a_status_is_told_without_one() {
    let (world, component) = world("");
    let exit = |ok: bool| steps(&json!([{"do": "exit", "ok": ok}]));
    let failed = world.run(&call(&component, &exit(false), &[])).exits(1);
    let failed = failed.complains("the tool crashed: it exited with a failure");
    assert!(!failed.stderr.contains("status"), "{}", failed.stderr);
    let ended = world.run(&call(&component, &exit(true), &[])).exits(1);
    ended.complains("it exited in the middle of the call");
}

fn request(address: SocketAddr) -> String {
    let to = json!({"scheme": "http", "authority": address.to_string(), "path": "/"});
    steps(&json!([{"do": "http", "request": to}]))
}

#[test]
fn a_refused_host_is_named_with_the_option_that_lets_the_call_reach_it() {
    let (world, component) = world("hosts = [\"http://*\", \"http://127.0.0.1:*\"]\n");
    let peer = HttpPeer::with_reply(Reply::text("fine"));
    let address = peer.address;
    let rule = format!("http://{address}");
    let refused = world.run(&call(&component, &request(address), &[])).exits(0);
    let refused = refused.complains(&format!("it asked for `{rule}`"));
    let refused = refused.complains(&format!("hint: `--host {rule}` lets this call reach it"));
    assert!(!refused.stderr.contains("tool.toml` does not"), "{}", refused.stderr);
    // The tool itself, and a program, are told the refusal and no way around it.
    assert!(!refused.stdout.contains("--host"), "{}", refused.stdout);
    let told = world.run(&call(&component, &request(address), &["--json"])).exits(0);
    assert!(!format!("{}{}", told.stdout, told.stderr).contains("--host"), "{}", told.stdout);
    // Another host granted is not this one.
    let other = ["--host", "http://127.0.0.1:1"];
    let other = world.run(&call(&component, &request(address), &other)).exits(0);
    other.complains(&format!("`--host {rule}`"));
    let reached = world.run(&call(&component, &request(address), &["--host", &rule])).exits(0);
    assert!(reached.stdout.contains("fine"), "{}{}", reached.stdout, reached.stderr);
    assert!(peer.next_request().head.starts_with("GET / HTTP/1.1"));
}

#[test]
fn a_host_that_the_manifest_lacks_is_named_with_the_line_that_asks_for_it() {
    let (world, component) = world("");
    let at: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let done = world.run(&call(&component, &request(at), &["--host", "http://127.0.0.1:9"]));
    done.exits(0)
        .complains("its `tool.toml` does not ask for it: `hosts = [\"http://127.0.0.1:9\"]`");
}

#[test]
fn a_refused_write_is_shown_with_the_option_that_lets_the_call_write() {
    let world = World::new();
    let write = ["tools", "call", "file_write", r#"{"path": "new.txt", "content": "x"}"#];
    let hint = "hint: `--allow-write` lets this call write the workspace";
    let refused = world.run(&write).exits(1).complains(hint);
    assert_eq!(refused.stderr.matches("hint:").count(), 1, "{}", refused.stderr);
    assert!(!refused.stderr.contains("tool.toml"), "{}", refused.stderr);
    assert!(!world.workspace().join("new.txt").exists());
    // The tool, and a program that reads what comes of it, are told no way around it.
    let told = world.run(&[&write[..], &["--json"]].concat()).exits(1);
    assert!(
        !format!("{}{}", told.stdout, told.stderr).contains("--allow-write"),
        "{}",
        told.stdout
    );
    let done = world.run(&[&write[..], &["--allow-write"]].concat()).exits(0);
    assert!(!done.stderr.contains("hint:"), "{}", done.stderr);
    assert!(world.workspace().join("new.txt").exists());
}

#[test]
fn a_write_that_the_manifest_lacks_is_shown_with_the_line_that_asks_for_it() {
    let (world, component) = world("mounts = \"read\"\n");
    let steps = steps(&json!([{"do": "write-file", "place": {"path": "new.txt"}, "text": "x"}]));
    let line = "its `tool.toml` does not ask to write: `mounts = \"read-write\"`";
    let done = world.run(&call(&component, &steps, &["--allow-write"])).exits(0).complains(line);
    assert!(!done.stderr.contains("`--allow-write` lets"), "{}", done.stderr);
    assert!(!world.workspace().join("new.txt").exists());
    world.run(&call(&component, &steps, &[])).complains(line);
}

#[test]
fn a_secret_of_the_command_line_goes_to_the_hosts_of_the_call_and_is_shown_nowhere() {
    let hosts = "hosts = [\"http://127.0.0.1:*\"]\n";
    let (world, component) = world(&format!("{hosts}secrets = [\"weather\"]\n"));
    let peer = HttpPeer::with_reply(Reply::text("fine"));
    let address = peer.address;
    let rule = format!("http://{address}");
    let request = request(address);
    let more = ["--host", &rule, "--secret", "weather=env:WEATHER_KEY"];
    let output = world.command(&call(&component, &request, &more)).env("WEATHER_KEY", KEY).output();
    let done = Done::of(output.unwrap()).exits(0);
    assert!(!format!("{}{}", done.stdout, done.stderr).contains(KEY), "{}", done.stderr);
    let asked = peer.next_request();
    assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {KEY}")));
    // With a header of its own, out of a file.
    let file = world.other("key.txt", format!("{KEY}\n").as_bytes());
    let secret = format!("weather=file:{},header=X-Key", file.to_str().unwrap());
    let done = world.run(&call(&component, &request, &["--host", &rule, "--secret", &secret]));
    done.exits(0);
    assert_eq!(peer.next_request().header("x-key"), Some(KEY));
}

#[test]
fn a_secret_that_cannot_be_given_is_refused_with_the_reason() {
    let (world, component) = world("hosts = [\"https://api.test\"]\n");
    let at = |more: &[&str]| world.run(&call(&component, r#"{"steps": []}"#, more));
    let value = at(&["--secret", &format!("weather={KEY}")]).exits(2).complains("env:VARIABLE");
    assert!(!value.stderr.contains(KEY), "{}", value.stderr);
    at(&["--secret", "weather"]).exits(2).complains("there is no secret `weather`");
    let unset = ["--host", "https://api.test", "--secret", "weather=env:NOT_SET_HERE"];
    at(&unset).exits(2).complains("`NOT_SET_HERE` is not set");
    let key = world.other("key.txt", KEY.as_bytes());
    let secret = format!("weather=file:{}", key.to_str().unwrap());
    at(&["--secret", &secret]).exits(2).complains("`--host https://api.example.org`");
    // A tool gets no secret that its manifest does not ask for.
    let steps = steps(&json!([{"do": "has-secret", "name": "weather"}]));
    let more = ["--host", "https://api.test", "--secret", &secret];
    let done = world.run(&call(&component, &steps, &more)).exits(0).says("false");
    done.complains("does not get secret `weather`");
}

#[test]
fn a_tool_of_a_file_is_called_by_its_name() {
    let (world, component) = world("");
    let steps = r#"{"steps": [{"do": "say", "text": "here"}]}"#;
    world.run(&call(&component, steps, &["--tool", "probe"])).exits(0).complains("stdout: here");
    let none = world.run(&call(&component, steps, &["--tool", "another"])).exits(2);
    none.complains("no tool `another`").complains("it has `probe`");
    world.run(&call(&component, steps, &["--tool", "A b"])).exits(2);
}

/// A run in which an agent's `web_fetch` is refused a host.
fn refused_run(world: &World) -> String {
    world.home_file(
        "agents/reader.md",
        "---\nname: reader\ndescription: d\ntools: [web_fetch]\n---\nRead.\n",
    );
    world.run(&["grant", "reader", "--tool", "web_fetch", "--yes"]).exits(0);
    let transcript = "transcript: 1\nagents:\n  - agent: reader\n    turns:\n      - calls: [{name: \
        web_fetch, arguments: {url: 'https://tides.test/today'}}]\n      - say: Refused.\n";
    world.other("transcript.yaml", transcript.as_bytes()).to_str().unwrap().to_owned()
}

#[test]
fn a_run_names_the_grant_of_a_refused_host_to_the_operator_and_to_nobody_else() {
    let world = World::new();
    let transcript = refused_run(&world);
    let line = "`belljar grant reader --host https://tides.test` lets it";
    let run = |more: &[&str]| {
        let args = ["run", "--agent", "reader", "--transcript", &transcript];
        world.run(&[&args[..], more, &["look at tides.test"]].concat()).exits(0)
    };
    let told = run(&[]).complains(line);
    assert!(!told.stdout.contains("--host"), "{}", told.stdout);
    for more in [&["--json"][..], &["--output-format", "stream-json"]] {
        let read = run(more).complains(line);
        // Events, receipts and what the model was answered.
        assert!(!read.stdout.contains("--host"), "{}", read.stdout);
        assert!(read.stdout.contains("web_fetch"), "{}", read.stdout);
    }
    let receipts = world.run(&["receipts", "latest"]).exits(0);
    receipts.complains("`belljar explain reader web_fetch https://tides.test` says what would");
    // What it says is true.
    world.run(&["grant", "reader", "--host", "https://tides.test", "--yes"]).exits(0);
    world.run(&["explain", "reader", "web_fetch", "https://tides.test"]).exits(0).says("allowed");
}

#[test]
fn a_host_that_only_a_model_named_has_no_grant_that_is_ready() {
    let world = World::new();
    let transcript = refused_run(&world);
    let told = |task: &str| {
        let args = ["run", "--agent", "reader", "--transcript", &transcript, task];
        let done = world.run(&args).exits(0);
        let ready = done.stderr.contains("belljar grant");
        let explained =
            done.stderr.contains("`belljar explain reader web_fetch https://tides.test` says");
        assert!(done.stderr.contains("did not reach `https://tides.test`"), "{}", done.stderr);
        assert_ne!(ready, explained, "{}", done.stderr);
        ready
    };
    for task in ["go", "ask tides.example", "http://tides.test"] {
        assert!(!told(task), "{task}");
    }
    let text = std::fs::read_to_string(world.home().join("belljar.toml")).unwrap_or_default();
    // The person, the settings, the agent's own file.
    assert!(told("see https://tides.test/today"));
    let other = "\n[grants.other]\nhosts = ['https://tides.test']\n";
    world.home_file("belljar.toml", &format!("{text}{other}"));
    assert!(told("go"));
    world.home_file("belljar.toml", &text);
    assert!(!told("go"));
    for (hosts, names) in [("https://*", false), ("https://tides.test", true)] {
        let agent = format!(
            "---\nname: reader\ndescription: d\ntools: [web_fetch]\nhosts: ['{hosts}']\n---\nRead.\n"
        );
        world.home_file("agents/reader.md", &agent);
        let args = ["run", "--agent", "reader", "--partial", "--transcript", &transcript, "go"];
        let done = world.run(&args).exits(0);
        assert_eq!(done.stderr.contains("belljar grant"), names, "{hosts}: {}", done.stderr);
    }
}

#[test]
fn an_unpinned_tool_is_warned_of_once() {
    let world = World::new();
    let transcript = refused_run(&world);
    let home = world.home().join("tools/probe");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::copy(PROBE, home.join("tool.wasm")).unwrap();
    std::fs::write(home.join("tool.toml"), "manifest = 1\ndescription = \"A probe.\"\n").unwrap();
    let grant = "[grants.reader.tools]\nweb_fetch = \"allow\"\nprobe = \"allow\"\n";
    world.home_file("belljar.toml", grant);
    let agent = "---\nname: reader\ndescription: d\ntools: [web_fetch, probe]\n---\nRead.\n";
    world.home_file("agents/reader.md", agent);
    for more in [&[][..], &["--json"], &["--output-format", "stream-json"]] {
        let args = ["run", "--agent", "reader", "--partial", "--transcript", &transcript];
        let done = world.run(&[&args[..], more, &["go"]].concat()).exits(0);
        let count = done.stderr.matches("is not pinned").count();
        assert_eq!(count, 1, "{more:?}: {}", done.stderr);
    }
}

/// The conformance component in C, deflated.
const CONFORMANCE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/conformance/components/c.wasm.deflate");

#[test]
fn the_suite_says_what_a_component_passes_fails_and_does_not_offer() {
    let (world, probe) = world("");
    let none = world.run(&["tools", "test", &probe]).exits(0);
    assert!(none.complains(" 0 pass, 0 fail").stdout.contains("there is no `conf_echo`"));
    let mut wasm = Vec::new();
    let packed = std::fs::read(CONFORMANCE).unwrap();
    flate2::read::DeflateDecoder::new(packed.as_slice()).read_to_end(&mut wasm).unwrap();
    let whole = world.other("whole/tool.wasm", &wasm);
    let whole = world.run(&["tools", "test", whole.to_str().unwrap()]).exits(0);
    whole.complains(" pass, 0 fail, 0 not offered");
    let at = wasm.windows(8).position(|eight| eight == b"reported").unwrap();
    wasm[at..at + 8].copy_from_slice(b"rep\x1b[2Jd");
    let wrong = world.other("wrong/tool.wasm", &wasm);
    let wrong = world.run(&["tools", "test", wrong.to_str().unwrap()]).exits(1);
    no_escape(&wrong);
    assert!(wrong.stdout.lines().any(|line| line.starts_with("fail") && line.contains("progress")));
}
