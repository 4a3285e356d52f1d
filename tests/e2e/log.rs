//! The log of a server, as the program that collects it reads it.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::kit::World;
use crate::kit::server::{Server, key};

const TRANSCRIPT: &str = "
transcript: 1
each_run: true
agents:
  - agent: reader
    turns:
      - calls: [{name: file_read, arguments: {path: ../secret.txt}}, {name: shell, arguments: {command: ls}}]
      - say: that was all
";

/// A tenant with an agent that is refused what it wants.
fn tenant(world: &World, name: &str) -> String {
    world.run(&["tenants", "add", name]).exits(0);
    let home = format!("{}/home", world.tenant(name));
    let agent = "---\nname: reader\ndescription: d\ntools: ['*']\n---\nBe brief.\n";
    world.home_file(&format!("{home}/agents/reader.md"), agent);
    world.home_file(&format!("{home}/transcript.yaml"), TRANSCRIPT);
    let model = "[models.main]\nkind = 'scripted'\nmodel = 'transcript.yaml'\n";
    let grants = "[grants.reader]\ntools = ['file_read']\nhosts = []\n";
    world.home_file(&format!("{home}/belljar.toml"), &format!("{model}{grants}"));
    key(world, name, "member")
}

fn chat(server: &Server, key: &str) {
    let auth = format!("authorization: Bearer {key}\r\n");
    let (status, said) = server.post("/v1/chat", &auth, r#"{"agent": "reader", "text": "go"}"#);
    assert_eq!(status, 200, "{said}");
}

/// Every line as the object that it is.
fn lines(stderr: &str) -> Vec<Value> {
    let line = |line: &str| {
        let value: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        for field in ["timestamp", "level", "target"] {
            assert!(value[field].is_string(), "no `{field}` in {line}");
        }
        assert!(value["fields"]["message"].is_string(), "{line}");
        value
    };
    stderr.lines().map(line).collect()
}

#[test]
fn every_line_of_a_servers_log_is_a_json_object_from_its_start_to_its_end() {
    let world = World::new();
    let key = tenant(&world, "blue");
    // Something to be said of, before the first line and after.
    world.home_file(
        "belljar.toml",
        "[secrets.api]\nhost = 'https://a.example'\nheader = 'x'\nenv = 'NOT_SET'\n",
    );
    world.run(&["tenants", "add", "bad"]).exits(0);
    world.home_file(&format!("{}/home/belljar.toml", world.tenant("bad")), "nothing = 1\n");
    let server = Server::start(&world, &["--public"]);
    chat(&server, &key);
    server.signal(Signal::HUP);
    let done = server.terminate().exits(0);
    let lines = lines(&done.stderr);
    let said = |level: &str, text: &str| {
        let is = |line: &Value| {
            line["level"] == level && line["fields"]["message"].as_str().unwrap().contains(text)
        };
        assert!(lines.iter().any(is), "no {level} `{text}` in {}", done.stderr);
    };
    said("WARN", "secret `api` cannot be used");
    said("WARN", "tenant `bad` is not served");
    said("INFO", "3 tenants, 1 of them not served; the OS sandbox: stands");
    said("INFO", "stopped");
    // Why it does not start, too.
    let done = world.run(&["serve", "--listen", "192.0.2.1:1"]).exits(1);
    let [why] = &self::lines(&done.stderr)[..] else { panic!("{}", done.stderr) };
    assert!(why["fields"]["message"].as_str().unwrap().contains("hint: choose another address"));
}

#[test]
fn on_a_terminal_every_line_of_the_log_is_a_sentence_from_the_first_to_the_last() {
    let world = World::new();
    let belljar = env!("CARGO_BIN_EXE_belljar");
    let line = format!("BELLJAR_LOG=info,belljar::access=debug exec '{belljar}' serve --listen 0");
    let own = world.command(&[]);
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(world.workspace()).env_clear();
    script.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.env("TERM", "dumb").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = script.spawn().unwrap();
    let mut shown = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    // A port alone is one of this machine.
    let address = loop {
        let from = text.len();
        assert!(shown.read_line(&mut text).unwrap() > 0, "it ended: {text}");
        let line = text[from..].trim();
        if let Some(address) = line.strip_prefix("listening on http://") {
            break address.to_owned();
        }
    };
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.read_to_string(&mut String::new()).unwrap();
    child.stdin.take().unwrap().write_all(b"\x03").unwrap();
    shown.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    for part in ["there are no keys", "the OS sandbox", "belljar::access", "stopped"] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let json = text.lines().find(|line| line.trim_start().starts_with('{'));
    assert_eq!(json, None, "{text}");
}

#[test]
fn a_denial_names_its_tenant_and_its_agent_in_the_log() {
    let world = World::new();
    let keys = ["blue", "red"].map(|name| tenant(&world, name));
    let server = Server::start(&world, &[]);
    keys.iter().for_each(|key| chat(&server, key));
    let done = server.terminate().exits(0);
    let denials: Vec<Value> = lines(&done.stderr)
        .into_iter()
        .filter(|line| line["target"] == "belljar::denied")
        .collect();
    let tenants: Vec<&str> =
        denials.iter().map(|line| line["span"]["tenant"].as_str().unwrap()).collect();
    // A path and a tool each.
    assert_eq!(tenants, ["blue", "blue", "red", "red"], "{denials:#?}");
    assert!(denials.iter().all(|line| line["span"]["path"] == "reader"), "{denials:#?}");
}

#[test]
fn an_access_log_is_there_when_it_is_asked_for_and_holds_no_key_or_query() {
    let world = World::new();
    let key = tenant(&world, "blue");
    for (filter, expected) in [("info", 0), ("info,belljar::access=debug", 3)] {
        let server = Server::start_with(&world, &[], &[("BELLJAR_LOG", filter)]);
        assert_eq!(server.get("/v1/sessions?limit=5", Some(&key)).0, 200);
        assert_eq!(server.get("/v1/sessions", None).0, 401);
        assert_eq!(server.get("/healthz", None).0, 200);
        let done = server.terminate().exits(0);
        let lines = lines(&done.stderr);
        let access: Vec<&Value> =
            lines.iter().filter(|line| line["target"] == "belljar::access").collect();
        assert_eq!(access.len(), expected, "{}", done.stderr);
        if let [first, second, _] = access[..] {
            let first = &first["fields"];
            assert_eq!(
                (&first["request"], &first["status"]),
                (&"GET /v1/sessions".into(), &200.into())
            );
            assert_eq!(
                (&first["tenant"], &first["actor"]),
                (&"blue".into(), &format!("key:{}", &key[3..19]).into())
            );
            assert_eq!(
                (&second["fields"]["status"], second["fields"].get("tenant")),
                (&401.into(), None)
            );
        }
        assert!(!done.stderr.contains(&key[20..]) && !done.stderr.contains("limit="));
    }
}
