//! Deciding over the API about more changes than one list shows.

use serde_json::{Value, json};

use crate::kit::World;
use crate::kit::server::Server;

const AGENT: &str = "---\nname: mover\ndescription: d\ntools: ['*']\n---\nBe brief.\n";

const SCRIPT: &str = "
transcript: 1
each_run: true
agents:
  - agent: mover
    turns:
      - calls: [{name: shell, arguments: {command: 'mv many moved && echo x > new.txt'}}]
      - say: moved
";

/// More than one list shows.
const FILES: usize = 5_003;

/// The files, their directory, and the new one.
const ENTRIES: usize = FILES + 2;

/// INV-270.
#[test]
fn what_was_never_listed_is_neither_applied_nor_thrown_away() {
    let world = World::new();
    world.home_file("agents/mover.md", AGENT);
    world.home_file("script.yaml", SCRIPT);
    world.home_file("belljar.toml", "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n");
    for number in 0..FILES {
        world.file(&format!("many/{number}.txt"), "x");
    }
    let server = Server::start(&world, &["--apply"]);
    let (status, said) = server.post("/v1/chat", "", r#"{"agent": "mover", "text": "go"}"#);
    assert_eq!(status, 200, "{said}");
    let answer: Value = serde_json::from_str(&said).unwrap();
    let path = format!("/v1/sessions/{}", answer["session"].as_str().unwrap());
    let list = |skip: usize| -> Value {
        let (status, said) = server.get(&format!("{path}/changes?skip={skip}"), None);
        assert_eq!(status, 200, "{said}");
        serde_json::from_str(&said).unwrap()
    };
    let (first, rest) = (list(0), list(5_000));
    let names = |list: &Value| -> Vec<String> {
        let files = list["places"][0]["files"].as_array().unwrap().iter();
        files.map(|file| file["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(first["places"][0]["entries"], ENTRIES, "{}", first["places"][0]["of"]);
    let mut all = names(&first);
    assert_eq!(all.len(), 5_000);
    all.extend(names(&rest));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), ENTRIES, "each of them is listed once");

    let as_of = &first["as_of"];
    let decide =
        |what: &str, body: Value| server.post(&format!("{path}/{what}"), "", &body.to_string());
    for (what, body, expected) in [
        ("apply", json!({}), 400),
        ("discard", json!({ "entries": ENTRIES }), 400),
        ("apply", json!({ "as_of": as_of, "entries": 5_000 }), 412),
        ("discard", json!({ "as_of": 1, "entries": ENTRIES }), 412),
    ] {
        let (status, said) = decide(what, body.clone());
        assert_eq!(status, expected, "{what} {body}: {said}");
        assert!(world.workspace().join("many/7.txt").exists());
        assert!(!world.workspace().join("moved").exists());
    }
    // Whoever names what they saw is not kept from it.
    let (status, said) = decide("apply", json!({ "as_of": as_of, "paths": ["new.txt"] }));
    assert_eq!(status, 200, "{said}");
    assert!(world.workspace().join("new.txt").exists());
    let (status, said) = decide("apply", json!({ "as_of": as_of, "entries": ENTRIES - 1 }));
    assert_eq!(status, 200, "{said}");
    assert!(world.workspace().join("moved/7.txt").exists());
    assert!(!world.workspace().join("many").exists());
}

/// INV-560.
#[test]
fn a_change_whose_name_is_no_text_is_decided_over_the_api_by_its_spelling() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let world = World::new();
    world.home_file("agents/mover.md", AGENT);
    let turns = SCRIPT.replace(
        "mv many moved && echo x > new.txt",
        r"echo x > ''caf\xE9.txt''; echo y > ''caf\x5CxE9.txt''",
    );
    world.home_file("script.yaml", &turns);
    world.home_file("belljar.toml", "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n");
    let server = Server::start(&world, &["--apply"]);
    let (status, said) = server.post("/v1/chat", "", r#"{"agent": "mover", "text": "go"}"#);
    assert_eq!(status, 200, "{said}");
    let answer: Value = serde_json::from_str(&said).unwrap();
    let path = format!("/v1/sessions/{}", answer["session"].as_str().unwrap());
    let (status, said) = server.get(&format!("{path}/changes"), None);
    assert_eq!(status, 200, "{said}");
    let listed: Value = serde_json::from_str(&said).unwrap();
    let files = listed["places"][0]["files"].as_array().unwrap();
    let mut names: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, [r"caf\x5CxE9.txt", r"caf\xE9.txt"]);
    let there = |name: &[u8]| world.workspace().join(OsStr::from_bytes(name)).exists();
    let body = json!({ "as_of": listed["as_of"], "paths": [r"caf\xE9.txt"] }).to_string();
    let (status, said) = server.post(&format!("{path}/apply"), "", &body);
    assert_eq!(status, 200, "{said}");
    let applied: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(applied["applied"], json!([r"caf\xE9.txt"]));
    assert!(there(b"caf\xe9.txt") && !there(b"caf\\xE9.txt"));
    // It leads nowhere else.
    let body = json!({ "paths": [r"..\x5CxE9"] }).to_string();
    let (status, said) = server.post(&format!("{path}/discard"), "", &body);
    assert_ne!(status, 500, "{said}");
    let (_, said) = server.get(&format!("{path}/changes"), None);
    assert!(said.contains(r"caf\\x5CxE9.txt"), "{said}");
}
