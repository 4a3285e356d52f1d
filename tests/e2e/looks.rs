//! Looking at changes that are hard to compare, and the audit log of calls that change nothing.

use serde_json::{Value, json};

use crate::kit::World;
use crate::kit::server::{Server, key};

const AGENT: &str = "---\nname: turner\ndescription: d\ntools: Bash\n---\nBe brief.\n";

const SCRIPT: &str = "
transcript: 1
each_run: true
agents:
  - agent: turner
    turns:
      - calls: [{name: Bash, arguments: {command: 'tac big.txt > turned && cat turned > big.txt && rm turned && echo more >> small.txt'}}]
      - say: turned
";

/// Just below 4 MiB, of lines that are empty or one letter.
fn letters() -> String {
    let mut text = String::new();
    let mut at = 1_u64;
    while text.len() < (4 << 20) - 2 {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push_str(if (at >> 60).is_multiple_of(2) { "\n" } else { "x\n" });
    }
    text
}

fn world() -> World {
    let world = World::new();
    world.home_file("agents/turner.md", AGENT);
    world.home_file("script.yaml", SCRIPT);
    world.home_file("belljar.toml", "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n");
    world.file("big.txt", &letters());
    world.file("small.txt", "one\n");
    world
}

/// INV-410.
#[test]
fn a_run_that_turned_a_file_of_empty_lines_ends_and_its_changes_are_told_and_decided() {
    let world = world();
    world.run(&["run", "--agent", "turner", "go"]).exits(0).complains("2 files changed");
    world.run(&["changes", "--stat"]).exits(0).says("lines replaced").says("small.txt");
    let told = world.run(&["changes", "--json"]).exits(0).stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    let files = &told["places"][0]["files"];
    assert_eq!((&files[0]["path"], &files[0]["replaced"]), (&json!("big.txt"), &json!(true)));
    assert_eq!((&files[1]["replaced"], &files[1]["added"]), (&json!(false), &json!(1)), "{files}");
    world.run(&["apply", "--yes", "small.txt"]).exits(0);
    world.run(&["discard", "--yes"]).exits(0);
    let read = |name: &str| std::fs::read_to_string(world.workspace().join(name)).unwrap();
    assert_eq!(read("small.txt"), "one\nmore\n");
    assert!(read("big.txt") == letters(), "the workspace stays as it is");
}

/// INV-411, INV-413.
#[test]
fn a_reader_changes_nothing_and_calls_that_change_nothing_leave_no_line() {
    let world = world();
    let (reader, member) = (key(&world, "local", "read-only"), key(&world, "local", "member"));
    let admin = key(&world, "local", "admin");
    let server = Server::start(&world, &["--apply"]);
    let bearer = |key: &str| format!("authorization: Bearer {key}\r\n");
    let chat = |body: Value| {
        let (status, said) = server.post("/v1/chat", &bearer(&member), &body.to_string());
        assert_eq!(status, 200, "{said}");
        serde_json::from_str::<Value>(&said).unwrap()
    };
    let answer = chat(json!({"agent": "turner", "text": "go"}));
    let session = answer["session"].as_str().unwrap().to_owned();
    let path = |what: &str| format!("/v1/sessions/{session}/{what}");
    let (status, said) = server.get(&path("changes"), Some(&reader));
    assert_eq!(status, 200, "{said}");
    let place = serde_json::from_str::<Value>(&said).unwrap()["places"][0].clone();
    assert_eq!((&place["interrupted"], &place["uncounted"]), (&json!(false), &json!(0)));
    assert_eq!(place["files"][0]["replaced"], true, "{place}");

    let lines = || {
        let (status, said) = server.get("/v1/audit?limit=200", Some(&admin));
        assert_eq!(status, 200, "{said}");
        let audit: Value = serde_json::from_str(&said).unwrap();
        audit["entries"].as_array().unwrap().len()
    };
    let before = lines();
    for (what, body) in [
        ("cancel", "{}"),
        ("cancel", r#"{"subagent": "turner/other#0"}"#),
        ("undo", "{}"),
        ("resume", ""),
        ("apply", r#"{"paths": ["nothing-there"]}"#),
        ("discard", r#"{"paths": ["nothing-there"]}"#),
        ("discard", r#"{"place": "/elsewhere"}"#),
    ] {
        for _ in 0..3 {
            let (status, said) = server.post(&path(what), &bearer(&member), body);
            assert_eq!(status, 200, "{what} {body}: {said}");
        }
        assert_eq!(lines(), before, "{what} {body}");
    }
    // What changes something has its line.
    let paths = r#"{"paths": ["small.txt"]}"#;
    let (status, said) = server.post(&path("apply"), &bearer(&member), paths);
    assert_eq!(status, 200, "{said}");
    assert_eq!(lines(), before + 1);
    chat(json!({"session": session, "text": "again"}));
}
